"""The input of operators for rows, as flat arrays, and what all algorithms for rows have in common.

Answers are those of `core/operator.py`. `row_algorithm` makes an algorithm of an operator whose k grows with the rows:
algorithms keep arrays whose size is a multiple of k. But while an operator holds fewer than k rows, none of them has k
dominators: it drops nothing, no k-th row keeps others out, and any larger k gives the same answers from the same state.
So an operator is opened with a small k; before more rows come than that, another one with a larger k takes over its
state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import top_many
from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Answer, Arrays, Codes, Floats, Ints, Operator
from skyband.core.registry import Algorithm, whole_window
from skyband.core.validation import Saved
from skyband.windows import Ticks

# How rows with equal scores are ranked: the more recent first, or with equal ranks as in RANK() or DENSE_RANK().
RECENT, RANK, DENSE = range(3)


@dataclass(frozen=True, slots=True)
class Spec:
    """A top-k query in numbers."""

    k: int
    window: Ticks
    emit: int = WHOLE_CODE
    grouped: bool = False
    ad_hoc: bool = False
    error: float = 0.0  # after N rows in windows of n, answers may have missed error * N / n rows, on any stream
    ties: int = RECENT


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    score: Floats  # higher is better; NaN is never ranked
    time: Ints  # what the window measures; empty in a window of arrivals
    group: Codes  # a small whole number for each group, in order of first appearance; empty without groups
    first: int


class RowOperator(Operator[Batch, Answer, Ints], Protocol):
    """A running algorithm for the k best rows."""

    def rescore(self, change: Callable[[Floats], Floats]) -> None:
        """Replace all scores that it holds by change(scores), which have the same order."""
        ...

    def live_codes(self) -> npt.NDArray[np.bool_]:
        """For each group code: does the operator still need it?"""
        ...


RowAlgorithm = Algorithm[Spec, RowOperator]


SMALL = 4096  # up to this k, an operator takes little memory
_K = "fitted_k"  # the name of the present k in the state

TOO_MANY = "it holds k rows for an answer, and more may share the k-th rank"
ONLY_TIES = "it is for equal rows that share a rank; others are faster where none do"

Open = Callable[..., RowOperator]


def row_algorithm(
    name: str,
    open: Open,
    refuses: Callable[[Spec], str | None] | None = None,
    expected_rows: Callable[[Spec, float], float] = whole_window,
    expected_ns: Callable[[Spec, float], float] | None = None,
    *,
    for_ties: bool = False,
    exact: bool = True,
    for_comparing: bool = False,
) -> RowAlgorithm:
    """Make an algorithm whose memory follows the rows, however large k is.

    It refuses queries that rank equal rows together; if it is `for_ties`, it refuses all others.
    """

    def refuses_ties_too(spec: Spec) -> str | None:
        if refuses is not None and (refused := refuses(spec)):
            return refused
        fits = (spec.ties != RECENT) == for_ties
        return None if fits else ONLY_TIES if for_ties else TOO_MANY

    return RowAlgorithm(name, opener(open), refuses_ties_too, expected_rows, expected_ns, exact, for_comparing)


def opener(open_one: Open) -> Open:
    """Wrap `open_one` so that operators with a large k grow."""

    @wraps(open_one)
    def open_fitted(spec: Spec, **options: int | float) -> RowOperator:
        if spec.k <= SMALL:
            return open_one(spec, **options)
        return cast(RowOperator, Growing(spec, lambda fitted: open_one(fitted, **options)))

    return open_fitted


class Growing:
    """An operator of `open_one` whose k is always larger than the rows held, or is the query's k."""

    def __init__(self, spec: Spec, open_one: Open, small: int = SMALL) -> None:
        self.spec = spec
        self._open = open_one
        self._most = min(spec.k, spec.window.known_rows or spec.k)  # no window shows more rows
        self._fit(min(small, self._most))

    def _fit(self, k: int) -> None:
        self._k = k
        self._operator = self._open(replace(self.spec, k=k))

    def push(self, batch: Batch) -> Answer:
        if self._k < self._most and (rows := self._operator.rows_held() + len(batch.score)) >= self._k:
            state = self._operator.state()
            self._fit(min(self._most, rows + rows // 2 + 1))
            self._operator.restore(state)
        return self._operator.push(batch)

    def top(self, k: int, size: int | None) -> Answer:
        return self._operator.top(min(k, self._k), size)

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        return top_many(self._operator, np.minimum(k, self._k), size)

    def state(self) -> Arrays:
        return {**self._operator.state(), _K: np.array([self._k])}

    def validate(self, saved: Saved) -> None:
        self._fit_rows_of(saved)
        self._operator.validate(saved)

    def restore(self, state: Arrays) -> None:
        self._fit_rows_of(state)
        self._operator.restore({name: array for name, array in state.items() if name != _K})

    def _fit_rows_of(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Open an operator whose k fits the rows of a snapshot. Its saved k may be wrong, so it is not used."""
        rows = sum(len(array) for array in state.values() if "position" in (array.dtype.names or ()))
        self._fit(min(self._most, max(SMALL, rows + rows // 2 + 1)))

    def check(self) -> None:
        assert self._k == self._most or len(self._operator.held()) < self._k, "fewer than k rows are held"
        self._operator.check()

    def __getattr__(self, name: str) -> Any:
        """Everything that does not depend on k."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._operator, name)
