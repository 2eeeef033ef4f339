"""Top-k pairs over Arrow data, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import Layout, pair_layout
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys, plain_batch, plain_schema
from skyband.core.operator import Codes, Floats, Ints
from skyband.core.query import replace_unchecked
from skyband.core.ranking_session import RankingSession
from skyband.core.registry import find
from skyband.core.session import Jumps, Saved, Stats, check_schema, measured_type, with_times
from skyband.core.snapshots import Snapshot
from skyband.engines.embedded.inputs import read
from skyband.engines.embedded.running import Running, apart, run
from skyband.errors import InvalidExpression, SkybandError
from skyband.expressions import pairs as pair_expressions
from skyband.problems.pairs.columns import PairColumns, with_score_type, with_scores
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Answer, Batch, PairOperator, View
from skyband.problems.pairs.planning import plan, specify
from skyband.problems.pairs.query import TopKPairs


class PairsSession(RankingSession):
    """A top-k pairs query, running: fed by `push`, asked by `top` and `top_many`, saved by `snapshot`."""

    query: TopKPairs
    _operator: PairOperator

    def __init__(
        self,
        query: TopKPairs,
        schema: pa.Schema,
        state: bytes | None = None,
        *,
        external_clock: bool = False,
        views: Sequence[TopKPairs] = (),
    ) -> None:
        """`views`: queries to answer in place of this one, from which they differ only in a smaller k or size."""
        check_schema(schema)
        self.query = query
        self.schema = schema
        self._plain = plain_schema(schema)
        query.check_columns(schema.names)
        check_keys(query.same, self._plain, "same")
        check_keys(query.different, self._plain, "different")
        score = pair_expressions.bind(query.by, query.where, query.ascending, self._plain)
        scoring = scoring_of(score, same=bool(query.same), different=bool(query.different))
        self._spec = specify(query, self._plain, scoring, external_clock=external_clock)
        self._ticks = self._spec.window
        if views:
            sizes = (view.window.ticks(self._plain).size for view in views)
            seen = tuple(View(view.k, size) for view, size in zip(views, sizes, strict=True))
            self._spec = replace(self._spec, views=seen)
        self._layout = pair_layout(query, self._plain, "questions" if views else str(query.emit))
        self._answer_layout = pair_layout(query, self._plain, "windows")
        self._many_layout = pair_layout(query, self._plain, "questions")
        on_type = measured_type(query.window.on, self._plain)
        saved = self._begin(query.fingerprint(schema), on_type, state, external_clock=external_clock)
        self.algorithm = saved.algorithm if saved else plan(self._spec, query.algorithm).algorithm
        self._operator = find(self.algorithm, "pairs").open(self._spec)
        self._columns = PairColumns(score, self._operator)
        self._rows = RowStore(self._layout.rows_schema)
        self._colours = [
            GroupCodes(pa.schema([self._plain.field(name) for name in names]))
            for names in (query.same, query.different)
            if names
        ]
        self._recount_at = self.few_groups
        self._jumps = Jumps(None, query.window, self._on_type)
        self._position = 0
        self._stats = Stats()
        self._resume(saved)

    @property
    def output_schema(self) -> pa.Schema:
        return with_score_type(self._layout.schema, self._spec.scoring.score.type)

    # -- state -----------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now. Only pairs have a score, so no row is unranked."""
        self._stats.rows_late = self._operator.late
        self._stats.rows_used = self._stats.rows_in - self._stats.rows_null_time - self._stats.rows_late
        self._stats.rows_held = len(self._operator.held())
        self._stats.groups = 1
        return Stats(**asdict(self._stats))

    def _codes_to_save(self) -> dict[str, GroupCodes]:
        return {f"colours_{i}": codes for i, codes in enumerate(self._colours)}

    def _saved(self) -> Saved:
        saved = super()._saved()
        return saved._replace(tables={**saved.tables, "labels": self._columns.labels.table})

    def _restore(self, saved: Snapshot) -> None:
        super()._restore(saved)
        self._columns.load(saved.tables["labels"], self._rows.take(self._operator.held()))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        rows_in = batch.num_rows
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        batch, time = with_times(batch, self.query.window.on, in_order=self.in_order)
        columns = self._columns.encode(batch, lambda: self._rows.take(self._operator.held()))
        # A batch that is refused is refused before this line, and leaves the session as it was.
        self._changing = True
        colours = self._codes(batch)
        first = self._position
        try:
            answer = self._operator.push(Batch(columns, colours, time, first))
        except SkybandError:
            raise
        except Exception as error:
            if self._spec.scoring.may_raise:
                self._changing = False  # the operator has gone back to what it was
                raise InvalidExpression(
                    f"{self._spec.scoring.score.text} failed on a pair of rows: {type(error).__name__}: {error}. "
                    "Nothing of the batch was taken."
                ) from error
            raise
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - batch.num_rows
        self._position += batch.num_rows
        self._rows.append(first, batch.select(self._layout.rows_schema.names))
        result = self._table(answer)
        self._forget_colours()
        self._columns.forget()
        return result

    def _codes(self, batch: pa.RecordBatch) -> Floats:
        colours = np.empty((len(self._colours), batch.num_rows))
        for i, codes in enumerate(self._colours):
            colours[i] = codes.encode(batch)
        return colours

    def _top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        return self._operator.top_many(k, size)

    def _table(self, answer: Answer) -> pa.Table:
        """The answer with its rows; rows that the operator has dropped are forgotten when it pays."""
        size = None if answer.view is None else np.array([view.size for view in self._spec.views])[answer.view]
        result = self._answer(answer, self._layout, size, answer.view)
        # All rows of the window are held, and that is much: as soon as a quarter more is stored, it is cleaned up.
        if self._rows.is_wasteful(5 * self._operator.rows_held() // 8):
            self._rows.keep(self._operator.held())
        return result

    def _answer(self, answer: Answer, layout: Layout, size: Any = None, question: Codes | None = None) -> pa.Table:
        shown = len(answer.at)
        if not shown:
            return with_score_type(layout.schema, self._spec.scoring.score.type).empty_table()
        self._rows.join()
        rows = self._rows.take(np.concatenate([answer.a, answer.b]))
        both = pa.record_batch(
            [*rows.slice(0, shown).columns, *rows.slice(shown).columns],
            names=[str(i) for i in range(2 * rows.num_columns)],
        )
        table = layout.table(answer, both, self._ticks, self.query.ascending, size, question)
        return with_scores(table, answer.score, self._spec.scoring.score, self.query.ascending)

    def _forget_colours(self) -> None:
        """Drop colours that no live row has, when there are enough of them to pay for the work."""
        for which, codes in enumerate(self._colours):
            if len(codes) >= self._recount_at:
                live = np.flatnonzero(self._operator.live_colours(which))
                if 2 * len(live) < len(codes):
                    self._operator.recolour(which, live)
                    codes.keep(live)
                self._recount_at = max(self.few_groups, 2 * len(codes))


def top_k_pairs(data: Any, query: TopKPairs) -> Any:
    """The answers of `query` over Arrow data, in the kind of the data."""
    return start(data, query).answer()


def start(data: Any, query: TopKPairs) -> Running:
    """The same, as it runs."""
    return run(data, query.open, query.window)


def start_together(data: Any, queries: Sequence[TopKPairs]) -> list[Running]:
    """Queries over the same rows that are alike (see below), from one skyband: that of the largest k and size."""
    source = read(data)
    schema = plain_schema(source.schema)
    window = max((query.window for query in queries), key=lambda window: window.ticks(schema).size)
    widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
    return apart(run(source, lambda schema: PairsSession(widest, schema, views=queries), window), len(queries))


def alike(query: TopKPairs) -> TopKPairs | None:
    """What queries have in common that one skyband can answer: all but k and size. None: this one shares nothing."""
    window = query.window
    if query.emit != "windows" or window.every is None or window.size is None or query.algorithm is not None:
        return None
    return replace_unchecked(query, k=1, window=replace(window, size=window.every))
