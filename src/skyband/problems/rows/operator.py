"""The input and output of operators for rows: flat arrays. Answers are those of `core/operator.py`."""

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

# How rows with equal scores are ranked, as a code for kernels.
RECENT, RANK, DENSE = range(3)  # the more recent first; together, as RANK() counts; together, as DENSE_RANK() counts


@dataclass(frozen=True, slots=True)
class Spec:
    """A query in numbers."""

    k: int
    window: Ticks
    emit: int = WHOLE_CODE
    grouped: bool = False
    ad_hoc: bool = False
    error: float = 0.0  # sigma: of N rows, in windows of n, sigma N / n may be missed, on any stream
    ties: int = RECENT


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    score: Floats  # higher is better; NaN is never ranked
    time: Ints  # what the window measures; empty in a window of arrivals
    group: Codes  # a small whole number for each group, in order of first appearance; empty without groups
    first: int


class RowOperator(Operator[Batch, Answer, Ints], Protocol):
    """An algorithm for the k best rows, running."""

    def rescore(self, change: Callable[[Floats], Floats]) -> None:
        """Replace all scores held by change(scores), which are in the same order."""
        ...

    def live_codes(self) -> npt.NDArray[np.bool_]:
        """By group code: does the group still have something to remember?"""
        ...


RowAlgorithm = Algorithm[Spec, RowOperator]
