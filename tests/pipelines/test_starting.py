"""Fault tests of the start of a run: signals that come before anything is read, and two runs of one checkpoint."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner
from waiting import PATIENCE_S, wait_until

from skyband.cli import app
from skyband.errors import EnvironmentProblem
from skyband.pipelines import progress
from skyband.pipelines.file import load
from skyband.pipelines.locking import LOCK, only_run_of
from skyband.pipelines.progress import telling
from skyband.pipelines.signals import interrupts

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "market.toml"
    assert CliRunner().invoke(app, ["init", str(file)]).exit_code == 0
    return file


# -- signals ----------------------------------------------------------------------------------------------------------


def test_signals_are_remembered_while_a_pipeline_runs() -> None:
    before = signal.getsignal(signal.SIGTERM)
    for number in SIGNALS:
        with interrupts() as interrupted:
            interrupted.take_over()
            assert not interrupted
            os.kill(os.getpid(), number)
            assert interrupted
            assert not interrupted.came_early
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_before_that_ends_what_is_begun() -> None:
    for number in SIGNALS:
        done = []
        with interrupts() as interrupted:
            try:
                os.kill(os.getpid(), number)
                time.sleep(PATIENCE_S)
            finally:
                done.append("tidied up")
        assert done == ["tidied up"]
        assert interrupted.came_early


def test_a_signal_that_was_passed_over_counts() -> None:
    """An exception is, where Python throws things away."""

    class Thrown:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with interrupts() as interrupted:
        sys.unraisablehook, before = (lambda _: None), sys.unraisablehook
        try:
            Thrown()
        finally:
            sys.unraisablehook = before
        interrupted.take_over()
        pytest.fail("it goes on")
    assert interrupted.came_early


@pytest.mark.spark
@pytest.mark.xdist_group("drivers")
@pytest.mark.parametrize("when", ["Checking market.toml", "Starting Spark"])
def test_a_run_that_is_stopped_while_spark_starts(file: Path, tmp_path: Path, when: str) -> None:
    """It ended by the signal, and left the file with its secrets behind."""
    file.write_text(file.read_text() + '\n[spark]\n"spark.hadoop.some.password" = "${SKYBAND_TEST_PASSWORD}"\n')
    folder = tmp_path / "temporary"
    folder.mkdir()
    environment = os.environ | {"SKYBAND_TEST_PASSWORD": "hunter2", "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "skyband.cli", "run", str(file)]
    said = tmp_path / "said.txt"
    with said.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        wait_until(lambda: when in said.read_text(), when, process)
        if when == "Starting Spark":
            wait_until(lambda: [*folder.glob("skyband-*.properties")], "the file with secrets", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, said.read_text()
    assert said.read_text().endswith("Stopped before it read anything.\n")
    assert not [*folder.glob("skyband-*.properties")]
    wait_until(lambda: not java_of(folder), "the end of its Java")


def java_of(folder: Path) -> list[str]:
    """The processes that have this folder in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={folder}".encode() in (path / "environ").read_bytes().split(b"\0"):
                found.append((path / "cmdline").read_text())
        except OSError:
            pass  # it has ended
    return found


# -- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_takes_its_time_moves_on_a_terminal_and_is_a_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    out = StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=out, force_terminal=is_terminal, width=80))
    with telling() as tell:
        tell("Starting [Spark] …")
        tell("Kafka is read with [this].")
        tell("Going on …")
    said = out.getvalue()
    assert "Kafka is read with [this].\n" in said
    if is_terminal:
        assert "⠋" in said
        assert said.endswith("\x1b[1A\x1b[2K"), "the line goes"
    else:
        assert said == "Starting [Spark] …\nKafka is read with [this].\nGoing on …\n"


# -- one run at a time ------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from skyband.pipelines.file import load
from skyband.pipelines.locking import only_run_of
with only_run_of(load(Path(sys.argv[1]))):
    print("holds it", flush=True)
    time.sleep(600)
"""


def test_a_second_run_is_refused_until_the_first_is_gone_however_it_goes(file: Path) -> None:
    pipeline = load(file)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holds it\n"
        with pytest.raises(EnvironmentProblem, match=rf"\(process {process.pid}\) uses the checkpoint .*market\.state"):
            only_run_of(pipeline).__enter__()
        refused = CliRunner().invoke(app, ["run", str(file)])  # before Java starts
        assert refused.exit_code == 2
        assert f"Another `skyband run` (process {process.pid}) uses the checkpoint" in refused.output.replace("\n", " ")
    finally:
        process.kill()
        process.wait()
    for _ in range(2):
        with only_run_of(pipeline):
            assert (file.parent / "market.state" / LOCK).read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("place", ["market.toml", "market.toml/state", "/proc/state"])
def test_a_checkpoint_that_cannot_be_written_is_named_before_java_starts(file: Path, place: str) -> None:
    file.write_text(file.read_text().replace('checkpoint = "market.state"', f'checkpoint = "{place}"'))
    refused = CliRunner().invoke(app, ["run", str(file)])
    assert refused.exit_code == 2, refused.exception
    said = refused.output.replace("\n", " ")
    assert re.search(rf"The checkpoint \S*{place} cannot be written: \w+", said)


def test_checkpoints_elsewhere_are_not_locked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "hdfs://name")
    file.write_text(file.read_text().replace('checkpoint = "market.state"', 'checkpoint = "${PLACE}/state"'))
    with only_run_of(load(file)), only_run_of(load(file)):
        assert [path.name for path in file.parent.iterdir()] == ["market.toml"]
