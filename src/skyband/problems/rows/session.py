"""Top-k over Arrow data, in this process."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, cast

import numpy as np
import pyarrow as pa

from skyband import expressions
from skyband.core import snapshots
from skyband.core.ad_hoc import top_many
from skyband.core.encoding.groups import Codes, GroupCodes
from skyband.core.encoding.output import TAKEN, Layout, layout
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys, plain_batch, plain_schema
from skyband.core.encoding.scores import Scores
from skyband.core.operator import WINDOWS, Answer, Ints
from skyband.core.query import replace_unchecked
from skyband.core.ranking_session import RankingSession
from skyband.core.registry import find
from skyband.core.session import Jumps, Saved, Stats, check_schema, measured_type, with_times
from skyband.engines.embedded.running import Running, apart, run
from skyband.errors import SnapshotMismatch
from skyband.expressions import subscriptions
from skyband.problems.rows.operator import Batch, CountsMissed, RowOperator
from skyband.problems.rows.planning import breaks_promise, plan, specify
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions.algorithms import shared
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.operator import Batch as ManyBatch
from skyband.problems.subscriptions.operator import Queries
from skyband.problems.subscriptions.operator import Spec as ManySpec

_NO_GROUPS = np.empty(0, np.int32)


class TopKSession(RankingSession):
    """A top-k query, running: fed by `push`, asked by `top` and `top_many`, saved by `snapshot`."""

    query: TopK
    _operator: RowOperator

    def __init__(
        self, query: TopK, schema: pa.Schema, state: bytes | None = None, *, external_clock: bool = False
    ) -> None:
        check_schema(schema)
        self.query = query
        self.schema = schema
        self._plain = plain_schema(schema)
        query.check_columns(schema.names)
        check_keys(query.per, self._plain)
        self._score = expressions.bind(query.by, self._plain)
        self._spec = specify(query, self._plain, external_clock=external_clock)
        self._ticks = self._spec.window
        self._scores = Scores(self._score.type, self._score.text, ascending=query.ascending)
        self._layout = layout(query, self._plain, str(query.emit), self._score.type)
        self._answer_layout = layout(query, self._plain, "windows", self._score.type)
        self._many_layout = layout(query, self._plain, "questions", self._score.type)
        on_type = measured_type(query.window.on, self._plain)
        saved = self._begin(query.fingerprint(schema), on_type, state, external_clock=external_clock)
        self.algorithm = saved.algorithm if saved else plan(self._spec, query.algorithm, expect=query.expect).algorithm
        algorithm = find(self.algorithm, "rows")
        if saved and (broken := breaks_promise(algorithm, self._spec)):
            raise SnapshotMismatch(f"This snapshot was taken by {self.algorithm!r}, but {broken}. Start afresh.")
        self._operator = algorithm.open(self._spec)
        self._rows = RowStore(self._layout.rows_schema)
        self._groups = GroupCodes(pa.schema([self._plain.field(name) for name in query.per])) if query.per else None
        self._recount_at = self.few_groups
        self._jumps = Jumps(query.max_jump, query.window, self._on_type)
        self._position = 0
        self._stats = Stats()
        self._resume(saved)

    # -- state -----------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now."""
        self._stats.rows_late, self._stats.rows_unranked = self._operator.late, self._operator.unranked
        dropped = self._stats.rows_null_time + self._stats.rows_jumped + self._stats.rows_late
        self._stats.rows_used = self._stats.rows_in - dropped
        self._stats.rows_held = len(self._operator.held())
        self._stats.rows_missed = self._operator.missed if isinstance(self._operator, CountsMissed) else 0
        self._stats.groups = 1 if self._groups is None else len(self._groups)
        return Stats(**asdict(self._stats))

    def _saved(self) -> Saved:
        saved = super()._saved()
        return saved._replace(arrays={**saved.arrays, **self._scores.state()})

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._scores.restore(arrays)
        super()._restore(replace(saved, arrays=arrays))

    def _codes_to_save(self) -> dict[str, GroupCodes]:
        return {} if self._groups is None else {"keys": self._groups}

    # -- inside ----------------------------------------------------------------------------------------------------

    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        rows_in = batch.num_rows
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        batch, time = with_times(batch, self.query.window.on, in_order=self.in_order)
        timed = batch.num_rows
        if (kept := self._jumps.keep(time)) is not None:
            batch, time = batch.filter(pa.array(kept)), time[kept]
        keys = self._scores.keys(self._scores.read(self._score.values(batch)), self._operator)
        # A batch that is refused is refused before this line, and leaves the session as it was.
        self._changing = True
        if self._groups is not None:
            batch = self._groups.normal(batch)
        group = self._codes(batch)
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - timed
        self._stats.rows_jumped += timed - batch.num_rows
        self._jumps.accept()
        first = self._position
        self._position += batch.num_rows
        answer = self._rank(Batch(keys, time, group, first))
        self._rows.append(first, batch.select(self._layout.rows_schema.names))
        result = self._table(answer)
        self._forget_groups()
        return result

    def _rank(self, batch: Batch) -> Answer:
        return self._operator.push(batch)

    def _codes(self, batch: pa.RecordBatch) -> Codes:
        return self._groups.encode(batch) if self._groups is not None else _NO_GROUPS

    def _top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        return top_many(self._operator, k, size)

    def _answer(self, answer: Answer, layout: Layout, size: Any = None, question: Codes | None = None) -> pa.Table:
        self._rows.join()
        rows, score = self._rows.take(answer.position), self._scores.column(answer.score)
        return layout.table(answer, rows, self._ticks, self.query.ascending, size, question, score=score)

    def _table(self, answer: Answer) -> pa.Table:
        """The answer with its rows; rows that the operator has dropped are forgotten when it pays."""
        shown = len(answer.at)
        if self._rows.is_wasteful(self._operator.rows_held()):
            held = self._operator.held()
            rows = self._rows.take(np.concatenate([answer.position, held]))
            self._rows.load(held, rows.slice(shown))
        elif shown:
            rows = self._rows.take(answer.position)
        if not shown:
            return self.output_schema.empty_table()
        score = self._scores.column(answer.score)
        return self._layout.table(answer, rows.slice(0, shown), self._ticks, self.query.ascending, score=score)

    def _forget_groups(self) -> None:
        """Drop groups that the operator has dropped, when there are enough of them to pay for the work."""
        if self._groups is not None and len(self._groups) >= self._recount_at:
            live = np.flatnonzero(self._operator.live_groups())
            if 2 * len(live) < len(self._groups):
                self._operator.regroup(live)
                self._groups.keep(live)
            self._recount_at = max(self.few_groups, 2 * len(self._groups))


class ViewsSession(TopKSession):
    """Several queries about the same rows and scores, answered from one skyband: the column `question`, before all
    others, says whose each answer is."""

    _operator: Any  # for many queries

    def __init__(self, widest: TopK, schema: pa.Schema, views: Sequence[TopK]) -> None:
        """`views` differ from the widest one only in k, size and slide."""
        super().__init__(widest, schema)
        self._unranked = 0
        ticks = [view.window.ticks(self._plain) for view in views]
        self._sizes = np.array([each.size for each in ticks])
        self._layout = self._many_layout
        self._operator = shared.open(ManySpec(self._ticks, scoring_of(subscriptions.GIVEN), WINDOWS))
        slides = np.array([each.every for each in ticks])
        queries = Queries(np.array([view.k for view in views]), self._sizes, slides, np.empty((0, len(views))))
        self._operator.add(queries, backfill=False)

    def stats(self) -> Stats:
        return replace(super().stats(), rows_unranked=self._unranked)

    def _rank(self, batch: Batch) -> Answer:
        self._unranked += int(np.count_nonzero(np.isnan(batch.score)))  # each query has its own view of the others
        answer: Answer = self._operator.push(ManyBatch(batch.score[None, :], batch.time, batch.first))
        return answer

    def _table(self, answer: Answer) -> pa.Table:
        result = self._answer(answer, self._layout, self._sizes[answer.group], answer.group)
        if self._rows.is_wasteful(self._operator.rows_held()):
            self._rows.keep(self._operator.held())
        return result


def top_k(data: Any, query: TopK) -> Any:
    """The answers of `query` over Arrow data, in the kind of the data."""
    return start(data, query).answer()


def start(data: Any, query: TopK) -> Running:
    """The same, as it runs."""
    return run(data, query.open, query.window)


def start_together(data: Any, queries: Sequence[TopK]) -> list[Running]:
    """Queries over the same rows that are alike (see below), from one skyband: that of the largest k and size."""
    windows = [query.window for query in queries]
    size = max(cast(Any, window.size) for window in windows)
    window = replace(windows[0], size=size, every=common_slide([cast(Any, window.every) for window in windows]))
    widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
    return apart(run(data, lambda schema: ViewsSession(widest, schema, queries), window), len(queries))


def alike(query: TopK, columns: Sequence[str]) -> Hashable | None:
    """What queries have in common that one skyband can answer: all but k, size and slide. None: this one shares
    nothing. Not if rows have a column whose name is taken: by which it is shown depends on which others are."""
    window = query.window
    if not TAKEN.isdisjoint(columns):
        return None
    if query.emit != "windows" or window.size is None or window.every is None or query.per:
        return None
    if query.algorithm is not None or query.error is not None or query.ad_hoc or query.expect is not None:
        return None
    kind = type(window.every)  # a number and a duration have no slide in common
    return replace_unchecked(query, k=1, window=replace(window, size=None, every=None)), kind


def common_slide(slides: Sequence[int | timedelta]) -> int | timedelta:
    """The longest slide that all of these are multiples of."""
    if all(isinstance(slide, timedelta) for slide in slides):
        tick = timedelta(microseconds=1)
        return math.gcd(*(slide // tick for slide in cast("Sequence[timedelta]", slides))) * tick
    return math.gcd(*cast("Sequence[int]", slides))
