"""The Spark session of a pipeline: the settings that matter are set unless the file sets them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from skyband.engines.spark import local_session
from skyband.pipelines.model import Pipeline
from skyband.pipelines.secrets import resolve

KAFKA: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
POSTGRESQL: Final = "org.postgresql:postgresql:42.7.7"
_PACKAGES: Final = "spark.jars.packages"
_FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_ANYWHERE: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def start_session(pipeline: Pipeline, *, log_file: Path | None) -> SparkSession:
    """A session for `pipeline`, with the connectors it needs."""
    given = {name: resolve(value) for name, value in pipeline.spark.items()}
    return local_session(f"skyband {pipeline.name}", log_file=log_file, **(settings(pipeline, given) | given))  # type: ignore[arg-type]


def settings(pipeline: Pipeline, given: dict[str, str]) -> dict[str, str]:
    """What this pipeline needs besides what every session has."""
    ours = {
        # The default, INT96, is a type that only Spark's relatives know.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A query of ours may say much of one window; the default of 100 reports is for watching, and so is this.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # Secrets that Spark might show, in its log or elsewhere.
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|credential",
    }
    packages = connectors(pipeline, given)
    if packages:
        ours[_PACKAGES] = ",".join(packages)
    if "://" in pipeline.checkpoint and not pipeline.checkpoint.startswith("file:"):
        ours[_FILE_MANAGER] = _ANYWHERE  # what is fast on a local disk is not safe elsewhere
    return ours


def connectors(pipeline: Pipeline, given: dict[str, str]) -> list[str]:
    """Maven names of what Spark lacks for this pipeline, unless the file brings jars of its own."""
    if "spark.jars" in given or _PACKAGES in given:
        return []
    formats = {source.format for source in pipeline.sources.values()}
    formats |= {sink.format for sink in pipeline.sinks.values()}
    urls = [sink.url or "" for sink in pipeline.sinks.values()]
    return [
        *([KAFKA] if "kafka" in formats else []),
        *([POSTGRESQL] if any(url.startswith("jdbc:postgresql:") for url in urls) else []),
    ]
