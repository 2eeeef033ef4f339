"""Examples: what a person types about pipelines, and what they see."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from rich.console import Console
from servers.ports import free_port
from typer.testing import CliRunner, Result
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.cli import app
from skyband.pipelines.doctor import Finding, disk, examine, refuse_dead_services, services
from skyband.pipelines.figures import Figures
from skyband.pipelines.file import load
from skyband.pipelines.metrics import Metrics
from skyband.pipelines.progress import JsonView, LiveView, PlainView, open_view
from skyband.pipelines.session import not_in_maven
from skyband.streams.trades import trades

STARTS = f"Checking market.toml, then starting Spark …\nStarting Spark {pyspark.__version__} …\n"
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "pipelines.md"


def skyband(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def progress(batch: int, **observed: int) -> dict[str, object]:
    return {
        "batchId": batch,
        "durationMs": {"triggerExecution": 500},
        "sources": [{"numInputRows": 1_000}],
        "eventTime": {"watermark": "2026-03-01T10:00:00.000Z", "max": "2026-03-01T10:00:05.000Z"},
        "observedMetrics": {"skyband_best": observed, "skyband_other": {"rows_late": 100}},
    }


# -- init and check ---------------------------------------------------------------------------------------------------


def test_init_writes_a_pipeline_that_is_right(tmp_path: Path) -> None:
    file = tmp_path / "market.toml"
    assert skyband("init", str(file)).exit_code == 0
    checked = skyband("check", str(file))
    assert checked.exit_code == 0, checked.output
    assert checked.output == "✓ best: from ticks to screen, files\n"
    again = skyband("init", str(file))
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_a_mistake_is_one_message_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "market.toml"
    skyband("init", str(file))
    file.write_text(file.read_text().replace("ORDER BY points", "ORDER BY pints"))
    for command in ("check", "run"):
        refused = skyband(command, str(file))
        assert refused.exit_code == 2
        said = refused.output.removeprefix(STARTS.splitlines(keepends=True)[0] if command == "run" else "")
        assert said.startswith("Error: market.toml:"), refused.output
        assert "Did you mean 'points'?" in refused.output or "There is no column 'pints'" in refused.output
        assert "Traceback" not in refused.output


def test_the_pipeline_of_the_docs_is_right(tmp_path: Path) -> None:
    file = tmp_path / "market.toml"
    file.write_text(pipeline_of_the_docs())
    assert skyband("check", str(file)).output == (
        "✓ largest: from trades to files\n✓ cheapest: from trades to files, screen\n"
    )


def pipeline_of_the_docs() -> str:
    found = re.search(r"```toml\n(trigger.*?)```", DOCS.read_text(), re.DOTALL)
    assert found
    return found[1]


# -- figures ----------------------------------------------------------------------------------------------------------


def test_figures_add_up_what_spark_reports() -> None:
    figures = Figures("best", shared=True)
    assert figures.take(progress(0, rows_late=2, rows_held_change=30, bytes_held_change=900, rows_gathered=40))
    assert figures.take(progress(1, rows_late=1, rows_held_change=-10, bytes_held_change=-300, rows_gathered=20))
    assert not figures.take(progress(1, rows_late=1)), "counted before"
    assert (figures.rows_in, figures.rows_late, figures.rows_held, figures.bytes_held) == (2_000, 3, 20, 600)
    assert figures.rows_per_second == 2_000
    assert figures.watermark is not None
    assert figures.lag_seconds(figures.watermark) == -5


def test_a_line_for_each_query_on_a_terminal_and_plain_lines_elsewhere() -> None:
    figures = Figures("best")
    figures.take(progress(0, rows_late=2, rows_held_change=30))
    terminal = Console(file=StringIO(), force_terminal=True, width=100)
    view = LiveView(terminal)
    view.news(figures)
    terminal.print(view.render())
    assert re.search(r"best.*2,000 +1,000 .* 30 +102 +0 +0", terminal.file.getvalue())  # type: ignore[attr-defined]
    now = [0.0]
    plain = Console(file=StringIO(), width=40)
    lines = PlainView(plain, seconds=1, clock=lambda: now[0])
    for moment in (0.0, 0.5, 1.2):  # the second comes too soon for a line
        now[0] = moment
        lines.news(figures)
    figures.up = False
    lines.news(figures)
    printed = plain.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(printed) == 3
    assert printed[0].startswith("best: rows/s 2,000, rows in 1,000, behind ")
    assert printed[-1].endswith("held 30, late 102, set aside 0, batch 0 (ended)")


def test_json_lines() -> None:
    figures = Figures("best")
    figures.take(progress(3, rows_late=2))
    console = Console(file=StringIO(), width=20)
    with open_view(console, as_json=True) as view:
        assert isinstance(view, JsonView)
        view.show("for people")
        view.news(figures)
    (line,) = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    read = json.loads(line)
    assert (read["query"], read["batch"], read["rows_in"], read["up"]) == ("best", 3, 1_000, True)
    assert read["watermark"] == "2026-03-01T10:00:00+00:00"


def test_metrics_are_served() -> None:
    figures, metrics, port = Figures("best", shared=True), Metrics(), free_port()
    metrics.serve(port, "127.0.0.1")
    figures.take(progress(0, rows_late=2, rows_held_change=30, bytes_held_change=900, rows_gathered=40))
    figures.changes.update({"enter": 5})
    metrics.take(figures)
    figures.take(progress(1, rows_late=1, rows_gathered=10))
    metrics.take(figures)
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    for line in (
        'skyband_input_rows_total{query="best"} 2000.0',
        'skyband_late_rows_dropped_total{query="best"} 3.0',
        'skyband_rank_changes_total{change="enter",query="best"} 5.0',
        'skyband_batch_duration_seconds_count{query="best"} 2.0',
        'skyband_watermark_timestamp_seconds{query="best"} 1.7723592e+09',
        'skyband_state_rows{query="best"} 30.0',
        'skyband_state_bytes{query="best"} 900.0',
        'skyband_candidates{query="best"} 10.0',
        'skyband_query_up{query="best"} 1.0',
    ):
        assert line in text
    assert 'skyband_freshness_seconds{query="best"}' in text
    with pytest.raises(sb.EnvironmentProblem, match="Name another --metrics-port"):
        Metrics().serve(port, "127.0.0.1")


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_finds_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(
        finding.fix is None for finding in examine(None, metrics_port=None, start=False) if "memory" not in finding.what
    )
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = {finding.what: finding.fix for finding in examine(None, metrics_port=port, start=False)}
    assert found["PYSPARK_PYTHON is no-such-python, which does not exist"] == "unset PYSPARK_PYTHON"
    assert any(what.startswith(f"Port {port} cannot be opened") and fix for what, fix in found.items())
    full = disk("answers", tmp_path / "not" / "yet", least=1 << 60)
    assert full.fix is not None
    assert "Free" in full.fix


def test_doctor_asks_the_services_and_its_advice_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens at a port that was free a moment ago; something does at one that is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as gone:
        there, dead = taken.getsockname()[1], gone.getsockname()[1]
        gone.close()
        file = tmp_path / "market.toml"
        file.write_text(
            f'[sources.orders]\nformat = "kafka"\nservers = "127.0.0.1:{dead}"\ntopic = "o"\nschema = "t BIGINT"\n'
            f'[sinks.shop]\nformat = "jdbc"\nurl = "jdbc:postgresql://127.0.0.1:{there}/shop"\ntable = "best"\n'
            '[queries.best]\nsql = "SELECT * FROM orders [WINDOW 9 EVERY 3 ON t] ORDER BY t LIMIT 1"\nto = "shop"\n'
        )
        found = {finding.what: finding.fix for finding in services(load(file))}
    assert found[f"shop (jdbc) answers at 127.0.0.1:{there}"] is None
    assert [
        fix for what, fix in found.items() if what.startswith(f"orders (kafka) does not answer at 127.0.0.1:{dead}")
    ]
    # `run` says so before Java starts; Spark would try for minutes. Of several servers one is enough.
    refused = skyband("run", str(file))
    assert refused.exit_code == 2
    assert f"market.toml:3: orders (kafka) does not answer at 127.0.0.1:{dead}: Connection refused" in refused.output
    with socket.create_server(("127.0.0.1", there)):
        file.write_text(file.read_text().replace(f"127.0.0.1:{dead}", f"127.0.0.1:{dead},127.0.0.1:{there}"))
        refuse_dead_services(load(file))
    advice = [Finding("grpcio: missing", "pip install 'skyband[spark]'")]
    monkeypatch.setattr("skyband.pipelines.doctor.examine", lambda *_, **__: iter(advice))
    assert "pip install 'skyband[spark]'" in skyband("doctor").output


def test_run_says_before_java_starts_which_package_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "market.toml"
    skyband("init", str(file))
    file.write_text(file.read_text() + '[sinks.lake]\nformat = "delta"\npath = "lake"\n')
    monkeypatch.setattr("skyband.pipelines.doctor._LIBRARIES", {"delta": "no-such-package"})
    refused = skyband("run", str(file))
    assert refused.exit_code == 2
    assert "no-such-package" in refused.output
    assert "pip install 'skyband[delta]'" in refused.output


def test_a_connector_that_is_not_in_maven() -> None:
    kafka = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"
    said = f":: unresolved dependency: {kafka.replace(':', '#', 1).replace(':', ';', 1)}: not found"
    problem = not_in_maven([kafka], said)
    assert str(problem).startswith(f"Spark found no {kafka} in Maven. Under [spark], name versions that exist")
    assert "the pipeline finds one that fits" in str(problem)
    assert not_in_maven([kafka], "no more memory") is None


# -- submit -----------------------------------------------------------------------------------------------------------


def options_of(line: str) -> tuple[dict[str, list[str]], list[str]]:
    """The options of a spark-submit line by name, and what it runs."""
    program, *words = shlex.split(line.replace("\\\n", " "))
    assert program == "spark-submit"
    options: dict[str, list[str]] = {}
    while words[0].startswith("--"):
        options.setdefault(words.pop(0), []).append(words.pop(0))
    return options, words


def test_submit_prints_the_line_of_spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/pipelines/test_cluster.py runs one."""
    file = tmp_path / "market.toml"
    skyband("init", str(file))
    spark = """
[spark]
"spark.executor.memory" = "2g"
"spark.executor.extraJavaOptions" = "-XX:+UseSerialGC -Dname='it is'"
"spark.hadoop.some.password" = "${SKYBAND_TEST_PASSWORD}"
"""
    file.write_text(file.read_text() + spark)
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", "hunter2")
    said = skyband("submit", str(file), "--master", "yarn", "--cluster", "--archive", "env.tar.gz")
    assert said.exit_code == 0, said.output
    assert "hunter2" not in said.output
    assert said.stderr == "# The environment of the driver must have SKYBAND_TEST_PASSWORD.\n"
    options, run = options_of(said.stdout)
    assert options.pop("--jars")[0].endswith(".jar")
    assert options == {
        "--name": ["skyband market"],
        "--master": ["yarn"],
        "--deploy-mode": ["cluster"],
        "--archives": ["env.tar.gz#env"],
        "--files": [str(file)],
        "--conf": [
            "spark.pyspark.python=./env/bin/python",
            "spark.executor.memory=2g",
            "spark.executor.extraJavaOptions=-XX:+UseSerialGC -Dname='it is'",
        ],
    }
    assert Path(run[0]).name == "__main__.py"
    assert Path(run[0]).exists()
    assert run[1:] == ["run", "market.toml"]
    # In an image, all is where it is here.
    options, run = options_of(skyband("submit", str(file), "--master", "k8s://https://c:6443", "--cluster").stdout)
    assert "--files" not in options
    assert options["--jars"][0].startswith("local:///")
    assert run[0].startswith("local:///")
    assert run[1:] == ["run", str(file)]
    refused = skyband("submit", str(file), "--cluster")
    assert refused.exit_code == 2
    assert "name the cluster (--master yarn); got none" in refused.output


# -- run --------------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.xdist_group("drivers")
def test_the_pipeline_of_the_docs_runs_is_interrupted_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a user starts it: a signal ends it after a batch; the next run goes on and comes to the end. What its settings
    take from the environment arrives, and no command line shows it."""
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", "hunter2 = only: here")
    monkeypatch.setenv("SKYBAND_TEST_PARTITIONS", "3")
    rows = pa.Table.from_batches(trades(60_000, seed=1, batch_rows=10_000))
    (tmp_path / "trades").mkdir()
    for number in range(6):
        pq.write_table(rows.slice(number * 10_000, 10_000), tmp_path / "trades" / f"{number}.parquet")
        os.utime(tmp_path / "trades" / f"{number}.parquet", (number, number))
    file = tmp_path / "market.toml"
    slowly = pipeline_of_the_docs().replace(
        'path = "trades" ', 'options = { maxFilesPerTrigger = 1 }\npath = "trades" '
    )
    file.write_text(
        slowly
        + """
[spark]
"spark.hadoop.some.password" = "${SKYBAND_TEST_PASSWORD}"
"spark.sql.shuffle.partitions" = "${SKYBAND_TEST_PARTITIONS}"
"""
    )
    command = [sys.executable, "-m", "skyband.cli", "run", str(file)]
    process = subprocess.Popen([*command, "--log", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    commits = tmp_path / ".skyband" / "market" / "trades_1" / "commits"
    wait_until((commits / "1").exists, "a second micro-batch", process)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert any(b"SparkSubmit" in line for line in lines)
    assert not any(b"hunter2 = only" in line for line in lines)
    assert '"spark.sql.shuffle.partitions":"3"' in (commits.parent / "offsets" / "0").read_text()
    process.send_signal(signal.SIGTERM)  # as whoever runs containers stops them
    out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, error
    assert error == f"{STARTS}Stopped. The next `skyband run` continues from here.\n"
    read = sum(json.loads(line)["rows_in"] for line in out.splitlines()[-1:])
    assert 0 < read < 60_000
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert done.stderr == STARTS
    assert "cheapest, batch " in done.stdout
    assert re.search(r"largest: rows/s .* \(ended\)", done.stdout)
    statement = re.findall(r'sql = """(.*?)"""', file.read_text(), re.DOTALL)[0]
    newest = max(rows.column("ts").to_pylist())
    expected = [
        row for row in sb.sql(statement, trades=rows).to_pylist() if (newest - row["window_end"]).total_seconds() >= 5
    ]
    written = pq.read_table(tmp_path / "answers" / "largest").drop_columns(["batch"]).to_pylist()
    by_rank = sorted(written, key=lambda row: (row["window_end"], row["rank"]))
    assert [{**row} for row in by_rank] == sorted(expected, key=lambda row: (row["window_end"], row["rank"]))
    assert len(expected) == 20
