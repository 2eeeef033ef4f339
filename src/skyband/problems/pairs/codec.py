"""Rows in the columns that a score of pairs reads, and the best pairs as the table a user sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import AdHoc, Outputs, OutputSchema
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys
from skyband.core.encoding.times import measured_type
from skyband.core.operator import Floats, Ints
from skyband.core.plan import TOOK_SNAPSHOT, Plan
from skyband.core.registry import find
from skyband.core.snapshots import Part
from skyband.core.validation import Saved
from skyband.errors import InvalidExpression, SkybandError
from skyband.expressions import pairs as pair_expressions
from skyband.problems.pairs.columns import PairColumns, score_column
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Answer, Batch, PairOperator, View
from skyband.problems.pairs.planning import plan, specify
from skyband.problems.pairs.query import TopKPairs


def output_of(query: TopKPairs, schema: pa.Schema, emit: str, score_type: pa.DataType) -> OutputSchema:
    """How the pairs of `query` over rows of `schema` look: both rows' columns, a's before b's."""
    fields = [field.with_name(f"{side}_{field.name}") for side in "ab" for field in schema]
    return OutputSchema.of(emit, measured_type(query.window.on, schema), score_type, others=fields)


class PairsCodec(Codec[Batch, Answer]):
    """A top-k pairs query over rows of one schema."""

    query: TopKPairs
    holds_window = True
    _operator: PairOperator
    _rows: RowStore

    def __init__(
        self,
        query: TopKPairs,
        schema: pa.Schema,
        *,
        external_clock: bool = False,
        views: Sequence[TopKPairs] = (),
    ) -> None:
        """`views`: queries to answer in place of this one, from which they differ only in a smaller k or size."""
        super().__init__(query, schema, external_clock=external_clock)
        check_keys(query.same, self.plain, "same")
        check_keys(query.different, self.plain, "different")
        self._score = pair_expressions.bind(query.by, query.where, query.ascending, self.plain)
        scoring = scoring_of(self._score, same=bool(query.same), different=bool(query.different))
        self._spec = specify(query, self.plain, scoring, external_clock=external_clock)
        self.window, self.k = self._spec.window, query.k
        self._sizes = np.array([view.window.ticks(self.plain).size for view in views], np.int64)
        seen = tuple(View(view.k, size) for view, size in zip(views, self._sizes.tolist(), strict=True))
        self._spec = replace(self._spec, views=seen)
        self.kept = self.plain
        self._outputs = Outputs(str(query.emit), lambda emit: output_of(query, self.plain, emit, self._score.type))
        self.output_schema = (self._outputs.asked_many if views else self._outputs.emitted).schema
        self._colours = [
            GroupCodes(pa.schema([self.plain.field(name) for name in names]))
            for names in (query.same, query.different)
            if names
        ]

    def choose(self, saved: str | None) -> Plan:
        return plan(self._spec, self.query.algorithm) if saved is None else Plan.fixed(saved, TOOK_SNAPSHOT)

    def open(self, algorithm: str, rows: RowStore | None) -> PairOperator:
        assert rows is not None, "answers show rows"
        self._operator, self._rows = find(algorithm, "pairs").open(self._spec), rows
        self._columns = PairColumns(self._score, self._operator)
        return self._operator

    # -- rows come in ------------------------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Floats]:
        return batch, self._columns.read(batch, self._live)

    def encode(self, numbers: Floats, batch: pa.RecordBatch, time: Ints, first: int) -> Batch:
        self._columns.label(batch, numbers)
        colours = np.empty((len(self._colours), batch.num_rows))
        for i, codes in enumerate(self._colours):
            colours[i] = codes.encode(batch)
        return Batch(numbers, colours, time, first)

    def explain(self, error: Exception) -> SkybandError | None:
        if not self._is_the_users(error):
            return None
        return InvalidExpression(
            f"{self._score.text} failed on a pair of rows: {type(error).__name__}: {error}. Skyband rejected the batch."
        )

    def undo(self, error: Exception) -> bool:
        return self._is_the_users(error)

    def _is_the_users(self, error: Exception) -> bool:
        """A function of the user's failed, and the operator has gone back to what it was."""
        return self._spec.scoring.may_raise and not isinstance(error, SkybandError)

    def _live(self) -> pa.RecordBatch:
        return self._rows.take(self._operator.held())

    # -- answers go out ----------------------------------------------------------------------------------------------

    def positions(self, answer: Answer) -> Ints:
        return np.concatenate([answer.a, answer.b])

    def decode(self, answer: Answer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        assert rows is not None, "answers show rows"
        shown = len(answer.at)
        both = [*rows.slice(0, shown).columns, *rows.slice(shown).columns]
        score = score_column(answer.score, self._score, self.query.ascending)
        if ad_hoc is None and answer.view is not None:
            ad_hoc = AdHoc(self._sizes[answer.view], answer.view)
        return self._outputs.table(answer, both, score, self.window, ad_hoc)

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        for which, codes in enumerate(self._colours):
            codes.compact(
                self.few_codes,
                partial(self._operator.live_codes, which),
                partial(self._operator.compact, which=which),
            )
        self._columns.forget()

    def counts(self) -> dict[str, int]:
        return {"groups": 1}  # only pairs have a score, so no row is unranked

    def state(self) -> Part:
        counters = {f"recount_at_{i}": codes.recount_at for i, codes in enumerate(self._colours)}
        tables = {f"colours_{i}": codes.keys for i, codes in enumerate(self._colours)}
        return Part(counters, {}, {**tables, "labels": self._columns.labels.table})

    def validate(self, operator: Saved, saved: Part) -> None:
        for which, _ in enumerate(self._colours):
            for name in ("rows_colours", "waiting_colours"):
                if name in operator and len(operator[name]) > which:
                    colours = operator[name][which]
                    operator.within(name, colours, 0, saved.tables[f"colours_{which}"].num_rows - 1)
                    operator.promise(
                        bool((colours == np.floor(colours)).all()), f"{name!r} has codes that are not whole"
                    )

    def restore(self, saved: Part) -> None:
        for i, codes in enumerate(self._colours):
            codes.load(saved.tables[f"colours_{i}"])
            codes.recount_at = saved.counters[f"recount_at_{i}"]
        self._columns.load(saved.tables["labels"], self._live())
