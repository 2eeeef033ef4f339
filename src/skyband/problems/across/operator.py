"""The input and output of operators for top-k across streams: flat arrays, as everywhere.

A row has the value of one object in one stream. Objects are small whole numbers; the engine knows their names.
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

# What several values of an object in one stream mean, as long as they are live.
ONCE, LAST, MAX, SUM = 0, 1, 2, 3
REPEAT_CODES = {None: ONCE, "last": LAST, "max": MAX, "sum": SUM}


NO_KEYS: Ints = np.empty(0, np.int64)
SUM_OF_ONE = Combine(ADD, (1.0,))


@dataclass(frozen=True, slots=True)
class AcrossSpec:
    """A query in numbers."""

    k: int
    window: Ticks
    emit: int = WHOLE_CODE
    combine: Combine = SUM_OF_ONE
    low: tuple[float, ...] = (0.0,)  # by stream: the smallest value, which a missing one counts as
    high: tuple[float, ...] = (1.0,)  # by stream: the largest value; may be infinite
    repeat: int = ONCE
    recall: float = 0.0  # the share of the answers' objects that is enough; 0: all of them
    max_repeats: int = 0  # how often an object is expected to come in a stream, at most; 0: any number
    idle_after: int = 0  # how far a stream may be behind the others, and still be waited for

    @property
    def streams(self) -> int:
        return len(self.low)


class AcrossBatch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    stream: Codes  # which stream it came on
    code: Codes  # which object it is about
    value: Floats  # within the stream's bounds; NaN says nothing
    time: Ints  # what the window measures, within ±2**62; empty in a window of arrivals
    first: int
    codes: int  # how many objects have a number
    key: Ints = NO_KEYS  # for those who want it: a number that is always the same for an object; else empty

    def part(self, first: int, last: int) -> AcrossBatch:
        """Rows [first, last)."""
        some = slice(first, last)
        return AcrossBatch(
            self.stream[some], self.code[some], self.value[some], self.time[some], self.first + first, self.codes,
            self.key[some],
        )  # fmt: skip


class AcrossAnswer(NamedTuple):
    """What became known: one entry per object shown, in the order in which it became known.

    What becomes known at once is ordered by leaving before entering, then rank.
    """

    at: Ints  # by value: the window's end, or now; by count: arrivals so far
    rank: Codes  # 1 is best; of an object that leaves, the rank it had
    score: Floats  # of one that leaves, the score it had in the answer before
    code: Codes
    change: npt.NDArray[np.int8]  # ENTER or LEAVE
    time: Ints  # of its most recent row, which decides between equal scores; of one that leaves, as it was
    values: (
        Floats  # a row for each entry, a column for each stream; NaN where it has none. Of one that leaves, as before
    )
    recall: Floats  # the share of objects that answers have of those they should; 1 if exact, NaN if nobody knows


class AcrossOperator(Operator[AcrossBatch, AcrossAnswer, Ints], Protocol):
    """An algorithm for the k best objects across streams, running."""

    @property
    def wants_keys(self) -> bool:
        """Does it need a number that is always the same for an object, also after it was forgotten?"""
        ...

    @property
    def repeated(self) -> int:
        """Rows so far that broke the promise that an object comes once in a stream, as far as noticed."""
        ...

    def live_codes(self) -> npt.NDArray[np.bool_]:
        """By object: is there something to remember of it?"""
        ...


AcrossAlgorithm = Algorithm[AcrossSpec, AcrossOperator]
