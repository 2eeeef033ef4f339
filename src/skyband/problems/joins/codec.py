"""The codec of joins: from rows of the inputs to cells and numbers, and from groups and aggregates to tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.encoding.output import AdHoc
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_schema, plain_batch, plain_schema
from skyband.core.operator import Codes, Ints
from skyband.core.plan import TOOK_SNAPSHOT, Plan
from skyband.core.snapshots import Part
from skyband.core.validation import Saved
from skyband.errors import AggregateOverflow, InvalidQuery, SkybandError, SnapshotMismatch
from skyband.problems.joins.algorithms.recompute import NAME as RECOMPUTE
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import bind
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.labels import ROOM
from skyband.problems.joins.operator import Answer, Batch, JoinOperator, Rows
from skyband.problems.joins.output import GroupsOutput
from skyband.problems.joins.planning import better, open_plan, plan, specify
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.reading import Read, RowReader
from skyband.windows import Span

_LOOK_AT: Final = 50_000  # after this many rows it pays to ask whether another plan is cheaper


class Arrived(NamedTuple):
    """Rows of one or several inputs."""

    rows: Mapping[int, Rows | Read]  # by input: rows with codes for their cells, or still without
    order: Codes | None  # the input of each arrival; None: the rows of one input after those of another
    unmatched: int


class JoinsCodec(Codec[Batch, Answer]):
    """A join query over inputs with these schemas. Its answers have groups, not rows."""

    query: JoinAggregate
    schema: dict[str, pa.Schema]
    kept = None
    k = 0
    few_codes = 4096  # cells
    label_room = ROOM
    _operator: JoinOperator

    def __init__(self, query: JoinAggregate, schemas: Mapping[str, pa.Schema], *, external_clock: bool = False) -> None:
        for schema in schemas.values():
            check_schema(schema)
        self.query, self.schema = query, dict(schemas)
        self.plain = {name: plain_schema(schema) for name, schema in schemas.items()}
        self.external_clock = external_clock
        self._bound = bound = bind(query, self.plain)
        self._spec = specify(query, bound, external_clock=external_clock)
        first = bound.inputs[query.names.index(query.streams[0][0])]
        self.window = replace(bound.slide, size=first.size)
        self.on_type = None if first.on is None else bound.time_type
        self.fingerprint = query.fingerprint(schemas)
        self._codes = JoinCodes(bound, label_room=self.label_room)
        self._output = GroupsOutput(query, bound, self._codes)
        self.output_schema = self._output.schema
        self._reader = RowReader(bound, self._codes)
        self._arrived = 0  # how many rows of streams have come; after the first, relations are complete
        self._unmatched = 0
        self._seen = 0  # how many rows of all inputs have come
        self._compacted = 0  # how many had come at the last search for dead cells
        self._look_at = _LOOK_AT  # when this many have come, it looks for a better plan

    def choose(self, saved: str | None) -> Plan:
        is_free = saved is not None and self.query.plan is None
        chosen = Plan.fixed(str(saved), TOOK_SNAPSHOT) if is_free else plan(self.query, spec=self._spec)
        if saved is not None and (saved == RECOMPUTE) != (chosen.algorithm == RECOMPUTE):
            raise SnapshotMismatch(f"This snapshot was taken by {saved!r}; {chosen.algorithm!r} cannot read it.")
        return chosen

    def open(self, algorithm: str, rows: RowStore | None) -> JoinOperator:
        self._algorithm, self._operator = algorithm, open_plan(algorithm, self.query, self._spec)
        return self._operator

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of the inputs: recent rates, in rows a slide, and present counts."""
        moments = self._operator.moments or 1.0
        return {
            name: Statistics(known.came / moments, known.rows, known.cells, known.keys, known.groups)
            for name, known in zip(self.query.names, self._operator.known(), strict=True)
        }

    def replan(self) -> tuple[Plan, JoinOperator] | None:
        """Switch to another plan if it has become so much cheaper that it pays. The answers stay the same."""
        if self.query.plan is not None or self._seen < self._look_at or not self._operator.moments:
            return None
        self._look_at = self._seen + max(_LOOK_AT, 4 * self._operator.rows_held())
        found = better(self._algorithm, self.query, self._spec, self.statistics())
        self._operator.age()
        if found is None:
            return None
        # The state has the live rows, from which any plan can continue.
        state = self._operator.state()
        self.open(found.algorithm, None)
        self._operator.restore(state)
        return found, self._operator

    # -- rows come in ------------------------------------------------------------------------------------------------

    def is_too_late(self, i: int) -> bool:
        """Is the input a relation, although a row of a stream has come already?"""
        return self._bound.inputs[i].is_relation and self._arrived > 0

    def arrange(self, batch: pa.RecordBatch, source: Any) -> pa.RecordBatch:
        name = self.query.names[source]
        plain = self.plain[name]
        return batch if plain is self.schema[name] else plain_batch(batch, plain)

    def time_column(self, source: Any) -> str | None:
        return self._bound.inputs[source].on

    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Arrived]:
        read = self._reader.read(source, batch, time)
        return batch, Arrived({source: read}, None, read.unmatched)

    def encode(self, numbers: Arrived, batch: pa.RecordBatch, time: Ints, first: int) -> Batch:
        rows = {i: self._reader.encode(i, each) if isinstance(each, Read) else each for i, each in numbers.rows.items()}
        for i, each in rows.items():
            source, n = self._bound.inputs[i], len(each.time)
            self._seen += n
            if source.is_relation:
                continue
            if source.on is None and not self._spec.counts_apart:  # the time of a single stream's row is its number
                rows[i] = each._replace(time=np.arange(self._arrived, self._arrived + n))
            self._arrived += n
        self._unmatched += numbers.unmatched
        inputs = self._codes.inputs
        cells = tuple(each.new_cells() for each in inputs)
        if moved := self._codes.moved():
            self._operator.relabel(moved)
            self._output.relabel(moved)
        labelled = tuple(inputs[i].with_labels(rows[i]) if i in rows else None for i in range(len(inputs)))
        return Batch(labelled, cells, numbers.order)

    def explain(self, error: Exception) -> SkybandError | None:
        if not isinstance(error, AggregateOverflow):
            return None
        name = "" if error.aggregate is None else f"{self.query.aggregates[error.aggregate][0]!r}: "
        return AggregateOverflow(f"{name}{error}", error.aggregate)

    # -- answers go out ----------------------------------------------------------------------------------------------

    def decode(self, answer: Answer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        return self._output.table(answer, self._operator, self._codes)

    def check_question(self, k: int | None, ticks: int | None, size: Span | None) -> int:
        raise InvalidQuery("A join has no `top`: Skyband emits its groups when windows close or when they change.")

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Forget dead cells. Between two searches for them, at least as many rows come as the operator holds."""
        cells = sum(map(len, self._codes.inputs))
        if (
            cells < max(self.few_codes, self._codes.recount_at)
            or self._seen < self._compacted + self._operator.rows_held()
        ):
            return
        live = self._operator.live_codes()
        if 2 * sum(int(each.sum()) for each in live) < cells:
            kept = [np.flatnonzero(each) for each in live]
            before = [codes.parts()[cells] for codes, cells in zip(self._codes.inputs, kept, strict=True)]
            told = self._codes.compact(kept)
            self._operator.compact(told)
            grouped = [i for i, source in enumerate(self._bound.inputs) if source.grouped]
            self._output.compact([_renumbered(before[i], told[i].cells.part) for i in grouped])
        self._compacted = self._seen
        self._codes.recount_at = 2 * sum(map(len, self._codes.inputs))

    def counts(self) -> dict[str, int]:
        """`rows_unranked` counts rows that a filter or a null key excludes."""
        return {"rows_unranked": self._unmatched, "groups": self._operator.groups_live()}

    def state(self) -> Part:
        counters = {
            "arrived": self._arrived,
            "unmatched": self._unmatched,
            "seen": self._seen,
            "look_at": self._look_at,
            "compacted": self._compacted,
            "recount_at": self._codes.recount_at,
        }
        return Part(counters, self._output.state(), self._codes.state())

    def validate(self, operator: Saved, saved: Part) -> None:
        for name in ("arrived", "unmatched", "seen"):
            operator.counts(name, np.array([saved.counters[name]]))
        parts = [self._codes.validate(i, operator, saved.tables) for i in range(len(self._bound.inputs))]
        shown, grouped = saved.arrays["shown"], [i for i, source in enumerate(self._bound.inputs) if source.grouped]
        operator.promise(shown.shape[1:] == self._output.state()["shown"].shape[1:], "'shown' has other columns")
        for column, i in enumerate(grouped):
            operator.indices("shown", shown[:, column], parts[i])

    def restore(self, saved: Part) -> None:
        self._output.restore(saved.arrays["shown"])
        self._codes.restore(saved.tables)
        counters = saved.counters
        self._arrived, self._unmatched, self._seen = counters["arrived"], counters["unmatched"], counters["seen"]
        self._look_at, self._compacted = counters["look_at"], counters["compacted"]
        self._codes.recount_at = counters["recount_at"]


def _renumbered(old: Codes, new: Codes) -> Ints:
    """The new code of each old part."""
    number = np.zeros(int(old.max()) + 1 if len(old) else 0, np.int64)
    number[old] = new
    return number
