"""Examples of the connector for Kafka: found in Maven, kept, and said what to do if it is not to be had."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from servers.missing import missing

from skyband.errors import EnvironmentProblem
from skyband.pipelines import connectors
from skyband.pipelines.connectors import KAFKA_JARS, Connector, is_kept, kafka_connector, needs_kafka
from skyband.pipelines.file import load
from skyband.pipelines.session import connected

KAFKA = """
[sources.trades]
format = "kafka"
servers = "localhost:9092"
topic = "trades"
schema = "t BIGINT"
[queries.best]
sql = "SELECT * FROM trades [WINDOW 9 EVERY 3 ON t] ORDER BY t LIMIT 1"
to = "screen"
[sinks.screen]
format = "console"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKYBAND_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.spark  # it starts Java
def test_the_newest_connector_is_found_and_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try failed: Spark was asked for the connector of its own version, with parts that Maven lacks."""
    try:
        found = kafka_connector({})
    except EnvironmentProblem as error:
        missing(str(error))
    names = {jar.name.rpartition("-")[0] for jar in found.jars}
    assert names == {name.split(":")[1] for name in KAFKA_JARS}, "what Spark lacks, and nothing else"
    assert found.version >= "4.2.0"
    assert [path.name for path in cache.rglob("*") if path.is_dir()] == ["jars", found.jars[0].parent.name]
    monkeypatch.setattr(connectors, "ensure_java", lambda: pytest.fail("it is here already"))
    assert kafka_connector({}) == found


@pytest.mark.spark
def test_without_a_way_to_maven_it_is_said_what_to_do(cache: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers><filesystem name="none">'
        f'<artifact pattern="{tmp_path}/none/[artifact]-[revision].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    with pytest.raises(EnvironmentProblem) as refused:
        kafka_connector({"spark.jars.ivySettings": str(settings)})
    said = str(refused.value)
    assert "needs a connector for Kafka, and Maven gave none: org.apache.spark#spark-sql-kafka-0-10_2.13;" in said
    assert all(f"mvn dependency:copy -Dartifact={name} " in said for name in KAFKA_JARS)
    assert '"spark.jars.repositories" = ' in said
    assert not is_kept()
    assert not [*cache.rglob("*.jar")]


def test_who_brings_a_connector_gets_no_other(tmp_path: Path) -> None:
    file = tmp_path / "market.toml"
    file.write_text(KAFKA)
    pipeline = load(file)
    for name, content in (("all.jar", connectors._CLASS), ("other.jar", "Other.class")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(content, "")
    assert needs_kafka(pipeline, {})
    assert needs_kafka(pipeline, {"spark.jars": str(tmp_path / "other.jar")})
    assert not needs_kafka(pipeline, {"spark.jars": f"{tmp_path / 'other.jar'},{tmp_path / 'all.jar'}"})
    assert not needs_kafka(pipeline, {"spark.jars": "hdfs://jars/spark-sql-kafka.jar"})
    assert not needs_kafka(pipeline, {"spark.jars.packages": KAFKA_JARS[0]})
    file.write_text(
        KAFKA.replace('format = "kafka"', 'format = "socket"')
        .replace('servers = "localhost:9092"\n', "")
        .replace('topic = "trades"\n', "")
    )
    assert not needs_kafka(load(file), {})


def test_it_is_said_which_connector_is_used(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = (tmp_path / "jars" / "a.jar", tmp_path / "jars" / "b.jar")
    monkeypatch.setattr("skyband.pipelines.session.kafka_connector", lambda _: Connector("4.2.0", jars))
    file = tmp_path / "market.toml"
    file.write_text(KAFKA)
    told: list[str] = []
    setting = connected(load(file), {"spark.jars": "mine.jar"}, told.append)
    assert setting == {"spark.jars": f"mine.jar,{jars[0]},{jars[1]}"}
    assert told == [
        "Fetching Spark's connector for Kafka from Maven, once …",
        f"Kafka is read and written with Spark's connector for Kafka, version 4.2.0, in {tmp_path / 'jars'}.",
    ]
    monkeypatch.setitem(os.environ, "PYSPARK_GATEWAY_PORT", "1")
    assert connected(load(file), {}, told.append) == {}, "spark-submit was told"
