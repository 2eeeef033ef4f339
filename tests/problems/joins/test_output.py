"""Example: what buckets say of a window, put together."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.columns import bind
from skyband.problems.joins.output import GroupsOutput

SCHEMAS = {"a": pa.schema({"t": pa.int64(), "g": pa.int64(), "x": pa.int64(), "d": pa.decimal128(18, 2)})}


def layout(**aggregates: str) -> GroupsOutput:
    query = sb.JoinAggregate(inputs={"a": sb.tumbling(10, on="t")}, group_by="g", aggregates=aggregates)
    return GroupsOutput(query, bind(query, SCHEMAS))


def merged(lines: GroupsOutput, **columns: list[Any]) -> list[dict[str, Any]]:
    n = len(next(iter(columns.values())))
    parts = pa.table({"window_end": [10] * n, "g": [1] * n, **columns}, schema=lines.schema)
    return lines.merged(parts, adds_up=True).to_pylist()  # type: ignore[no-any-return]


def test_parts_of_a_group_are_added_up() -> None:
    lines = layout(n="COUNT(*)", total="SUM(x)", least="MIN(x)")
    assert merged(lines, n=[2, 3], total=[5, None], least=[4, 2]) == [
        {"window_end": 10, "g": 1, "n": 5, "total": 5, "least": 2}
    ]
    assert merged(layout(least="MIN(x)"), least=[4, 2]) == [{"window_end": 10, "g": 1, "least": 2}]


def test_large_sums_are_exact_and_too_large_ones_refused() -> None:
    lines = layout(total="SUM(x)")
    assert merged(lines, total=[2**62, 2**61 + 1])[0]["total"] == 2**62 + 2**61 + 1
    assert merged(lines, total=[2**62, 2**62 - 1])[0]["total"] == 2**63 - 1
    assert merged(lines, total=[2**62, 2**62, -1])[0]["total"] == 2**63 - 1
    assert merged(lines, total=[-(2**62), 2**62, -(2**62), -(2**62)])[0]["total"] == -(2**63)
    for parts in ([2**62, 2**62], [-(2**63), -1]):
        with pytest.raises(sb.SkybandError, match="total does not fit in 64 bits"):
            merged(lines, total=parts)


def test_decimals_are_added_up_in_their_own_scale() -> None:
    lines = layout(total="SUM(d)", least="MIN(d)")
    large = Decimal(2**62).scaleb(-2)
    assert merged(lines, total=[Decimal("0.10"), Decimal("0.20")], least=[None, Decimal("-0.01")]) == [
        {"window_end": 10, "g": 1, "total": Decimal("0.30"), "least": Decimal("-0.01")}
    ]
    assert merged(lines, total=[large, large, Decimal("-0.01")], least=[None] * 3)[0]["total"] == (
        Decimal(2**63 - 1).scaleb(-2)
    )
    with pytest.raises(sb.AggregateOverflow, match="total does not fit in 64 bits"):
        merged(lines, total=[large, large], least=[None, None])
