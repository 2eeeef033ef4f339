"""The k best rows of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import pyarrow as pa

from skyband.core import query
from skyband.core.query import Converted, Emits, Length, Names, Query, option
from skyband.core.registry import problem_of
from skyband.errors import InvalidQuery
from skyband.expressions import check_text
from skyband.expressions.sort_keys import By, read_key
from skyband.windows import Span, Window, check_names, parse_span

if TYPE_CHECKING:
    from skyband.core.session import Session


def _check_by(by: Any) -> Any:
    if isinstance(by, (list, tuple)):
        if not by:
            raise InvalidQuery("by names no sort key.")
        for key in by:
            read_key(key)
        return tuple(by)
    check_text(by)
    return by


Order = Literal["random", "rising", "falling", "bursty"]
Ties = Literal["rank", "dense"]

TIES: Final[tuple[Ties | None, ...]] = (None, *get_args(Ties))  # by their codes: see `operator`


def _check_ties(ties: object) -> Ties | None:
    if ties not in TIES:
        raise InvalidQuery(f"ties must be one of {', '.join(get_args(Ties))}, or None; got {ties!r}.")
    return ties


def _check_error(error: object) -> float | None:
    if error is None:
        return None
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 < error < 1:
        raise InvalidQuery(f"error must be a number between 0 and 1, such as 0.001, or None for none; got {error!r}.")
    return float(error)


def _check_expect(expect: object) -> Order | None:
    if expect is not None and expect not in get_args(Order):
        raise InvalidQuery(f"expect must be one of {', '.join(get_args(Order))}, got {expect!r}.")
    return expect  # type: ignore[return-value]


def _check_forget(forget_after: Span | None, window: Window, per: tuple[str, ...]) -> int | timedelta | None:
    if forget_after is None:
        return None
    if window.is_same_for_groups:
        raise InvalidQuery(
            f"forget_after={forget_after!r} has no meaning in a window by value: it forgets a group with its last row."
        )
    if not per:
        raise InvalidQuery(f"forget_after={forget_after!r} forgets groups, but the query has none: add per='…'.")
    return parse_span(forget_after, "forget_after")


class TopK(Query):
    """The k best rows of a window, as it slides.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopK(k=1, by="price * volume", window=sb.sliding(2, every=1), per="symbol")
    >>> trades = pa.table({"symbol": ["OAK", "ELM", "OAK"], "price": [10, 20, 30], "volume": [5, 1, 1]})
    >>> session = query.open(trades.schema)
    >>> session.push(trades).select(["window_end", "symbol", "rank", "score"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'window_end': 1, 'symbol': 'OAK', 'rank': 1, 'score': 50},
     {'window_end': 1, 'symbol': 'ELM', 'rank': 1, 'score': 20},
     {'window_end': 2, 'symbol': 'OAK', 'rank': 1, 'score': 50}]

    References
    ----------
    Yang, Shastri, Rundensteiner, Ward: An optimal strategy for monitoring top-k queries in streaming windows. EDBT
    2011.

    Pripužić, Podnar Žarko, Aberer: Time- and space-efficient sliding window top-k query processing. TODS 2015.
    """

    problem = "rows"

    k: int = option(query.check_k, "How many rows a window shows.", sql="LIMIT k")
    by: Converted[str | Sequence[str] | Callable[..., Any], By] = option(
        _check_by,
        "The score of a row: a column, an SQL expression, or a function whose parameters are columns; on Spark also a "
        'Column. Or a list of sort keys, each with the largest first unless it says "x ASC": '
        '`["price", "symbol ASC NULLS LAST"]`. Sort keys may be strings, booleans, dates and timestamps.',
        sql="ORDER BY by DESC",
    )
    window: Window = option(
        query.check_window,
        "Which rows count: `sliding`, `tumbling` or `landmark`.",
        sql="[WINDOW size EVERY every ON on]",
    )
    per: Names = option(
        query.names("per"),
        "One or more columns; each combination of their values has its own ranking.",
        default=(),
        sql="LIMIT k BY per",
    )
    ascending: bool = query.ascending_option()
    emit: Emits = query.emit_option("the ranked rows", "the rows that enter and leave", "each row once")
    lateness: Length = query.lateness_option()
    algorithm: str | None = query.algorithm_option("relaxed(gamma=0.5)")
    ad_hoc: bool = option(
        query.flag("ad_hoc"),
        "Let `Session.top(k, size)` answer for any size up to the window's. The session keeps more rows for this.",
        default=False,
    )
    error: float | None = option(
        _check_error,
        "How many rows answers may miss: windows of n rows miss at most error * N / n of N rows. The bound holds on "
        "any stream and for each group; the page on semantics has the details. None: answers are exact.",
        default=None,
        sql="WITH ERROR error",
    )
    expect: Order | None = option(
        _check_expect,
        'The order of the scores, if you know it: "random", "rising", "falling" or "bursty". It helps the planner to '
        "choose; the answer does not depend on it.",
        default=None,
        fingerprint=False,
    )
    max_jump: Length = query.max_jump_option()
    ties: Ties | None = option(
        _check_ties,
        'How rows with equal scores are ranked. "rank" gives them the same rank, one more than there are better rows, '
        'and "dense" one more than there are better scores; all rows of rank k or better are shown, and an answer may '
        "have any number of them. None: of equal rows the more recent comes first, and an answer has at most k.",
        default=None,
        sql="QUALIFY RANK() OVER (ORDER BY by DESC) <= k",
        newer=True,
    )
    forget_after: Length = option(
        _check_forget,
        "In a window of arrivals with `per`: how long a group may be silent. A group whose next row comes later than "
        "that starts again without rows, and Skyband drops the rows of silent groups. It is a number of arrivals of "
        "the whole stream "
        "or, if the window has `order`, a span of that column. None: Skyband keeps the last rows of every group.",
        default=None,
        sql="[WINDOW … FORGET AFTER forget_after]",
        newer=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.by, tuple) and self.ascending:
            first = read_key(self.by[0]).text
            raise InvalidQuery(f"Each of several sort keys has its own direction: by=['{first} ASC', …].")

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless `columns` has all that this query names outside `by`."""
        self.window.check_columns(columns)
        check_names(columns, (self.per, "per="))

    def open(self, schema: pa.Schema, state: bytes | None = None) -> Session:
        """Open a session for rows of `schema`. With a snapshot as `state`, it continues where that session stopped."""
        return problem_of(self).open(self, schema, state)
