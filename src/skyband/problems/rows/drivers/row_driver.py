"""What every operator for rows shares: the clock, a pool of rows, the output, and how it is asked.

An algorithm below takes rows in, in the order it is given them, and shows its answer: with each arrival, every so many
arrivals, or when it is told that a window ends. The clock says which of these it is, and when a window ends.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from skyband.core.ad_hoc import NEXT_WINDOW, HeldIndex, Spans
from skyband.core.clock import WindowClock
from skyband.core.driver import Driver
from skyband.core.operator import ANSWER, Answer, Arrays, Ints
from skyband.core.validation import Saved
from skyband.kernels import slabs
from skyband.kernels.emit import OUT
from skyband.kernels.ranking import Rows
from skyband.problems.rows.drivers.rescoring import Change, rescored
from skyband.problems.rows.drivers.row_kernels import CLOCKS, EARLIEST, LATE, NOW, START, UNRANKED
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import NEVER


class RowDriver(Driver[Answer]):
    """The protocol, but for what an algorithm says itself: the methods below `-- below --`, and its state."""

    by_group: ClassVar[bool] = True  # without waiting windows, it takes rows group after group

    def __init__(self, spec: Spec, initial_room: int, clocks: int = CLOCKS) -> None:
        super().__init__(WindowClock(spec.window))
        self.spec = spec
        self._numbered = self._windows.numbered  # the time of a row is its number among the arrivals of its group
        self._pool = slabs.new_pool(initial_room)
        self._out = np.zeros(initial_room, ANSWER)
        self._clock = np.zeros(clocks, np.int64)
        self._clock[NOW], self._clock[START] = -NEVER, EARLIEST
        self._held: HeldIndex | None = None  # for questions; None: not made since rows came or left

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

    def rescore(self, change: Change) -> None:
        self.restore(rescored(self.state(), change))

    # -- below: what an algorithm says ----------------------------------------------------------------------------

    @abstractmethod
    def state(self) -> Arrays:
        """As in the protocol."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """As in the protocol."""

    @abstractmethod
    def validate(self, saved: Saved) -> None:
        """As in the protocol."""

    @abstractmethod
    def _push(self, batch: Batch) -> None:
        """Take rows in, and close the windows that they bring to their end."""

    @abstractmethod
    def _know_groups(self, count: int) -> None:
        """There are at least so many groups."""

    @abstractmethod
    def _rows(self) -> tuple[Ints, Rows]:
        """Every live row held, and its group."""

    @abstractmethod
    def _arrivals(self) -> Ints:
        """By group, where rows are numbered: rows so far."""

    # -- questions ------------------------------------------------------------------------------------------------

    def _ask(self) -> HeldIndex:
        """The rows held, ready for questions."""
        if self._held is None:
            self._held = HeldIndex(*self._rows())
        return self._held

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        """What ad-hoc questions of these sizes cover, for each of these groups."""
        arrivals = self._arrivals()[groups] if self._numbered else None
        return self._windows.spans(size, len(groups), self.next_close, arrivals)

    def _take_answer(self) -> Answer:
        self._held = None
        written = self._out[: self._clock[OUT]]
        self._clock[OUT] = 0
        if self.by_group and self.spec.grouped and not self._windows.waits:
            # Groups were taken one after another; their answers came about in the order of the rows.
            written = written[np.argsort(written["order"], kind="stable")]
        return Answer.of(written)
