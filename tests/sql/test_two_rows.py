"""Oracle and example tests: what is computed of one row may stand in what is asked of two, as DuckDB has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import skyband as sb


def rows(seed: int = 3, count: int = 24) -> pa.Table:
    """Many nulls; no two at one time."""
    chance = np.random.default_rng(seed)
    start = datetime(2026, 3, 1, tzinfo=UTC)

    def some(values: list[object]) -> list[object]:
        return [None if chance.random() < 0.3 else values[chance.integers(len(values))] for _ in range(count)]

    return pa.table(
        {
            "id": range(count),
            "t": range(count),
            "ts": [start + timedelta(seconds=int(40 * n)) for n in range(count)],
            "s": pa.array(some(["a", "A", "bc", "b%", "O'B"]), pa.string()),
            "x": pa.array(some([0.5, 2.0, 7.25]), pa.float64()),
            "flag": pa.array(some([True, False]), pa.bool_()),
        }
    )


ROWS = rows()
PAIRS = (
    "SELECT a.id, b.id FROM rows a, rows b WHERE a.id < b.id AND {} ORDER BY {} LIMIT 1000 WINDOW [24 EVERY 24 ON t]"
)


TEXTS = (
    "(UPPER(a.s) = UPPER(b.s) OR LENGTH(a.s) < LENGTH(b.s || b.s) OR (a.x < b.x) IS NULL AND b.s LIKE 'b%') "
    "AND a.flag IS NOT TRUE"
)
TIMES = (
    "b.ts - a.ts <= INTERVAL 5 MINUTES AND |a.ts - b.ts| BETWEEN INTERVAL 1 MINUTE AND INTERVAL 6 MINUTES "
    "AND (a.ts + INTERVAL 2 MINUTES < b.ts OR CAST(a.ts AS DATE) < CAST(b.ts AS DATE) OR a.flag)"
)
TICKS = "(epoch_us(b.ts) - epoch_us(a.ts))"
SCORE = "LENGTH(a.s) * 10 + LENGTH(b.s)"


@pytest.mark.parametrize(
    ("condition", "in_duckdb"),
    [
        (TEXTS, TEXTS),
        (
            TIMES,
            TIMES.replace("b.ts - a.ts <= INTERVAL 5 MINUTES", f"{TICKS} <= 300000000").replace(
                "|a.ts - b.ts| BETWEEN INTERVAL 1 MINUTE AND INTERVAL 6 MINUTES",
                f"{TICKS} BETWEEN 60000000 AND 360000000",
            ),
        ),
    ],
    ids=["texts", "times"],
)
def test_pairs_by_what_is_computed_of_each_row(condition: str, in_duckdb: str) -> None:
    found = sb.sql(PAIRS.format(condition, SCORE), rows=ROWS)
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    asked = f"SELECT {SCORE} AS score, a.id, b.id FROM rows a, rows b WHERE a.id < b.id AND {in_duckdb}"
    expected = [line for line in connection.execute(asked).fetchall() if line[0] is not None]
    assert expected
    lines = list(zip(*(found[name].to_pylist() for name in ("score", "a_id", "b_id")), strict=True))
    assert sorted(lines) == sorted(expected)
    assert found["score"].to_pylist() == sorted(found["score"].to_pylist())


def test_of_each_query_and_its_rows() -> None:
    queries = pa.table({"key": ["p", "q"], "like": ["BC", "a"]})
    found = sb.sql(
        "SELECT window_end, q.key AS who, r.s FROM rows r [WINDOW 24 EVERY 24 ON t], queries q "
        "WHERE UPPER(r.s) = UPPER(q.like) AND r.s LIKE '%' ORDER BY r.id * LENGTH(q.like) LIMIT 2 BY q.key",
        rows=ROWS,
        queries=queries,
    )
    assert found.column_names == ["window_end", "who", "s"]
    assert {who: set(found.filter(pa.compute.equal(found["who"], who))["s"].to_pylist()) for who in ("p", "q")} == {
        "p": {"bc"},
        "q": {"a", "A"},
    }


@pytest.mark.parametrize("bound", ["window_start", "window_end"])
def test_the_window_alone_can_be_selected(bound: str) -> None:
    streams = {name: pa.table({"key": ["p"], "x": [1.0], "t": [3]}) for name in ("r1", "r2")}
    statement = (
        f"SELECT {bound}, key, r1.x + r2.x AS total FROM r1 FULL JOIN r2 USING (key) ORDER BY r1.x + r2.x DESC LIMIT 1 "
        "WINDOW [24 EVERY 24 ON t]"
    )
    assert sb.sql(statement, **streams).to_pylist() == [
        {bound: {"window_start": 0, "window_end": 24}[bound], "key": "p", "total": 2.0}
    ]
    pairs = sb.sql(PAIRS.format(TEXTS, SCORE).replace("a.id,", f"{bound},", 1), rows=ROWS)
    assert pairs.column_names == [bound, "b_id"]
    with pytest.raises(sb.InvalidSql, match=f"{bound} exists only in whole answers"):
        sb.sql(PAIRS.format(TEXTS, SCORE).replace("a.id,", f"{bound},", 1) + " EMIT CHANGES", rows=ROWS)


@pytest.mark.parametrize(
    "condition", ["a.x < INTERVAL 3 MINUTES", "b.x - a.x < INTERVAL 3 MINUTES", "a.flag = b.x", "a.ts < b.x"]
)
def test_values_of_different_types_are_not_compared(condition: str) -> None:
    with pytest.raises(
        sb.InvalidSql, match=r"values have different types|compared with nothing that has a length"
    ) as caught:
        sb.sql(PAIRS.format(condition, "a.id"), rows=ROWS)
    assert "^" in str(caught.value)
