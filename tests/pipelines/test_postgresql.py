"""Example and fault tests of the PostgreSQL sink against a real server, without Spark: nulls and NaN in a key, names of
any kind, micro-batches that come twice, and a writer that is killed."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from servers.postgresql import PASSWORD, USER, Database, database
from waiting import wait_until

from skyband.errors import EnvironmentProblem, InvalidPipeline, PipelineFailed
from skyband.pipelines.answers import Answers
from skyband.pipelines.databases import PostgresqlTarget, index_name, name_parts
from skyband.pipelines.model import Pipeline, Places, Sink
from skyband.pipelines.postgresql import connection, refused

pytestmark = pytest.mark.xdist_group("postgresql")


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Database]:
    with database() as running:
        yield running


def target(postgresql: Database, table: str, *key: str, **changed: Any) -> PostgresqlTarget:
    pipeline = Pipeline(Path("market.toml"), "market", "state", None, {}, {}, {}, {}, Places(""))
    options = {"user": USER, "password": PASSWORD}
    sink = Sink("table", "jdbc", url=postgresql.url, table=table, key=key, options=options)
    return PostgresqlTarget(pipeline, "best", replace(sink, **changed), None)


def answers(**columns: Any) -> Answers:
    return Answers(None, pa.table(columns))  # type: ignore[arg-type]  # they are in hand: no Spark is asked


def test_null_and_nan_are_values_of_a_key(postgresql: Database) -> None:
    """A repeated micro-batch doubled rows with a null in their key."""
    sink = target(postgresql, "nulls", "symbol", "price")
    rows = {"symbol": ["OAK", None, None, "ELM"], "price": [1.0, None, math.nan, math.nan]}
    for n in (10, 10, 20):
        sink.write(answers(**rows, n=[n, n + 1, n + 2, n + 3]), 0)
    assert postgresql.ask("SELECT coalesce(symbol, '-'), coalesce(price::text, '-'), n FROM nulls ORDER BY n") == [
        ["OAK", "1", "20"],
        ["-", "-", "21"],
        ["-", "NaN", "22"],
        ["ELM", "NaN", "23"],
    ]


def test_groups_of_null_go_as_others_do(postgresql: Database) -> None:
    """They piled up: nothing equals null, so nothing was deleted."""
    sink = target(postgresql, "groups", "symbol")
    for at in range(3):
        sink.write(answers(at=[at, at], change=["upsert", "upsert"], symbol=[None, "OAK"], n=[at, at]), at)
        assert postgresql.ask("SELECT symbol, n FROM groups ORDER BY symbol") == [["OAK", str(at)], ["", str(at)]]
    sink.write(answers(at=[3, 4], change=["upsert", "delete"], symbol=pa.array([None, None], pa.string()), n=[3, 3]), 3)
    sink.write(answers(at=[5], change=["delete"], symbol=["ELM"], n=[0]), 4)
    assert postgresql.ask("SELECT symbol, at FROM groups") == [["OAK", "2"]]


def test_a_table_of_an_earlier_version_is_mended(postgresql: Database) -> None:
    """Its index tells nulls apart, as indexes before PostgreSQL 15 do; what has doubled becomes one."""
    postgresql.ask("CREATE TABLE old (symbol text, n bigint, note text); CREATE UNIQUE INDEX old_key ON old (symbol)")
    postgresql.ask("INSERT INTO old VALUES (NULL, 1, ''), (NULL, 1, ''), ('OAK', 1, 'kept')")
    sink = target(postgresql, "old", "symbol")
    for _ in range(2):
        sink.write(answers(symbol=[None, "OAK"], n=[2, 3]), 0)
    assert postgresql.ask("SELECT symbol, n, note FROM old ORDER BY n") == [["", "2", ""], ["OAK", "3", "kept"]]
    assert postgresql.ask("SELECT count(*) FROM pg_indexes WHERE tablename = 'old'") == [["1"]]


@pytest.mark.parametrize(
    ("table", "written"),
    [
        ("sales.best", "sales.best"),
        ('sales."q1.best"', 'sales."q1.best"'),
        ('Say "so"', '"Say ""so"""'),
        ("x" * 60, "x" * 60),
        ("x" * 59 + "yz", "x" * 59 + "yz"),
        ("ä" * 31, "ä" * 31),
    ],
)
def test_names_of_any_kind(postgresql: Database, table: str, written: str) -> None:
    postgresql.ask("CREATE SCHEMA IF NOT EXISTS sales")
    if table == 'Say "so"':
        table = '"Say ""so"""'
    sink = target(postgresql, table, "the key", 'a "b"')
    for _ in range(2):
        sink.write(answers(**{"the key": [1, 2], 'a "b"': [None, "x"], "Value%": [0.5, 1.5]}), 0)
    asked = f'SELECT "the key", "a ""b""", "Value%" FROM {written} ORDER BY 1'
    assert postgresql.ask(asked) == [["1", "", "0.5"], ["2", "x", "1.5"]]


INJECTED = (
    "'); DROP TABLE victims; --",
    '"; DROP TABLE victims; --',
    'x"); DELETE FROM victims; COMMIT; --',
    "\\.\nDROP TABLE victims;\n",
    "\\N",
    "%s %(x)s {} {0}",
    "$$; DROP TABLE victims; $$",
    "a\tb\r\n\\t",
)


def test_what_looks_like_sql_is_a_value_or_a_name(postgresql: Database) -> None:
    """In a key, in another column, in names of columns and of the table."""
    postgresql.ask("CREATE TABLE victims (n bigint); INSERT INTO victims VALUES (1)")
    given = {"user": USER, "password": PASSWORD}
    for number, text in enumerate(INJECTED):
        table, name = f'"{text.replace(chr(34), chr(34) * 2)}"', text.replace("%", "")
        sink = target(postgresql, f"injected_{number}" if "{" in text else table, name)
        for batch in range(2):  # the second time they are there already
            sink.write(answers(**{name: INJECTED, "other": INJECTED}), batch)
        with psycopg.connect(**connection(postgresql.url, given)) as opened:
            listed = psycopg.sql.Identifier(*sink._parts)
            found = opened.execute(psycopg.sql.SQL("SELECT * FROM {}").format(listed)).fetchall()
        assert sorted(found) == sorted(zip(INJECTED, INJECTED, strict=True))
    assert postgresql.ask("SELECT * FROM victims") == [["1"]]


def test_names_of_indexes_are_short_and_each_its_own() -> None:
    long, other = ("x" * 63,), ("x" * 62 + "y",)
    names = {index_name(*each) for each in ((long, ("a",)), (other, ("a",)), (long, ("b",)), (("s", *long), ("a",)))}
    assert len(names) == 4
    assert {len(name.encode()) for name in names} == {63}
    assert len(index_name(("ä" * 31,), ("a",)).encode()) <= 63
    assert name_parts("best") == ("best",)
    assert name_parts('a."b.""c"".d"') == ("a", 'b."c".d')


def test_every_type_of_an_answer(postgresql: Database) -> None:
    import datetime
    import decimal

    moment = datetime.datetime(2026, 3, 1, 10, 0, 0, 5, datetime.UTC)
    columns = {
        "at": pa.array([moment], pa.timestamp("us", "UTC")),
        "wall": pa.array([moment.replace(tzinfo=None)], pa.timestamp("us")),
        "day": pa.array([moment.date()]),
        "amount": pa.array([decimal.Decimal("1234567890123456789.25")], pa.decimal128(38, 2)),
        "small": pa.array([-(2**15)], pa.int16()),
        "big": pa.array([2**63 - 1]),
        "single": pa.array([0.5], pa.float32()),
        "least": pa.array([-math.inf]),
        "yes": pa.array([True]),
        "raw": pa.array([b"\x00\\\xff"]),
        "text": pa.array(["tab\t, \\N, 'quote'\nline"]),
        "tags": pa.array([["a", None, 'b,"c"']]),
        "none": pa.array([None], pa.string()),
    }
    sink = target(postgresql, "types", "big")
    for _ in range(2):
        sink.write(Answers(None, pa.table(columns)), 0)  # type: ignore[arg-type]
    given = {"user": USER, "password": PASSWORD}
    with psycopg.connect(**connection(postgresql.url, given)) as opened:
        (row,) = opened.execute("SET timezone = 'UTC'; SELECT * FROM types").set_result(1).fetchall()
    assert list(row) == [pa.table(columns).to_pylist()[0][name] for name in columns]
    with pytest.raises(PipelineFailed, match="has no type for the column 'both'"):
        target(postgresql, "struct", "big").write(answers(big=[1], both=[{"a": 1}]), 0)


def test_a_writer_that_is_killed_leaves_nothing_and_the_next_writes_it(postgresql: Database, tmp_path: Path) -> None:
    """It is killed in the middle of its transaction: we hold a row that it has to replace."""
    sink = target(postgresql, "killed", "symbol")
    sink.write(answers(symbol=["OAK", None], n=[1, 1]), 0)
    program = tmp_path / "writer.py"
    program.write_text(
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from pipelines.test_postgresql import answers, target\n"
        "from servers.postgresql import Database\n"
        "target(Database(int(sys.argv[1])), 'killed', 'symbol').write(\n"
        "    answers(symbol=['ELM', 'OAK', None], n=[2, 2, 2]), 1)\n"
    )
    given = {"user": USER, "password": PASSWORD}
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(**connection(postgresql.url, given)) as ours:
        ours.execute("UPDATE killed SET n = n")
        process = subprocess.Popen([sys.executable, str(program), str(postgresql.port), *sys.path])
        try:
            wait_until(lambda: postgresql.ask(waiting) == [["1"]], "the writer in its transaction", process)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    assert postgresql.ask("SELECT symbol, n FROM killed ORDER BY symbol") == [["OAK", "1"], ["", "1"]]
    sink.write(answers(symbol=["ELM", "OAK", None], n=[2, 2, 2]), 1)
    assert postgresql.ask("SELECT symbol, n FROM killed ORDER BY symbol") == [["ELM", "2"], ["OAK", "2"], ["", "2"]]


def test_what_is_refused_is_said_before_anything_runs(postgresql: Database) -> None:
    with pytest.raises(EnvironmentProblem, match="password authentication failed") as wrong:
        target(postgresql, "best", "symbol", options={"user": USER, "password": "hunter2-hunter2"})
    assert "hunter2" not in str(wrong.value)
    with pytest.raises(InvalidPipeline, match="whatever the mode: leave it out"):
        target(postgresql, "best", "symbol", options={"mode": "append"})
    postgresql.ask("CREATE TABLE other (symbol text)")
    with pytest.raises(PipelineFailed, match='column "n" does not exist'):
        target(postgresql, "other", "symbol").write(answers(symbol=["OAK"], n=[1]), 0)
    assert postgresql.ask("SELECT count(*) FROM pg_indexes WHERE tablename = 'other'") == [["0"]], "all or nothing"


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("jdbc:postgresql://a:1,b/d", {}, {"host": "a,b", "port": "1,5432", "dbname": "d"}),
        ("jdbc:postgresql://[::1]:7/d%20e", {}, {"host": "::1", "port": "7", "dbname": "d e"}),
        ("jdbc:postgresql:/", {}, {"host": "localhost"}),
        ("jdbc:postgresql:d?password=a%26b+c", {}, {"host": "localhost", "dbname": "d", "password": "a&b c"}),
        (
            "jdbc:postgresql://h/d?loginTimeout=5",
            {"tcpKeepAlive": "true", "targetServerType": "primary", "driver": "org.postgresql.Driver"},
            {"host": "h", "dbname": "d", "connect_timeout": "5", "keepalives": "1", "target_session_attrs": "primary"},
        ),
    ],
)
def test_addresses_and_options_of_jdbc(url: str, options: dict[str, str], expected: dict[str, str]) -> None:
    assert connection(url, options) == expected
    assert not [*refused(url, options)]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("mode", "leave it out"),
        ("dbtable", 'table = "…"'),
        ("createTableColumnTypes", "create the table with these types"),
        ("socketTimeout", "tcp_user_timeout = 30000"),
        ("sslfactory", 'sslmode = "require"'),
        ("usr", "Did you mean 'user'?"),
    ],
)
def test_options_of_jdbc_that_mean_nothing_now_are_refused_by_name(option: str, said: str) -> None:
    for url, options in (("jdbc:postgresql:d", {option: "x"}), (f"jdbc:postgresql:d?{option}=x", {})):
        ((name, problem),) = refused(url, options)
        assert name == option
        assert repr(option) in problem
        assert said in problem


def test_a_server_without_nulls_not_distinct(postgresql: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PostgreSQL 14 is written to."""
    monkeypatch.setattr("skyband.pipelines.databases._NULLS_NOT_DISTINCT", 10**6)
    sink = target(postgresql, "fourteen", "symbol")
    for n in (1, 2):
        sink.write(answers(symbol=[None, "OAK"], n=[n, n]), 0)
    assert postgresql.ask("SELECT symbol, n FROM fourteen ORDER BY symbol") == [["OAK", "2"], ["", "2"]]
    assert "DISTINCT" not in postgresql.ask("SELECT indexdef FROM pg_indexes WHERE tablename = 'fourteen'")[0][0]
