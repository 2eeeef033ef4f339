"""Restart tests: totals of objects that come again, saved and restored over and over."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import skyband as sb


@pytest.mark.parametrize("repeat", ["sum", "max", "last"])
@pytest.mark.parametrize("rows", [1, 7])
def test_any_number_of_restarts_is_possible(repeat: str, rows: int) -> None:
    """Each restart looks at all objects once, which is no reason to keep more candidates."""
    schema = pa.schema({"id": pa.int64(), "v": pa.float64()})
    query = sb.TopKAcross(k=1, id="id", value="v", window=sb.sliding(1000), repeat=repeat, bounds=(0, 8), streams=["p"])
    session, whole = query.open(schema), query.open(schema)
    for i in range(20):
        batch = pa.table({"id": [(i + j) % 5 for j in range(rows)], "v": [float(i % 3)] * rows}, schema=schema)
        assert session.push(batch, stream="p").equals(whole.push(batch, stream="p"))
        session = query.open(schema, session.snapshot())
    assert session._operator._width == whole._operator._width  # type: ignore[attr-defined]


def test_changes_after_a_restart_from_nothing() -> None:
    """The first row after the restart has no value, so the first answer is empty, and the next ones are not."""
    query = sb.TopKAcross(k=2, id="id", value="v", repeat="sum", bounds=(0, 9), window=sb.sliding(100))
    rows = pa.table({"id": ["z", "a", "b", "c"], "v": [None, 5.0, 4.0, 6.0]})
    restored = query.open(rows.schema, query.open(rows.schema).snapshot())
    assert restored.push(rows).select(["change", "id"]).to_pylist() == [
        {"change": "enter", "id": "a"},
        {"change": "enter", "id": "b"},
        {"change": "leave", "id": "b"},
        {"change": "enter", "id": "c"},
    ]


@pytest.mark.parametrize("first", [None, 7000.0])
def test_changes_after_all_objects_have_left(first: float | None) -> None:
    """Many objects have raised the bar. When they have left, it is too high for those that come."""
    many, gap = 100, 10**6
    rows = pa.table(
        {
            "t": [*range(many), gap, gap + 1, gap + 2],
            "id": range(many + 3),
            "v": [*map(float, range(100, many + 100)), first, 1.0, 2.0],
        }
    )
    window = sb.sliding(10**4, on="t")
    query = sb.TopKAcross(k=2, id="id", value="v", repeat="sum", bounds=(0, 9000), window=window)
    few_candidates = replace(query, algorithm="totals(width=8)").open(rows.schema)
    said = few_candidates.push(rows)
    assert said.equals(replace(query, algorithm="recompute").open(rows.schema).push(rows))
    assert said["id"][-1].as_py() == many + 2
