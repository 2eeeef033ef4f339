"""The input of operators for rows, as flat arrays. Their answers are those of `core/operator.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Answer, Codes, Floats, Ints, Operator
from skyband.core.registry import Algorithm
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
