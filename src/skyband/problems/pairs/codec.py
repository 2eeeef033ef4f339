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
from skyband.problems.pairs.drivers.per_group import PerGroup
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Answer, Batch, PairOperator, View
from skyband.problems.pairs.planning import plan, specify
from skyband.problems.pairs.query import TopKPairs


def output_of(query: TopKPairs, schema: pa.Schema, emit: str, score_type: pa.DataType) -> OutputSchema:
    """How the pairs of `query` over rows of `schema` look: the group, then both rows' other columns, a's before b's."""
    groups = [schema.field(name) for name in query.per]
    fields = [
        field.with_name(f"{side}_{field.name}") for side in "ab" for field in schema if field.name not in query.per
    ]
    return OutputSchema.of(emit, measured_type(query.window.on, schema), score_type, groups=groups, others=fields)


def shown_schema(query: TopKPairs, schema: pa.Schema) -> pa.Schema:
    """The columns of a row in the order in which answers show them: those of its group first."""
    others = [name for name in schema.names if name not in query.per]
    return pa.schema([schema.field(name) for name in [*query.per, *others]])


class PairsCodec(Codec[Batch, Answer]):
    """A top-k pairs query over rows of one schema."""

    query: TopKPairs
    holds_window = True
    _operator: PairOperator
    _rows: RowStore

    def __init__(
        self, query: TopKPairs, schema: pa.Schema, *, external_clock: bool = False, views: Sequence[TopKPairs] = ()
    ) -> None:
        """`views`: queries to answer in place of this one, from which they differ only in a smaller k or size."""
        super().__init__(query, schema, external_clock=external_clock)
        check_keys(query.per, self.plain)
        check_keys(query.same, self.plain, "same")
        check_keys(query.different, self.plain, "different")
        self._score = pair_expressions.bind(query.by, query.where, query.ascending, self.plain)
        scoring = scoring_of(self._score, same=bool(query.same), different=bool(query.different))
        self._spec = specify(query, self.plain, scoring, external_clock=external_clock)
        self.window, self.k = self._spec.window, query.k
        self._sizes = np.array([view.window.ticks(self.plain).size for view in views], np.int64)
        seen = tuple(View(view.k, size) for view, size in zip(views, self._sizes.tolist(), strict=True))
        self._spec = replace(self._spec, views=seen)
        self.kept = shown_schema(query, self.plain)
        self._outputs = Outputs(str(query.emit), lambda emit: output_of(query, self.plain, emit, self._score.type))
        self.output_schema = (self._outputs.asked_many if views else self._outputs.emitted).schema
        self._colours = [
            GroupCodes(pa.schema([self.plain.field(name) for name in names]))
            for names in (query.same, query.different)
            if names
        ]
        self._groups = GroupCodes(pa.schema([self.plain.field(name) for name in query.per])) if query.per else None

    def choose(self, saved: str | None) -> Plan:
        return plan(self._spec, self.query.algorithm) if saved is None else Plan.fixed(saved, TOOK_SNAPSHOT)

    def open(self, algorithm: str, rows: RowStore | None) -> PairOperator:
        assert rows is not None, "answers show rows"
        open_one = find(algorithm, "pairs").open
        self._operator = open_one(self._spec) if self._groups is None else PerGroup(self._spec, open_one)
        self._rows = rows
        self._columns = PairColumns(self._score, self._operator)
        return self._operator

    # -- rows come in ------------------------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Floats]:
        numbers = self._columns.read(batch, self._live)
        return batch if self._groups is None else self._groups.normal(batch), numbers

    def encode(self, numbers: Floats, batch: pa.RecordBatch, time: Ints, first: int) -> Batch:
        self._columns.label(batch, numbers)
        colours = np.empty((len(self._colours), batch.num_rows))
        for i, codes in enumerate(self._colours):
            colours[i] = codes.encode(batch)
        return Batch(numbers, colours, time, first, None if self._groups is None else self._groups.encode(batch))

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
        shown, groups = len(answer.at), len(self.query.per)
        both = [*rows.slice(0, shown).columns, *rows.slice(shown).columns[groups:]]
        score = score_column(answer.score, self._score, self.query.ascending)
        if ad_hoc is None and answer.view is not None:
            ad_hoc = AdHoc(self._sizes[answer.view], answer.view)
        return self._outputs.table(answer, both, score, self.window, ad_hoc)

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        for which, codes in enumerate(self._colours):
            codes.compact(
                self.few_codes, partial(self._operator.live_codes, which), partial(self._operator.compact, which=which)
            )
        if isinstance(self._operator, PerGroup) and self._groups is not None:
            self._groups.compact(self.few_codes, self._operator.live_groups, self._operator.compact_groups)
        self._columns.forget()

    def counts(self) -> dict[str, int]:
        return {"groups": 1 if self._groups is None else len(self._groups)}  # only pairs have a score

    def state(self) -> Part:
        counters = {f"recount_at_{i}": codes.recount_at for i, codes in enumerate(self._colours)}
        tables = {f"colours_{i}": codes.keys for i, codes in enumerate(self._colours)}
        if self._groups is not None:
            counters["recount_at"], tables["keys"] = self._groups.recount_at, self._groups.keys
        return Part(counters, {}, {**tables, "labels": self._columns.labels.table})

    def validate(self, operator: Saved, saved: Part) -> None:
        parts = [operator]
        if isinstance(self._operator, PerGroup):
            operator.length(saved.tables["keys"].num_rows, "group_known")
            self._operator.validate(operator)
            parts = [Saved(state) for state in self._operator.states(dict(operator))]
        for part in parts:
            for which, _ in enumerate(self._colours):
                for name in ("rows_colours", "waiting_colours"):
                    if name in part and len(part[name]) > which:
                        colours = part[name][which]
                        part.within(name, colours, 0, saved.tables[f"colours_{which}"].num_rows - 1)
                        part.promise(
                            bool((colours == np.floor(colours)).all()), f"{name!r} has codes that are not whole"
                        )

    def restore(self, saved: Part) -> None:
        for i, codes in enumerate(self._colours):
            codes.load(saved.tables[f"colours_{i}"])
            codes.recount_at = saved.counters[f"recount_at_{i}"]
        if self._groups is not None:
            self._groups.load(saved.tables["keys"])
            self._groups.recount_at = saved.counters["recount_at"]
        self._columns.load(saved.tables["labels"], self._live())
