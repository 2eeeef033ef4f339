"""Restart tests against a real Kafka broker: every answer is there, none twice; bad records are set aside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engines.spark.driver import numbers
from engines.spark.streams import lines, trades
from pipelines.test_running import LAST_US, ROWS, STATEMENTS, closed, run
from pipelines.test_tables import DELTA, ICEBERG, content
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from servers.kafka import broker
from servers.missing import missing
from waiting import wait_until

import skyband as sb
from skyband.pipelines.connect import connect
from skyband.pipelines.file import load

pytestmark = pytest.mark.spark

TIME = '{"ts": "2023-11-14T22:15:00Z", '
BAD = {
    "this is not JSON": "not JSON",
    '{"ts": "2023-11-14T22:15:00Z", "symbol": "S1", "price": ': "not JSON",
    TIME + '"symbol": "S1", "price": "dear"}': "a type that differs from the schema",
    '{"ts": "yesterday", "symbol": "S1", "price": 1000.0}': "a type that differs from the schema",
    "[1, 2]": "a type that differs from the schema",
    '{"symbol": "S1", "price": 1000.0}': "no ts",
    '{"ts": null, "symbol": "S1", "price": 1000.0}': "no ts",
}
LATENESS_US = 5_000_000


@pytest.fixture(scope="module")
def servers(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the topic `trades`: rows in order in two partitions, and bad records among them."""
    if "kafka" not in spark.conf.get("spark.jars", ""):
        missing("Spark's connector for Kafka, from Maven")
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        rows = spark.createDataFrame(trades(ROWS)).select(
            (sf.col("seq") % 2).cast("int").alias("partition"),
            sf.to_json(sf.struct("*")).alias("value"),
            sf.col("seq").cast("double").alias("place"),
        )
        bad = [(number % 2, text, 40.5 + 100 * number) for number, text in enumerate(BAD)]
        records = rows.union(spark.createDataFrame(bad, "partition int, value string, place double"))
        ordered = records.repartition(1).sortWithinPartitions("place").drop("place")
        ordered.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "trades").save()
        yield address


def pipeline_file(folder: Path, servers: str, topic: str) -> Path:
    file = folder / "market.toml"
    file.write_text(f'''
trigger = "available now"

[sources.trades]
format = "kafka"
servers = "{servers}"
topic = "trades"
schema = "ts TIMESTAMP, seq BIGINT, symbol STRING, buys BOOLEAN, price DOUBLE"
time = "ts"
lateness = "5 seconds"
dead_letters = "bad"
options = {{ maxOffsetsPerTrigger = 150 }}

[queries.best]
sql = """{STATEMENTS["best"]}"""
to = "topic"

[sinks.topic]
format = "kafka"
servers = "{servers}"
topic = "{topic}"

[sinks.bad]
format = "json"
path = "bad"

[spark]
"spark.sql.shuffle.partitions" = 1
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
''')
    return file


def consumed(spark: SparkSession, servers: str, topic: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    rows = reader.load().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    return [(row.key, row.value) for row in rows]


def check(spark: SparkSession, servers: str, topic: str) -> None:
    """A reader that keeps the last value of each key has every answer once."""
    values: dict[str, str] = {}
    for key, value in consumed(spark, servers, topic):
        assert values.setdefault(key, value) == value, "what comes twice is the same"
    answers = sb.sql(STATEMENTS["best"], trades=trades(ROWS))
    closed = [row for row in answers.to_pylist() if row["window_end"].timestamp() * 1e6 <= LAST_US - LATENESS_US]
    assert len(lines(answers)) > len(closed) > 100
    shown = Counter((row["window_end"].isoformat()[:19], row["rank"], row["symbol"], row["score"]) for row in closed)
    given = [json.loads(value) for value in values.values()]
    assert Counter((row["window_end"][:19], row["rank"], row["symbol"], row["score"]) for row in given) == shown
    key = json.loads(next(iter(values)))
    assert list(key) == ["query", "window_end", "symbol", "rank"]
    assert key["query"] == "best"


def bad_records(folder: Path) -> Counter[tuple[str, str]]:
    files = sorted((folder / "bad").glob("batch=*/*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len({(row["topic"], row["partition"], row["offset"]) for row in rows}) == len(rows)
    return Counter((row["record"], row["reason"]) for row in rows)


def test_stopped_in_the_middle_with_bad_records(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    file = pipeline_file(tmp_path, servers, "stopped")
    commits = tmp_path / ".skyband" / "market" / "trades_1" / "commits"
    first = run(spark, file, stop=lambda: commits.exists() and len([*commits.glob("[0-9]*")]) >= 2)
    assert 0 < first["best"].rows_in < ROWS
    then = run(spark, file)
    check(spark, servers, "stopped")
    assert first["best"].rows_in + then["best"].rows_in == ROWS + len(BAD)
    assert first["best"].rows_set_aside + then["best"].rows_set_aside == len(BAD)
    assert first["best"].rows_late + then["best"].rows_late == 0
    assert bad_records(tmp_path) == Counter(BAD.items())


def test_through_spark_connect(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    """On a server that has the connector."""
    file = pipeline_file(tmp_path, servers, "connect")
    text = file.read_text().replace('path = "bad"', f'path = "{tmp_path}/bad"').partition('"spark.driver')[0]
    port = spark.conf.get("spark.connect.grpc.binding.port")
    file.write_text(f'checkpoint = "{tmp_path}/checkpoint"\n{text}"spark.remote" = "sc://127.0.0.1:{port}"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        client = connect(load(file), print)
        run(client, file)
        client.stop()
    check(spark, servers, "connect")
    assert bad_records(tmp_path) == Counter(BAD.items())


def test_killed_in_the_middle(
    spark: SparkSession, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own, as a user starts it, is killed in a micro-batch; this one goes on. It finds a connector for
    Kafka by itself."""
    monkeypatch.setenv("SKYBAND_CACHE", str(tmp_path / "cache"))
    file = pipeline_file(tmp_path, servers, "killed")
    text = file.read_text().replace('to = "topic"', 'to = ["delta", "topic", "iceberg"]')
    tables = {"delta": DELTA, "iceberg": ICEBERG}
    file.write_text(text + "".join(sink.replace("lake]", f"{kind}]") for kind, sink in tables.items()))
    checkpoint = tmp_path / ".skyband" / "market" / "trades_1"
    command = [sys.executable, "-m", "skyband.cli", "run", str(file), "--log", "json"]
    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_until(lambda: 2 in numbers(checkpoint / "offsets"), "a third micro-batch", process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # the driver, its JVM and their workers
            process.wait()
    assert process.returncode == -signal.SIGKILL, (tmp_path / "log.txt").read_text()
    assert {0, 1} <= numbers(checkpoint / "commits")
    run(spark, file)
    check(spark, servers, "killed")
    for sink in tables.values():  # in which nothing has a key
        answers = sb.sql(STATEMENTS["best"], trades=trades(ROWS))
        assert sorted(lines(content(tmp_path, "best", sink))) == closed(answers, LAST_US - LATENESS_US)
    assert bad_records(tmp_path) == Counter(BAD.items())
