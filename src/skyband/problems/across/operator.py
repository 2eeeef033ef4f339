"""The input and output of operators for top-k across streams, as flat arrays.

A row has the value of one object in one stream. Objects are small whole numbers; the codec knows their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Codes, Floats, Ints, Operator
from skyband.core.registry import Algorithm
from skyband.problems.across.combining import ADD, Combine
from skyband.windows import Ticks

# How several live values of an object in one stream are combined. ONCE: it has only one.
ONCE, LAST, MAX, SUM = 0, 1, 2, 3
REPEAT_CODES = {None: ONCE, "last": LAST, "max": MAX, "sum": SUM}


NO_KEYS: Ints = np.empty(0, np.int64)
SUM_OF_ONE = Combine(ADD, (1.0,))


@dataclass(frozen=True, slots=True)
class AcrossSpec:
    """A query across streams in numbers."""

    k: int
    window: Ticks
    emit: int = WHOLE_CODE
    combine: Combine = SUM_OF_ONE
    low: tuple[float, ...] = (0.0,)  # by stream: the smallest value, which stands for a missing one
    high: tuple[float, ...] = (1.0,)  # by stream: the largest value; may be infinite
    repeat: int = ONCE
    recall: float = 0.0  # the required share of an exact answer's objects; 0: all of them
    max_repeats: int = 0  # how often an object may come to a stream; 0: any number of times
    idle_after: int = 0  # how far a stream may be behind the first before windows stop waiting for it

    @property
    def streams(self) -> int:
        return len(self.low)


class AcrossBatch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    stream: Codes
    code: Codes  # the object
    value: Floats  # within the stream's bounds; NaN: no value
    time: Ints  # what the window measures, within ±2**62; empty in a window of arrivals
    first: int
    codes: int  # how many objects have a code
    key: Ints = NO_KEYS  # a hash of the object's id, if the operator wants keys; otherwise empty

    def part(self, first: int, last: int) -> AcrossBatch:
        """Rows [first, last)."""
        some = slice(first, last)
        return AcrossBatch(
            self.stream[some], self.code[some], self.value[some], self.time[some], self.first + first, self.codes,
            self.key[some],
        )  # fmt: skip


class AcrossAnswer(NamedTuple):
    """The objects that an operator shows, one entry each, in the order in which it found them.

    Entries of the same moment are ordered by leaving before entering, then rank. An object that leaves has the rank,
    score, time and values that it had in the answer before.
    """

    at: Ints  # by value: the window's end, or now; by count: the arrivals so far
    rank: Codes  # 1 is best
    score: Floats
    code: Codes
    change: npt.NDArray[np.int8]  # ENTER or LEAVE
    time: Ints  # of the object's most recent row, which decides between equal scores
    values: Floats  # a row for each entry, a column for each stream; NaN: no value
    recall: Floats  # the share of an exact answer's objects that the answer has; 1 if it is exact, NaN if unknown


class AcrossOperator(Operator[AcrossBatch, AcrossAnswer, Ints], Protocol):
    """A running algorithm for the k best objects across streams."""

    @property
    def wants_keys(self) -> bool:
        """Does it need `AcrossBatch.key`, which is the same for an object even after its code was dropped?"""
        ...

    @property
    def repeated(self) -> int:
        """How many rows broke the promise of how often an object comes to a stream, as far as it noticed."""
        ...

    def live_codes(self) -> npt.NDArray[np.bool_]:
        """For each object code: does the operator still need it?"""
        ...


AcrossAlgorithm = Algorithm[AcrossSpec, AcrossOperator]
