"""A local Spark session with the settings that stateful streaming needs, and those that make it fast."""

import os
import shlex
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any, TypeVar

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from skyband.engines.spark.java import ensure_java
from skyband.engines.spark.jvm import JAR
from skyband.engines.spark.settings import SETTINGS
from skyband.errors import EnvironmentProblem

STREAMING_SETTINGS = {
    **{setting.name: setting.ours for setting in SETTINGS if setting.ours is not None},
    # Renames on a local disk are atomic: a commit takes 20 ms, not 155.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

_QUIET_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Everything is in one process: no other machine has to reach it, whatever the host calls itself.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Workers are forked from a process that has imported what they need: a first answer comes seconds sooner.
    "spark.python.daemon.module": "skyband.engines.spark.daemon",
    # Spark sets this for functions of columns but not for stateful operators, and starts such a process for each
    # environment: with it off, one process serves both.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}

# Tests start often and run briefly: no optimising compiler, no parallel collector, no re-planning, no code written
# for a query that handles some hundred rows.
_FAST_START_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_FAST_START_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JARS = "spark.jars"
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # in the environment of a process that spark-submit started


def local_session(
    app_name: str,
    *,
    cores: int | None = None,
    fast_start: bool = False,
    log_file: Path | None = None,
    private: Collection[str] = (),
    **conf: str,
) -> SparkSession:
    """The Spark session of this process, started on this machine, or where spark.master says, if there is none yet.

    cores       how many cores to use, and so how many partitions a shuffle has; all of them when not said.
    fast_start  start sooner and run slower, for tests: one shuffle partition, less compiling.
    log_file    where Java, Spark and its Python workers write their messages; the terminal when not said.
    private     names of settings that are kept off the command line of Java, which everybody on the machine can read.
    conf        Spark settings by name, before all of ours; Java options and jars are added to ours. What spark-submit
                was told, if it started this process, comes before these.

    A session that runs already keeps its Java options, cores, memory and log: Spark fixes them at the start.
    """
    ensure_java()
    # Spark would start its Python workers with whatever `python3` is first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    say_nothing_of_pandas()
    builder = SparkSession.builder.appName(app_name)
    settings = _settings(cores or _usable_cores(), fast_start, conf)
    if SUBMITTED in os.environ:
        settings = _besides_what_was_submitted(settings)
    # A Java that runs already is told without a command line.
    by_file = set() if SparkContext._gateway is not None else settings.keys() & set(private) - {_JAVA_OPTIONS}
    for name, value in settings.items():
        if name not in by_file:
            builder = builder.config(name, value)
    try:
        with _messages_to(log_file), _told_by_file({name: settings[name] for name in by_file}):
            return builder.getOrCreate()
    except PySparkRuntimeError as error:
        place = f"Its messages are in {log_file}" if log_file else "Its messages are above"
        raise EnvironmentProblem(f"Spark did not start on the Java in {os.environ['JAVA_HOME']}. {place}.") from error


def _besides_what_was_submitted(settings: dict[str, str]) -> dict[str, str]:
    """Without what `spark-submit` was told, and without what had to be known before it started Java."""
    SparkContext._ensure_initialized()  # the Java that started this process
    told = {name for name, _ in SparkConf().getAll()}
    too_late = {"spark.master", _JAVA_OPTIONS, _JARS, *_QUIET_LOCAL_SETTINGS}
    return {name: value for name, value in settings.items() if name not in told | too_late}


def say_nothing_of_pandas() -> None:
    """Spark's warning comes once for each call that touches pandas; what we use of pandas 3 is tested."""
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)


def is_connect(spark: SparkSession) -> bool:
    """Is it a session of Spark Connect? Asked by name, so that Connect is not imported for others."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


Builder = TypeVar("Builder")


def configure(builder: Builder) -> Builder:
    """A session's builder with all settings that a query needs or runs faster with, wherever the session will be."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with suppress(EnvironmentProblem):  # a client of Spark Connect needs no Java, and Spark says so if this one does
        ensure_java()
    configured: Any = builder
    for setting in SETTINGS:
        if setting.ours is not None and not setting.at_start:  # those are right unless somebody changed them
            configured = configured.config(setting.name, setting.ours)
    return configured


@contextmanager
def _told_by_file(settings: dict[str, str]) -> Iterator[None]:
    """A Java that is started inside reads these settings from a file that only this user can read, and that is gone
    afterwards."""
    if not settings:
        yield
        return
    given = os.environ.get(_SUBMIT)
    if given is not None and "--properties-file" in given:
        raise EnvironmentProblem(
            f"{_SUBMIT} names a --properties-file, and Spark reads one only: {', '.join(sorted(settings))} would have "
            "to stand on Java's command line, where everybody can read it. Put what that file says under [spark]."
        )
    place, path = mkstemp(prefix="skyband-", suffix=".properties")  # mode 600
    try:
        with os.fdopen(place, "w", encoding="utf-8") as file:
            file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())
        os.environ[_SUBMIT] = f"--properties-file {shlex.quote(path)} --load-spark-defaults {given or 'pyspark-shell'}"
        yield
    finally:
        if given is None:
            os.environ.pop(_SUBMIT, None)
        else:
            os.environ[_SUBMIT] = given
        os.unlink(path)


def _escaped(text: str) -> str:
    """As files of Java's properties have it."""
    escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", **{c: f"\\{c}" for c in " :=#!"}}
    return "".join(escapes.get(c, c) for c in text)


@contextmanager
def _messages_to(log_file: Path | None) -> Iterator[None]:
    """Processes started inside keep `log_file` as their standard error; ours is back afterwards."""
    if log_file is None:
        yield
        return
    sys.stderr.flush()
    ours = os.dup(2)
    try:
        with log_file.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _settings(cores: int, fast_start: bool, conf: dict[str, str]) -> dict[str, str]:
    log_settings = Path(__file__).with_name("log4j2.properties")
    java_options = [f'"-Dlog4j2.configurationFile={log_settings.as_uri()}"']
    settings = {"spark.master": f"local[{cores}]", "spark.sql.shuffle.partitions": str(cores)}
    settings |= STREAMING_SETTINGS | (_QUIET_LOCAL_SETTINGS if _is_local(conf) else {})
    if fast_start:
        settings |= _FAST_START_SETTINGS
        java_options.append(_FAST_START_JAVA_OPTIONS)
    if _JAVA_OPTIONS in conf:
        java_options.append(conf[_JAVA_OPTIONS])
    jars = ",".join(filter(None, [conf.get(_JARS), str(JAR)]))
    return settings | conf | {_JAVA_OPTIONS: " ".join(java_options), _JARS: jars}


def _is_local(conf: dict[str, str]) -> bool:
    return conf.get("spark.master", "local").startswith("local")


def _usable_cores() -> int:
    # A container may give this process fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
