"""The Spark session of a pipeline: the settings that matter are set unless the file sets them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from skyband.engines.spark import local_session
from skyband.engines.spark.session import SUBMITTED
from skyband.errors import EnvironmentProblem
from skyband.pipelines.connect import connect
from skyband.pipelines.connectors import JARS, PACKAGES, is_kept, kafka_connector, needs_kafka
from skyband.pipelines.model import Pipeline
from skyband.pipelines.secrets import references, resolve

_FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_ANYWHERE: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def start_session(
    pipeline: Pipeline, *, log_file: Path | None, tell: Callable[[str], None] = lambda _: None
) -> SparkSession:
    """A session for `pipeline`, with the connector it needs; `tell` is told what takes its time."""
    if pipeline.remote is not None:
        return connect(pipeline, tell)
    given = {name: resolve(value) for name, value in pipeline.spark.items()}
    private = {name for name, value in pipeline.spark.items() if references(value)}
    chosen = settings(pipeline) | given | connected(pipeline, given, tell)
    tell(f"Starting Spark {pyspark.__version__} …")
    try:
        return local_session(
            f"skyband {pipeline.name}",
            log_file=log_file,
            private=private,
            **chosen,  # type: ignore[arg-type]
        )
    except EnvironmentProblem as error:
        said = "" if log_file is None or not log_file.exists() else log_file.read_text(errors="replace")
        raise (not_in_maven(given.get(PACKAGES, "").split(","), said) or error) from error


def connected(pipeline: Pipeline, given: dict[str, str], tell: Callable[[str], None]) -> dict[str, str]:
    """The setting that brings the connector for Kafka, if this pipeline needs it and the file does not bring it."""
    if SUBMITTED in os.environ or not needs_kafka(pipeline, given):
        return {}  # spark-submit was told which jars, before it started Java
    if not is_kept():
        tell("Fetching Spark's connector for Kafka from Maven, once …")
    connector = kafka_connector(given)
    tell(f"Kafka is read and written with {connector}.")
    return {JARS: ",".join(filter(None, [given.get(JARS), *map(str, connector.jars)]))}


def not_in_maven(packages: list[str], said: str) -> EnvironmentProblem | None:
    """What to do if, by what Spark said, some of `packages` could not be had."""
    missing = [name for name in packages if name and f"unresolved dependency: {_as_ivy(name)}" in said]
    if not missing:
        return None
    return EnvironmentProblem(
        f"Spark found no {' and no '.join(missing)} in Maven. Under [spark], name versions that exist "
        f'("{PACKAGES}"), or jars of your own ("{JARS}"). Leave out connectors for Kafka: the pipeline finds one '
        "that fits."
    )


def _as_ivy(package: str) -> str:
    """group:artifact:version as Spark writes it in its messages."""
    group, _, rest = package.partition(":")
    return f"{group}#{rest.replace(':', ';', 1)}"


def settings(pipeline: Pipeline) -> dict[str, str]:
    """What this pipeline needs besides what every session has."""
    ours = {
        # The default, INT96, is a type that only Spark's relatives know.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A query of ours may say much of one window; the default of 100 reports is for watching, and so is this.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # Secrets that Spark might show, in its log or elsewhere.
        "spark.redaction.regex": (
            "(?i)secret|passw|pwd|passphrase|token|(access|private|api|account)[._-]?key|azure[.]sas|jaas|credential"
        ),
    }
    if "://" in pipeline.checkpoint and not pipeline.checkpoint.startswith("file:"):
        ours[_FILE_MANAGER] = _ANYWHERE  # what is fast on a local disk is not safe elsewhere
    return ours
