"""Restart tests against a real PostgreSQL and a real Redis: tables and boards are right whatever is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from engines.spark.streams import split, trades, write_batches
from pipelines.test_running import ALL_FILES, BATCHES, ROWS, after, expected, pipeline_file, run
from pyspark.sql import SparkSession
from servers.postgresql import PASSWORD, USER, Database, database
from servers.redis import server

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
def postgresql() -> Iterator[Database]:
    with database() as running:
        yield running


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("databases") / "trades", split(trades(ROWS), BATCHES))


def test_rows_are_replaced_by_key_whatever_is_repeated(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", PASSWORD)
    with server(tmp_path) as address:
        file = pipeline_file(tmp_path, source, ["best"])
        board = f'[sinks.board]\nformat = "leaderboard"\nurl = "{address}"\nboard = "top:{{symbol}}"\nmember = "seq"\n'
        text = file.read_text().replace('to = "files"', 'to = ["table", "board"]')
        file.write_text(text + SINK.format(url=postgresql.url, user=USER) + board)
        run(spark, file, stop=after(3, file))
        # As if the last micro-batch had been written, and the process had died before it could say so.
        commits = tmp_path / ".skyband" / "market" / "trades_1" / "commits"
        commit = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
        commit.unlink()
        (commits / f".{commit.name}.crc").unlink(missing_ok=True)
        assert int(postgresql.ask("SELECT count(*) FROM best")[0][0]) > 0
        run(spark, file)
        boards = boards_of(address)
    asked = "SELECT extract(epoch FROM window_end)::bigint, symbol, rank, score FROM best"
    given = sorted((int(end), symbol, int(rank), float(score)) for end, symbol, rank, score in postgresql.ask(asked))
    wanted = ((end // 1_000_000, symbol, rank, score) for _, end, symbol, rank, score, *_ in expected("best"))
    assert given == sorted(wanted)
    assert postgresql.ask("SELECT count(*) FROM pg_class WHERE relname LIKE 'skyband_%'") == [["0"]]
    # The boards show the last window.
    last = max(end for _, end, *_ in expected("best"))
    ranked = [
        (rank, f"top:{symbol}", (str(seq), score))
        for _, end, symbol, rank, score, _, seq in expected("best")
        if end == last
    ]
    assert len(boards) == len({name for _, name, _ in ranked}) == 5
    for name, shown in boards.items():
        assert sorted(shown) == sorted(row for _, board, row in ranked if board == name)
        assert [score for _, score in shown] == [row[1] for _, board, row in sorted(ranked) if board == name]


def boards_of(address: str) -> dict[str, list[tuple[str, float]]]:
    """Every sorted set of a Redis server, best first."""
    with redis.Redis.from_url(address, decode_responses=True) as client:
        names = [name for name in client.keys("top:*") if not name.endswith(":window_end")]
        return {name: client.zrevrange(name, 0, -1, withscores=True) for name in names}


def test_what_changes_is_applied(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups that come and go, and rows that enter and leave: a table holds those that are there now."""
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", PASSWORD)
    statements = {
        "groups": "SELECT symbol, COUNT(*) AS n FROM trades [WINDOW 2 SECONDS EVERY 1 SECOND] GROUP BY symbol",
        "best": "SELECT seq, price FROM trades [WINDOW 9 SECONDS EVERY 1 SECOND] ORDER BY price DESC LIMIT 3",
    }
    statements = {name: f"{statement} EMIT CHANGES" for name, statement in statements.items()}
    file = pipeline_file(tmp_path, source, [*statements], ALL_FILES // 25, **statements)
    text = file.read_text()
    for name, key in (("groups", "symbol"), ("best", "seq")):
        text = text.replace('to = "files"', f'to = "{name}_now"', 1)
        sink = SINK.format(url=postgresql.url, user=USER).replace("sinks.table", f"sinks.{name}_now")
        text += sink.replace("{query}", f"now_{name}") + f'key = ["{key}"]\n'
    file.write_text(text)
    run(spark, file)
    watermark = max(trades(ROWS).column("ts").to_pylist())
    for name, key, shown in (("groups", "symbol", "n"), ("best", "seq", "price")):
        now: dict[str, float] = {}
        for row in sb.sql(statements[name], trades=trades(ROWS)).to_pylist():
            if row["at"] <= watermark:
                now[str(row[key])] = row[shown]
                if row["change"] in ("delete", "leave"):
                    del now[str(row[key])]
        assert 0 < len(now) <= 5
        held = postgresql.ask(f"SELECT {key}, {shown} FROM now_{name}")
        assert {one: float(value) for one, value in held} == now, name


def test_a_password_that_is_refused_is_not_shown(
    spark: SparkSession, postgresql: Database, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYBAND_TEST_PASSWORD", "hunter2-hunter2")
    file = pipeline_file(tmp_path, source, ["groups"], ALL_FILES)
    sink = SINK.format(url=postgresql.url, user=USER)
    file.write_text(file.read_text().replace('to = "files"', 'to = "table"') + sink)
    with pytest.raises(SkybandError) as refused:
        run(spark, file)
    assert "password authentication failed" in str(refused.value)
    assert "hunter2" not in str(refused.value)
