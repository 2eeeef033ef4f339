"""Oracle tests: `top()` ranks the earliest open window that holds a row, whatever the query emits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb

PEOPLE = pa.table({"id": [1, 2], "x": [0.0, 2.0]})
LATE = {"window": sb.sliding(6, every=3, on="t"), "lateness": 30}


def rows(algorithm: str, **more: Any) -> Callable[[Any], Any]:
    return lambda emit: sb.TopK(k=2, by="v", emit=emit, algorithm=algorithm, **LATE, **more)


QUERIES: dict[str, Callable[[Any], Any]] = {
    **{name: rows(name) for name in ("mintopk", "partitioned", "relaxed", "staircase", "recompute")},
    "mintopk per group": rows("mintopk", per="g"),
    "tied": rows("tied", ties="rank"),
    "pairs": lambda emit: sb.TopKPairs(k=2, by="a.v + b.v", emit=emit, **LATE),
    "pairs per group": lambda emit: sb.TopKPairs(k=2, by="a.v + b.v", per="g", emit=emit, **LATE),
    "across": lambda emit: sb.TopKAcross(
        k=2, id="g", value="v", stream="g", streams=["a", "b"], bounds=(0, 9), repeat="sum", emit=emit, **LATE
    ),
    "subscriptions": lambda emit: sb.TopKForEach(queries=PEOPLE, k=2, by="abs(v - q.x)", emit=emit, **LATE),
    "one score": lambda emit: sb.TopKForEach(queries=PEOPLE, k=2, by="v", emit=emit, **LATE),
}


@pytest.mark.parametrize("name", QUERIES)
@examples(25)
@given(st.lists(st.tuples(st.sampled_from([0, 0, 1, 37, -5]), st.sampled_from([1.0, 2.0, 3.0, None])), max_size=16))
def test_top_says_the_same_whatever_is_emitted(name: str, lines: list[tuple[int, float | None]]) -> None:
    """After a gap of 37 the next window may hold no row, and only take back the last answer: `top` passes over it."""
    values = pa.array([value for _, value in lines], pa.float64())
    table = pa.table({
        "t": pa.array(accumulate(step for step, _ in lines), pa.int64()),
        "g": pa.array(["ab"[i % 2] for i in range(len(lines))], pa.string()),
        "v": values,
    })  # fmt: skip
    modes = ("windows", "changes") if name == "across" else ("windows", "changes", "entries")
    sessions = [QUERIES[name](emit).open(table.schema) for emit in modes]
    for i in range(0, len(lines), 2):
        answers = []
        for session in sessions:
            session.push(table.slice(i, 2))
            answers.append(session.top().to_pylist())
        assert all(answer == answers[0] for answer in answers)
