"""Oracle and restart tests: rows whose only column is the score, so that nothing but their number is kept of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import ALGORITHMS

import skyband as sb
from skyband.core.encoding.rows import MANY, RowStore
from skyband.core.registry import find
from skyband.problems.rows.planning import specify

QUERIES = pa.table({"w": [1.0]})


@pytest.mark.parametrize("held", [MANY - 1, MANY, 3 * MANY])
def test_as_many_as_are_found_in_another_way(held: int) -> None:
    rows = pa.table({"s": np.arange(2.0 * held)})
    query = sb.TopK(k=held, by="s", window=sb.sliding(held, every=held))
    session = query.open(rows.schema)
    session.push(rows.slice(0, held + 3))
    session = query.open(rows.schema, session.snapshot())
    answer = session.push(rows.slice(held + 3))
    assert answer.column("score").to_pylist() == list(np.arange(2.0 * held - 1, held - 1, -1))


BARE, WITH_COLUMN = pa.schema({"s": pa.float64()}), pa.schema({"s": pa.float64(), "n": pa.int64()})
WINDOWS = [sb.sliding(9), sb.sliding(9, every=4), sb.landmark(every=5)]
ASKED: list[Any] = [
    *(
        query
        for window in WINDOWS
        for query in (sb.TopK(k=3, by="s", window=window, algorithm=algorithm) for algorithm in ALGORITHMS)
        if not find(str(query.algorithm), "rows").refuses(specify(query, BARE))
    ),
    *(sb.TopKForEach(k=3, by="s", window=window, queries=QUERIES, key="w") for window in WINDOWS),
]


@pytest.mark.parametrize(("little", "many"), [(4096, 4096), (0, 1), (8, 2)])
@pytest.mark.parametrize("query", ASKED, ids=lambda query: f"{type(query).__name__}, {query.algorithm}, {query.window}")
def test_answers_are_those_with_another_column(
    query: Any, little: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    monkeypatch.setattr(RowStore, "little", little)
    monkeypatch.setattr(RowStore, "many", many)
    session, other = query.open(BARE), query.open(WITH_COLUMN)
    for n in [*random.choice([0, 1, 3, 12], 12), 150]:
        scores = random.integers(0, 9, n).astype(float)
        session = query.open(BARE, session.snapshot())
        answer = session.push(pa.table({"s": scores}))
        assert answer.equals(other.push(pa.table({"s": scores, "n": np.arange(n)})).drop_columns("n"))
        assert session.top().num_rows == other.top().num_rows
        session.check()
    assert session.finish().num_rows == other.finish().num_rows
