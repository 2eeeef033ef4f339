"""The k best pairs of rows of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skyband.core.checks import (
    Emit,
    check_emit,
    check_k,
    check_lateness,
    check_names,
    check_window,
    columns_of,
    fingerprint,
    source_of,
)
from skyband.errors import InvalidQuery, UnknownColumn
from skyband.expressions.pairs import check_by
from skyband.windows import Span, Window

if TYPE_CHECKING:
    from skyband.problems.pairs.session import PairsSession

MOST_PAIRS: Final = 1_000_000  # as k: room is made for so many before the first one comes


@dataclass(frozen=True)
class TopKPairs:
    """The k best pairs of rows of a window, as it slides.

    k           how many pairs a window shows.
    by          what a pair is worth: an SQL expression over columns of its rows, a.x and b.x, or a function of two rows
                that numba can compile. a is the earlier row: by value in time, and of equal times by arrival.
    window      `sliding`, `tumbling` or `landmark`. A pair is in it while both rows are.
    ascending   the smallest score is the best.
    same        one or more columns that both rows must have the same values of.
    different   one or more columns of which at least one must differ.
    where       an SQL condition on both rows.
    emit        "windows": the ranked pairs of each closed window (default with `every`);
                "changes": what entered and what left (default without `every`);
                "entries": each pair once, when it first enters.
    lateness    how long windows by value wait for rows that come out of order.
    algorithm   by name, for study, with options if need be: "staircase(batch=8)"; None: the planner chooses.
    """

    k: int
    by: str | Callable[..., Any]
    window: Window
    ascending: bool = False
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    where: str | None = None
    emit: Emit | None = None
    lateness: int | timedelta | None = None
    algorithm: str | None = None

    def __init__(
        self,
        *,
        k: int,
        by: str | Callable[..., Any],
        window: Window,
        ascending: bool = False,
        same: str | Sequence[str] = (),
        different: str | Sequence[str] = (),
        where: str | None = None,
        emit: Emit | None = None,
        lateness: Span | None = None,
        algorithm: str | None = None,
    ) -> None:
        k = check_k(k)
        if k > MOST_PAIRS:
            raise InvalidQuery(f"k must be at most {MOST_PAIRS:,} for pairs, of which there are so many; got {k:,}.")
        check_by(by)
        check_window(window)
        put = object.__setattr__
        put(self, "k", k)
        put(self, "by", by)
        put(self, "window", window)
        put(self, "ascending", bool(ascending))
        put(self, "same", check_names(() if same is None else same, "same"))
        put(self, "different", check_names(() if different is None else different, "different"))
        put(self, "where", _check_where(where))
        put(self, "emit", check_emit(emit, window))
        put(self, "lateness", check_lateness(lateness, window))
        put(self, "algorithm", algorithm)
        if self.same == self.different != ():
            raise InvalidQuery(f"same and different are both {', '.join(self.same)}: no pair can be both.")

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless the columns this query names outside `by` and `where` are all there."""
        self.window.check_columns(columns)
        for names, used_as in ((self.same, "same="), (self.different, "different=")):
            for name in names:
                if name not in columns:
                    raise UnknownColumn.named(name, columns, used_as=used_as)

    def open(self, schema: pa.Schema, state: bytes | None = None) -> PairsSession:
        """An operator for rows of `schema`, fed by `push`; from a snapshot, exactly where that one stopped."""
        from skyband.problems.pairs.session import PairsSession

        return PairsSession(self, schema, state)

    def fingerprint(self, schema: pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        return fingerprint(
            problem="pairs",
            k=self.k,
            by=source_of(self.by),
            window=repr(self.window),
            ascending=self.ascending,
            same=self.same,
            different=self.different,
            where=self.where,
            emit=self.emit,
            lateness=repr(self.lateness),
            columns=columns_of(schema),
        )


def _check_where(where: object) -> str | None:
    if where is None:
        return None
    if not isinstance(where, str) or not where.strip():
        raise InvalidQuery(f"where must be an SQL condition such as 'a.price < b.price', got {where!r}.")
    return where
