"""The codec of rows: from rows to the scores by which they are ranked, and from answers to tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.encoding.groups import GroupCodes, check_live
from skyband.core.encoding.output import AdHoc, Outputs, OutputSchema
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys
from skyband.core.encoding.scores import OrderKeys, Scores
from skyband.core.encoding.times import measured_type
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.plan import TOOK_SNAPSHOT, Plan
from skyband.core.registry import find
from skyband.core.snapshots import Part
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery
from skyband.expressions import subscriptions
from skyband.expressions.sort_keys import SortKeys, bind_ranking
from skyband.problems.rows.forgetting import Forgetting
from skyband.problems.rows.operator import Batch, RowOperator
from skyband.problems.rows.planning import breaks_promise, plan, specify
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions.algorithms import shared
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.operator import Batch as SubscriptionBatch
from skyband.problems.subscriptions.operator import Queries
from skyband.problems.subscriptions.operator import Spec as SubscriptionSpec

_NO_GROUPS = np.empty(0, np.int32)


def kept_schema(query: TopK, schema: pa.Schema) -> pa.Schema:
    """The columns of rows that answers show, the groups first. A column that is the score is not repeated."""
    others = [name for name in schema.names if name not in query.per and name != query.by]
    return pa.schema([schema.field(name) for name in [*query.per, *others]])


def output_of(query: TopK, schema: pa.Schema, emit: str, score_type: pa.DataType) -> OutputSchema:
    """The columns of the answers of `query` over rows of `schema`."""
    kept, n = list(kept_schema(query, schema)), len(query.per)
    return OutputSchema.of(emit, measured_type(query.window.on, schema), score_type, groups=kept[:n], others=kept[n:])


def shown_names(query: TopK, schema: pa.Schema, output: OutputSchema) -> dict[str, str]:
    """The name under which an answer shows each input column."""
    by = {query.by: "score"} if isinstance(query.by, str) else {}
    return {**by, **dict(zip(kept_schema(query, schema).names, output.row_names, strict=True))}


class RowsCodec(Codec[Batch, Answer]):
    """A top-k query over rows of one schema."""

    query: TopK
    _operator: RowOperator

    def __init__(self, query: TopK, schema: pa.Schema, *, external_clock: bool = False) -> None:
        super().__init__(query, schema, external_clock=external_clock)
        check_keys(query.per, self.plain)
        self._score = bind_ranking(query.by, self.plain)
        self._spec = specify(query, self.plain, external_clock=external_clock)
        self.window, self.k, self.max_jump = self._spec.window, query.k, query.max_jump
        self.kept = kept_schema(query, self.plain)
        self._scores: Scores | OrderKeys = (
            OrderKeys(self._score)
            if isinstance(self._score, SortKeys)
            else Scores(self._score.type, self._score.text, ascending=query.ascending)
        )
        self._outputs = Outputs(str(query.emit), lambda emit: output_of(query, self.plain, emit, self._score.type))
        self.output_schema = self._outputs.emitted.schema
        self._groups = GroupCodes(pa.schema([self.plain.field(name) for name in query.per])) if query.per else None
        after = query.forget_after
        self._forgetting = None if after is None else Forgetting(after, query.window, self.plain)

    def choose(self, saved: str | None) -> Plan:
        if saved is None:
            return plan(self._spec, self.query.algorithm, expect=self.query.expect)
        if broken := breaks_promise(find(saved, "rows"), self._spec):
            raise InvalidQuery(f"Now {broken}.")
        return Plan.fixed(saved, TOOK_SNAPSHOT)

    def open(self, algorithm: str, rows: RowStore | None) -> RowOperator:
        self._operator = find(algorithm, "rows").open(self._spec)
        return self._operator

    # -- rows come in ------------------------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Floats]:
        keys = self._scores.keys(self._scores.read(self._score.values(batch)), self._operator)
        return batch if self._groups is None else self._groups.normal(batch), keys

    def encode(self, numbers: Floats, batch: pa.RecordBatch, time: Ints, first: int) -> Batch:
        group = _NO_GROUPS if self._groups is None else self._groups.encode(batch)
        if self._groups is not None and self._forgetting is not None:
            group = self._forgetting.encode(group, batch, first, len(self._groups))
        return Batch(numbers, time, group, first)

    # -- answers go out ----------------------------------------------------------------------------------------------

    def positions(self, answer: Answer) -> Ints:
        return answer.position

    def decode(self, answer: Answer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        assert rows is not None, "answers show rows"
        scores, keys = self._scores, answer.score
        score = scores.column(keys, rows) if isinstance(scores, OrderKeys) else scores.column(keys)
        return self._outputs.table(answer, rows.columns, score, self.window, ad_hoc)

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        if self._groups is not None and self._forgetting is not None:
            self._forgetting.compact(self.few_codes, self._groups, self._operator.compact)
        elif self._groups is not None:
            self._groups.compact(self.few_codes, self._operator.live_codes, self._operator.compact)

    def settle(self) -> None:
        if self._groups is not None and self._forgetting is not None:
            self._forgetting.settle(self._groups, self._operator.compact)

    def counts(self) -> dict[str, int]:
        groups = 1 if self._groups is None else len(self._groups)
        return {
            "rows_unranked": self._operator.unranked,
            "rows_missed": getattr(self._operator, "missed", 0),
            "groups": groups if self._forgetting is None else len(self._forgetting.live()),
        }

    def state(self) -> Part:
        tables = {"order": self._scores.known} if isinstance(self._scores, OrderKeys) else {}
        if self._groups is None:
            return Part({}, self._scores.state(), tables)
        counters = {"recount_at": self._groups.recount_at}
        forgetting = {} if self._forgetting is None else self._forgetting.state()
        return Part(counters, self._scores.state() | forgetting, {**tables, "keys": self._groups.keys})

    def restore(self, saved: Part) -> None:
        self._scores.restore(saved.arrays)
        if isinstance(self._scores, OrderKeys):
            self._scores.known = saved.tables["order"]
        if self._groups is not None:
            self._groups.load(saved.tables["keys"])
            self._groups.recount_at = saved.counters["recount_at"]
            if self._forgetting is not None:
                self._forgetting.validate(Saved(saved.arrays), len(self._groups))
                self._forgetting.restore(saved.arrays)
            codes = len(self._groups) if self._forgetting is None else self._forgetting.codes
            check_live(self._operator.live_codes(), codes)


class ViewsCodec(RowsCodec):
    """Several queries about the same rows and scores, answered by one operator.

    Answers begin with a column `question`, the number of their query.
    """

    _operator: Any  # an operator of subscriptions

    def __init__(self, widest: TopK, schema: pa.Schema, views: Sequence[TopK]) -> None:
        """`views` are the queries. They differ from `widest` only in k, size and slide."""
        super().__init__(widest, schema)
        ticks = [view.window.ticks(self.plain) for view in views]
        self._sizes = np.array([each.size for each in ticks])
        slides = np.array([each.every for each in ticks])
        self._queries = Queries(np.array([view.k for view in views]), self._sizes, slides, np.empty((0, len(views))))
        self._unranked = 0
        self.output_schema = self._outputs.asked_many.schema

    def choose(self, saved: str | None) -> Plan:
        return Plan.fixed(shared.NAME, "several queries share what it holds")

    def open(self, algorithm: str, rows: RowStore | None) -> Any:
        self._operator = shared.open(SubscriptionSpec(self.window, scoring_of(subscriptions.GIVEN)))
        self._operator.add(self._queries, backfill=False)
        return self._operator

    def encode(self, numbers: Floats, batch: pa.RecordBatch, time: Ints, first: int) -> Any:
        self._unranked += int(np.count_nonzero(np.isnan(numbers)))  # the operator counts them for each query
        return SubscriptionBatch(numbers[None, :], time, first)

    def decode(self, answer: Answer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        return super().decode(answer, rows, AdHoc(self._sizes[answer.group], answer.group))

    def counts(self) -> dict[str, int]:
        return {**super().counts(), "rows_unranked": self._unranked}
