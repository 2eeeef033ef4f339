"""Oracle tests of `threshold` with local scores that are not rounded correctly: it rules no pair out wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skyband.core.emit import CHANGES
from skyband.core.registry import find
from skyband.expressions.pairs import bind
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Batch, Spec
from skyband.windows import Ticks

SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64())])
ROWS, WINDOW = 4_000, 2_000


def answers(name: str, spec: Spec, values: Any, **options: int) -> tuple[list[tuple[Any, ...]], Any]:
    operator = find(name, "pairs").open(spec, **options)
    found: list[tuple[Any, ...]] = []
    for first in range(0, ROWS, 25):
        part = values[:, first : first + 25]
        answer = operator.push(Batch(part, np.empty((0, part.shape[1])), np.empty(0, np.int64), first))
        found += zip(*(column.tolist() for column in answer[:-1] if column is not None), strict=True)
    return found, operator


@pytest.mark.parametrize("spread", ["ties", "close", "any"])
@pytest.mark.parametrize(
    ("by", "ascending"),
    [
        ("ln(1 + abs(a.x - b.x)) + power(abs(a.y - b.y), 1.5)", True),
        ("ln(1 + abs(a.x - b.x)) * power(abs(a.y - b.y), 3)", False),
        ("ln(abs(a.x - b.x))", True),
    ],
)
def test_agrees_with_staircase(by: str, ascending: bool, spread: str) -> None:
    random = np.random.default_rng(7)
    values = {
        "ties": random.integers(0, 4, (2, ROWS)).astype(float),
        "close": 1 + random.integers(0, 50, (2, ROWS)) * 2.0**-50,  # a few bits apart
        "any": random.random((2, ROWS)),
    }[spread]
    score = bind(by, None, ascending, SCHEMA)
    assert score.distances is not None
    rows = np.array([values["xy".index(name)] for name in score.columns])
    spec = Spec(5, Ticks(WINDOW, 0, 0, by_count=True), scoring_of(score), CHANGES)
    expected, _ = answers("staircase", spec, rows)
    found, operator = answers("threshold", spec, rows, least=100, lookup_cost=1)
    assert found == expected
    if spread == "any":
        assert operator._last_pause == 0, "it looks rows up"
