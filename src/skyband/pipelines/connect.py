"""Pipelines on a server of Spark Connect: what cannot be had there, the session, and what an earlier run left there.

All that reads and writes is on the server: its Spark reads the sources, its workers keep the state, and a Python
process beside it writes each micro-batch (`server_writer.py`). This process starts the queries and follows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from skyband.dialect.statement import Statement
from skyband.engines.spark.failures import readable
from skyband.engines.spark.jvm import JAR
from skyband.engines.spark.session import say_nothing_of_pandas
from skyband.engines.spark.settings import MANY_PARTITIONS, PARTITIONS, SETTINGS
from skyband.engines.spark.sieving import is_attached
from skyband.errors import EnvironmentProblem, InvalidPipeline
from skyband.pipelines.files import files_at
from skyband.pipelines.model import REMOTE, Pipeline, Query, Sink, Source
from skyband.pipelines.secrets import hide, resolve

_ADDRESS: Final = re.compile(r"sc://(\[[^\]]+\]|[^/:;]+)(?::(\d+))?/?(?:;.*)?")
_PORT: Final = 15002  # of Spark Connect, unless an address says another
FROM_PYTHON: Final = ("delta", "iceberg", "jdbc", "leaderboard")  # sinks that Skyband writes, not Spark
_SESSION: Final = "session"  # beside the checkpoints: the session of the last run
_OURS: Final = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


def server_of(address: str) -> tuple[str, int] | None:
    """The host and the port of a server; None: it is no address of one.

    >>> server_of("sc://spark:15003/;use_ssl=true"), server_of("sc://[::1]"), server_of("local[2]")
    (('spark', 15003), ('::1', 15002), None)
    """
    found = _ADDRESS.fullmatch(address)
    return None if found is None else (found[1].strip("[]"), int(found[2] or _PORT))


def refusals(pipeline: Pipeline, statements: Mapping[str, Statement]) -> Iterator[InvalidPipeline]:
    """What a pipeline asks of Spark Connect that cannot be had there."""
    path = ("spark", REMOTE if REMOTE in pipeline.spark else "spark.api.mode")
    if pipeline.remote is None:
        if pipeline.spark.get("spark.api.mode") == "connect":
            yield pipeline.wrong(f'Name the server of Spark Connect: "{REMOTE}" = "sc://host:15002".', *path)
        return
    if "spark.master" in pipeline.spark:
        yield pipeline.wrong(
            f"A pipeline has a session of its own, with spark.master, or that of a server, with {REMOTE}. Leave out "
            "one of the two.",
            *path,
        )
    if "$" not in pipeline.remote and server_of(pipeline.remote) is None:
        yield pipeline.wrong(f'{REMOTE} is the address of a server: "sc://host:15002".', *path)
    yield from _relative(pipeline)
    for query in pipeline.queries.values():
        if query.name in statements:
            yield from _tables_to_python(pipeline, query, statements[query.name])


def _relative(pipeline: Pipeline) -> Iterator[InvalidPipeline]:
    """Paths that mean something on this machine only."""
    parts: list[tuple[str, Source | Sink]] = [("sources", one) for one in pipeline.sources.values()]
    parts += [("sinks", one) for one in pipeline.sinks.values()]
    given = [(part.path, (kind, part.name, "path")) for kind, part in parts if part.path is not None]
    for text, where in [(pipeline.checkpoint, ("checkpoint",)), *given]:
        if "$" not in text:
            try:
                pipeline.located(text)
            except InvalidPipeline as mistake:
                said = str(mistake).split(": ", 1)[1]
                yield pipeline.wrong(f"{where[-1]}: {said}", *where)


def _tables_to_python(pipeline: Pipeline, query: Query, statement: Statement) -> Iterator[InvalidPipeline]:
    sources = {name.lower(): source for name, source in pipeline.sources.items()}
    read = [sources[one.name.lower()] for one in statement.leaves if one.name.lower() in sources]
    for sink in (pipeline.sinks[name] for name in query.to):
        if read and sink.format in FROM_PYTHON and not any(source.stream for source in read):
            yield pipeline.wrong(
                f"Query {query.name!r} reads tables only. Through Spark Connect, their answers go to files or to "
                f"Kafka, but not to {sink.format}, which a Python of the server writes, for streams only.",
                *("queries", query.name, "to"),
            )


def notes(pipeline: Pipeline) -> Iterator[str]:
    """What is worth knowing of a pipeline on a server."""
    if pipeline.remote is None:
        return
    server = server_of(pipeline.remote)
    is_private = re.search(r";\s*(use_ssl=true|token=)", pipeline.remote, re.IGNORECASE)
    if pipeline.secret_names() and not is_private and server and server[0] not in ("localhost", "127.0.0.1", "::1"):
        yield f"Secrets travel to {server[0]} without encryption. With ;use_ssl=true in {REMOTE} they are encrypted."


def connect(pipeline: Pipeline, tell: Callable[[str], None]) -> SparkSession:
    """A new session of the server, with the settings of the pipeline."""
    address = resolve(str(pipeline.remote))
    tell("Connecting to the server of Spark Connect …")
    say_nothing_of_pandas()
    try:
        spark = SparkSession.builder.remote(address).create()
        tell(f"Connected to Spark {spark.version}.")
    except Exception as error:
        said = hide(str(readable(error)), pipeline.secret_names())
        raise EnvironmentProblem(f"The server of Spark Connect takes no session: {said}") from None
    ours = {one.name: one.ours for one in SETTINGS if one.ours is not None and not one.at_start} | _OURS
    for name, value in ours.items():
        with suppress(PySparkException):  # a query that cannot do without says so
            spark.conf.set(name, value)
    if not is_attached(spark):
        with suppress(PySparkException):  # a server that takes no jars; Python does without
            spark.addArtifacts(str(JAR))
    given = {name: value for name, value in pipeline.spark.items() if name != REMOTE}
    refused = []
    for name, value in given.items():
        try:
            spark.conf.set(name, resolve(value))
        except PySparkException:
            refused.append(name)
    if refused:
        spark.stop()
        raise EnvironmentProblem(
            f"The server runs already, and takes no {' and no '.join(refused)} from a session. Set it where the server "
            "is started, and leave it out under [spark]."
        )
    if PARTITIONS not in given:
        cores = int(spark.range(1 << 10).select(sf.max(sf.spark_partition_id())).collect()[0][0]) + 1
        spark.conf.set(PARTITIONS, str(min(cores, MANY_PARTITIONS)))
    return spark


def take_over(spark: SparkSession, pipeline: Pipeline, stop: Callable[[Sequence[StreamingQuery]], None]) -> None:
    """Let the queries of an earlier run come to their end that this server still runs, and note that it is ours now.

    The queries of a client that was killed run on. Spark would end them, but in the middle of a micro-batch.
    """
    folder = pipeline.located(resolve(pipeline.checkpoint))
    files, place = files_at(spark, folder), f"{folder.rstrip('/')}/{_SESSION}"
    noted, mine = files.read(place), str(getattr(spark, "session_id"))  # noqa: B009  # of Connect's sessions only
    if noted is not None and re.fullmatch(r"[0-9a-f-]{36}", noted.strip()) and noted.strip() != mine:
        address = resolve(str(pipeline.remote)).rstrip("/")
        address = f"{address}{'' if '/;' in address else '/'};session_id={noted.strip()}"
        with suppress(PySparkException):  # it was closed, as a run that ends does
            before = SparkSession.builder.remote(address).create()
            stop([*before.streams.active])
            before.client.close()  # and not its session, in which somebody may be
    files.write(place, mine)
