"""Examples: what a person types, and what they see."""

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from skyband.cli import app, machine
from skyband.demo import embedded_job, run


def skyband(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


# -- help, versions, mistakes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        *(
            "",
            "sql",
            "run",
            "submit",
            "check",
            "state",
            "top",
            "init",
            "doctor",
            "demo",
            "explain",
            "calibrate",
            "version",
        ),
        *("bench", "bench limits", "bench papers", "bench planner"),
    ],
)
def test_every_command_has_help(command: str) -> None:
    result = skyband(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_version_names_what_skyband_runs_on() -> None:
    lines = skyband("version").output.splitlines()
    assert lines[0].split() == ["Skyband", version("skyband")]
    assert [line.split()[0] for line in lines[1:]] == [
        "Python",
        "numba",
        "numpy",
        "pyarrow",
        "polars",
        "pyspark",
        "Java",
    ]


def test_a_mistake_is_one_message_and_exit_code_2() -> None:
    result = skyband("explain", "--k", "0", "--size", "100", "--every", "10")
    assert result.exit_code == 2
    assert result.output == "Error: k must be a whole number, at least 1 (and below 2**31), got 0.\n"
    assert "Traceback" not in result.output


def test_an_unknown_line_of_the_benchmark_is_a_mistake() -> None:
    result = skyband("bench", "limits", "--only", "pains")
    assert result.exit_code == 2
    assert "There are: panes-10" in result.output


# -- explain ----------------------------------------------------------------------------------------------------------


def test_explain_a_window_of_time() -> None:
    asked = ["--by", "price * volume", "--size", "10 minutes", "--every", "1 minute", "--on", "ts", "--per", "symbol"]
    shown = skyband("explain", *asked).output
    assert shown.startswith("top 10 by price * volume for each symbol\n")
    assert "mintopk: " in shown


def test_explain_a_window_of_rows_that_slides_with_each() -> None:
    shown = skyband("explain", "--k", "9", "--size", "40000").output
    assert "changes" in shown
    assert "relaxed: " in shown


def test_explain_names_the_algorithm_asked_for() -> None:
    shown = skyband("explain", "--size", "40_000", "--every", "100", "--algorithm", "recompute").output
    assert "recompute: named in the query" in shown


# -- bench ------------------------------------------------------------------------------------------------------------


def test_bench_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    result = skyband(
        "bench", "limits", "--quick", "--rows", "100000", "--only", "panes-10", "--json", str(tmp_path / "out.json")
    )
    assert result.exit_code == 0
    assert "panes-10: numpy: scores > t" in result.output
    assert "not the official figures" in result.output
    lines = json.loads((tmp_path / "out.json").read_text())["results"]
    assert [line["name"] for line in lines] == ["panes-10", "panes-1000"]


# -- demo -------------------------------------------------------------------------------------------------------------


def test_demo_ranks_checks_and_writes(tmp_path: Path) -> None:
    result = skyband("demo", "--engine", "embedded", "--rows", "100000", "--output", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert result.output.endswith("✓ 4 windows checked against recomputation from scratch: all agree.\n")
    assert "08:51–09:01  1. " in result.output
    written = pq.read_table(tmp_path / "out" / "top10")
    assert written.num_rows == 40
    assert written.column_names == ["window_start", "window_end", "rank", "score", "ts", "symbol", "price", "volume"]


def test_demo_needs_no_spark_unless_asked_for_it() -> None:
    """In a process that has no pyspark, and runs kernels as users do: they check no index there."""
    as_users_do = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    program = "import sys; sys.modules['pyspark'] = None; from skyband.cli import app; app()"
    command = [sys.executable, "-c", program, "demo", "--rows", "50000", "--engine"]
    embedded = subprocess.run([*command, "embedded"], capture_output=True, text=True, check=False, env=as_users_do)
    assert embedded.returncode == 0, embedded.stderr
    assert "all agree" in embedded.stdout
    spark = subprocess.run([*command, "spark"], capture_output=True, text=True, check=False)
    assert spark.returncode == 2
    assert spark.stderr == "Error: This needs Spark, which is not installed: pip install 'skyband[spark]'.\n"


def test_demo_says_which_window_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant one wrong row in what is written: the demo must see it."""
    right = embedded_job.steps

    def wrong(job: run.Job) -> object:
        yield from right(job)
        path = job.answers / "part-00000.parquet"
        table = pq.read_table(path)
        volumes = table.column("volume").to_pylist()
        volumes[7] += 1
        pq.write_table(table.set_column(table.schema.get_field_index("volume"), "volume", pa.array(volumes)), path)

    monkeypatch.setattr(embedded_job, "steps", wrong)
    result = skyband("demo", "--engine", "embedded", "--rows", "100000", "--output", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "✗ Windows that disagree with recomputation from scratch: 1 of 4" in result.output
    assert "the window that ends at 2026-01-05 09:01:00 UTC shows 8. " in result.output


def test_demo_keeps_away_from_folders_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    result = skyband("demo", "--engine", "embedded", "--output", str(tmp_path))
    assert result.exit_code == 2
    assert "is not an empty folder" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.spark
def test_demo_on_spark_ranks_checks_and_writes(tmp_path: Path) -> None:
    """As users do: Spark compiles what it runs, which tests otherwise have no time for."""
    command = [sys.executable, "-m", "skyband.cli", "demo", "--rows", "60000", "--output", str(tmp_path / "out")]
    as_users_do = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=as_users_do)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("✓ 2 windows checked against recomputation from scratch: all agree.\n")
    assert pq.read_table(tmp_path / "out" / "top10").num_rows == 20
    checked = skyband("check", str(tmp_path / "out" / "pipeline.toml"))
    assert checked.output == "✓ largest: from trades to files\n"


# -- calibrate --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["rows", "pairs", "joins", "subscriptions"])
def test_calibrate_writes_what_it_measured(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the problem that was asked for; a measurement takes minutes, so one that there is already stands for it."""
    study = import_module(f"skyband.study.{machine._MEASURED_BY[problem]}")
    costs = import_module(f"skyband.problems.{problem}.costs")
    known = next(value for name, value in vars(costs).items() if name.startswith("known_"))()
    monkeypatch.setattr(study, "measure", lambda step: known)
    file = tmp_path / "costs.json"
    result = skyband("calibrate", *([] if problem == "rows" else [f"--{problem}"]), "--file", str(file))
    assert result.output.strip() == f"Written to {file}."
    assert costs.read(file) == known


def test_calibrate_measures_one_problem_at_a_time() -> None:
    assert skyband("calibrate", "--pairs", "--joins").exit_code == 2
