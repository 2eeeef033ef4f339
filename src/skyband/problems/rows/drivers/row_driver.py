"""The base of every operator for rows: it has the clock, a pool of rows, the output, and ad-hoc questions.

An algorithm takes rows in the order in which they are given, and shows its answer: with each arrival, after a number of
arrivals, or when the driver says that a window ends. The clock decides which of these, and when a window ends.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, HeldIndex, Spans
from skyband.core.clock import EARLIEST, LATEST, Driver, WindowClock
from skyband.core.operator import ANSWER, Answer, Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.kernels import slabs
from skyband.kernels.emit import OUT
from skyband.kernels.ranking import Rows
from skyband.problems.rows.drivers.row_kernels import CLOCKS, LATE, NOW, START, UNRANKED
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import NEVER


class RowDriver(Driver[Answer]):
    """The protocol except for the abstract methods, which an algorithm implements."""

    by_group: ClassVar[bool] = True  # does it take rows group after group, unless the watermark closes windows?

    def __init__(self, spec: Spec, initial_room: int, clocks: int = CLOCKS) -> None:
        super().__init__(WindowClock(spec.window))
        self.spec = spec
        self._numbered = self._windows.numbered  # is the time of a row its number among the arrivals of its group?
        self._pool = slabs.new_pool(initial_room)
        self._out = np.zeros(initial_room, ANSWER)
        self._clock = np.zeros(clocks, np.int64)
        self._clock[NOW], self._clock[START] = -NEVER, EARLIEST
        self._held: HeldIndex | None = None  # for ad-hoc questions; None: not built since rows came or left

    @property
    def late(self) -> int:
        return super().late + int(self._clock[LATE])

    @property
    def unranked(self) -> int:
        return super().unranked + int(self._clock[UNRANKED])

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if len(batch.group):
            self._know_groups(int(batch.group.max()) + 1)
        self._push(batch)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        held = self._ask()
        return held.best(k, self._spans(held.codes, np.array([NEXT_WINDOW if size is None else size])))

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        held = self._ask()
        return held.best_of_many(k, self._spans(held.codes, size))

    @property
    def latest(self) -> int:
        """The largest time so far."""
        return int(self._windows.now)

    def rescore(self, change: Change) -> None:
        self.restore(rescored(self.state(), change))

    # -- an algorithm implements these ----------------------------------------------------------------------------

    @abstractmethod
    def state(self) -> Arrays:
        """See `Operator`."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """See `Operator`."""

    @abstractmethod
    def validate(self, saved: Saved) -> None:
        """See `Operator`."""

    @abstractmethod
    def _push(self, batch: Batch) -> None:
        """Take rows, and close the windows that end with them."""

    @abstractmethod
    def _know_groups(self, count: int) -> None:
        """Make room for at least this many groups."""

    @abstractmethod
    def _rows(self) -> tuple[Ints, Rows]:
        """The group of every live row held, and these rows."""

    @abstractmethod
    def _arrivals(self) -> Ints:
        """The number of rows so far in each group, if rows are numbered."""

    # -- questions ------------------------------------------------------------------------------------------------

    def _ask(self) -> HeldIndex:
        """The index of the rows held, which is built if need be."""
        if self._held is None:
            self._held = HeldIndex(*self._rows())
        return self._held

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        """The times that ad-hoc questions of these sizes cover, for each of these groups."""
        arrivals = self._arrivals()[groups] if self._numbered else None
        return self._windows.spans(size, len(groups), self.next_held, arrivals)

    def _earliest_live(self) -> int:
        time = self._ask().time
        return int(np.min(time, where=time >= self._windows.next_start, initial=LATEST))

    def _take_answer(self) -> Answer:
        self._held = None
        written = self._out[: self._clock[OUT]]
        self._clock[OUT] = 0
        if self.by_group and self.spec.grouped and not self._windows.waits:
            # Groups were taken one after another, but answers are emitted in the order of the rows.
            written = written[np.argsort(written["order"], kind="stable")]
        return Answer.of(written)


Change = Callable[[Floats], Floats]  # from scores to others in the same order; infinities stay


def rescored(state: Arrays, change: Change, *, other: Collection[str] = ()) -> Arrays:
    """Copy the state with other scores. All floats count as scores, except in arrays and fields named in `other`.

    Algorithms do little with scores but compare them, so the answers stay the same: the same rows at the same ranks.
    """
    changed = {name: array.copy() for name, array in state.items()}
    places = [places for name, array in changed.items() if name not in other for places in _floats(array, other)]
    ends = np.cumsum([0, *(place.size for place in places)])
    scores = change(np.concatenate([np.empty(0), *(place.ravel() for place in places)]))
    for place, start, end in zip(places, ends[:-1], ends[1:], strict=True):
        place[...] = scores[start:end].reshape(place.shape)
    return changed


def _floats(array: npt.NDArray[Any], other: Collection[str]) -> list[Floats]:
    if array.dtype.names is None:
        return [array] if array.dtype == np.float64 else []
    return [array[name] for name in array.dtype.names if array.dtype[name] == np.float64 and name not in other]
