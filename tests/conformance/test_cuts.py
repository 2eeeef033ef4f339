"""Oracle tests: several streams give the answer of their tables, however each of them is cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

import pyarrow as pa
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64()})


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows in order of time, often without a key or a value, and the last ones without a key.

    A stream may be empty, or end long before the other.
    """
    n, keyless = draw(st.integers(0, 8)), draw(st.integers(0, 3))
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 3, 20]), min_size=n, max_size=n))
    keys = draw(st.lists(st.sampled_from([1, 1, 2, None]), min_size=n, max_size=n))
    values = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, None]), min_size=n, max_size=n))
    keys = [*keys[: max(0, n - keyless)], *[None] * min(n, keyless)]
    return pa.table([list(accumulate(steps)), keys, values], schema=SCHEMA)


WINDOWS = st.sampled_from([sb.landmark(on="t"), sb.sliding(6, on="t"), sb.sliding(25, on="t")])


@st.composite
def joins(draw: st.DrawFn) -> dict[str, Any]:
    every = draw(st.sampled_from([None, 3, 3, 5]))
    same = st.just(draw(WINDOWS))
    where = st.sampled_from([None, None, "v > 0.3"])
    return {
        "inputs": {name: sb.stream_input(draw(st.one_of(same, WINDOWS)), where=draw(where)) for name in ("a", "b")},
        "on": "a.k = b.k",
        "group_by": draw(st.sampled_from([(), "a.k"])),
        "aggregates": {"n": "COUNT(*)", "sum": "SUM(a.v)", "least": "MIN(b.v)"},
        "every": every,
        "emit": draw(st.sampled_from(["windows", "changes"])) if every else None,
    }


@st.composite
def across(draw: st.DrawFn) -> dict[str, Any]:
    """An object may come again, so values are added up."""
    return {
        "k": draw(st.integers(1, 3)),
        "id": "k",
        "value": "v",
        "repeat": "sum",
        "window": sb.sliding(10, every=draw(st.sampled_from([None, 5])), on="t"),
    }


@st.composite
def cut(draw: st.DrawFn, whole: Mapping[str, pa.Table]) -> dict[str, Iterator[pa.RecordBatch]]:
    """Each table as a stream, in batches of one, two or all rows."""
    sizes = {name: draw(st.sampled_from([1, 2, 100])) for name in whole}
    return {
        name: iter(table.to_batches(max_chunksize=sizes[name]) or [pa.RecordBatch.from_pylist([], SCHEMA)])
        for name, table in whole.items()
    }


@examples(150)
@given(st.data(), tables(), tables(), joins())
def test_joined_streams(data: st.DataObject, a: pa.Table, b: pa.Table, query: dict[str, Any]) -> None:
    whole = {"a": a, "b": b}
    assert sb.join_aggregate(data.draw(cut(whole)), **query).read_all().equals(sb.join_aggregate(whole, **query))


@examples(100)
@given(st.data(), tables(), tables(), across())
def test_streams_of_values(data: st.DataObject, a: pa.Table, b: pa.Table, query: dict[str, Any]) -> None:
    whole = {"a": a.filter(a["k"].is_valid()), "b": b.filter(b["k"].is_valid())}
    said = sb.top_k_across(data.draw(cut(whole)), **query).read_all()
    assert said.to_pylist() == sb.top_k_across(whole, **query).to_pylist()
