"""Example: which algorithm is chosen for many queries, and what is said about it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.registry import problem_of


def asked(queries: int, columns: int, by: str | None = None) -> sb.TopKForEach:
    names = [f"x{i}" for i in range(columns)]
    table = pa.table({"id": np.arange(queries), **{name: np.zeros(queries) for name in names}})
    nearest = " + ".join(f"abs({name} - q.{name})" for name in names)
    return sb.TopKForEach(queries=table, k=9, by=by or nearest, ascending=True, window=sb.sliding(40_000))


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        (asked(400, 2), "boxes"),
        (asked(10_000, 2), "boxes"),
        (asked(400, 10), "scan"),
        (asked(5, 2), "scan"),
        (asked(400, 2, "exp(x0 - q.x0)"), "scan"),
        (asked(400, 2, "x0 + x1"), "shared_score"),
        (asked(400, 2, "CASE WHEN x0 = q.x0 THEN x1 END"), "shared_score"),
    ],
)
def test_the_planner_chooses_by_queries_and_columns(query: sb.TopKForEach, chosen: str) -> None:
    said = str(sb.explain(query))
    assert f"algorithm  {chosen}: " in said
    assert f"of {len(query.queries):,} queries, identified by id" in said
    schema = pa.schema([(name, pa.float64()) for name in query.queries.column_names if name != "id"])
    assert query.open(schema).algorithm == chosen


@pytest.mark.parametrize(
    ("window", "where", "why"),
    [
        (sb.sliding(40, every=10, on="t"), "(s = q.s AND x0 > 1) AND q.n = n", "q.s, q.n: a row goes to the queries"),
        (sb.sliding(40, every=10, on="t"), "s = q.s OR x0 > 1", "query: each bucket gets the rows of a pane"),
        (sb.sliding(40, every=10, on="t"), "NOT (s = q.s)", "query: each bucket gets the rows of a pane"),
        (sb.sliding(40, every=10, order="t"), "s = q.s", "query: each bucket gets every row"),
        (sb.sliding(40, on="t"), "s = q.s", "query: each bucket gets every row"),
        (sb.landmark(every=10, on="t"), "s = q.s", "query: each bucket gets every row"),
    ],
)
def test_on_spark_a_condition_may_say_where_rows_go(window: sb.Window, where: str, why: str) -> None:
    queries = pa.table({"id": [1], "s": ["a"], "n": [1]})
    query = sb.TopKForEach(queries=queries, k=9, by="x0", where=where, window=window)
    assert why in problem_of(query).distribution(query).why


def test_explain_says_what_queries_share_and_what_that_holds() -> None:
    queries = pa.table({"id": np.arange(200), "symbol": ["oak", "elm"] * 100, "k": np.arange(200) % 5 + 1})
    text = """EXPLAIN SELECT price FROM trades t [WINDOW 1000 ROWS EVERY 100 ROWS], people q
              WHERE t.symbol = q.symbol ORDER BY t.price DESC LIMIT q.k BY q.id"""
    trades = pa.table({"symbol": ["oak"], "price": [1.0]})
    said = str(sb.sql(text, trades=trades, people=queries))
    assert "for each of 200 queries, identified by id" in said
    assert "algorithm  shared: one skyband for each symbol that queries see answers for every k and every size" in said
    assert "holds      about 98 of the 1,000 rows of a window, if scores come in random order" in said
    reader = pa.RecordBatchReader.from_batches(queries.schema, queries.to_batches())
    assert "for each query, identified by id" in str(sb.sql(text, trades=trades, people=reader))
