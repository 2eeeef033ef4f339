"""Spark's failures as readable errors: no Java stack trace, no plan, and Skyband's own errors unchanged."""

from __future__ import annotations

import re
from typing import Final

from pyspark.errors import AnalysisException, PySparkException

from skyband.errors import InvalidInput, PipelineFailed, SkybandError

_OURS: Final = re.compile(r"skyband\.errors\.(\w+): (.*?)(?=\n\s*at |\n\nDriver stacktrace|\n===|\Z)", re.DOTALL)
_CAUSE: Final = re.compile(r"Caused by: ([\w.$]+(?:Exception|Error)): ([^\n]+)")
_TOO_BUSY: Final = "Python worker failed to connect back"
_NOISE: Final = ("\n=== Streaming Query ===", "\nJVM stacktrace:", "\n\tat ", "\nDriver stacktrace:", "== Plan ==")


def gave_up_too_soon(error: BaseException) -> bool:
    """Did Spark not wait for a Python to start? It waits 10 seconds, whatever the machine is busy with."""
    return _TOO_BUSY in str(error)


def readable(error: BaseException) -> SkybandError:
    """The same as one of our errors. What was raised as such inside Spark comes out as it was."""
    if isinstance(error, SkybandError):
        return error
    text = str(error)
    if ours := _OURS.search(text):
        return PipelineFailed(ours[2].strip())
    if gave_up_too_soon(error):
        return PipelineFailed(
            "A Python worker did not answer Spark within 10 seconds, and Spark waits no longer: the machine is too "
            "busy. Nothing is lost. Start the query again; it continues from its checkpoint."
        )
    causes = _CAUSE.findall(text)
    kind = InvalidInput if isinstance(error, AnalysisException) else PipelineFailed
    for noise in _NOISE:
        text = text.partition(noise)[0]
    first = text.strip().splitlines() or [type(error).__name__]
    said = "\n".join(first[:3]) if isinstance(error, PySparkException) else first[-1]
    if causes and causes[-1][1] not in said:
        said += f"\nBecause of {causes[-1][0].rpartition('.')[2]}: {causes[-1][1]}"
    return kind(said)
