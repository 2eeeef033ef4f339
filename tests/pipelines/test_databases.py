"""Restart tests against a real PostgreSQL and a real Redis: tables and boards are right whatever is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines.test_running import STATEMENTS, after, expected, pipeline_file, run
from pyspark.sql import SparkSession
from servers.missing import missing
from servers.postgresql import PASSWORD, USER, Database, database
from servers.redis import server
from spark.streams import split, trades, write_batches

import skyband as sb
from skyband.errors import SkybandError

pytestmark = pytest.mark.spark

SINK = """
[sinks.table]
format = "jdbc"
url = "{url}"
table = "{{query}}"
options = {{ user = "{user}", password = "${{SKYBAND_TEST_PASSWORD}}" }}
"""


@pytest.fixture(scope="module")
def postgresql(spark: SparkSession) -> Iterator[Database]:
    if "postgresql" not in spark.conf.get("spark.jars", ""):
        missing("PostgreSQL's JDBC driver, from Maven")
    with database() as running:
        yield running


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("databases") / "trades", split(trades(1_200), 6))


def test_rows_are_replaced_by_key_whatever_is_repeated(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", PASSWORD)
    file = pipeline_file(tmp_path, source, ["best"])
    sink = SINK.format(url=postgresql.url, user=USER)
    file.write_text(file.read_text().replace('to = "files"', 'to = ["table", "files"]') + sink)
    run(spark, file, stop=after(3, file))
    # As if the last micro-batch had been written, and the process had died before it could say so.
    commits = tmp_path / ".skyband" / "market" / "trades_1" / "commits"
    last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    before = postgresql.ask("SELECT count(*) FROM best")
    run(spark, file)
    assert int(before[0][0][0]) > 0
    asked = "SELECT extract(epoch FROM window_end)::bigint, symbol, rank, price FROM best"
    given = sorted((int(end), symbol, int(rank), float(price)) for end, symbol, rank, price in postgresql.ask(asked))
    assert given == sorted((line[1] // 1_000_000, line[2], line[3], line[4]) for line in expected("best"))
    assert postgresql.ask("SELECT count(*) FROM pg_tables WHERE tablename LIKE '%_skyband'") == [["0"]]


def test_what_changes_is_applied(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that come and go: the table holds those that are there now."""
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", PASSWORD)
    statement = (
        "SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 2 SECONDS EVERY 1 SECOND] GROUP BY symbol EMIT CHANGES"
    )
    file = pipeline_file(tmp_path, source, ["groups"], groups=statement)
    sink = SINK.format(url=postgresql.url, user=USER) + 'key = ["symbol"]\n'
    file.write_text(file.read_text().replace('to = "files"', 'to = "table"') + sink)
    run(spark, file)
    now: dict[str, int] = {}
    watermark = max(trades(1_200).column("ts").to_pylist())
    for row in sb.sql(statement, trades=trades(1_200)).to_pylist():
        if row["at"] <= watermark:
            now[row["symbol"]] = row["n"]
            if row["change"] == "delete":
                del now[row["symbol"]]
    assert 0 < len(now) <= 5
    assert {symbol: int(n) for symbol, n in postgresql.ask("SELECT symbol, n FROM groups")} == now


def test_a_password_that_is_refused_is_not_shown(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", "hunter2-hunter2")
    file = pipeline_file(tmp_path, source, ["groups"])
    sink = SINK.format(url=postgresql.url, user=USER)
    file.write_text(file.read_text().replace('to = "files"', 'to = "table"') + sink)
    with pytest.raises(SkybandError) as refused:
        run(spark, file)
    assert "password authentication failed" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_leaderboard_shows_the_latest_window(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    import redis

    with server(tmp_path) as address:
        file = pipeline_file(tmp_path, source, ["best"], best=STATEMENTS["best"].replace("LIMIT 2", "LIMIT 3"))
        board = f'[sinks.board]\nformat = "leaderboard"\nurl = "{address}"\nboard = "top:{{symbol}}"\nmember = "seq"\n'
        text = file.read_text().replace('to = "files"', 'to = "board"').replace("SELECT symbol, price", "SELECT seq")
        file.write_text(text + board)
        run(spark, file, stop=after(2, file))
        run(spark, file)
        client = redis.Redis.from_url(address)
        given = {
            key.decode(): [(member.decode(), score) for member, score in client.zrevrange(key, 0, -1, withscores=True)]
            for key in client.keys("top:*")
            if b":window_end" not in key
        }
        client.close()
    statement = "SELECT seq FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 3 BY symbol"
    rows = sb.sql(statement, trades=trades(1_200)).to_pylist()
    watermark = max(trades(1_200).column("ts").to_pylist())
    last = max(row["window_end"] for row in rows if row["window_end"] <= watermark)
    for symbol in {row["symbol"] for row in rows}:
        shown = [
            (str(row["seq"]), row["score"]) for row in rows if (row["window_end"], row["symbol"]) == (last, symbol)
        ]
        assert sorted(given[f"top:{symbol}"]) == sorted(shown)
        assert [score for _, score in given[f"top:{symbol}"]] == sorted((score for _, score in shown), reverse=True)
