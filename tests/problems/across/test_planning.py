"""Example tests: which algorithm answers a query across streams, and what explain says of it."""

from __future__ import annotations

from typing import Any

import pytest

import skyband as sb

ASKED: dict[str, Any] = {"k": 10, "id": "flow", "value": "size", "streams": ["r1", "r2"], "window": sb.sliding(1_000)}


@pytest.mark.parametrize(
    ("options", "algorithm"),
    [
        ({}, "staircase"),
        ({"repeat": "last"}, "totals"),
        ({"repeat": "sum"}, "totals"),
        ({"repeat": "max"}, "totals"),
        ({"algorithm": "early_aggregation"}, "early_aggregation"),
    ],
)
def test_the_choice(options: dict[str, Any], algorithm: str) -> None:
    assert sb.explain(sb.TopKAcross(**ASKED, **options)).plan.algorithm == algorithm


def test_explain_says_why_and_why_not() -> None:
    text = str(sb.explain(sb.TopKAcross(**ASKED, repeat="sum")))
    assert "top 10 of flow across r1, r2" in text
    assert "algorithm  totals: an object may come again" in text
    assert "staircase cannot: an object may come again" in text
