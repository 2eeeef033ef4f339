"""The questions one can ask, as frozen values that are checked once, when they are made."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from skyband.errors import InvalidQuery, UnknownColumn
from skyband.expressions import check_text
from skyband.windows import Span, Window, parse_span

if TYPE_CHECKING:
    from skyband.engines.embedded import Session

Emit = Literal["windows", "changes", "entries"]
Order = Literal["random", "rising", "falling", "bursty"]


@dataclass(frozen=True)
class TopK:
    """The k best rows of a window, as it slides.

    k           how many rows a window shows.
    by          what a row is worth: a column, an SQL expression, or a function whose parameters are columns.
                On Spark also a Column.
    window      `sliding`, `tumbling` or `landmark`.
    per         one or more columns: a ranking for each of their values.
    ascending   the smallest score is the best.
    emit        "windows": the ranked rows of each closed window (default with `every`);
                "changes": what entered and what left (default without `every`);
                "entries": each row once, when it first enters.
    lateness    how long windows by value wait for rows that come out of order.
    algorithm   by name, for study, with options if need be: "relaxed(gamma=0.5)"; None: the planner chooses.
    ad_hoc      keep what `Session.top(k, size)` needs to answer for any size up to the window's.
    error       how many rows may be missed: as a share of those that leave the window, so error * N / n of N rows in
                windows of n. None: none. It holds where scores come in random order; see docs/semantics.md.
    expect      how scores come, if known: "random", "rising", "falling" or "bursty". Only the cost depends on it.
    """

    k: int
    by: str | Callable[..., Any]
    window: Window
    per: tuple[str, ...] = ()
    ascending: bool = False
    emit: Emit | None = None
    lateness: int | timedelta | None = None
    algorithm: str | None = None
    ad_hoc: bool = False
    error: float | None = None
    expect: Order | None = None

    def __init__(
        self,
        *,
        k: int,
        by: str | Callable[..., Any],
        window: Window,
        per: str | Sequence[str] = (),
        ascending: bool = False,
        emit: Emit | None = None,
        lateness: Span | None = None,
        algorithm: str | None = None,
        ad_hoc: bool = False,
        error: float | None = None,
        expect: Order | None = None,
    ) -> None:
        _check_k(k)
        check_text(by)
        if not isinstance(window, Window):
            raise InvalidQuery(f"window must come from sliding(), tumbling() or landmark(), got {window!r}.")
        put = object.__setattr__
        put(self, "k", int(k))
        put(self, "by", by)
        put(self, "window", window)
        put(self, "per", _check_per(per))
        put(self, "ascending", bool(ascending))
        put(self, "emit", _check_emit(emit, window))
        put(self, "lateness", _check_lateness(lateness, window))
        put(self, "algorithm", algorithm)
        put(self, "ad_hoc", bool(ad_hoc))
        put(self, "error", _check_error(error))
        put(self, "expect", _check_expect(expect))

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless the columns this query names outside `by` are all there."""
        self.window.check_columns(columns)
        for name in self.per:
            if name not in columns:
                raise UnknownColumn.named(name, columns, used_as="per=")

    def open(self, schema: pa.Schema, state: bytes | None = None) -> Session:
        """An operator for rows of `schema`, fed by `push`; from a snapshot, exactly where that one stopped."""
        from skyband.engines.embedded import open_session

        return open_session(self, schema, state)

    def fingerprint(self, schema: pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        by = self.by if isinstance(self.by, str) else _source(self.by)
        described = {
            "k": self.k,
            "by": by,
            "window": repr(self.window),
            "per": self.per,
            "ascending": self.ascending,
            "emit": self.emit,
            "lateness": repr(self.lateness),
            "ad_hoc": self.ad_hoc,
            "error": self.error,
            "columns": [f"{field.name}: {field.type}" for field in schema],
        }
        return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=16).hexdigest()


def _source(function: Callable[..., Any]) -> str:
    """A name for a function that stays the same from one process to the next as long as its text does."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__qualname__)


def _check_k(k: object) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 2**31:
        raise InvalidQuery(f"k must be a whole number, at least 1 (and below 2**31), got {k!r}.")


def _check_per(per: object) -> tuple[str, ...]:
    names = (per,) if isinstance(per, str) else tuple(per) if isinstance(per, (list, tuple)) else (per,)
    if not all(isinstance(name, str) for name in names):
        raise InvalidQuery(f"per must be the name of a column or a list of names, got {per!r}.")
    if len(set(names)) != len(names):
        raise InvalidQuery(f"per names a column twice: {', '.join(map(str, names))}.")
    return names


def _check_emit(emit: object, window: Window) -> Emit:
    if emit is None:
        return "changes" if window.every is None else "windows"
    if emit not in get_args(Emit):
        raise InvalidQuery(f"emit must be one of {', '.join(get_args(Emit))}, got {emit!r}.")
    if emit == "windows" and window.every is None:
        raise InvalidQuery(
            "emit='windows' gives the answer of each closed window, but a window without `every` closes with each row. "
            "Use emit='changes' or emit='entries', or give the window an `every`."
        )
    return emit  # type: ignore[return-value]


def _check_lateness(lateness: Span | None, window: Window) -> int | timedelta | None:
    if lateness is None:
        return None
    if window.by_count:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning in a window of arrivals: no row arrives late to its own arrival."
        )
    if window.every is None:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning without `every`: a window that slides with each arrival closes "
            "nothing, and takes rows out of order as they come, as long as they are inside it."
        )
    if lateness == 0 or lateness == timedelta(0):
        return None
    return parse_span(lateness, "lateness")


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
