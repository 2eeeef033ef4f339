"""The k best rows of a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skyband.core.checks import (
    Emit,
    Order,
    check_emit,
    check_error,
    check_expect,
    check_jump,
    check_k,
    check_lateness,
    check_names,
    check_window,
    columns_of,
    fingerprint,
    source_of,
)
from skyband.errors import UnknownColumn
from skyband.expressions import check_text
from skyband.windows import Span, Window

if TYPE_CHECKING:
    from skyband.problems.rows.session import TopKSession


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
    max_jump    a row whose time is so much later than all before is dropped, and counted in `rows_jumped`, unless the
                row before it was too and is as near to it: one wrong time does not make all others late. None: any
                time is believed.
    algorithm   by name, for study, with options if need be: "relaxed(gamma=0.5)"; None: the planner chooses.
    ad_hoc      keep what `Session.top(k, size)` needs to answer for any size up to the window's.
    error       how many rows may be missed: as a share of those that leave the window, so error * N / n of N rows in
                windows of n. None: none. It holds on any stream, and for each group; see docs/semantics.md.
    expect      how scores come, if known: "random", "rising", "falling" or "bursty". Only the choice of an algorithm
                depends on it, never what is promised.
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
    max_jump: int | timedelta | None = None

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
        max_jump: Span | None = None,
    ) -> None:
        check_text(by)
        check_window(window)
        put = object.__setattr__
        put(self, "k", check_k(k))
        put(self, "by", by)
        put(self, "window", window)
        put(self, "per", check_names(per, "per"))
        put(self, "ascending", bool(ascending))
        put(self, "emit", check_emit(emit, window))
        put(self, "lateness", check_lateness(lateness, window))
        put(self, "algorithm", algorithm)
        put(self, "ad_hoc", bool(ad_hoc))
        put(self, "error", check_error(error))
        put(self, "expect", check_expect(expect))
        put(self, "max_jump", check_jump(max_jump, window))

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless the columns this query names outside `by` are all there."""
        self.window.check_columns(columns)
        for name in self.per:
            if name not in columns:
                raise UnknownColumn.named(name, columns, used_as="per=")

    def open(self, schema: pa.Schema, state: bytes | None = None) -> TopKSession:
        """An operator for rows of `schema`, fed by `push`; from a snapshot, exactly where that one stopped."""
        from skyband.problems.rows.session import TopKSession

        return TopKSession(self, schema, state)

    def fingerprint(self, schema: pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        return fingerprint(
            k=self.k,
            by=source_of(self.by),
            window=repr(self.window),
            per=self.per,
            ascending=self.ascending,
            emit=self.emit,
            lateness=repr(self.lateness),
            ad_hoc=self.ad_hoc,
            error=self.error,
            max_jump=repr(self.max_jump),
            columns=columns_of(schema),
        )
