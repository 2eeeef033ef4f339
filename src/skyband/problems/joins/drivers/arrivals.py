"""Windows of arrivals of several streams: each holds the last so many rows of its own stream.

A moment is an arrival of any stream or, with a slide, every so many of them. A row goes when so many rows of its own
stream have come behind it, and nobody knows which moment that will be. So the `last` of a row is a number of its own
stream: that of the last arrival that it lives to see. What is numbered in different streams cannot be compared.
(One stream alone has a `JoinClock`, to which the number of an arrival is its time: there all is known beforehand.)
"""

from __future__ import annotations

import numpy as np

from skyband.core.clock import LATEST
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import Saved
from skyband.problems.joins.drivers.lifetimes import in_order
from skyband.problems.joins.drivers.live_rows import LiveRows, Moves, as_coming, input_of_each
from skyband.problems.joins.operator import BEFORE, UNMATCHED, Batch, Rows, Spec
from skyband.windows import FOREVER


class ArrivalClock(LiveRows):
    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._every = max(1, spec.every)
        self._came = np.zeros(len(spec.inputs), np.int64)  # by input: arrivals, of a relation none
        self._answered = self._came.copy()  # of them, those that the last answer has seen

    @property
    def closed(self) -> int:
        return int(self._came.sum()) // self._every * self._every

    def now(self) -> Ints:
        return self._answered - 1

    def take(self, batch: Batch) -> Moves | None:
        before, order = self.closed, input_of_each(batch)
        position = int(self._came.sum()) + np.arange(len(order))
        moments = (position // self._every + 1) * self._every
        due = []  # by input: for each of its arrivals that no answer has seen, the moment at which one does
        for source, rows in enumerate(batch.rows):
            mine = moments[order == source]
            if rows is not None:
                self._wait(source, rows, mine)
            waited = int(self._came[source] - self._answered[source])
            due.append(np.concatenate([np.full(waited, before + self._every), mine]))
            self._came[source] += len(mine)
        return None if self.closed == before else self._move(before, due)

    def _wait(self, source: int, rows: Rows, moments: Ints) -> None:
        """Put rows by until their moments come."""
        size, kept = self._spec.inputs[source].size, np.flatnonzero(rows.cell != UNMATCHED)
        last = np.full(len(kept), LATEST) if size >= FOREVER else self._came[source] + kept + (size - 1)
        self._waiting[source] = in_order(self._waiting[source], as_coming(moments[kept], last, rows, kept))

    def _move(self, before: int, due: list[Ints]) -> Moves:
        """What comes and goes at the moments up to now."""
        at = np.arange(before + self._every, self.closed + 1, self._every)
        seen = self._answered + np.stack([np.searchsorted(each, at, side="right") for each in due], axis=1)
        coming = self._come(self.closed)
        slots = self._enter(coming)
        going, lasts = self._leave(seen[-1] - 1)
        # A row goes with the arrival behind its last one.
        ends = [each[last + 1 - first] for each, last, first in zip(due, lasts, self._answered, strict=True)]
        self._answered = seen[-1]
        comes, goes = (
            tuple((moment - before) // self._every - 1 for moment in moments)
            for moments in ([rows.start for rows in coming], ends)
        )
        return Moves(tuple(coming), slots, comes, going, goes, seen - 1, at)

    # -- no time closes a window, nor does the end of the input ----------------------------------------------------

    def close(self, watermark: int) -> Moves | None:
        return None

    def next_close(self) -> int | None:
        return None

    def last_end(self) -> int:
        return BEFORE

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> Arrays:
        return super().state() | {"came": self._came.copy(), "answered": self._answered.copy()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self._came, self._answered = state["came"].copy(), state["answered"].copy()

    def validate(self, saved: Saved) -> None:
        came, answered = saved["came"], saved["answered"]
        for name in ("came", "answered"):
            saved.length(len(self._spec.inputs), name)
            saved.counts(name, saved[name])
        waited, total = came - answered, int(came.sum())
        saved.within("answered", waited, 0, self._every - 1)
        saved.promise(int(waited.sum()) == total % self._every, "'answered' is not up to the last answer")
        end = (total // self._every + 1) * self._every
        for source, given in enumerate(self._spec.inputs):
            waiting, live = (Saved(dict(saved), f"{what} {source} ") for what in ("waiting", "live"))
            for rows in (waiting, live):
                self._validate_rows(source, rows)
            waiting.length(len(waiting["last"]), "start")
            waiting.within("start", waiting["start"], end, end)
            if given.size >= FOREVER:
                continue
            # A row goes with an arrival that is still to come, and not later than that of a whole window behind it.
            live.within("last", live["last"], answered[source] - 1, answered[source] + given.size - 2)
            waiting.within("last", waiting["last"], answered[source] + given.size - 1, came[source] + given.size - 2)
