"""What sessions share whose answers are made of rows that came in: they keep those rows, and can be asked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from skyband.core import snapshots
from skyband.core.ad_hoc import NEXT_WINDOW
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import Layout
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import whole_batch
from skyband.core.operator import Codes, Ints
from skyband.core.session import Jumps, Saved, Session, Stats, entry
from skyband.engines.embedded.inputs import rows_for
from skyband.errors import InvalidQuery
from skyband.windows import FOREVER, Span, Ticks, Window, parse_span, span_ticks, whole_number


class Ranked(Protocol):
    """What such a session needs to know of its query."""

    @property
    def k(self) -> int: ...

    @property
    def window(self) -> Window: ...

    @property
    def algorithm(self) -> str | None: ...


class RankingSession(Session):
    """Fed by `push`, asked by `top` and `top_many`, saved by `snapshot`."""

    query: Ranked
    schema: pa.Schema
    _operator: Any
    _ticks: Ticks
    _layout: Layout  # of what is emitted
    _answer_layout: Layout  # of a question's answer
    _many_layout: Layout  # of those of many
    _rows: RowStore
    _position: int  # rows so far
    _recount_at: int  # groups or colours, with which it is time to see how many of them are gone
    _jumps: Jumps
    _stats: Stats

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    # -- what a problem says ---------------------------------------------------------------------------------------

    @abstractmethod
    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        """Take a batch in; what can fail fails before anything is remembered."""

    @abstractmethod
    def _answer(self, answer: Any, layout: Layout, size: Any = None, question: Codes | None = None) -> pa.Table:
        """The answer of a question with its rows."""

    @abstractmethod
    def _top_many(self, k: Ints, size: Ints) -> tuple[Any, Ints]:
        """The operator's answers to many questions, and where each ends."""

    @abstractmethod
    def _codes_to_save(self) -> dict[str, GroupCodes]:
        """What the numbers of groups or colours stand for."""

    # -- rows and questions ----------------------------------------------------------------------------------------

    @entry
    def push(self, rows: Any) -> pa.Table:
        """Take rows in, in arrival order; return what they make known, always as a pyarrow Table.

        Rows are whatever `top_k` takes; of a stream, all there are.
        """
        rows = rows_for(rows, self.schema)
        if isinstance(rows, pa.RecordBatch):
            return self._push(rows)
        # As one batch, so that a row that cannot be taken keeps all of them out.
        results = [self._push(batch) for batch in rows.combine_chunks().to_batches()]
        return pa.concat_tables(results) if results else self.output_schema.empty_table()

    @entry
    def top(self, k: int | None = None, size: Span | None = None) -> pa.Table:
        """The best right now: of the window that closes next, or of the last `size`; up to the query's k and size.

        By value, the last `size` is what is later than now - size, where now is the latest time seen. With a slide,
        rows in sizes that reach back to where no open window begins need a query with ad_hoc=True.
        """
        k, ticks = self._asked(k, size)
        return self._answer(self._operator.top(k, ticks), self._answer_layout, ticks)

    @entry
    def top_many(self, questions: Sequence[tuple[int | None, Span | None]]) -> pa.Table:
        """As `top` for each k and size, all at once, which is cheaper; the column `question` counts them from 0."""
        if not isinstance(questions, Iterable):
            raise InvalidQuery(f"top_many takes a list of (k, size), got {questions!r}.")
        # The largest size that may be asked for without a unit.
        plain = self._on_type is None or pa.types.is_integer(self._on_type)
        longest = min(self._ticks.size, FOREVER - 1) if plain else 0
        asked = [self._read_question(question, longest) for question in questions]
        k = np.array([k for k, _ in asked], np.int64)
        size = np.array([NEXT_WINDOW if ticks is None else ticks for _, ticks in asked], np.int64)
        answer, ends = self._top_many(k, size)
        question = np.repeat(np.arange(len(k), dtype=np.int32), np.diff(ends))
        covered = np.where(size == NEXT_WINDOW, self._ticks.size, size)[question]
        return self._answer(answer, self._many_layout, covered, question)

    def _asked(self, k: int | None, size: Span | None) -> tuple[int, int | None]:
        """A question's k, and its size in ticks."""
        number = self.query.k if k is None else whole_number(k)
        if number is None or not 1 <= number <= self.query.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.query.k}, got {k!r}.")
        if size is None:
            return number, None
        ticks = span_ticks(parse_span(size, "size"), self.query.window.on, self._on_type, "size")
        if ticks > self._ticks.size:
            raise InvalidQuery(f"size={size} is larger than the query's window ({self.query.window}).")
        return number, ticks

    def _read_question(self, question: Any, longest: int) -> tuple[int, int | None]:
        if not isinstance(question, (tuple, list)) or len(question) != 2:
            raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {question!r}.")
        k, size = question
        # Most questions are two numbers, and there may be many: these need no more than this.
        if type(k) is type(size) is int and 1 <= k <= self.query.k and 1 <= size <= longest:
            return k, size
        return self._asked(k, size)

    # -- state -----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        held = self._operator.held()
        assert self._rows.take(held).num_rows == len(held), "every row held has its columns"

    def _saved(self) -> Saved:
        held = self._operator.held()
        self._changing = True
        self._rows.keep(held)
        tables = {"rows": pa.Table.from_batches([self._rows.take(held)])}
        tables |= {name: codes.keys for name, codes in self._codes_to_save().items()}
        counters = {"position": self._position, "recount_at": self._recount_at, **self._jumps.state()}
        return Saved(counters, {"held": held}, tables)

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._rows.load(arrays.pop("held"), whole_batch(saved.tables["rows"]))
        self._operator.restore(arrays)
        for name, codes in self._codes_to_save().items():
            codes.load(saved.tables[name])
        counters = dict(saved.counters)
        self._position, self._recount_at = counters.pop("position"), counters.pop("recount_at")
        self._jumps.restore(counters)
        self._stats = Stats(**counters)
