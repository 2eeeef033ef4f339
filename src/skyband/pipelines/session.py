"""The Spark session of a pipeline: the settings that matter are set unless the file sets them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from skyband.engines.spark import local_session
from skyband.errors import EnvironmentProblem
from skyband.pipelines.model import Pipeline
from skyband.pipelines.secrets import references, resolve

_KAFKA: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13"
KAFKA: Final = f"{_KAFKA}:{pyspark.__version__}"
# What Maven has of it, and what the tests run with on Spark 4.3: the connector names a part of its own version that is
# not to be had, so that "spark.jars.packages" cannot bring it.
KAFKA_JARS: Final = (
    f"{_KAFKA}:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
PACKAGES: Final = "spark.jars.packages"
_FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"
_ANYWHERE: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def start_session(pipeline: Pipeline, *, log_file: Path | None) -> SparkSession:
    """A session for `pipeline`, with the connectors it needs."""
    given = {name: resolve(value) for name, value in pipeline.spark.items()}
    private = {name for name, value in pipeline.spark.items() if references(value)}
    try:
        return local_session(
            f"skyband {pipeline.name}",
            log_file=log_file,
            private=private,
            **(settings(pipeline, given) | given),  # type: ignore[arg-type]
        )
    except EnvironmentProblem as error:
        said = "" if log_file is None or not log_file.exists() else log_file.read_text(errors="replace")
        packages = connectors(pipeline, given) or given.get(PACKAGES, "").split(",")
        raise (not_in_maven(packages, said) or error) from error


def not_in_maven(packages: list[str], said: str) -> EnvironmentProblem | None:
    """What to do if, by what Spark said, some of `packages` could not be had."""
    missing = [name for name in packages if name and f"unresolved dependency: {_as_ivy(name)}" in said]
    if not missing:
        return None
    bring = "\n".join(f"  mvn dependency:copy -Dartifact={name} -DoutputDirectory=jars" for name in KAFKA_JARS)
    kafka = (
        f"\nFor Kafka, these four work with Spark {pyspark.__version__}:\n{bring}\n"
        'Then, under [spark]: "spark.jars" = "jars/…,jars/…,jars/…,jars/…", all four with their paths.'
    )
    return EnvironmentProblem(
        f"Spark found no {' and no '.join(missing)} in Maven. Under [spark], name versions that are there "
        f'("{PACKAGES}"), or jars of your own ("spark.jars").'
        + (kafka if any(name.startswith(_KAFKA) for name in missing) else "")
    )


def _as_ivy(package: str) -> str:
    """group:artifact:version as Spark writes it in its messages."""
    group, _, rest = package.partition(":")
    return f"{group}#{rest.replace(':', ';', 1)}"


def settings(pipeline: Pipeline, given: dict[str, str]) -> dict[str, str]:
    """What this pipeline needs besides what every session has."""
    ours = {
        # The default, INT96, is a type that only Spark's relatives know.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # A query of ours may say much of one window; the default of 100 reports is for watching, and so is this.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # Secrets that Spark might show, in its log or elsewhere.
        "spark.redaction.regex": "(?i)secret|passw|pwd|passphrase|token|(access|private|api)[._-]?key|jaas|credential",
    }
    packages = connectors(pipeline, given)
    if packages:
        ours[PACKAGES] = ",".join(packages)
    if "://" in pipeline.checkpoint and not pipeline.checkpoint.startswith("file:"):
        ours[_FILE_MANAGER] = _ANYWHERE  # what is fast on a local disk is not safe elsewhere
    return ours


def connectors(pipeline: Pipeline, given: dict[str, str]) -> list[str]:
    """Maven names of what Spark lacks for this pipeline, unless the file brings jars of its own."""
    if "spark.jars" in given or PACKAGES in given:
        return []
    formats = {source.format for source in pipeline.sources.values()}
    formats |= {sink.format for sink in pipeline.sinks.values()}
    return [KAFKA] if "kafka" in formats else []
