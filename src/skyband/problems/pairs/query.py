"""The k best pairs of rows of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core import query
from skyband.core.query import Emits, Length, Names, Query, option
from skyband.core.registry import problem_of
from skyband.errors import InvalidQuery
from skyband.expressions import pairs
from skyband.windows import Window, check_names

if TYPE_CHECKING:
    from skyband.core.session import Session

MOST_PAIRS: Final = 1_000_000  # as k: room is made for so many before the first one comes


def _check_k(k: object) -> int:
    number = query.check_k(k)
    if number > MOST_PAIRS:
        raise InvalidQuery(f"k must be at most {MOST_PAIRS:,} for pairs; got {number:,}.")
    return number


def _check_by(by: Any) -> Any:
    pairs.check_by(by)
    return by


def _names(option: str) -> Callable[[object], tuple[str, ...]]:
    """Check a list of columns, which may be None."""
    check = query.names(option)
    return lambda given: () if given is None else check(given)


def _check_different(different: object, same: tuple[str, ...]) -> tuple[str, ...]:
    columns = _names("different")(different)
    if same == columns != ():
        raise InvalidQuery(f"same and different are both {', '.join(same)}: no pair can be both.")
    return columns


def _check_per(per: object, window: Window) -> tuple[str, ...]:
    columns = _names("per")(per)
    if columns and window.is_same_for_groups and window.every is None:
        raise InvalidQuery(
            f"per={', '.join(columns)!r} in a window by value needs a slide, for example every='1 minute': without it, "
            "each row of any group would change the answers of all groups."
        )
    return columns


def _check_where(where: object) -> str | None:
    if where is None:
        return None
    if not isinstance(where, str) or not where.strip():
        raise InvalidQuery(f"where must be an SQL condition such as 'a.price < b.price', got {where!r}.")
    return where


class TopKPairs(Query):
    """The k best pairs of rows of a window, as it slides.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopKPairs(k=1, by="abs(a.temp - b.temp)", window=sb.sliding(3, every=3), different="mote")
    >>> readings = pa.table({"mote": [1, 2, 1], "temp": [20.0, 21.5, 24.0]})
    >>> session = query.open(readings.schema)
    >>> session.push(readings).select(["score", "a_mote", "b_mote"]).to_pylist()
    [{'score': 2.5, 'a_mote': 2, 'b_mote': 1}]

    References
    ----------
    Shen, Cheema, Lin, Zhang, Wang: A generic framework for top-k pairs and top-k objects queries over sliding windows.
    TKDE 2014.
    """

    problem = "pairs"

    k: int = option(_check_k, "How many pairs a window shows.", sql="LIMIT k")
    by: str | Callable[..., Any] = option(
        _check_by,
        "The score of a pair: an SQL expression over columns of its two rows, a.x and b.x, or a function of two rows "
        "that numba can compile. a is the earlier row: by time in windows by value, and by arrival if times are equal.",
        sql="ORDER BY by DESC",
    )
    window: Window = option(
        query.check_window,
        "Which rows count: `sliding`, `tumbling` or `landmark`. A pair is in the window while both rows are.",
        sql="[WINDOW size EVERY every ON on]",
    )
    ascending: bool = query.ascending_option()
    same: Names = option(
        _names("same"),
        "One or more columns in which both rows must have the same values.",
        default=(),
        sql="WHERE a.same = b.same",
    )
    different: Names = option(
        _check_different,
        "One or more columns; the rows must differ in at least one of them.",
        default=(),
        sql="WHERE a.different <> b.different",
    )
    per: Names = option(
        _check_per,
        "One or more columns; both rows of a pair have the same values in them, and each combination of their values "
        "has its own ranking. A window of arrivals then counts the rows of each group by itself.",
        default=(),
        sql="LIMIT k BY a.per",
        newer=True,
    )
    where: str | None = option(_check_where, "An SQL condition on both rows.", default=None, sql="WHERE where")
    emit: Emits = query.emit_option("the ranked pairs", "the pairs that enter and leave", "each pair once")
    lateness: Length = query.lateness_option()
    algorithm: str | None = query.algorithm_option("staircase(batch=8)")

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless `columns` has all that this query names outside `by` and `where`."""
        self.window.check_columns(columns)
        check_names(columns, (self.per, "per="), (self.same, "same="), (self.different, "different="))

    def open(self, schema: pa.Schema, state: bytes | None = None) -> Session:
        """Open a session for rows of `schema`. With a snapshot as `state`, it continues where that session stopped."""
        return problem_of(self).open(self, schema, state)
