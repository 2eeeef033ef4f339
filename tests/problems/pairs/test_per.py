"""Example and oracle tests: `per=` ranks the pairs of each group as a query about that group alone would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import skyband as sb

BY = "abs(a.x - b.x)"
SCHEMA = pa.schema({"t": pa.int64(), "g": pa.string(), "h": pa.float64(), "x": pa.float64()})


def rows(count: int = 240, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    groups = pa.array(["oak", "elm", None]).take(pa.array(rng.integers(0, 3, count)))
    numbers = pa.array([0.0, -0.0, 1.0, np.nan]).take(pa.array(rng.integers(0, 4, count)))
    columns = [np.cumsum(rng.integers(0, 3, count)), groups, numbers, rng.integers(0, 30, count).astype(np.float64)]
    return pa.table(columns, schema=SCHEMA)


def lines(table: pa.Table, *names: str) -> list[str]:
    return sorted(str([row[name] for name in names]) for row in table.to_pylist())


@pytest.mark.parametrize("window", [sb.sliding(40, every=10, on="t"), sb.tumbling(25, on="t"), sb.sliding(12, every=4)])
@pytest.mark.parametrize("algorithm", [None, "recompute", "staircase"])
def test_each_group_by_itself(window: sb.Window, algorithm: str | None) -> None:
    """By value every group sees the same clock; of a whole table all windows close, so each alone does as well."""
    table = rows()
    asked: dict[str, Any] = {"k": 3, "by": BY, "ascending": True, "window": window}
    together = sb.top_k_pairs(table, **asked, per="g", algorithm=algorithm)
    names = ["window_end", "rank", "score", "a_t", "b_t", "a_x", "b_x"]
    found = 0
    for group in ("oak", "elm", None):
        alone = table.filter(pc.equal(table["g"], group) if group else pc.is_null(table["g"]))
        mine = together.filter(pc.equal(together["g"], group) if group else pc.is_null(together["g"]))
        assert lines(mine, *names) == lines(sb.top_k_pairs(alone, **asked), *names)
        found += mine.num_rows
    assert found == together.num_rows > 50


def test_columns_of_the_group_come_once_and_before_the_rank() -> None:
    answer = sb.top_k_pairs(rows(), k=1, by=BY, window=sb.tumbling(60, on="t"), per=["h", "g"])
    shown = ["window_start", "window_end", "h", "g", "rank", "score", "a_t", "a_x", "b_t", "b_x"]
    assert answer.column_names == shown
    keys = {(row["window_end"], str(row["h"]), row["g"]) for row in answer.to_pylist()}
    assert len(keys) == answer.num_rows, "-0.0 is 0.0, and null and NaN are values like any other"


def test_a_session_goes_on_from_its_snapshot_group_by_group() -> None:
    table = rows(400).drop_columns("h")
    query = sb.TopKPairs(k=2, by=BY, ascending=True, window=sb.sliding(30, every=10, on="t"), per="g", lateness=4)
    session, restarted = query.open(table.schema), query.open(table.schema)
    for first in range(0, 400, 37):
        part = table.slice(first, 37)
        assert restarted.push(part).equals(session.push(part))
        restarted = query.open(table.schema, restarted.snapshot())
        restarted.check()
        assert restarted.top(1, 12).equals(session.top(1, 12))
    assert restarted.finish().equals(session.finish())
    assert session.stats().groups == 3


def test_groups_whose_rows_have_left_are_forgotten() -> None:
    query = sb.TopKPairs(k=1, by=BY, window=sb.sliding(10, every=5, on="t"), per="t10")
    schema = pa.schema({"t": pa.int64(), "t10": pa.int64(), "x": pa.float64()})
    session = query.open(schema)
    session._codec.few_codes = 8  # type: ignore[misc]
    for first in range(0, 4_000, 100):
        t = np.arange(first, first + 100)
        session.push(pa.table([t, t // 10, t.astype(np.float64)], schema=schema))
    assert session.stats().groups < 40
    assert session.stats().rows_held < 40


def test_statements_name_the_group_of_both_rows() -> None:
    statement = """
        SELECT a.t, b.g FROM rows a [WINDOW 60 EVERY 60 ON t], rows b
        WHERE a.g = b.g AND a.t < b.t ORDER BY |a.x - b.x| LIMIT 2 BY {group}
    """
    answer = sb.sql(statement.format(group="b.g"), rows=rows())
    assert answer.column_names == ["window_start", "window_end", "g", "rank", "score", "a_t", "b_g"]
    assert answer["g"].equals(answer["b_g"])
    assert set(answer["g"].to_pylist()) == {"oak", "elm"}
    for group in ("g", "a.x", "a.x + 1"):
        with pytest.raises(sb.SkybandError, match="in the group that both its rows belong to"):
            sb.sql(statement.format(group=group), rows=rows())


def test_without_a_slide_a_window_by_value_has_no_groups() -> None:
    with pytest.raises(sb.InvalidQuery, match=r"per='g' in a window by value needs a slide"):
        sb.TopKPairs(k=1, by=BY, window=sb.sliding(10, on="t"), per="g")
    with pytest.raises(sb.UnknownColumn, match="per="):
        sb.top_k_pairs(rows(), k=1, by=BY, window=sb.sliding(10), per="gg")


def test_a_failing_function_takes_no_row_of_any_group() -> None:
    def ratio(a: Any, b: Any) -> float:
        if a.x == 7.0 and b.x == 7.0:
            raise ValueError("seven")
        return a.x - b.x

    query = sb.TopKPairs(k=1, by=ratio, window=sb.sliding(8, every=4), per="g")
    session = query.open(SCHEMA)
    table = pa.table([[1, 2, 3, 4], ["a", "a", "b", "b"], [0.0] * 4, [1.0, 2.0, 7.0, 7.0]], schema=SCHEMA)
    with pytest.raises(sb.InvalidExpression, match="seven"):
        session.push(table)
    assert session.stats().rows_held == 0
    session.push(table.slice(0, 3))
    session.check()
