"""Oracle tests of Spark Connect: the same questions through a client that reaches Spark by its wire protocol alone.

The server is that of the tests' session; the client knows nothing of it but its port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conformance.asked import Asked
from conformance.test_engines import ASKED, in_any_order, spread
from engines.spark.streams import lines, read_batches, run_answer, split, trades, write_batches
from pyspark.sql import SparkSession

import skyband as sb
from skyband.accessors import register_spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TABLES = ["rows: time, per group, ascending", "subscriptions: time", "pairs: time", "across: panes", "joins: changes"]
STREAMS = ["rows: changes", "rows: count", "subscriptions: time", "pairs: time", "across: panes", "joins: ranked"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[pa.Table], Path]:
    def place(table: pa.Table) -> Path:
        return write_batches(tmp_path_factory.mktemp("table") / "input", split(table, 2))

    return place


@pytest.fixture(scope="module")
def client(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of Spark Connect with the settings of ours."""
    from pyspark.sql.connect.session import SparkSession as Remote

    address = f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # what getOrCreate says where no other session is
        session = sb.spark.configure(Remote.builder.remote(address)).config("spark.sql.shuffle.partitions", 1).create()
        yield session
        session.stop()


@pytest.mark.parametrize("asked", [ASKED[name] for name in TABLES], ids=TABLES)
def test_a_table_is_answered_as_recomputing_answers_it(
    client: SparkSession, folder: Callable[[pa.Table], Path], asked: Asked
) -> None:
    with spread(client, asked):
        frames = {name: client.read.parquet(str(folder(table))) for name, table in asked.inputs.items()}
        answer = asked.of(frames).toArrow()
    assert in_any_order(lines(answer)) == in_any_order(lines(asked.expected))


@pytest.mark.parametrize("asked", [ASKED[name] for name in STREAMS], ids=STREAMS)
def test_a_stream_is_answered_as_a_table_is(
    client: SparkSession, folder: Callable[[pa.Table], Path], asked: Asked
) -> None:
    inputs: dict[str, Any] = {
        name: table if name in asked.tables else read_batches(client, folder(table))
        for name, table in asked.inputs.items()
    }
    with spread(client, asked):
        outcome = run_answer(client, asked.of(inputs, **asked.when_streamed), mode=asked.mode)
    assert in_any_order(outcome.lines) == in_any_order(asked.closed())


def test_a_session_is_checked_and_a_view_is_seen_by_sql(client: SparkSession) -> None:
    assert sb.spark.check(client) == ()
    client.range(10).createOrReplaceTempView("numbers")
    statement = "SELECT id FROM numbers [WINDOW 5 EVERY 5 ON id] ORDER BY id DESC LIMIT 1"
    assert [row.score for row in sb.sql(statement, spark=client).collect()] == [4, 9]
    register_spark()
    best = client.table("numbers").skyband.top_k(k=1, by="id", window=sb.tumbling(5, on="id"))
    assert [row.score for row in best.collect()] == [4, 9]


def test_the_ranking_right_now_is_read_through_the_server(
    client: SparkSession, folder: Callable[[pa.Table], Path], tmp_path: Path
) -> None:
    rows, window = trades(40), sb.tumbling("10 seconds", on="ts")
    best = sb.top_k(read_batches(client, folder(rows)), k=2, by="price", window=window)
    writer = best.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    session = sb.TopK(k=2, by="price", window=window).open(rows.schema)
    session.push(rows)
    expected = session.top(k=1)["score"].to_pylist()
    assert [row.score for row in sb.read_answer(client, str(tmp_path), k=1).collect()] == expected
    assert sb.read_state(client, str(tmp_path)).count() >= len(expected) > 0
