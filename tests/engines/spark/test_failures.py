"""Examples: what Spark's failures are said to be."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

from skyband.engines.spark.failures import readable, traces_to
from skyband.errors import InvalidQuery, PipelineFailed


def process(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.parametrize(
    "error", [Py4JNetworkError("Answer from Java side is empty"), ConnectionRefusedError(111, "No")]
)
def test_a_java_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Also in the moment in which its connections are broken and it has not quite ended."""
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process("import time; time.sleep(0.3)")))
    said = readable(error)
    assert isinstance(said, PipelineFailed)
    assert "Spark's Java has ended: somebody killed it" in str(said)
    assert "it goes on from its checkpoint" in str(said)
    assert isinstance(readable(InvalidQuery("k must be at least 1.")), InvalidQuery), "what was said is not changed"


def test_a_file_that_cannot_be_read_is_named_without_classes_of_java() -> None:
    """As py4j reports what foreachBatch could not collect."""
    said = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: [FAILED_READ_FILE] No.\n\tat x"
    )
    assert str(readable(RuntimeError(said))) == "[FAILED_READ_FILE] No."
    task = "Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 6) (host driver): "
    said = f"Job aborted due to stage failure: {task}java.io.IOException: Mkdirs failed to create file:/answers"
    assert str(readable(RuntimeError(said))) == "Mkdirs failed to create file:/answers"


def test_a_server_of_spark_connect_that_is_gone_is_named() -> None:
    for said in ("terminated with:\n\tstatus = StatusCode.UNAVAILABLE", "[INVALID_HANDLE.SESSION_CLOSED] The handle"):
        assert "The server of Spark Connect does not answer" in str(readable(RuntimeError(said)))
    said = "Traceback …\nskyband.errors.PipelineFailed: It is full.\n SQLSTATE: 38000"
    assert str(readable(RuntimeError(said))) == "It is full."


def test_a_worker_that_is_gone_is_named() -> None:
    lost = "Job aborted due to stage failure: SparkException: Python worker exited unexpectedly (crashed)\n\tat x"
    said = str(readable(RuntimeError(lost)))
    assert "A Python worker of Spark ended: somebody killed it, or the system did for want of memory" in said
    assert "Nothing is lost" in said


def test_a_java_that_runs_is_not_said_to_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    running = process("import time; time.sleep(600)")
    try:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=running))
        assert "has ended" not in str(readable(ValueError("no number")))
    finally:
        running.kill()
        running.wait()
    for unknown in (None, SimpleNamespace()):  # no Spark, and one that spark-submit started
        monkeypatch.setattr(SparkContext, "_gateway", unknown)
        assert str(readable(ConnectionRefusedError("refused"))) == "refused"


def test_traces_of_a_java_that_is_gone_are_in_the_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    root, server = logging.getLogger(), SimpleNamespace()
    monkeypatch.setattr(root, "handlers", [])
    traces_to(tmp_path / "spark.log", SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server)))  # type: ignore[arg-type]
    try:
        raise EOFError("no more")
    except EOFError:
        logging.exception("Exception while sending command.")  # as py4j does
        server.handle_error("request", "address")
    for handler in root.handlers:
        handler.close()
    assert (tmp_path / "spark.log").read_text().count("EOFError: no more") == 2
    assert capfd.readouterr() == ("", "")
