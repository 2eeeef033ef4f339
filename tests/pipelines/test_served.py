"""Oracle tests: what a pipeline serves is the last window that it wrote, whole, with its batch and watermark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines.spark.streams import split, trades, write_batches
from pyspark.sql import SparkSession
from serving.asking import ask, events

from skyband.errors import InvalidPipeline
from skyband.pipelines.figures import Figures
from skyband.pipelines.file import load
from skyband.pipelines.metrics import Metrics
from skyband.pipelines.model import HERE, Address
from skyband.pipelines.running import Running
from skyband.pipelines.served import ServedPipeline, ServedQuery
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.sql import run

PIPELINE = """
trigger = "available now"
serve = true
[sources.trades]
format = "parquet"
path = "{source}"
options = {{ maxFilesPerTrigger = 1 }}
[queries.best]
sql = "SELECT price, seq FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol"
to = "files"
[queries.groups]
sql = '''SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 30 SECONDS EVERY 10 SECONDS]
GROUP BY symbol ORDER BY n DESC LIMIT 3'''
to = "files"
[queries.moving]
sql = "SELECT price, seq FROM trades [WINDOW 100 ON seq] ORDER BY price DESC LIMIT 3"
to = "files"
[sinks.files]
format = "parquet"
path = "answers/{{query}}"
"""


@pytest.mark.spark
def test_what_is_served_is_what_was_written_last(spark: SparkSession, tmp_path: Path) -> None:
    source = write_batches(tmp_path / "trades", split(trades(400), 3))
    file = tmp_path / "market.toml"
    file.write_text(PIPELINE.format(source=source))
    metrics = Metrics()
    served = ServedPipeline(load(file), metrics.text)
    running = Running(spark, load(file), print, served=served)
    with Server(served.catalog) as server:
        running.start()
        assert {query["name"] for query in ask(server, "/queries").json["queries"]} == {"best", "groups", "moving"}
        with events(server, "/queries/best/changes") as told:
            for figures in running.follow():
                metrics.take(figures)
            assert next(told).kind == "answer"
        for name in ("best", "groups"):
            written = pq.read_table(tmp_path / "answers" / name)
            last = max(written.column("window_end").to_pylist())
            answer = ask(server, f"/queries/{name}/top").json
            rows = [row for row in written.to_pylist() if row["window_end"] == last]
            assert answer["at"] == last.isoformat()
            assert answer["watermark"] >= answer["at"]
            assert answer["batch"] == max(row["batch"] for row in rows)
            assert _ranked(answer["rows"]) == _ranked(rows)
            earlier = sorted(set(written.column("window_end").to_pylist()))[0].isoformat().replace("+", "%2B")
            assert ask(server, f"/queries/{name}/top?at={earlier}&k=1").json["rows"][0]["rank"] == 1
        changes = pq.read_table(tmp_path / "answers" / "moving").to_pylist()
        now = ask(server, "/queries/moving/top").json["rows"]
        entered = {(row["seq"]) for row in changes if row["change"] == "enter"}
        left = {(row["seq"]) for row in changes if row["change"] == "leave"}
        assert {row["seq"] for row in now} == entered - left
        assert [row["rank"] for row in now] == [1, 2, 3]
        assert sorted((row["score"] for row in now), reverse=True) == [row["score"] for row in now]
        assert ask(server, "/queries/best/top?size=5").status == 409
        assert ask(server, "/queries/best/picture").status == 404
        assert 'skyband_input_rows_total{query="best"} 400.0' in ask(server, "/metrics").body.decode()
        found = ask(server, "/queries/best").json
        assert (found["figures"]["rows_in"], found["state"], found["title"]) == (
            400,
            "ended",
            "top 2 by price for each symbol",
        )
    running.stop()


def _ranked(rows: list[dict]) -> list[tuple]:
    return sorted((str(row.get("symbol")), row["rank"], row.get("seq"), row.get("n")) for row in rows)


def test_a_file_says_where_answers_are_served(tmp_path: Path) -> None:
    file = tmp_path / "market.toml"
    text = PIPELINE.format(source=tmp_path)
    for given, meant in (("true", HERE), ("false", None), ('"0.0.0.0:80"', Address("0.0.0.0", 80))):
        file.write_text(text.replace("serve = true", f"serve = {given}"))
        assert load(file).serve == meant
    for wrong in ('"8765"', '"host"', "8765", '"host:99999"', '""', '"a:b"', "[]"):
        file.write_text(text.replace("serve = true", f"serve = {wrong}"))
        with pytest.raises(InvalidPipeline, match=r"market\.toml:3: serve is true, false or an address"):
            load(file)


def test_the_plan_of_a_query_is_served_while_it_runs_on_spark() -> None:
    text = "SELECT price FROM trades [WINDOW 100 ROWS EVERY 10 ROWS] ORDER BY price DESC LIMIT 3"
    spec = run.ask(text, {"trades": pa.schema({"price": pa.int64()})})
    query = ServedQuery("best", text, spec, Figures("best"), is_resumed=False)
    catalog = Catalog("market")
    catalog.add(query)
    with Server(catalog) as server:
        plan = ask(server, "/queries/best/plan").json
        assert (plan["algorithm"], plan["title"]) == ("mintopk", "top 3 by price")
        assert ask(server, "/queries/best").json["state"] == "running"
