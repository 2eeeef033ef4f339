"""Examples: the benchmark measures the lines it names, at a size that says nothing about speed."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from skyband.errors import InvalidQuery
from skyband.study import limits, spark_state, startup
from skyband.study.results import Result, report, table, write
from skyband.study.sizes import (
    SPARK_JOIN_LINES,
    SPARK_LINES,
    SPARK_STATE_LINES,
    SPARK_TRIGGER_LINES,
    Sizes,
    SparkSizes,
)

TINY = Sizes(
    rows=20_000,
    batch_rows=5_000,
    passes=1,
    windows=(1_000, 10_000),
    startup_queries=("panes",),
    startup_rounds=1,
    spark=SparkSizes(
        rows=4_000,
        files=2,
        files_per_batch=1,
        group_rows=2_000,
        own_rows=2_000,
        wide_rows=2_000,
        triggers=2,
        state_windows=(2_000, 4_000),
        join_rows=10_000,
        rounds=1,
    ),
)
EMBEDDED = ["panes-10", "panes-1000", "arrival-9", "arrival-81", "groups", "growth"]


def silent(_: str) -> None:
    pass


def text_of(results: list[Result], *, official: bool) -> str:
    out = StringIO()
    Console(file=out, width=120).print(table(results, official=official))
    return out.getvalue()


def test_every_line_of_the_embedded_engine_is_measured() -> None:
    results = list(limits.measure(EMBEDDED, TINY, silent))
    assert [result.name for result in results] == EMBEDDED
    rates = [result for result in results if result.name not in SPARK_TRIGGER_LINES]
    assert all(result.rows_per_second and result.reference_rows_per_second and result.rows_held for result in rates)
    assert all(result.how and result.rows_expected for result in results)
    shown = text_of(results, official=False)
    assert "not the official figures" in shown
    assert all(result.workload in shown for result in results)


def test_a_fresh_process_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a query that compiles nothing, since compiling is what takes the time."""
    monkeypatch.setitem(
        startup.QUERIES, "panes", "k=1, by='price', window=sb.sliding(10, every=5), algorithm='recompute'"
    )
    results = list(limits.measure(["startup-cached", "startup-uncached"], TINY, silent))
    assert [result.name for result in results] == ["startup-cached", "startup-uncached"]
    assert all(result.measured > 0 and result.unit == "s" and result.at_most for result in results)


@pytest.mark.spark
def test_lines_of_spark_are_measured() -> None:
    """In a process of its own: the benchmark stops its Spark session, which other tests share.

    One line; with SKYBAND_TESTS=all every one, which takes two minutes.
    """
    every = [*SPARK_LINES, *SPARK_TRIGGER_LINES, *SPARK_STATE_LINES, *SPARK_JOIN_LINES]
    names = every if os.environ.get("SKYBAND_TESTS") == "all" else ["spark-scan"]
    program = (
        "import json; from dataclasses import asdict\n"
        "from skyband.study import spark; from skyband.study.sizes import SparkSizes\n"
        f"results = spark.measure({names}, SparkSizes(**{asdict(TINY.spark)}), lambda what: None)\n"
        "print(json.dumps([asdict(result) for result in results]))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    results = [Result(**result) for result in json.loads(run.stdout)]
    assert [result.name for result in results] == names
    rates = [result for result in results if result.name not in {*SPARK_TRIGGER_LINES, *SPARK_STATE_LINES}]
    assert all(result.rows_per_second and result.reference_rows_per_second and result.rows_held for result in rates)
    assert all("of JVM" in result.cpu for result in results if sys.platform == "linux" and result in rates)
    assert all(result.measured > 0 and result.rows_held for result in results if result.name in SPARK_STATE_LINES)


def test_what_a_micro_batch_wrote_is_the_size_of_its_files(tmp_path: Path) -> None:
    for partition, version, size in ((0, "2", 10), (1, "2", 7), (0, "3", 100), (0, "20", 1_000)):
        folder = tmp_path / "state" / "0" / str(partition)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{version}.changelog").write_bytes(bytes(size))
        (folder / f"{version}.zip").write_bytes(bytes(9_999))
    assert spark_state.bytes_written(tmp_path, 2) == 17


def test_lines_are_chosen_by_the_beginning_of_their_names() -> None:
    assert limits.choose([]) == list(limits.NAMES)
    assert limits.choose(["panes", "growth"]) == ["panes-10", "panes-1000", "growth"]
    with pytest.raises(InvalidQuery, match=r"No line starts with 'pains'\. There are: panes-10"):
        limits.choose(["pains"])


def test_a_bar_is_met_from_its_own_side(tmp_path: Path) -> None:
    enough = Result("a", "a", "b", measured=0.4, bar=0.35)
    too_little = Result("b", "a", "b", measured=0.3, bar=0.35)
    too_much = Result("c", "a", "b", measured=1.4, bar=1.3, at_most=True)
    assert [result.met for result in (enough, too_little, too_much)] == [True, False, False]
    write([enough, too_little, too_much], tmp_path / "out.json", official=True, sizes=TINY)
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["official"]
    assert written["sizes"]["rows"] == TINY.rows
    assert [line["met"] for line in written["results"]] == [True, False, False]
    assert text_of([enough, too_little, too_much], official=True).count("missed") == 2


def test_a_page_has_each_line_once_and_the_newest_figures(tmp_path: Path) -> None:
    page = tmp_path / "limits.md"
    page.write_text("# Limits\n\nText above.\n")
    first, second = (
        Result("a-1", "rows", "numpy", 0.4, 0.35, rows_held=1_234),
        Result("b", "x", "y", 2.0, 1.0, unit="s"),
    )
    report([first, second], page)
    assert page.read_text().startswith("# Limits\n\nText above.\n\n| line | workload |")
    assert "| `a-1` | rows | numpy | 0.4 | ≥ 0.35 |  | 1,234 |" in page.read_text()
    page.write_text(page.read_text() + "\nText below.\n")
    report([replace(first, measured=0.3), Result("c", "z", "y", 2.0, 1.0)], page)
    text = page.read_text()
    assert text.count("`a-1`") == 1
    assert "| `a-1` | rows | numpy | 0.3 | ≥ 0.35 | missed |" in text
    assert [text.index(f"`{name}`") for name in ("a-1", "b", "c")] == sorted(
        text.index(f"`{n}`") for n in ("a-1", "b", "c")
    )
    assert text.endswith("\nText below.\n")
