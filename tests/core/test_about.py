"""Example tests: what a snapshot says of its query builds the same query again, or is refused by name."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.about import about, read_about

SCHEMA = pa.schema({"t": pa.timestamp("us", tz="UTC"), "v": pa.decimal128(9, 2), "g": pa.string(), "x": pa.float64()})
WINDOW = sb.sliding("1 hour", every="5 minutes", on="t")
QUERIES = [
    sb.TopK(k=2, by="v * 2", window=WINDOW, per="g", lateness="3 seconds"),
    sb.TopK(k=2, by=["v", "g ASC NULLS FIRST"], window=sb.sliding(20, order="x"), forget_after=7, per=("g", "x")),
    sb.TopK(k=1, by="x", window=sb.landmark(every=timedelta(microseconds=1), on="t"), ties="dense"),
    sb.TopKPairs(k=3, by="abs(a.x - b.x)", ascending=True, window=WINDOW, same="g", where="a.v < b.v"),
    sb.TopKAcross(
        k=3,
        id=("g", "v"),
        value="x",
        streams=("a", "b"),
        bounds={"a": (0, 1), "b": (0, float("inf"))},
        window=WINDOW,
        combine={"a": 0.25, "b": 1},
        recall=0.95,
    ),
    sb.TopKForEach(
        queries=pa.table({"id": ["p"], "k": [1]}), key="id", k="q.k", by="x", window=sb.sliding(9, every=3, order="x")
    ),
]


def said_again(query: Any) -> Any:
    """The query, after it was written as JSON and read."""
    return read_about(json.loads(json.dumps(about(query, SCHEMA))))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{type(query).__name__} {query.k}")
def test_a_query_is_the_same_after_it_was_written_and_read(query: Any) -> None:
    problem, again, schema = said_again(query)
    assert problem.name == type(query).problem
    assert schema == SCHEMA
    assert again.fingerprint(schema) == query.fingerprint(SCHEMA), "a snapshot of the one opens with the other"
    assert again.window == query.window


def test_a_function_cannot_be_written() -> None:
    assert about(sb.TopK(k=1, by=lambda x: x, window=WINDOW), SCHEMA) is None


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "os"},
        {"problem": ["rows"]},
        {"options": {"k": 0, "by": "x", "window": {"size": 5, "every": 1, "on": "t", "order": None}}},
        {"options": {"k": 1, "by": {"import": "os"}}},
        {"options": {"k": 1, "by": "x"}},
        {"options": {"k": 1, "by": "x", "knob": 3}},
        {"options": [1]},
        {"columns": "no base64!"},
        {"columns": ""},
    ],
    ids=str,
)
def test_what_no_query_says_is_refused_by_name(change: dict[str, Any]) -> None:
    said = about(QUERIES[0], SCHEMA)
    assert said is not None
    with pytest.raises(sb.SnapshotMismatch):
        read_about(said | change)
