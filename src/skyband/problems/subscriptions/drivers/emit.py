"""What queries are told when a window closes, by what they were told before: changes and entries."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import ANSWER, CHANGES, ENTER, ENTRIES, LEAVE, Answer, Arrays, Ints
from skyband.kernels.compiling import kernel
from skyband.kernels.intrinsics import copy_row
from skyband.kernels.ranking import ROW, Rows, ranks_before
from skyband.problems.subscriptions.drivers.list_kernels import Told, say


class Before:
    """By query, best first: of changes the rows of its last answer, of entries all it was told and may see again."""

    def __init__(self, emit: int) -> None:
        self._emit = emit
        self._ends: Ints = np.empty(0, np.int64)  # by query, where its rows end; they begin where those before it end
        self.rows: Rows = np.empty(0, ROW)

    def is_showing(self) -> bool:
        """Will the next answer say something, if only that rows leave?"""
        return self._emit == CHANGES and len(self.rows) > 0

    def add(self, queries: int) -> None:
        self._ends = np.append(self._ends, np.full(queries, len(self.rows)))

    def remove(self, kept: Ints) -> None:
        """Query kept[i] becomes query i."""
        counts = np.diff(self._ends, prepend=0)
        self.rows = self.rows[np.repeat(np.isin(np.arange(len(counts)), kept), counts)]
        self._ends = np.cumsum(counts[kept])

    def tell(self, at: int, answer: Answer, time: Ints, due: Ints, first: Ints) -> Answer:
        """What is said of the answers `at` some time to the queries that are `due`. `time`: of the answers' rows;
        `first`: by query, where its next window begins."""
        rows = np.zeros(len(time), ROW)
        rows["score"], rows["time"], rows["position"] = answer.score, time, answer.position
        after, ends = np.empty(len(self.rows) + len(rows), ROW), np.empty_like(self._ends)
        told = Told(np.empty(len(after), ANSWER), np.zeros(1, np.int64))
        kept = tell(self._emit, at, due, first, self._ends, self.rows, answer.group, rows, told, ends, after)
        self._ends, self.rows = ends, after[:kept].copy()
        return Answer.of(told.lines[: told.written[0]])

    def state(self) -> Arrays:
        return {"before": self.rows.copy(), "before_ends": self._ends.copy()}

    def restore(self, state: Arrays) -> None:
        self.rows, self._ends = state["before"], state["before_ends"]

    def check(self) -> None:
        assert (np.diff(self._ends, prepend=0) >= 0).all(), "what a query was told ends behind where it begins"
        assert int(self._ends[-1] if len(self._ends) else 0) == len(self.rows), "all was told to some query"


@kernel
def tell(emit, at, due, first, ends, before, group, rows, told, after_ends, after):  # type: ignore[no-untyped-def]
    """Both what was told before and the new rows, each with its query in `group`, are by query, best first: they are
    merged, query by query. Returns how many rows are kept for the next time."""
    kept, begin, a = 0, 0, 0
    for q in range(len(ends)):
        end, stop, x = ends[q], a, begin
        while stop < len(group) and group[stop] == q:
            stop += 1
        if not due[q]:
            for y in range(begin, end):
                copy_row(after, kept, before, y)
                kept += 1
            x = end
        elif emit == CHANGES:  # what leaves comes first
            y = a
            for x in range(begin, end):
                while y < stop and ranks_before(rows[y], before[x]):
                    y += 1
                if y == stop or rows[y].position != before[x].position:
                    say(told, at, q, x - begin + 1, before[x], 0, LEAVE)
            x = begin
        rank = 0
        # Of changes, what was told before and is not shown again has left; of entries it may come again.
        while a < stop or (x < end and emit == ENTRIES):
            is_old = x < end and (a == stop or not ranks_before(rows[a], before[x]))
            is_new = a < stop and not (is_old and before[x].position != rows[a].position)
            if is_new:
                rank += 1
                copy_row(after, kept, rows, a)
                if not is_old:
                    say(told, at, q, rank, rows[a], 0, ENTER)
            else:
                copy_row(after, kept, before, x)
            kept += is_new if emit == CHANGES else after[kept].time >= first[q]
            a += is_new
            x += is_old
        begin = end
        after_ends[q] = kept
    return kept
