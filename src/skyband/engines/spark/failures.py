"""Spark's failures as readable errors: no Java stack trace, no plan, and Skyband's own errors unchanged."""

from __future__ import annotations

import logging
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from skyband.errors import InvalidInput, PipelineFailed, SkybandError

_OURS: Final = re.compile(
    r"skyband\.errors\.(\w+): (.*?)(?=\n\s*at |\n\s*SQLSTATE: |\n\nDriver stacktrace|\n===|\Z)", re.DOTALL
)
_CAUSE: Final = re.compile(r"Caused by: ([\w.$]+(?:Exception|Error)): ([^\n]+)")
_TASK: Final = re.compile(r"Job aborted due to stage failure: .*?most recent failure: Lost task [^:]*: ")
_CLASSES: Final = re.compile(r"^(?:: )?(?:(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): )*")  # of Java, before a message
_TOO_BUSY: Final = "Python worker failed to connect back"
_LOST: Final = "Python worker exited unexpectedly"
_NO_SERVER: Final = re.compile(r"StatusCode\.UNAVAILABLE|\[INVALID_HANDLE\.SESSION_\w+\]")
_MOMENT_S: Final = 2
_NOISE: Final = ("\n=== Streaming Query ===", "\nJVM stacktrace:", "\n\tat ", "\nDriver stacktrace:", "== Plan ==")


def has_no_worker(error: BaseException) -> bool:
    """Did Spark lose a Python worker, or not wait for one? It waits 10 seconds, whatever the machine is busy with."""
    return _TOO_BUSY in str(error) or _LOST in str(error)


def is_java_gone(error: BaseException) -> bool:
    """Has the Java ended that this process started? Connections break a moment before it is known to have ended."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    if isinstance(error, Py4JNetworkError | ConnectionError):
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MOMENT_S)
    return process.poll() is not None


def traces_to(log_file: Path, spark: SparkSession) -> None:
    """Keep the traces of threads that wait for a Java that is gone off the terminal: they go to the file of Java's
    messages."""
    logging.basicConfig(filename=log_file)  # for py4j
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda *_: logging.getLogger(__name__).exception("An update of a counter failed.")


def readable(error: BaseException) -> SkybandError:
    """The same as one of our errors. What was raised as such inside Spark comes out as it was."""
    if isinstance(error, SkybandError):
        return error
    text = str(error)
    if ours := _OURS.search(text):
        return PipelineFailed(ours[2].strip())
    if is_java_gone(error):
        return PipelineFailed(
            "Spark's Java has ended: somebody killed it, or the system did for want of memory. Nothing is lost: start "
            "the query again, and it goes on from its checkpoint."
        )
    if _LOST in text:
        return PipelineFailed(
            "A Python worker of Spark ended: somebody killed it, or the system did for want of memory. Nothing is "
            "lost: start the query again, and it goes on from its checkpoint. If that happens again, let a micro-batch "
            "have fewer rows (maxFilesPerTrigger, maxOffsetsPerTrigger), or use fewer cores."
        )
    if has_no_worker(error):
        return PipelineFailed(
            "A Python worker did not answer Spark within 10 seconds, and Spark waits no longer: the machine is too "
            "busy. Nothing is lost. Start the query again; it continues from its checkpoint."
        )
    if _NO_SERVER.search(text):
        return PipelineFailed(
            "The server of Spark Connect does not answer, or has forgotten this session. Nothing is lost: start the "
            "query again when the server runs, and it goes on from its checkpoint."
        )
    causes = _CAUSE.findall(text)
    kind = InvalidInput if isinstance(error, AnalysisException) else PipelineFailed
    for noise in _NOISE:
        text = text.partition(noise)[0]
    first = text.strip().splitlines() or [type(error).__name__]
    said = "\n".join(first[:3]) if isinstance(error, PySparkException) else first[-1]
    said = _CLASSES.sub("", _TASK.sub("", said))
    if causes and causes[-1][1] not in said:
        said += f"\nBecause of {causes[-1][0].rpartition('.')[2]}: {causes[-1][1]}"
    return kind(said)
