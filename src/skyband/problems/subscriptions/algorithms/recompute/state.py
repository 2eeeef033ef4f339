"""One operator for rows per query, and one clock that says for all of them which rows are late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from skyband.core.clock import WindowClock
from skyband.core.operator import Answer, Arrays, Floats, Ints
from skyband.core.validation import Saved, check_kinds
from skyband.errors import InvalidQuery
from skyband.problems.rows.operator import Batch as RowBatch
from skyband.problems.rows.operator import RowOperator
from skyband.problems.rows.operator import Spec as RowSpec
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.problems.subscriptions.query import MOST_ROWS
from skyband.windows import NEVER

Open = Callable[..., RowOperator]

_NO_GROUPS = np.empty(0, np.int32)


def row_spec(spec: Spec, k: int = 1, size: int | None = None, *, counts: bool = True) -> RowSpec:
    """The spec of one query for an algorithm for rows. Unless it counts arrivals itself, rows carry their numbers."""
    window = spec.window if size is None else replace(spec.window, size=size)
    return RowSpec(k, window if counts else window.over_numbers(), spec.emit)


class PerQuery:
    """The operator: it has one operator for rows per query."""

    def __init__(self, spec: Spec, open_one: Open) -> None:
        self.spec = spec
        self.unranked = 0
        self._open = open_one
        self._operators: list[RowOperator] = []
        self._columns = np.empty((3, 0), np.int64)  # k, size, and whether it counts arrivals itself, by query
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        self._windows = WindowClock(spec.window)
        self._position = 0  # the position of the last row

    @property
    def late(self) -> int:
        return self._windows.late

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        if backfill:
            raise InvalidQuery("backfill needs the rows of the window, which this algorithm does not keep.")
        # Where rows are numbered, a later query cannot count them itself: it is told their numbers.
        counts = not self._windows.numbered or self._windows.arrivals == 0
        added = np.stack([queries.k, queries.size, np.full(len(queries.k), counts, np.int64)])
        self._columns = np.concatenate([self._columns, added], axis=1)
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        for q in range(len(self._operators), self._columns.shape[1]):
            self._operators.append(self._opened(q))
            self._tell_time(self._operators[-1])
        return Answer.joined([])

    def _tell_time(self, operator: RowOperator) -> None:
        """Tell a new query the time, so that it knows which rows are late."""
        clock = self._windows
        if clock.waits and clock.closed > -NEVER:
            operator.advance(clock.closed)
        elif self.spec.window.moves_by_value and clock.now > -NEVER:
            operator.push(RowBatch(np.full(1, np.nan), np.full(1, clock.now), _NO_GROUPS, self._position))

    def _opened(self, q: int) -> RowOperator:
        return self._open(self._row_spec(*self._columns[:, q].tolist()))

    def _row_spec(self, k: int, size: int, counts: int) -> RowSpec:
        return row_spec(self.spec, k, size, counts=bool(counts))

    def compact(self, kept: Ints) -> None:
        self._operators = [self._operators[q] for q in kept.tolist()]
        self._columns = self._columns[:, kept]
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if not self.spec.window.moves_by_value or not len(batch.time):
            return self._push(batch)
        # An answer says when it became known, not by which row. Two rows after which the clock shows the same time are
        # therefore not pushed together, so that their answers stay apart.
        now = np.maximum.accumulate(batch.time)
        cuts = [0, *(np.flatnonzero(now[1:] == now[:-1]) + 1).tolist(), len(now)]
        answers = [
            self._push(Batch(np.ascontiguousarray(batch.columns[:, u:v]), batch.time[u:v], batch.first + u))
            for u, v in pairwise(cuts)
        ]
        return Answer.joined(answers)

    def _push(self, batch: Batch) -> Answer:
        n = batch.columns.shape[1]
        measured = self._windows.measured(batch.time, n)
        answers = []
        for q, operator in enumerate(self._operators):
            scores = np.empty(n)
            self.spec.scoring.scores(batch.columns, 0, n, self._parameters, q, scores)
            if self._columns[2, q]:
                answers.append([operator.push(RowBatch(scores, batch.time, _NO_GROUPS, batch.first))])
            else:
                answers.append(self._push_numbered(operator, scores, measured, batch.first))
        if n:
            self._move_clock(measured)
            self._position = batch.first + n - 1
        return _merged(answers)

    def _push_numbered(self, operator: RowOperator, scores: Floats, numbers: Ints, first: int) -> list[Answer]:
        """Push rows with their numbers to a later query, so that its windows end where those of the others do."""
        clock, found = self._windows, list[Answer]()
        if not clock.slides:
            answer = operator.push(RowBatch(scores, numbers, _NO_GROUPS, first))
            return [answer._replace(at=clock.arrived(answer.at))]
        for u, v, closed in clock.runs(clock.closed_after(numbers)) if len(numbers) else ():
            found.append(operator.push(RowBatch(scores[u:v], numbers[u:v], _NO_GROUPS, first + u)))
            end = closed + self.spec.window.every
            if numbers[v - 1] + 1 == end:
                found.append(operator.advance(end))
        return found

    def _move_clock(self, measured: Ints) -> None:
        clock = self._windows
        now = clock.now_after(measured)
        if not clock.slides:
            clock.in_time(measured, now)
        elif clock.waits:
            closed = clock.closed_after(now)
            clock.in_time(measured, closed)
            for first, end, until in clock.runs(closed):
                clock.closed = until
                clock.begin(measured[first:end])
        clock.move_to(int(now[-1]), arrivals=len(now))

    def advance(self, watermark: int) -> Answer:
        self._windows.closed = self._windows.watermark_end(watermark)
        return _merged([[operator.advance(watermark)] for operator in self._operators])

    def finish(self) -> Answer:
        return self.advance(self._windows.finish_end) if self._windows.waits else _merged([])

    def next_close(self) -> int | None:
        ends = [end for operator in self._operators if (end := operator.next_close()) is not None]
        return min(ends, default=None)

    def next_held(self) -> int | None:
        ends = [end for operator in self._operators if (end := operator.next_held()) is not None]
        return min(ends, default=None)

    def top(self, k: int | None, size: int | None) -> Answer:
        if size is not None:
            raise InvalidQuery("A size other than the queries' own needs rows that this algorithm does not keep.")
        answers = []
        for operator, (own, _, counts) in zip(self._operators, self._columns.T.tolist(), strict=True):
            answer = operator.top(min(own, k or own), None)
            renamed = not counts and not self._windows.slides
            answers.append([answer._replace(at=self._windows.arrived(answer.at)) if renamed else answer])
        return _merged(answers)

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return np.unique(np.concatenate([np.empty(0, np.int64), *(op.held() for op in self._operators)]))

    def rows_held(self) -> int:
        return len(self.held())

    def state(self) -> Arrays:
        parts = {f"{q} {name}": array for q, op in enumerate(self._operators) for name, array in op.state().items()}
        clock = np.append(self._windows.state(), self._position)
        return {"columns": self._columns.copy(), "parameters": self._parameters.copy(), "clock": clock, **parts}

    def validate(self, saved: Saved) -> None:
        columns = saved["columns"]
        queries = columns.shape[-1]
        saved.shape("columns", 3, queries)
        saved.shape("parameters", len(self._parameters), queries)
        saved.promise(len(saved["clock"]) > 1, "'clock' is too short")
        saved.counts("clock", saved["clock"][-1:])
        self._windows.validate(saved, "clock", saved["clock"][:-1])
        saved.within("columns", columns[0], 1, MOST_ROWS)
        saved.within("columns", columns[1], 1, self.spec.window.size)
        saved.within("columns", columns[2], 0, 1)
        for q in range(queries):
            own, operator = Saved(dict(saved), f"{q} "), self._open(self._row_spec(*columns[:, q].tolist()))
            check_kinds(dict(own), operator.state())
            operator.validate(own)

    def restore(self, state: Arrays) -> None:
        self._columns, self._parameters = state["columns"].copy(), state["parameters"].copy()
        self._windows.restore(state["clock"][:-1])
        self._position = int(state["clock"][-1])
        self._operators = [self._opened(q) for q in range(self._columns.shape[1])]
        for q, operator in enumerate(self._operators):
            prefix = f"{q} "
            operator.restore({key.removeprefix(prefix): each for key, each in state.items() if key.startswith(prefix)})

    def check(self) -> None:
        for operator in self._operators:
            operator.check()


def _merged(answers: Sequence[Sequence[Answer]]) -> Answer:
    """The answers of all queries, in order of time and then of queries."""
    parts = [
        answer._replace(group=np.full(len(answer.at), q, np.int32))
        for q, found in enumerate(answers)
        for answer in found
    ]
    joined = Answer.joined(parts)
    return joined.take(np.argsort(joined.at, kind="stable"))
