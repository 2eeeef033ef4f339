"""The codec: how a problem turns rows into its operator's arrays, and the operator's answers into tables.

    rows ─ arrange ─ (times, jumps) ─ read ─ encode ─ operator ─ decode ─ table

`read` may refuse a batch; the codec has not changed then. `encode` may change the codec: it assigns codes to new keys.
`core/session.py` has everything else about a running query, once for all problems.
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

B = TypeVar("B")  # a batch, as the problem's operators take it
A = TypeVar("A")  # an answer, as they return it


NO_POSITIONS: Ints = np.empty(0, np.int64)


class SessionQuery(Protocol):
    """What a session asks of its query."""

    @property
    def window(self) -> Window: ...

    @property
    def algorithm(self) -> str | None: ...


class OneSchemaQuery(SessionQuery, Protocol):
    """A query over rows of one schema."""

    def check_columns(self, columns: list[str]) -> None: ...

    def fingerprint(self, schema: pa.Schema) -> str: ...


class Codec(ABC, Generic[B, A]):
    """A query bound to the columns of its rows. A session calls `open` before anything else."""

    query: SessionQuery
    schema: Any  # of the rows as users push them; with several inputs, a mapping from their names
    plain: Any  # the same columns in types of which Arrow can gather rows
    window: Ticks
    on_type: pa.DataType | None  # the type of the column that the window measures
    fingerprint: str  # of the query and its columns: a snapshot can be restored if it has the same
    external_clock: bool  # does only `advance` move the watermark, and no row?
    output_schema: pa.Schema  # of every answer
    kept: pa.Schema | None  # the columns of rows that answers show; None: answers have only numbers
    max_jump: Span | None = None
    k: int  # the largest k that an ad-hoc question may have

    holds_window: ClassVar[bool] = False  # do operators hold all rows of the window rather than a few of them?
    any_size: ClassVar[bool] = True  # can an ad-hoc question ask for a part of the window?
    few_codes: ClassVar[int] = 1024  # with fewer codes than this it does not pay to forget dead ones

    def __init__(self, query: OneSchemaQuery, schema: pa.Schema, *, external_clock: bool) -> None:
        """For codecs whose rows have one schema."""
        check_schema(schema)
        self.query, self.schema, self.plain = query, schema, plain_schema(schema)
        self.external_clock = external_clock
        query.check_columns(schema.names)
        self.on_type = measured_type(query.window.on, self.plain)
        self.fingerprint = query.fingerprint(schema)

    # -- the operator ------------------------------------------------------------------------------------------------

    @abstractmethod
    def choose(self, saved: str | None) -> Plan:
        """Choose the algorithm: the one that took the snapshot (`saved`), the one that the query names, or the
        cheapest."""

    @abstractmethod
    def open(self, algorithm: str, rows: RowStore | None) -> Operator[B, A, Any]:
        """Open the operator. The codec keeps it, and the store of the rows that answers may show."""

    def replan(self) -> tuple[Plan, Operator[B, A, Any]] | None:
        """After a push: if another algorithm has become cheaper, its plan and its operator with the same state."""
        return None

    # -- rows come in ------------------------------------------------------------------------------------------------

    def arrange(self, batch: pa.RecordBatch, source: Any) -> pa.RecordBatch:
        """Convert the batch to the columns that `read` takes. `source` names its input, if there are several."""
        return batch if self.plain is self.schema else plain_batch(batch, self.plain)

    def time_column(self, source: Any) -> str | None:
        """The column that has the time of each row; None if the window counts arrivals."""
        return self.query.window.on

    @abstractmethod
    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Any]:
        """Validate the rows. Return them as the session will keep them, and as numbers for `encode`."""

    @abstractmethod
    def encode(self, numbers: Any, batch: pa.RecordBatch, time: Ints, first: int) -> B:
        """Assign codes to new keys, and return the operator's batch. The first row has the arrival number `first`."""

    def explain(self, error: Exception) -> SkybandError | None:
        """Turn an error of the operator that the user can fix into an error that says so; None for other errors."""
        return None

    def undo(self, error: Exception) -> bool:
        """After a push that failed with this error: is the operator as it was before?"""
        return False

    # -- answers go out ----------------------------------------------------------------------------------------------

    def positions(self, answer: A) -> Ints:
        """The arrival numbers of the rows that the answer shows: one or, for pairs, several for each entry."""
        return NO_POSITIONS

    @abstractmethod
    def decode(self, answer: A, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        """Build the user's table from an answer. `rows` are those at its positions."""

    def check_question(self, k: int | None, ticks: int | None, size: Span | None) -> int:
        """Return the k of an ad-hoc question, or raise if it cannot be answered. `ticks` is `size` in ticks."""
        if k is not None and not 1 <= k <= self.k:
            raise InvalidQuery(f"k must be a whole number from 1 to the query's {self.k}, got {k!r}.")
        if ticks is not None and not self.any_size:
            raise InvalidQuery(
                f"size={size!r}: this session answers only for the query's own window ({self.query.window})."
            )
        if ticks is not None and ticks > self.window.size:
            raise InvalidQuery(f"size={size} is larger than the query's window ({self.query.window}).")
        return self.k if k is None else k

    # -- what it remembers -------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Forget codes that no live row has, if there are enough of them to pay for the work."""
        return

    def settle(self) -> None:
        """Before an ad-hoc question: drop rows that it must not see but that `push` keeps for a while."""
        return

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The fields of `Stats` that the codec counts rather than the session."""

    stats_type: ClassVar[type[Stats]] = Stats

    @abstractmethod
    def state(self) -> Part:
        """Save what `restore` needs besides the operator's state."""

    def validate(self, operator: Saved, saved: Part) -> None:
        """Check what the operator's arrays and the codec's part of a snapshot promise about each other."""
        return

    @abstractmethod
    def restore(self, saved: Part) -> None:
        """Continue from a saved part. The session has restored the operator and the rows already."""


# -- ad-hoc queries as users write them: a k and a size, checked, and in the units of the window -----------------------


def question(codec: Codec[Any, Any], k: Any, size: Span | None) -> tuple[int, int | None]:
    """Check a question, and return its k and its size in ticks; None: the window that closes next."""
    number = None if k is None else whole_number(k)
    if k is not None and number is None:
        raise InvalidQuery(f"k must be a whole number, got {k!r}.")
    on = codec.query.window.on
    ticks = None if size is None else span_ticks(parse_span(size, "size"), on, codec.on_type, "size")
    return codec.check_question(number, ticks, size), ticks


def read_questions(codec: Codec[Any, Any], questions: Sequence[tuple[int | None, Span | None]]) -> tuple[Ints, Ints]:
    """Check many questions, and return every k and every size in ticks, or NEXT_WINDOW."""
    if not isinstance(questions, Iterable):
        raise InvalidQuery(f"top_many takes a list of (k, size), got {questions!r}.")
    # The largest size that a question may have as a plain number.
    plain = codec.on_type is None or pa.types.is_integer(codec.on_type)
    longest = min(codec.window.size, NEVER - 1) if plain and codec.any_size else 0
    asked = [_read(codec, each, longest) for each in questions]
    size = [NEXT_WINDOW if ticks is None else ticks for _, ticks in asked]
    return np.array([k for k, _ in asked], np.int64), np.array(size, np.int64)


def _read(codec: Codec[Any, Any], asked: Any, longest: int) -> tuple[int, int | None]:
    if not isinstance(asked, (tuple, list)) or len(asked) != 2:
        raise InvalidQuery(f"A question is a k and a size, such as (10, 600); got {asked!r}.")
    k, size = asked
    # There may be many questions, and most are two plain numbers: this fast path is all that these need.
    if type(k) is type(size) is int and 1 <= size <= longest and 1 <= k <= codec.k:
        return k, size
    return question(codec, k, size)
