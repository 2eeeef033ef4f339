"""Compares the answer of a closing window with the one before, to emit changes or entries."""

from __future__ import annotations

import numpy as np

from skyband.core.emit import takes_back
from skyband.core.operator import ANSWER, Answer, Arrays, Ints
from skyband.core.validation import Saved
from skyband.kernels.ranking import ROW, Rows
from skyband.problems.subscriptions.drivers.kernels.emit import Emitted, emit_differences


class Before:
    """The rows that a new answer is compared with, by query, best first.

    To emit changes, these are the rows of the last answer. To emit entries, these are all rows that were emitted and
    may be in an answer again.
    """

    def __init__(self, emit: int) -> None:
        self._emit = emit
        self._ends: Ints = np.empty(0, np.int64)  # by query: where its rows end and those of the next one begin
        self.rows: Rows = np.empty(0, ROW)

    def takes_back(self) -> bool:
        """Can the next answer have to take rows back?"""
        return takes_back(self._emit) and len(self.rows) > 0

    def add(self, queries: int) -> None:
        self._ends = np.append(self._ends, np.full(queries, len(self.rows)))

    def compact(self, kept: Ints) -> None:
        """Query kept[i] becomes query i."""
        counts = np.diff(self._ends, prepend=0)
        self.rows = self.rows[np.repeat(np.isin(np.arange(len(counts)), kept), counts)]
        self._ends = np.cumsum(counts[kept])

    def emit(self, at: int, answer: Answer, time: Ints, due: Ints, first: Ints) -> Answer:
        """What the answers `at` a time emit for the queries that are `due`.

        `time` has the times of the answers' rows; `first` says, by query, where its next window begins.
        """
        rows = np.zeros(len(time), ROW)
        rows["score"], rows["time"], rows["position"] = answer.score, time, answer.position
        after, ends = np.empty(len(self.rows) + len(rows), ROW), np.empty_like(self._ends)
        emitted = Emitted(np.empty(len(after), ANSWER), np.zeros(1, np.int64))
        kept = emit_differences(
            self._emit, at, due, first, self._ends, self.rows, answer.group, rows, emitted, ends, after
        )
        self._ends, self.rows = ends, after[:kept].copy()
        return Answer.of(emitted.lines[: emitted.written[0]])

    def state(self) -> Arrays:
        return {"before": self.rows.copy(), "before_ends": self._ends.copy()}

    def validate(self, saved: Saved, queries: int) -> None:
        saved.length(queries, "before_ends")
        ends = saved["before_ends"]
        saved.parts(np.diff(ends, prepend=0), len(saved["before"]), "before_ends", "before")
        saved.rows("before")

    def restore(self, state: Arrays) -> None:
        self.rows, self._ends = state["before"].copy(), state["before_ends"].copy()

    def check(self) -> None:
        assert (np.diff(self._ends, prepend=0) >= 0).all(), "the rows of a query end behind where they begin"
        assert int(self._ends[-1] if len(self._ends) else 0) == len(self.rows), "every row was emitted for some query"
