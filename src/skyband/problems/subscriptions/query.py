"""The k best rows of a window for each subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core import query
from skyband.core.query import Converted, Emits, Length, Query, option, replace_unchecked
from skyband.core.registry import problem_of
from skyband.errors import InvalidInput, InvalidQuery, UnknownColumn
from skyband.expressions.subscriptions import check_by, filtered, parameter
from skyband.windows import Window

if TYPE_CHECKING:
    from skyband.problems.subscriptions.session import SubscriptionsSession


MOST_ROWS: Final = 10_000_000  # the largest k of a query: one array numbers the rows of all lists

# Changes of queries are a change data feed: a table with the queries' columns, and what happened to each row.
CHANGE: Final = "_change_type"
VERSION: Final = "_commit_version"  # if there is such a column, changes with a smaller version come first
FEED: Final = (CHANGE, VERSION, "_commit_timestamp")  # the columns of a feed that are not the queries' own
ADDS: Final = ("insert", "update_postimage")
REMOVES: Final = ("delete",)
PASSED_OVER: Final = ("update_preimage",)  # the row before an update says nothing new


def as_table(queries: Any) -> pa.Table:
    """Turn queries into a table, from whatever a user keeps them in."""
    if isinstance(queries, pa.Table):
        return queries
    if isinstance(queries, pa.RecordBatch):
        return pa.Table.from_batches([queries])
    if hasattr(queries, "reset_index"):  # the index of a pandas frame is no column of the queries
        queries = queries.reset_index(drop=True)
    if hasattr(queries, "__arrow_c_stream__"):
        try:
            return pa.table(queries).replace_schema_metadata()
        except pa.ArrowException as error:
            raise InvalidInput(f"Cannot read this {type(queries).__name__} as Arrow data: {error}") from error
    raise InvalidInput(
        "Pass the queries as a table of pyarrow, pandas or polars, with one query per row; "
        f"got {type(queries).__name__}."
    )


def _check_column(name: str, queries: pa.Table, what: str) -> None:
    if name not in queries.column_names:
        raise UnknownColumn.named(name, queries.column_names, used_as=f"{what}= among the queries")


def _check_k(k: object, queries: pa.Table) -> int | str:
    if isinstance(k, str):
        _check_column(parameter(k, "k"), queries, "k")
        return k
    number = query.check_k(k)
    if number > MOST_ROWS:
        raise InvalidQuery(f"k must be at most {MOST_ROWS:,} for each subscription, got {number:,}.")
    return number


def _check_by(by: Any) -> str:
    check_by(by)
    return str(by)


def _check_key(key: str | Sequence[str] | None, queries: pa.Table) -> tuple[str, ...]:
    if key is None:
        return ("id",) if "id" in queries.column_names else tuple(queries.column_names)
    columns = query.names("key")(key)
    for name in columns:
        _check_column(name, queries, "key")
    if not columns:
        raise InvalidQuery("key names no column: queries could not be told apart.")
    return columns


def _check_size(size: str | None, queries: pa.Table, window: Window) -> str | None:
    if size is None:
        return None
    _check_column(parameter(size, "size"), queries, "size")
    if window.size is None:
        raise InvalidQuery(
            "A window from the start on has no size: leave out size=, or take sliding() with the longest one."
        )
    return size


def _check_every(every: str | None, queries: pa.Table, window: Window) -> str | None:
    if every is None:
        return None
    _check_column(parameter(every, "every"), queries, "every")
    if window.size is None or window.every is None:
        raise InvalidQuery(
            f"every={every!r}: each query is answered at some of the window's slides, so the window ends and "
            "slides: take sliding(size, every=…) with a slide that all of theirs are multiples of."
        )
    return every


def _check_where(where: object) -> str | None:
    if where is not None and (not isinstance(where, str) or not where.strip()):
        raise InvalidQuery(f"where must be a condition over columns, such as 'symbol = q.symbol'; got {where!r}.")
    return where


def check_backfill(backfill: object, window: Window) -> bool:
    """Raise if later queries would see rows that the window does not keep."""
    if backfill and window.size is None:
        raise InvalidQuery("backfill needs a window that ends: of all rows since the start, few are kept.")
    return query.flag("backfill")(backfill)


class TopKForEach(Query):
    """The k best rows of a window, as it slides, for each query of a table.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> people = pa.table({"id": ["ann", "bob"], "x": [1.0, 8.0]})
    >>> query = sb.TopKForEach(
    ...     queries=people, k=1, by="abs(x - q.x)", ascending=True, window=sb.sliding(3, every=3)
    ... )
    >>> taxis = pa.table({"taxi": [1, 2, 3], "x": [2.0, 9.5, 5.0]})
    >>> session = query.open(taxis.schema)
    >>> session.push(taxis).select(["id", "rank", "score", "taxi"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'id': 'ann', 'rank': 1, 'score': 1.0, 'taxi': 1},
     {'id': 'bob', 'rank': 1, 'score': 1.5, 'taxi': 2}]

    References
    ----------
    Pripužić, Podnar Žarko, Aberer: Time- and space-efficient sliding window top-k query processing. TODS 2015,
    section 6.
    """

    problem = "subscriptions"

    queries: Converted[Any, pa.Table] = option(
        as_table,
        "A table with one query per row. `by`, `where`, `k`, `size` and `every` read its columns as `q.name`.",
        sql="FROM stream [WINDOW …], queries AS q",
        compare=False,
    )
    k: Converted[int | str, int | str] = option(
        _check_k, 'How many rows a window shows: a number, or a column of the queries such as "q.k".', sql="LIMIT k"
    )
    by: str = option(
        _check_by,
        "The score of a row for a query: an SQL expression over columns of the row (x) and of the query (q.x).",
        sql="ORDER BY by DESC",
    )
    window: Window = option(
        query.check_window,
        "Which rows count for the query with the largest window: `sliding`, `tumbling` or `landmark`.",
        sql="[WINDOW size EVERY every ON on]",
    )
    key: Converted[str | Sequence[str] | None, tuple[str, ...]] = option(
        _check_key,
        "The columns that identify a query; answers begin with them. None: the column `id` if the queries have one, "
        "else all of their columns.",
        default=None,
        sql="LIMIT k BY q.key",
    )
    size: str | None = option(
        _check_size,
        'A column of the queries with the size of each query\'s window, "q.size": at most the size of `window`. It has '
        "durations for windows on a timestamp, else whole numbers.",
        default=None,
        sql="[WINDOW q.size UP TO size]",
    )
    every: str | None = option(
        _check_every,
        'A column of the queries with the slide of each query, "q.every": a multiple of the window\'s slide.',
        default=None,
        sql="[WINDOW … EVERY q.every DOWN TO every]",
    )
    where: str | None = option(
        _check_where,
        'A condition over columns of the row and of the query, "symbol = q.symbol": a query sees the rows that meet '
        "it.",
        default=None,
        sql="WHERE where",
    )
    ascending: bool = query.ascending_option()
    emit: Emits = query.emit_option("the ranked rows", "the rows that enter and leave", "each row once per query")
    lateness: Length = query.lateness_option()
    backfill: bool = option(
        check_backfill, "A query that is added later also sees the rows that are already in the window.", default=False
    )
    algorithm: str | None = query.algorithm_option()
    max_jump: Length = query.max_jump_option()

    @property
    def score(self) -> str:
        """The score of a row, as one expression: null if the row does not meet the condition."""
        return filtered(self.by, self.where)

    @property
    def for_each(self) -> str:
        """The number of queries in words, if it is known."""
        return f"for each of {len(self.queries):,} queries" if len(self.queries) else "for each query"

    def of(self, queries: Any) -> TopKForEach:
        """The same query for another table of queries with the same columns."""
        return replace_unchecked(self, queries=as_table(queries))

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless `columns` has all that this query names outside its expressions."""
        self.window.check_columns(columns)

    def open(self, schema: pa.Schema, state: bytes | None = None) -> SubscriptionsSession:
        """Open a session for rows of `schema`. With a snapshot as `state`, it continues where that session stopped.

        A snapshot contains the queries of its session. Without one, the session begins with this query's own.
        """
        return problem_of(self).open(self, schema, state)
