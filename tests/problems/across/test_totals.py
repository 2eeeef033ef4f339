"""Restart tests: totals of objects that come again, saved and restored over and over."""

from __future__ import annotations

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
