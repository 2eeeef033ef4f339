"""The state of k-skybands with a filter. Each group has the query's skyband, a buffer of recent rows, and the filter.

A filter is a subset of the buffer: its strict or relaxed skyband, or as many of its best rows as the probabilistic
skyband would hold. The buffer is at most half of the window (b <= (n + 1) / 2), so a row in it can be among the best k
now only if it was so when it came.
"""

from __future__ import annotations

import numpy as np

from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates
from skyband.problems.rows.algorithms.filtered.kernels import (
    BUFFER,
    FIELDS,
    FILTER,
    NONE,
    PROBABILISTIC,
    QUERY,
    RELAXED,
    STRICT,
    Filtered,
)
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec

KINDS = {"strict": STRICT, "relaxed": RELAXED, "probabilistic": PROBABILISTIC}

SIGMA = 0.001  # for the size of a probabilistic filter, which makes no errors but lets more or fewer rows through
MANY_ROWS = 1_000_000  # assumed if a buffer may have any number of rows; a few candidates too many do no harm


class Skyband(StepDriver):
    """A strict or relaxed query skyband, with a filter or without."""

    def __init__(
        self,
        spec: Spec,
        query: int,
        before: int = NONE,
        *,
        gamma: float = 0.2,
        buffer: int = 0,
        initial_room: int = 1024,
    ) -> None:
        """`before` is the filter, `buffer` how long rows stay in the buffer, in rows or ticks; 0: the best length."""
        span = span_of(spec, buffer)
        before = NONE if spec.window.endless else before
        kind = Filtered(query, before, span, rows_in_filter(spec, span), gamma)
        super().__init__(spec, kind, lists=3, fields=FIELDS, initial_room=initial_room)

    def check(self) -> None:
        super().check()
        k, kind = self.spec.k, self._kind
        for g in range(len(self._state.groups)):
            band, buffer, best = (self._list(i, g) for i in (QUERY, BUFFER, FILTER))
            limit = int(self._state.groups["limit"][g])
            front = band if kind.query == STRICT else band[:k]
            assert (front["time"] >= limit).all(), "no expired row is in a strict skyband, or among the first k"
            if kind.query == STRICT:
                outlived = [(band["time"][:i] >= band["time"][i]).sum() for i in range(len(band))]
                assert all(n < k for n in outlived), "k better rows outlive no row of a strict skyband"
                assert (band["last"] >= outlived).all(), "a strict skyband has counted every better row that lives on"
            assert (np.diff(buffer["time"]) >= 0).all(), "the buffer is in order of time"
            assert np.isin(best["position"], buffer["position"]).all(), "a filter holds rows of the buffer"
            if kind.filter == PROBABILISTIC:
                assert len(best) <= kind.candidates, "a probabilistic filter holds a limited number of rows"
                assert not (best["score"] < self._state.groups["threshold"][g]).any(), "none is below its threshold"


def span_of(spec: Spec, buffer: int) -> int:
    """How long rows stay in the buffer: the given length or the best, but at most half of the window."""
    return min((spec.window.size + 1) // 2, buffer or best_buffer(spec))


def rows_in_filter(spec: Spec, span: int) -> int:
    """The most rows that a probabilistic filter holds, for a buffer of this length."""
    rows = MANY_ROWS if spec.window.known_rows is None else span
    return spec.k + candidates(rows, spec.k, SIGMA)


def best_buffer(spec: Spec) -> int:
    """The best length of the buffer: by count, so that few rows enter the filter; by value, an eighth of the window.

    docs/reference/algorithms.md says what shorter and longer buffers cost.
    """
    rows = spec.window.known_rows
    if rows is None:
        return max(1, spec.window.size // 8)
    return 128 * (spec.k + candidates(min(rows, MANY_ROWS), spec.k, SIGMA))
