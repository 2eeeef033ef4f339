"""Top-k over Arrow data, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from skyband import expressions
from skyband.engines import snapshots
from skyband.engines.embedded.inputs import run
from skyband.engines.embedded.session import Saved, Session, Stats, check_rows, check_schema, with_times
from skyband.engines.groups import Codes, GroupCodes
from skyband.engines.output import layout
from skyband.engines.rows import RowStore
from skyband.engines.schemas import check_keys, plain_batch, plain_schema, whole_batch
from skyband.errors import InvalidQuery
from skyband.operators.objects.asking import NEXT_WINDOW, top_many
from skyband.operators.protocol import Answer, Batch, ObjectOperator
from skyband.operators.registry import OBJECTS, find
from skyband.planner.objects import plan, specify
from skyband.queries import TopK
from skyband.windows import FOREVER, Span, parse_span, span_ticks

_NO_GROUPS = np.empty(0, np.int32)


class TopKSession(Session):
    """A top-k query, running: fed by `push`, asked by `top` and `top_many`, saved by `snapshot`."""

    query: TopK
    _operator: ObjectOperator

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
        self._spec = specify(query, schema, external_clock=external_clock)
        self._layout = layout(query, self._plain, str(query.emit))
        self._answer_layout = layout(query, self._plain, "windows")
        self._many_layout = layout(query, self._plain, "questions")
        self._on_type = None if query.window.on is None else schema.field(query.window.on).type
        # The largest size that may be asked for without a unit.
        plain = self._on_type is None or pa.types.is_integer(self._on_type)
        self._longest = min(self._spec.window.size, FOREVER - 1) if plain else 0
        self._fingerprint = query.fingerprint(schema) + (" with an external clock" if external_clock else "")
        saved = None if state is None else self._read(state)
        self.algorithm = saved.algorithm if saved else plan(self._spec, query.algorithm, expect=query.expect).algorithm
        self._operator = find(self.algorithm, OBJECTS).open(self._spec)
        self._rows = RowStore(self._layout.rows_schema)
        self._groups = GroupCodes(pa.schema([self._plain.field(name) for name in query.per])) if query.per else None
        self._recount_groups_at = 1024
        self._position = 0
        self._stats = Stats()
        if saved:
            self._restore(saved)

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    # -- rows and time ---------------------------------------------------------------------------------------------

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        """Take rows in, in arrival order; return what they make known."""
        check_rows(rows, self.schema)
        if isinstance(rows, pa.RecordBatch):
            return self._push(rows)
        # As one batch, so that a row that cannot be taken keeps all of them out.
        results = [self._push(batch) for batch in rows.combine_chunks().to_batches()]
        return pa.concat_tables(results) if results else self.output_schema.empty_table()

    def top(self, k: int | None = None, size: Span | None = None) -> pa.Table:
        """The best rows right now: of the window that closes next, or of the last `size`; up to the query's k and size.

        By value, the last `size` is what is later than now - size, where now is the latest time seen. With a slide,
        sizes that reach back to where no open window begins need a query with ad_hoc=True.
        """
        k, ticks = self._asked(k, size)
        answer = self._operator.top(k, ticks)
        self._rows.join()
        rows = self._rows.take(answer.position)
        return self._answer_layout.table(answer, rows, self._spec.window, self.query.ascending, ticks)

    def top_many(self, questions: Sequence[tuple[int | None, Span | None]]) -> pa.Table:
        """As `top` for each k and size, all at once, which is cheaper; the column `question` counts them from 0."""
        asked = [self._read_question(question) for question in questions]
        k = np.array([k for k, _ in asked], np.int64)
        size = np.array([NEXT_WINDOW if ticks is None else ticks for _, ticks in asked], np.int64)
        answer, ends = top_many(self._operator, k, size)
        question = np.repeat(np.arange(len(k), dtype=np.int32), np.diff(ends))
        covered = np.where(size == NEXT_WINDOW, self._spec.window.size, size)[question]
        self._rows.join()
        rows = self._rows.take(answer.position)
        return self._many_layout.table(answer, rows, self._spec.window, self.query.ascending, covered, question)

    # -- state -----------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now."""
        self._stats.rows_late, self._stats.rows_unranked = self._operator.late, self._operator.unranked
        self._stats.rows_used = self._stats.rows_in - self._stats.rows_null_time - self._stats.rows_late
        self._stats.rows_held = len(self._operator.held())
        self._stats.groups = 1 if self._groups is None else len(self._groups)
        return Stats(**asdict(self._stats))

    def check(self) -> None:
        super().check()
        held = self._operator.held()
        assert self._rows.take(held).num_rows == len(held), "every row held has its columns"

    def _saved(self) -> Saved:
        held = self._operator.held()
        self._rows.keep(held)
        tables = {"rows": pa.Table.from_batches([self._rows.take(held)])}
        if self._groups is not None:
            tables["keys"] = self._groups.keys
        return Saved({"position": self._position}, {"held": held}, tables)

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._rows.load(arrays.pop("held"), whole_batch(saved.tables["rows"]))
        self._operator.restore(arrays)
        if self._groups is not None:
            self._groups.load(saved.tables["keys"])
        counters = dict(saved.counters)
        self._position = counters.pop("position")
        self._stats = Stats(**counters)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _asked(self, k: int | None, size: Span | None) -> tuple[int, int | None]:
        """A question's k, and its size in ticks."""
        k = self.query.k if k is None else k
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= self.query.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.query.k}, got {k!r}.")
        if size is None:
            return k, None
        ticks = span_ticks(parse_span(size, "size"), self.query.window.on, self._on_type, "size")
        if ticks > self._spec.window.size:
            raise InvalidQuery(f"size={size} is larger than the query's window ({self.query.window}).")
        return k, ticks

    def _read_question(self, question: Any) -> tuple[int, int | None]:
        if not isinstance(question, (tuple, list)) or len(question) != 2:
            raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {question!r}.")
        k, size = question
        # Most questions are two numbers, and there may be many: these need no more than this.
        if type(k) is type(size) is int and 1 <= k <= self.query.k and 1 <= size <= self._longest:
            return k, size
        return self._asked(k, size)

    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        rows_in = batch.num_rows
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        batch, time = with_times(batch, self.query.window.on)
        score = self._score.evaluate(batch)
        if self.query.ascending:
            score = -score
        group = self._codes(batch)
        # Nothing can fail from here on, so a bad batch leaves the session as it was.
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - batch.num_rows
        first = self._position
        self._position += batch.num_rows
        answer = self._operator.push(Batch(score, time, group, first))
        self._rows.append(first, batch.select(self._layout.rows_schema.names))
        result = self._table(answer)
        self._forget_groups()
        return result

    def _codes(self, batch: pa.RecordBatch) -> Codes:
        return self._groups.encode(batch) if self._groups is not None else _NO_GROUPS

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
        return self._layout.table(answer, rows.slice(0, shown), self._spec.window, self.query.ascending)

    def _forget_groups(self) -> None:
        """Drop groups that the operator has dropped, when there are enough of them to pay for the work."""
        if self._groups is not None and len(self._groups) >= self._recount_groups_at:
            live = np.flatnonzero(self._operator.live_groups())
            if 2 * len(live) < len(self._groups):
                self._operator.regroup(live)
                self._groups.keep(live)
            self._recount_groups_at = max(1024, 2 * len(self._groups))


def top_k(data: Any, query: TopK) -> pa.Table | pa.RecordBatchReader:
    """The answers of `query` over Arrow data."""
    return run(data, query.open)
