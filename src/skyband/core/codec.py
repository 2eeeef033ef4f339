"""The interface between a problem and the one session: rows to an operator's arrays, and answers to tables.

    rows ─ arrange ─ (times, jumps) ─ read ─ encode ─ operator ─ decode ─ table

`read` may refuse a batch, and then keeps nothing of it. `encode` may change state: it gives new keys their codes.
Everything else about a running query is in `core/session.py`, once for all problems.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from skyband.core.ad_hoc import NEXT_WINDOW
from skyband.core.calls import Stats
from skyband.core.encoding.output import AdHoc
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_schema, plain_batch, plain_schema
from skyband.core.encoding.times import measured_type
from skyband.core.operator import Ints, Operator
from skyband.core.plan import Plan
from skyband.core.snapshots import Part
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery, SkybandError
from skyband.windows import NEVER, Span, Ticks, Window, parse_span, span_ticks, whole_number

B = TypeVar("B")  # what the problem's operators take
A = TypeVar("A")  # what they answer


NO_POSITIONS: Ints = np.empty(0, np.int64)


class SessionQuery(Protocol):
    """What a session needs to know of its query."""

    @property
    def window(self) -> Window: ...

    @property
    def algorithm(self) -> str | None: ...


class OneSchemaQuery(SessionQuery, Protocol):
    """A query over rows of one schema."""

    def check_columns(self, columns: list[str]) -> None: ...

    def fingerprint(self, schema: pa.Schema) -> str: ...


class Codec(ABC, Generic[B, A]):
    """One problem's query, bound to the columns of its rows. The session that drives it opens its operator first."""

    query: SessionQuery
    schema: Any  # of the rows as users push them; by input, where there are several
    plain: Any  # the same in columns of which rows can be gathered
    window: Ticks
    on_type: pa.DataType | None  # of the column that the window measures
    fingerprint: str  # of the query and its columns: what a snapshot must have in common with it
    external_clock: bool  # do rows leave the watermark alone, so that only `advance` closes windows?
    output_schema: pa.Schema  # of every answer
    kept: pa.Schema | None  # the columns of rows that answers show; None: they are made of numbers alone
    max_jump: Span | None = None
    k: int  # the largest that may be asked for

    holds_window: ClassVar[bool] = False  # do operators hold all rows of the window, rather than a few of them?
    any_size: ClassVar[bool] = True  # can part of the window be asked for?
    few_codes: ClassVar[int] = 1024  # with fewer codes, it does not pay to forget those that are gone

    def __init__(self, query: OneSchemaQuery, schema: pa.Schema, *, external_clock: bool) -> None:
        """What every codec begins with whose rows have one schema."""
        check_schema(schema)
        self.query, self.schema, self.plain = query, schema, plain_schema(schema)
        self.external_clock = external_clock
        query.check_columns(schema.names)
        self.on_type = measured_type(query.window.on, self.plain)
        self.fingerprint = query.fingerprint(schema)

    # -- the operator ------------------------------------------------------------------------------------------------

    @abstractmethod
    def choose(self, saved: str | None) -> Plan:
        """What runs: the algorithm that took the snapshot, the one asked for, or the cheapest."""

    @abstractmethod
    def open(self, algorithm: str, rows: RowStore | None) -> Operator[B, A, Any]:
        """Its operator, which the codec goes on to know, as it does the rows that are kept for answers."""

    def replan(self) -> tuple[Plan, Operator[B, A, Any]] | None:
        """After a push: another algorithm that has become cheaper, and its operator, which goes on from here."""
        return None

    # -- rows come in ------------------------------------------------------------------------------------------------

    def arrange(self, batch: pa.RecordBatch, source: Any) -> pa.RecordBatch:
        """The batch in the columns that `read` takes. `source` says whose rows they are, where there are several."""
        return batch if self.plain is self.schema else plain_batch(batch, self.plain)

    def time_column(self, source: Any) -> str | None:
        """The column that says when rows came; None: they are counted."""
        return self.query.window.on

    @abstractmethod
    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Any]:
        """The rows as they are kept, and in numbers, ready for `encode`. Raises what is wrong with them."""

    @abstractmethod
    def encode(self, numbers: Any, batch: pa.RecordBatch, time: Ints, first: int) -> B:
        """What the operator takes, after codes for keys that are new. The first row is arrival `first`."""

    def explain(self, error: Exception) -> SkybandError | None:
        """What to say of an operator's failure, if it is the user's; None: it is as it is."""
        return None

    def undo(self, error: Exception) -> bool:
        """Has the operator gone back to what it was before a push that failed so?"""
        return False

    # -- answers go out ----------------------------------------------------------------------------------------------

    def positions(self, answer: A) -> Ints:
        """The arrivals that the answer shows, one for each of its rows, or several times as many."""
        return NO_POSITIONS

    @abstractmethod
    def decode(self, answer: A, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        """The answer as the user sees it; `rows` are those at its positions."""

    def check_question(self, k: int | None, ticks: int | None, size: Span | None) -> int:
        """The k of an ad-hoc question; `ticks` are those of its size. Raises if it cannot be answered."""
        if k is not None and not 1 <= k <= self.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.k}, got {k!r}.")
        if ticks is not None and not self.any_size:
            raise InvalidQuery(f"size={size!r}: only the query's own window can be asked for ({self.query.window}).")
        if ticks is not None and ticks > self.window.size:
            raise InvalidQuery(f"size={size} is larger than the query's window ({self.query.window}).")
        return self.k if k is None else k

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Forget codes that nothing live has, when there are enough of them to pay for the work."""
        return

    def settle(self) -> None:
        """Before an ad-hoc query: drop what it must not see, though it did not pay to drop it before."""
        return

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Fields of its stats that the session does not count."""

    stats_type: ClassVar[type[Stats]] = Stats

    @abstractmethod
    def state(self) -> Part:
        """What `restore` needs, beside the state of the operator."""

    def validate(self, operator: Saved, saved: Part) -> None:
        """State what the arrays of the operator and what the codec saved have to do with each other."""
        return

    @abstractmethod
    def restore(self, saved: Part) -> None:
        """Go on from here. The operator and the rows are restored already."""


# -- ad-hoc queries as users write them: a k and a size, checked, and in the units of the window -----------------------


def question(codec: Codec[Any, Any], k: Any, size: Span | None) -> tuple[int, int | None]:
    """A question's k, and its size in ticks; None: of the window that closes next."""
    number = None if k is None else whole_number(k)
    if k is not None and number is None:
        raise InvalidQuery(f"k must be a whole number, got {k!r}.")
    on = codec.query.window.on
    ticks = None if size is None else span_ticks(parse_span(size, "size"), on, codec.on_type, "size")
    return codec.check_question(number, ticks, size), ticks


def read_questions(codec: Codec[Any, Any], questions: Sequence[tuple[int | None, Span | None]]) -> tuple[Ints, Ints]:
    """Of many questions each k, and each size in ticks or NEXT_WINDOW."""
    if not isinstance(questions, Iterable):
        raise InvalidQuery(f"top_many takes a list of (k, size), got {questions!r}.")
    # The largest size that may be asked for without a unit.
    plain = codec.on_type is None or pa.types.is_integer(codec.on_type)
    longest = min(codec.window.size, NEVER - 1) if plain and codec.any_size else 0
    asked = [_read(codec, each, longest) for each in questions]
    size = [NEXT_WINDOW if ticks is None else ticks for _, ticks in asked]
    return np.array([k for k, _ in asked], np.int64), np.array(size, np.int64)


def _read(codec: Codec[Any, Any], asked: Any, longest: int) -> tuple[int, int | None]:
    if not isinstance(asked, (tuple, list)) or len(asked) != 2:
        raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {asked!r}.")
    k, size = asked
    # Most questions are two numbers, and there may be many: these need no more than this.
    if type(k) is type(size) is int and 1 <= size <= longest and 1 <= k <= codec.k:
        return k, size
    return question(codec, k, size)
