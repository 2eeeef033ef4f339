"""The clock of windows of arrivals over several streams: each window has the last rows of its own stream.

A moment is an arrival of any stream or, with a slide, every `every` of them. A row leaves when enough rows of its own
stream have followed, and it is unknown at which moment that will be. So the `last` of a row is an arrival number of its
own stream: the last arrival that it lives to see. Numbers of different streams cannot be compared.

A single stream has a `JoinClock` instead, which takes the number of an arrival for its time: there everything is known
beforehand.
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
    """Counts the arrivals of each stream."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._every = max(1, spec.every)
        self._came = np.zeros(len(spec.inputs), np.int64)  # the arrivals of each input; 0 for a relation
        self._answered = self._came.copy()  # how many of them the last answer has seen

    @property
    def closed(self) -> int:
        return int(self._came.sum()) // self._every * self._every

    def now(self) -> Ints:
        return self._answered - 1

    def take(self, batch: Batch) -> Moves | None:
        before, order = self.closed, input_of_each(batch)
        position = int(self._came.sum()) + np.arange(len(order))
        moments = (position // self._every + 1) * self._every
        due = []  # for each input, and each of its arrivals that no answer has seen: the moment of the first that does
        for source, rows in enumerate(batch.rows):
            mine = moments[order == source]
            if rows is not None:
                self._wait(source, rows, mine)
            waited = int(self._came[source] - self._answered[source])
            due.append(np.concatenate([np.full(waited, before + self._every), mine]))
            self._came[source] += len(mine)
        return None if self.closed == before else self._move(before, due)

    def _wait(self, source: int, rows: Rows, moments: Ints) -> None:
        """Let rows wait for their moments."""
        size, kept = self._spec.inputs[source].size, np.flatnonzero(rows.cell != UNMATCHED)
        last = np.full(len(kept), LATEST) if size >= FOREVER else self._came[source] + kept + (size - 1)
        self._waiting[source] = in_order(self._waiting[source], as_coming(moments[kept], last, rows, kept))

    def _move(self, before: int, due: list[Ints]) -> Moves:
        """The rows that come and leave at the moments up to now."""
        at = np.arange(before + self._every, self.closed + 1, self._every)
        seen = self._answered + np.stack([np.searchsorted(each, at, side="right") for each in due], axis=1)
        coming = self._come(self.closed)
        slots = self._enter(coming)
        going, lasts = self._leave(seen[-1] - 1)
        # A row leaves with the arrival after its last one.
        ends = [each[last + 1 - first] for each, last, first in zip(due, lasts, self._answered, strict=True)]
        self._answered = seen[-1]
        comes, goes = (
            tuple((moment - before) // self._every - 1 for moment in moments)
            for moments in ([rows.start for rows in coming], ends)
        )
        return Moves(tuple(coming), slots, comes, going, goes, seen - 1, at)

    # -- neither a watermark nor the end of the input closes a window ----------------------------------------------

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
            # A row leaves with a later arrival, at most a whole window after it.
            live.within("last", live["last"], answered[source] - 1, answered[source] + given.size - 2)
            waiting.within("last", waiting["last"], answered[source] + given.size - 1, came[source] + given.size - 2)
