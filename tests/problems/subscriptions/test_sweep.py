"""Oracle: a sweep finds exactly the rows whose scores reach a query's threshold, whatever it compares to know that."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skyband.core.operator import Floats
from skyband.expressions import subscriptions
from skyband.problems.subscriptions.drivers.scoring import Scoring, scoring_of

COLUMNS = pa.schema([("x", pa.float64())])
ROWS = 700  # more than two blocks
SMALLEST, LARGEST = np.finfo(float).smallest_subnormal, np.finfo(float).max
NUMBERS = [0.0, -0.0, SMALLEST, 3 * SMALLEST, 2e-308, 1e-162, 1.0, 2.0, 1e154, LARGEST, np.inf, -np.inf, -1.0, np.nan]


def scoring(by: str, ascending: bool) -> Scoring:
    return scoring_of(subscriptions.bind(by, ascending, COLUMNS, COLUMNS))


def _found(scoring: Scoring, rows: Floats, parameters: Floats, limits: Floats, room: int) -> list[list[int]]:
    hit, score, ends = np.empty(room, np.int64), np.empty(room), np.empty(len(limits), np.int64)
    found: list[list[int]] = []
    while len(found) < len(limits):
        begin = len(found)
        n, reached = scoring.sweep(
            *(rows, 0, rows.shape[1], parameters, limits, np.arange(len(limits)), begin),
            *(hit, score, ends, np.empty(256)),
        )
        of_each = np.split(hit[:n], ends[begin : reached - 1])
        for q, these in enumerate(of_each, begin):
            expected = np.empty(rows.shape[1])
            scoring.scores(rows, 0, rows.shape[1], parameters, q, expected)
            at = int(ends[q - 1]) if q > begin else 0
            assert score[at : ends[q]].tolist() == expected[these].tolist()
        found += [these.tolist() for these in of_each]
    return found


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("by", ["sqrt(x + q.x)", "sqrt((x - q.x)**2)", "x + q.x"])
def test_a_sweep_finds_what_reaches_the_threshold(by: str, ascending: bool) -> None:
    """Thresholds are scores that rows have, and the numbers next to them."""
    draw = np.random.default_rng(3)
    values = np.concatenate([np.array(NUMBERS), draw.random(ROWS), 10.0 ** draw.uniform(-320, 308, ROWS)])
    rows = draw.permutation(values)[np.newaxis, :]
    compiled = scoring(by, ascending)
    scores = np.empty(rows.shape[1])
    compiled.scores(rows, 0, len(scores), np.zeros((1, 1)), 0, scores)
    limits = np.concatenate([scores[scores == scores], [-np.inf, np.inf, 0.0]])
    with np.errstate(over="ignore"):
        limits = np.concatenate([limits, np.nextafter(limits, np.inf), np.nextafter(limits, -np.inf)])
    parameters = np.zeros((1, len(limits)))
    expected = [np.flatnonzero(scores >= limit).tolist() for limit in limits]
    for room in (len(scores) + 1, 5 * len(scores), 100 * len(scores)):
        assert _found(compiled, rows, parameters, limits, room) == expected
