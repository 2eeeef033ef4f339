"""The k best rows of a window for each of many queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.checks import (
    Emit,
    but,
    check_emit,
    check_jump,
    check_k,
    check_lateness,
    check_names,
    check_window,
    columns_of,
    fingerprint,
    source_of,
)
from skyband.errors import InvalidInput, InvalidQuery, UnknownColumn
from skyband.expressions.subscriptions import check_by, filtered, parameter
from skyband.windows import Span, Window

if TYPE_CHECKING:
    from skyband.problems.subscriptions.session import ForEachSession


MOST_ROWS: Final = 10_000_000  # as k of each query: their lists are numbered in one array

# Changes of queries are a table like any change data feed: the queries' columns, and what happened to each row.
CHANGE: Final = "_change_type"
VERSION: Final = "_commit_version"  # if there is such a column, changes with a smaller one came before
FEED: Final = (CHANGE, VERSION, "_commit_timestamp")  # columns that are not of the queries
ADDS: Final = ("insert", "update_postimage")
REMOVES: Final = ("delete",)
PASSED_OVER: Final = ("update_preimage",)  # what was there before an update says nothing new


@dataclass(frozen=True)
class TopKForEach:
    """The k best rows of a window, as it slides, for each of many queries.

    queries     a table: one query a row. Its columns are `q.name` in `by`, `k` and `size`.
    k           how many rows a window shows, or a column of the queries: "q.k".
    by          what a row is worth to a query: an SQL expression over columns of the row, and of the query: q.x.
    window      `sliding`, `tumbling` or `landmark`: of the query that looks back furthest.
    key         the columns that tell queries apart, which are shown first; the column `id` if there is one, else all.
    size        a column of the queries that says how far each looks back, "q.size": at most as far as the window.
                In a window of arrivals and on a column of whole numbers these are numbers, on a timestamp durations.
    every       a column of the queries that says how often each is answered, "q.every": a multiple of the slide.
    where       a condition that rows must meet for a query to see them, over columns of both: "symbol = q.symbol".
    ascending   the smallest score is the best.
    emit        "windows": the ranked rows of each closed window (default with `every`);
                "changes": what entered and what left (default without `every`);
                "entries": each row once for each query, when it first enters.
    lateness    how long windows by value wait for rows that come out of order.
    max_jump    a row whose time is so much later than all before is dropped, as in `TopK`.
    backfill    queries that come later see the rows that are in the window, too, not only those that come after them.
    algorithm   by name, for study; None: the planner chooses.
    """

    queries: pa.Table = field(compare=False)
    k: int | str
    by: str
    window: Window
    key: tuple[str, ...] = ()
    size: str | None = None
    every: str | None = None
    where: str | None = None
    ascending: bool = False
    emit: Emit | None = None
    lateness: int | timedelta | None = None
    backfill: bool = False
    algorithm: str | None = None
    max_jump: int | timedelta | None = None

    def __init__(
        self,
        *,
        queries: Any,
        k: int | str,
        by: str,
        window: Window,
        key: str | Sequence[str] | None = None,
        size: str | None = None,
        every: str | None = None,
        where: str | None = None,
        ascending: bool = False,
        emit: Emit | None = None,
        lateness: Span | None = None,
        backfill: bool = False,
        algorithm: str | None = None,
        max_jump: Span | None = None,
    ) -> None:
        table = as_table(queries)
        if isinstance(k, str):
            _check_column(parameter(k, "k"), table, "k")
        else:
            k = check_k(k)
            if k > MOST_ROWS:
                raise InvalidQuery(f"k must be at most {MOST_ROWS:,} for each of many queries, got {k:,}.")
        check_by(by)
        if where is not None and (not isinstance(where, str) or not where.strip()):
            raise InvalidQuery(f"where must be a condition over columns, such as 'symbol = q.symbol'; got {where!r}.")
        check_window(window)
        if size is not None:
            _check_column(parameter(size, "size"), table, "size")
            if window.size is None:
                raise InvalidQuery(
                    "A window from the start on has no size: leave out size=, or take sliding() with the longest one."
                )
        if every is not None:
            _check_column(parameter(every, "every"), table, "every")
            if window.size is None or window.every is None:
                raise InvalidQuery(
                    f"every={every!r}: each query is answered at some of the window's slides, so the window ends and "
                    "slides: take sliding(size, every=…) with a slide that all of theirs are multiples of."
                )
        if backfill:
            check_backfill(window)
        put = object.__setattr__
        put(self, "queries", table)
        put(self, "k", k)
        put(self, "by", by)
        put(self, "window", window)
        put(self, "key", _key(key, table))
        put(self, "size", size)
        put(self, "every", every)
        put(self, "where", where)
        put(self, "ascending", bool(ascending))
        put(self, "emit", check_emit(emit, window))
        put(self, "lateness", check_lateness(lateness, window))
        put(self, "backfill", bool(backfill))
        put(self, "algorithm", algorithm)
        put(self, "max_jump", check_jump(max_jump, window))

    @property
    def score(self) -> str:
        """What a row is worth: nothing if it does not meet the condition."""
        return filtered(self.by, self.where)

    @property
    def for_each(self) -> str:
        """In words: how many queries there are, if they have come."""
        return f"for each of {len(self.queries):,} queries" if len(self.queries) else "for each query"

    def of(self, queries: Any) -> TopKForEach:
        """The same for other queries, in the same columns."""
        return but(self, queries=as_table(queries))

    def open(self, schema: pa.Schema, state: bytes | None = None) -> ForEachSession:
        """An operator for rows of `schema`, fed by `push`; from a snapshot, exactly where that one stopped.

        A snapshot has the queries of its session; those given here are the ones to begin with.
        """
        from skyband.problems.subscriptions.session import ForEachSession

        return ForEachSession(self, schema, state)

    def fingerprint(self, schema: pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        return fingerprint(
            problem="many",
            k=self.k,
            by=source_of(self.score),
            window=repr(self.window),
            key=self.key,
            size=self.size,
            every=self.every,
            ascending=self.ascending,
            emit=self.emit,
            lateness=repr(self.lateness),
            max_jump=repr(self.max_jump),
            queries=columns_of(self.queries.schema),
            columns=columns_of(schema),
            **({"backfill": True} if self.backfill else {}),
        )


def check_backfill(window: Window) -> None:
    """Raise unless the rows of the window are kept."""
    if window.size is None:
        raise InvalidQuery("backfill needs a window that ends: of all rows since the start, few are kept.")


def as_table(queries: Any) -> pa.Table:
    """Queries from whatever a user has them in."""
    if isinstance(queries, pa.Table):
        return queries
    if isinstance(queries, pa.RecordBatch):
        return pa.Table.from_batches([queries])
    if hasattr(queries, "reset_index"):  # pandas: its index is no column of the queries
        queries = queries.reset_index(drop=True)
    if hasattr(queries, "__arrow_c_stream__"):
        try:
            return pa.table(queries).replace_schema_metadata()
        except pa.ArrowException as error:
            raise InvalidInput(f"Cannot read this {type(queries).__name__} as Arrow data: {error}") from error
    raise InvalidInput(f"Queries are a table, one a row: of pyarrow, pandas or polars; got {type(queries).__name__}.")


def _key(key: str | Sequence[str] | None, table: pa.Table) -> tuple[str, ...]:
    if key is None:
        return ("id",) if "id" in table.column_names else tuple(table.column_names)
    names = check_names(key, "key")
    for name in names:
        _check_column(name, table, "key")
    if not names:
        raise InvalidQuery("key names no column: queries could not be told apart.")
    return names


def _check_column(name: str, table: pa.Table, what: str) -> None:
    if name not in table.column_names:
        raise UnknownColumn.named(name, table.column_names, used_as=f"{what}= among the queries")
