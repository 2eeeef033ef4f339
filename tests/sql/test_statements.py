"""Every statement that is accepted, on both engines, against recomputation; and its text, read and written again."""

from __future__ import annotations

import dataclasses
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sql import reference

import skyband as sb
from skyband.dialect import text
from skyband.dialect.query_spec import QuerySpec
from skyband.sql import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def statements(file: str) -> list[str]:
    lines = [line for line in (Path(__file__).parent / file).read_text().splitlines() if not line.startswith("--")]
    return [part.strip() for part in "\n".join(lines).split("\n\n") if part.strip()]


ACCEPTED = statements("accepted.sql")
# Rows of joins have no order of arrival on Spark.
ON_SPARK = [statement for statement in ACCEPTED if "GROUP BY" not in statement or "ROWS" not in statement]


def moments(minutes: Any) -> pa.Array:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    return pa.array([start + timedelta(minutes=int(minute)) for minute in minutes], pa.timestamp("us", "UTC"))


def trades(rows: int = 90) -> pa.Table:
    """No two at one time: rows that tie in score and time come in an order of their own on Spark."""
    random = np.random.default_rng(7)
    t = np.arange(rows)
    volume = random.integers(1, 12, rows)
    return pa.table(
        {
            "seq": np.arange(rows),
            "t": t,
            "ts": moments(t),
            "symbol": pa.array(random.choice(["OAK", "ELM", "FIR"], rows)),
            "venue": pa.array(random.choice(["x", "y"], rows)),
            "price": random.integers(1, 12, rows).astype(float),
            "volume": pa.array(volume, mask=volume == 11),
        }
    )


TRADES = trades()


def streams() -> dict[str, pa.Table]:
    """Auctions, bids on them, people; and three streams that each say something of flows."""
    random = np.random.default_rng(8)
    flows = [pa.array([f"f{n}" for n in random.permutation(40)]) for _ in range(2)]
    made = {
        "auction": pa.table({"ts": moments(range(0, 60, 6)), "auctionID": range(10), "sellerID": [7, 8, 9, 7, 8] * 2}),
        "bid": pa.table(
            {
                "ts": moments(np.sort(random.permutation(120)[:60])),
                "auctionID": random.integers(0, 10, 60),
                "price": random.integers(1, 30, 60).astype(float),
            }
        ),
        "person": pa.table({"personID": [7, 8, 9], "state": ["VT", "NH", "VT"]}),
        "r1": pa.table({"flow": flows[0], "size": random.random(40), "t": np.arange(0, 80, 2)}),
        "r2": pa.table({"flow": flows[1], "amount": random.random(40), "t": np.arange(1, 80, 2)}),
    }
    flow = pa.array([f"f{n}" for n in random.permutation(40)])
    return made | {"r3": pa.table({"flow": flow, "weight": random.random(40), "t": np.arange(0, 120, 3)})}


INPUTS = {"trades": TRADES, **streams()}


def recomputed(query: Any) -> Any:
    """The same question, answered by the oracle of its problem."""
    options = {field.name: getattr(query, field.name) for field in dataclasses.fields(query)}
    match query:
        case sb.TopK():
            return sb.TopK(**{**options, "algorithm": "recompute", "error": None})
        case sb.TopKAcross():
            bounds = dict(zip(query.streams, query.bounds, strict=True))
            return sb.TopKAcross(**{**options, "algorithm": "recompute", "bounds": bounds})
        case sb.JoinAggregate():
            maps = {name: dict(options[name]) for name in ("inputs", "aggregates")}
            return sb.JoinAggregate(**{**options, **maps, "plan": "recompute"})
    return type(query)(**{**options, "algorithm": "recompute"})


def with_oracles(asked: QuerySpec) -> QuerySpec:
    then = None if asked.then is None else with_oracles(asked.then)
    return dataclasses.replace(asked, query=recomputed(asked.query), then=then)


def by_recomputing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements are answered by oracles from now on."""
    recognised = run.recognise

    def recognise(*args: Any) -> QuerySpec:
        return with_oracles(recognised(*args))

    monkeypatch.setattr(run, "recognise", recognise)


@pytest.mark.parametrize("statement", ACCEPTED)
def test_equals_recomputation(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = sb.sql(statement, **INPUTS)
    assert answer.num_rows
    by_recomputing(monkeypatch)
    assert answer.equals(sb.sql(statement, **INPUTS))


@pytest.mark.parametrize("statement", ACCEPTED)
def test_text_to_tree_to_text(statement: str) -> None:
    tree = text.read(statement)
    again = text.read(text.write(tree))
    assert again == tree
    assert text.write(again) == text.write(tree)


@pytest.mark.spark
def test_the_same_on_spark(spark: SparkSession) -> None:
    """Some of them: a query costs Spark a second, and none of it is ours. SKYBAND_TESTS=all runs them all."""
    there = {name: spark.createDataFrame(table.to_pandas()) for name, table in INPUTS.items()}
    for statement in ON_SPARK if os.environ.get("SKYBAND_TESTS") == "all" else ON_SPARK[::12]:
        expected, found = sb.sql(statement, **INPUTS), sb.sql(statement, **there).toArrow()
        assert found.column_names == expected.column_names, statement
        order = [(name, "ascending") for name in expected.column_names]
        rows = [table.sort_by(order).to_pydict() for table in (expected, found)]
        np.testing.assert_equal(rows[1], rows[0], err_msg=statement)


@pytest.mark.spark
def test_tables_of_a_spark_session(spark: SparkSession) -> None:
    spark.createDataFrame(TRADES.to_pandas()).createOrReplaceTempView("known_trades")
    statement = "SELECT seq FROM known_trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2"
    expected = sb.sql(statement, known_trades=TRADES).num_rows
    assert sb.sql(statement, spark=spark).count() == expected
    assert sb.sql(statement).count() == expected, "the session that runs"
    with pytest.raises(sb.InvalidSql, match="no input 'unknown_trades'"):
        sb.sql(statement.replace("known", "unknown"), spark=spark)


def test_a_reader_gives_a_reader() -> None:
    statement = "SELECT seq FROM trades [WINDOW 20 EVERY 5 ON t] WHERE volume > 3 ORDER BY price DESC LIMIT 2"
    answer = sb.sql(statement, trades=TRADES.to_reader(max_chunksize=7))
    assert isinstance(answer, pa.RecordBatchReader)
    assert answer.read_all().equals(sb.sql(statement, trades=TRADES))


def test_names_are_found_in_any_case() -> None:
    statement = "select seq from Trades [window 20 every 5 on t] order by price desc limit 2"
    assert sb.sql(statement, trades=TRADES).num_rows


def test_explain_says_what_would_run() -> None:
    said = str(
        sb.sql("EXPLAIN SELECT * FROM trades [WINDOW 20 EVERY 5 ON t] ORDER BY price DESC LIMIT 2", trades=TRADES)
    )
    assert said.startswith("top 2 by price\n")
    assert "-> mintopk" in said


@pytest.mark.parametrize("statement", ACCEPTED[::10])
def test_explain_analyze_runs_it_and_says_what_it_did(statement: str) -> None:
    done = sb.sql(f"EXPLAIN ANALYZE {statement}", **INPUTS)
    assert done.measured.rows_out == sb.sql(statement, **INPUTS).num_rows
    assert 0 < done.measured.held_mean <= done.measured.held_most <= done.measured.rows_in
    said = str(done)
    assert f"{done.measured.rows_in:,} rows in" in said
    assert "measured" in said


def test_explain_analyze_measures_a_table_piece_by_piece() -> None:
    rows = 40_000
    random = np.random.default_rng(5)
    table = pa.table({"t": np.arange(rows), "x": random.random(rows)})
    done = sb.sql("EXPLAIN ANALYZE SELECT * FROM t [WINDOW 1000 EVERY 100 ON t] ORDER BY x DESC LIMIT 5", t=table)
    assert done.measured.rows_in == rows
    assert 5 <= done.measured.held_mean < done.measured.held_most < 100


def test_the_reference_is_made_of_these_statements() -> None:
    assert reference.PAGE.read_text() == reference.page(), "python tests/sql/reference.py writes it anew"


def test_an_input_may_be_joined_with_itself() -> None:
    statement = """SELECT a.symbol, COUNT(*) AS n FROM trades a, trades b WHERE a.venue = b.venue GROUP BY a.symbol
        WINDOW [20 EVERY 20 ON t]"""
    answer = sb.sql(statement, trades=TRADES)
    kept = sb.sql(statement, trades=TRADES.to_pandas())
    assert kept.to_dict("list") == answer.to_pydict(), "a data frame is read once, and kept"
    first = TRADES.filter(pc.less(TRADES["t"], 20)).to_pandas()
    pairs = first.merge(first, on="venue").groupby("symbol_x").size()
    assert dict(zip(*(answer.slice(0, 3).column(name).to_pylist() for name in ("symbol", "n")), strict=True)) == dict(
        pairs
    )
    with pytest.raises(sb.InvalidInput, match="a reader can be read only once"):
        sb.sql(statement, trades=TRADES.to_reader())
