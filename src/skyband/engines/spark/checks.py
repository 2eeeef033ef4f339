"""Checks a session before a query starts, so that the query does not fail in a worker with a Java error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from weakref import WeakSet

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from skyband.engines.spark.declarative import is_no_change
from skyband.engines.spark.settings import MANY_PARTITIONS, PARTITIONS, SETTINGS, Setting
from skyband.engines.spark.versions import OLDEST_SPARK, is_too_old
from skyband.errors import EnvironmentProblem

CHECKED: Final = "spark.skyband.checked"  # set once workers have answered; whoever sets it before leaves them unasked
_MISSING: Final = re.compile(r"No module named '([\w.]+)'")
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_OTHER_PYTHON: Final = "PYTHON_VERSION_MISMATCH"
_checked: WeakSet[SparkSession] = WeakSet()  # where nothing may be set


class Finding(NamedTuple):
    """What is not as it should be in a session."""

    name: str  # of the setting, or what else was looked at
    found: str
    why: str
    line: str  # what to write
    stops: bool  # does it keep a query on a stream from starting?

    def __str__(self) -> str:
        return f"{self.name} is {self.found}. {self.why}\n    {self.line}"


class Findings(tuple[Finding, ...]):
    """What is not as it should be, with the line to write for each; empty if all is well."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "All is well."

    __repr__ = __str__


def check(spark: SparkSession) -> Findings:
    """What is not as it should be in this session. Its Python workers are asked, too: a job of some tasks."""
    return Findings([*_version(spark), *_settings(spark), *_workers(spark)])


def check_session(df: DataFrame) -> None:
    """Raise if a query on `df` cannot run in its session, with what to do. Workers are asked once a session."""
    spark = df.sparkSession
    stopping = [*_version(spark)]
    if df.isStreaming:
        stopping += [finding for finding in _settings(spark) if finding.stops]
    if not stopping and spark.conf.get(CHECKED, None) is None and spark not in _checked:
        stopping = [*_workers(spark)]
        if not stopping:
            _remember(spark)
    if stopping:
        raise EnvironmentProblem("This Spark session cannot run the query.\n" + "\n".join(map(str, stopping)))


def _remember(spark: SparkSession) -> None:
    """That its workers have answered: in the session, which micro-batches copy; here if it may not be changed."""
    try:
        spark.conf.set(CHECKED, "yes")
    except PySparkException as error:
        if not is_no_change(error):
            raise
        _checked.add(spark)


def _version(spark: SparkSession) -> Iterator[Finding]:
    """Of the server, which on Spark Connect may be another than the client's."""
    if is_too_old(spark.version):
        needed = ".".join(map(str, OLDEST_SPARK))
        why = f"Skyband needs Spark {needed} or later."
        yield Finding("The version of Spark", spark.version, why, f"Connect to a server of Spark {needed}.", True)


def _settings(spark: SparkSession) -> Iterator[Finding]:
    for setting in SETTINGS:
        found = _value(spark, setting.name)
        if not setting.is_fine(found) if found is not None else setting.needed:
            yield Finding(setting.name, found or "not set", setting.why, _line(setting), setting.needed)


def _value(spark: SparkSession, name: str) -> str | None:
    """A setting, or its default. Asked with a default of our own, Spark would not say what its own is."""
    try:
        return str(spark.conf.get(name))
    except Exception as error:
        if not _is_sparks(error):
            raise
        return None  # there is none


def _is_sparks(error: Exception) -> bool:
    """Is it of Spark, or of what a classic session talks to Java with? A client of Spark Connect has no such thing."""
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def _line(setting: Setting) -> str:
    if setting.name == PARTITIONS:
        return f'spark.conf.set("{setting.name}", "…")  # the number of cores, up to {MANY_PARTITIONS}'
    if setting.at_start:
        return f'SparkSession.builder.config("{setting.name}", "{setting.ours}")  # before the session starts'
    return f'spark.conf.set("{setting.name}", "{setting.ours}")'


def _workers(spark: SparkSession) -> Iterator[Finding]:
    """Can Python workers import this Skyband? The answers of as many tasks as there are cores."""
    probe, columns = _probe(), "python string, skyband string, problem string, program string"
    try:
        answers = {tuple(row) for row in spark.range(1 << 10).mapInArrow(probe, columns).collect()}
    except Exception as error:
        if not _is_sparks(error):
            raise
        yield _no_answer(str(error))
        return
    mine, python = _own_version(), ".".join(map(str, sys.version_info[:2]))
    for found_python, found_skyband, problem, program in sorted(answers, key=str):
        if found_python != python:
            yield _other_python(f"{found_python} ({program})")
        elif problem is not None:
            yield _lacking(problem, program)
        elif found_skyband != mine:
            why = f"The driver has {mine}, and sends workers functions of that version."
            yield Finding("Skyband on the workers", f"version {found_skyband} ({program})", why, _install(), True)


def _no_answer(said: str) -> Finding:
    """What keeps Python workers from answering, by what Spark said."""
    if _OTHER_PYTHON in said:
        return _other_python("another version than the driver's")
    if missing := _MISSING.search(said):
        return _lacking(f"No module named '{missing[1]}'", "Spark's own worker")
    if program := _NO_PROGRAM.search(said):
        return _python(f"{program[1]}, which is not there", "Spark starts its workers with it.")
    return _python("a program that does not answer", said.strip().splitlines()[0] if said.strip() else "")


def _lacking(problem: str, program: str) -> Finding:
    why = "Workers run what Skyband sends them, so they need the packages that the driver has."
    return Finding("Skyband on the workers", f"not importable ({problem}; {program})", why, _install(), True)


def _own_version() -> str:
    return str(sys.modules["skyband"].__version__)  # of the package that this is part of: above all layers


def _install() -> str:
    return (
        f"export PYSPARK_PYTHON={sys.executable}  # before Spark starts, if it runs on this machine; elsewhere: pip "
        f"install skyband=={_own_version()} there, or send it along (docs/deploying.md)"
    )


def _other_python(found: str) -> Finding:
    mine = ".".join(map(str, sys.version_info[:2]))
    return _python(found, f"The driver runs Python {mine}, and sends workers functions of that version.")


def _python(found: str, why: str) -> Finding:
    line = f"export PYSPARK_PYTHON={sys.executable}  # before Spark starts; on a cluster, the path of that Python there"
    return Finding("The workers' Python", found, why, line, True)


def _probe() -> Any:
    """For mapInArrow: what a worker is. It is nobody's to import, so that a worker without Skyband can run it."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys as its

        import pyarrow as arrow

        found, problem = None, None
        try:
            import skyband.engines.spark.bucket  # what it will need

            found = skyband.__version__
        except ImportError as error:
            problem = str(error)
        for _ in batches:
            pass
        python = ".".join(map(str, its.version_info[:2]))
        yield arrow.record_batch(
            {"python": [python], "skyband": [found], "problem": [problem], "program": [its.executable]},
            schema=arrow.schema([(name, arrow.string()) for name in ("python", "skyband", "problem", "program")]),
        )

    return probe
