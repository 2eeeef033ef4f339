"""An operator for rows, once for each query, and a clock that says which rows are late for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from skyband.core.operator import ANSWER, Answer, Arrays, Ints
from skyband.errors import InvalidQuery
from skyband.problems.rows.algorithms import relaxed
from skyband.problems.rows.operator import Batch as RowBatch
from skyband.problems.rows.operator import RowOperator
from skyband.problems.rows.operator import Spec as RowSpec
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.windows import FOREVER, Ticks

Open = Callable[..., RowOperator]

_NO_GROUPS = np.empty(0, np.int32)


def row_spec(spec: Spec, k: int = 1, size: int | None = None, *, counted: bool = True) -> RowSpec:
    """One query as an algorithm for rows takes it; not `counted`: by the numbers of rows, which are their times."""
    window = spec.window
    size = window.size if size is None else size
    if window.by_count and not counted:
        return RowSpec(k, Ticks(size, window.every, FOREVER if window.every else 0, False), spec.emit)
    return RowSpec(k, Ticks(size, window.every, window.lateness, window.by_count), spec.emit)


class PerQuery:
    """As many operators as there are queries."""

    def __init__(self, spec: Spec, open_one: Open) -> None:
        self.spec = spec
        self.unranked = 0
        self._open = open_one
        self._operators: list[RowOperator] = []
        self._columns = np.empty((3, 0), np.int64)  # k, size, and whether its arrivals are counted, by query
        self._parameters = np.empty((len(spec.scoring.score.parameters), 0))
        # It ranks nothing, and knows which rows are late for all.
        self._clock = relaxed.open(row_spec(spec))
        self._arrivals = 0
        self._now = -FOREVER
        self._position = 0  # of the last row
        self._latest_end = -FOREVER
        self._watermark = -FOREVER

    @property
    def late(self) -> int:
        return self._clock.late

    # -- queries ---------------------------------------------------------------------------------------------------

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        if backfill:
            raise InvalidQuery("backfill needs the rows of the window, which this algorithm does not keep.")
        counted = np.full(len(queries.k), self._arrivals == 0, np.int64)
        self._columns = np.concatenate([self._columns, np.stack([queries.k, queries.size, counted])], axis=1)
        self._parameters = np.ascontiguousarray(np.concatenate([self._parameters, queries.parameters], axis=1))
        for q in range(len(self._operators), self._columns.shape[1]):
            self._operators.append(self._opened(q))
            self._tell_time(self._operators[-1])
        return Answer.of(np.empty(0, ANSWER))

    def _tell_time(self, operator: RowOperator) -> None:
        """Of a window by value, a query that came later has to know what is late."""
        if self.spec.window.by_count:
            return
        if self.spec.window.every and self._watermark > -FOREVER:
            operator.advance(self._watermark)
        elif not self.spec.window.every and self._now > -FOREVER:
            operator.push(RowBatch(np.full(1, np.nan), np.full(1, self._now), _NO_GROUPS, self._position))

    def _opened(self, q: int) -> RowOperator:
        k, size, counted = self._columns[:, q].tolist()
        return self._open(row_spec(self.spec, k, size, counted=bool(counted)))

    def compact(self, kept: Ints) -> None:
        self._operators = [self._operators[q] for q in kept.tolist()]
        self._columns = self._columns[:, kept]
        self._parameters = np.ascontiguousarray(self._parameters[:, kept])

    # -- rows ------------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if self.spec.window.by_count or self.spec.window.every or not len(batch.time):
            return self._push(batch)
        # Answers say when they became known, not by which row: so that these tell them apart, none is pushed with
        # another after which it is the same time.
        now = np.maximum.accumulate(batch.time)
        cuts = [0, *(np.flatnonzero(now[1:] == now[:-1]) + 1).tolist(), len(now)]
        answers = [
            self._push(Batch(np.ascontiguousarray(batch.columns[:, u:v]), batch.time[u:v], batch.first + u))
            for u, v in pairwise(cuts)
        ]
        columns: list[Any] = [np.concatenate(parts) for parts in zip(*answers, strict=True)]
        return Answer(*columns)

    def _push(self, batch: Batch) -> Answer:
        n = batch.columns.shape[1]
        nothing = np.full(n, np.nan)
        self._clock.push(RowBatch(nothing, batch.time, _NO_GROUPS, batch.first))
        index = self._arrivals + np.arange(n, dtype=np.int64)
        answers = []
        for q, operator in enumerate(self._operators):
            scores = np.empty(n)
            self.spec.scoring.scores(batch.columns, 0, n, self._parameters, q, scores)
            if self.spec.window.by_count and not self._columns[2, q]:
                answers.append(self._push_numbered(operator, scores, index, batch.first))
            else:
                answers.append([operator.push(RowBatch(scores, batch.time, _NO_GROUPS, batch.first))])
        self._arrivals += n
        if n and not self.spec.window.by_count:
            self._now, self._position = max(self._now, int(batch.time.max())), batch.first + n - 1
        self._note_ends(batch.time)
        return _merged(answers)

    def _push_numbered(self, operator: RowOperator, scores: Any, index: Ints, first: int) -> list[Answer]:
        """By count, a query that came later: windows end where those of the others do."""
        every, found, u = self.spec.window.every, [], 0
        if not every:
            answer = operator.push(RowBatch(scores, index, _NO_GROUPS, first))
            return [answer._replace(at=answer.at + 1)]
        while u < len(index):
            end = (int(index[u]) // every + 1) * every
            v = min(len(index), u + end - int(index[u]))
            found.append(operator.push(RowBatch(scores[u:v], index[u:v], _NO_GROUPS, first + u)))
            if index[v - 1] + 1 == end:
                found.append(operator.advance(end))
            u = v
        return found

    def _note_ends(self, time: Ints) -> None:
        window = self.spec.window
        if not len(time) or not window.every:
            return
        every = window.every
        if window.size != FOREVER:
            self._latest_end = max(self._latest_end, (int(time.max()) + window.size) // every * every)
            if window.lateness < FOREVER:
                self._watermark = max(self._watermark, int(time.max()) - window.lateness)
            return
        now = np.maximum.accumulate(time)
        seen = np.full(len(time), self._watermark)
        if window.lateness < FOREVER:
            seen = np.maximum(seen, now - window.lateness)
        self._watermark = int(seen[-1])
        ends = np.maximum(time // every + 1, np.where(seen > -FOREVER, seen // every + 1, -FOREVER // every)) * every
        self._latest_end = max(self._latest_end, int(ends.max()))

    def advance(self, watermark: int) -> Answer:
        self._watermark = max(self._watermark, watermark)
        self._clock.advance(watermark)
        return _merged([[operator.advance(watermark)] for operator in self._operators])

    def finish(self) -> Answer:
        if self.spec.window.by_count or not self.spec.window.every or self._latest_end == -FOREVER:
            return _merged([])
        return self.advance(self._latest_end)

    def next_close(self) -> int | None:
        ends = [end for operator in self._operators if (end := operator.next_close()) is not None]
        return min(ends, default=None)

    def top(self, k: int | None, size: int | None) -> Answer:
        if size is not None:
            raise InvalidQuery("A size other than the queries' own needs rows that this algorithm does not keep.")
        answers = []
        for q, operator in enumerate(self._operators):
            own = int(self._columns[0, q])
            answer = operator.top(min(own, k or own), None)
            numbered = self.spec.window.by_count and not self._columns[2, q] and not self.spec.window.every
            answers.append([answer._replace(at=answer.at + 1) if numbered else answer])
        return _merged(answers)

    # -- state -----------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        return np.unique(np.concatenate([np.empty(0, np.int64), *(op.held() for op in self._operators)]))

    def rows_held(self) -> int:
        return len(self.held())

    def state(self) -> Arrays:
        parts = {f"{q} {name}": array for q, op in enumerate(self._operators) for name, array in op.state().items()}
        parts |= {f"clock {name}": array for name, array in self._clock.state().items()}
        counters = np.array([self._arrivals, self._now, self._position, self._latest_end, self._watermark])
        return {"columns": self._columns.copy(), "parameters": self._parameters.copy(), "counters": counters, **parts}

    def restore(self, state: Arrays) -> None:
        self._columns, self._parameters = state["columns"], state["parameters"]
        self._arrivals, self._now, self._position, self._latest_end, self._watermark = state["counters"].tolist()
        self._operators = [self._opened(q) for q in range(self._columns.shape[1])]
        for name, operator in [("clock", self._clock), *((str(q), op) for q, op in enumerate(self._operators))]:
            prefix = f"{name} "
            operator.restore({key.removeprefix(prefix): each for key, each in state.items() if key.startswith(prefix)})

    def check(self) -> None:
        for operator in self._operators:
            operator.check()


def _merged(answers: Sequence[Sequence[Answer]]) -> Answer:
    """The answers of the queries, in order of time and then of queries."""
    parts = [
        answer._replace(group=np.full(len(answer.at), q, np.int32))
        for q, found in enumerate(answers)
        for answer in found
    ]
    if not parts:
        return Answer.of(np.empty(0, ANSWER))
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Answer(*(column[order] for column in columns))
