"""The k best objects whose values come on several streams, each at its own time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from skyband.core.checks import (
    Emit,
    check_emit,
    check_idle,
    check_jump,
    check_k,
    check_lateness,
    check_recall,
    check_window,
    columns_of,
    fingerprint,
)
from skyband.errors import InvalidQuery, UnknownColumn
from skyband.problems.across.combining import Combine, resolve
from skyband.windows import Span, Window, whole_number

if TYPE_CHECKING:
    from skyband.problems.across.session import TopKAcrossSession

Repeat = Literal["last", "max", "sum"]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class TopKAcross:
    """The k best objects of a window, each scored by what several streams say of it.

    k           how many objects an answer shows.
    id          the column that says which object a row is about.
    value       the column with what the row's stream says of it. A null or NaN says nothing.
    window      `sliding`, `tumbling` or `landmark`: which rows count.
    streams     the names of the streams. Not needed where `combine` or `bounds` name them, or if there is only one.
    stream      the column that names a row's stream; None: `push` is told, or there is only one.
    combine     what an object scores: "sum", "mean", "max", "min" or "product" of its values, a weight for each stream,
                or an expression over the streams' names that never falls when a value rises.
    bounds      the smallest and the largest possible value, for all streams or for each. A value that is missing counts
                as the smallest. The largest may be math.inf, but then little can be ruled out early.
    repeat      what several values of an object in a stream make: "last", "max" or "sum". None: it comes once, as long
                as any of its rows is in the window; only then can rows be forgotten before they leave it. (If it does
                come again, the last value counts, `rows_repeated` counts it as far as it is noticed, and answers may
                miss objects.)
    max_repeats with `repeat`: how often an object comes in a stream, at most, as long as its rows are in the window.
                More is no mistake, and answers are exact all the same, but `rows_repeated` counts it. None: any number.
    clip        values out of bounds are moved to the bound, and counted; otherwise they are an error.
    emit        "windows": the ranking of each closed window (default with `every`);
                "changes": what entered and what left (default without `every`).
    lateness    how long windows by value wait for rows that come out of order.
    idle_after  windows by value wait for the slowest stream, but for none that is so much behind the first: then one
                that falls silent does not hold up the others. None: for none, the first decides.
    max_jump    a row whose time is so much later than all before is dropped, and counted in `rows_jumped`, unless the
                row before it was too and is as near to it. None: any time is believed.
    recall      which share of the objects that answers should show is enough, such as 0.95: then less is held, which
                takes several times as long, and the column `recall` of an answer says which share it has. None: all of
                them.
    algorithm   by name, for study; None: the planner chooses.
    """

    k: int
    id: str
    value: str
    window: Window
    streams: tuple[str, ...]
    stream: str | None = None
    combine: str | tuple[tuple[str, float], ...] = "sum"
    bounds: tuple[Bounds, ...] = ((0.0, 1.0),)  # by stream
    repeat: Repeat | None = None
    max_repeats: int | None = None
    clip: bool = False
    emit: Emit | None = None
    lateness: int | timedelta | None = None
    idle_after: int | timedelta | None = None
    max_jump: int | timedelta | None = None
    recall: float | None = None
    algorithm: str | None = None

    def __init__(
        self,
        *,
        k: int,
        id: str,
        value: str,
        window: Window,
        streams: Sequence[str] | None = None,
        stream: str | None = None,
        combine: str | Mapping[str, float] = "sum",
        bounds: Bounds | Mapping[str, Bounds] = (0.0, 1.0),
        repeat: Repeat | None = None,
        max_repeats: int | None = None,
        clip: bool = False,
        emit: Emit | None = None,
        lateness: Span | None = None,
        idle_after: Span | None = None,
        max_jump: Span | None = None,
        recall: float | None = None,
        algorithm: str | None = None,
    ) -> None:
        check_window(window)
        for name, given in (("id", id), ("value", value), ("stream", stream)):
            if not isinstance(given, str) and not (given is None and name == "stream"):
                raise InvalidQuery(f"{name} must be the name of a column, got {given!r}.")
        if repeat is not None and repeat not in get_args(Repeat):
            raise InvalidQuery(f"repeat must be one of {', '.join(get_args(Repeat))}, or None; got {repeat!r}.")
        names = _check_streams(streams, stream, value, combine, bounds)
        pairs = _check_bounds(bounds, names, repeat)
        put = object.__setattr__
        put(self, "k", check_k(k))
        put(self, "id", id)
        put(self, "value", value)
        put(self, "window", window)
        put(self, "streams", names)
        put(self, "stream", stream)
        put(self, "combine", tuple(sorted(combine.items())) if isinstance(combine, Mapping) else combine)
        put(self, "bounds", pairs)
        put(self, "repeat", repeat)
        put(self, "max_repeats", _check_max_repeats(max_repeats, repeat))
        put(self, "clip", bool(clip))
        put(self, "emit", _check_emit(emit, window))
        put(self, "lateness", check_lateness(lateness, window))
        put(self, "idle_after", check_idle(idle_after, window))
        put(self, "max_jump", check_jump(max_jump, window))
        put(self, "recall", check_recall(recall))
        put(self, "algorithm", algorithm)
        self.combined()

    def combined(self) -> Combine:
        """How values make a score, in numbers."""
        combine = dict(self.combine) if isinstance(self.combine, tuple) else self.combine
        low, high = zip(*self.bounds, strict=True)
        return resolve(combine, self.streams, low, high)

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless the columns this query names are all there."""
        self.window.check_columns(columns)
        for name, used_as in ((self.id, "id="), (self.value, "value="), (self.stream, "stream=")):
            if name is not None and name not in columns:
                raise UnknownColumn.named(name, columns, used_as=used_as)

    def open(self, schema: pa.Schema, state: bytes | None = None) -> TopKAcrossSession:
        """An operator for rows of `schema`, fed by `push`; from a snapshot, exactly where that one stopped."""
        from skyband.problems.across.session import TopKAcrossSession

        return TopKAcrossSession(self, schema, state)

    def fingerprint(self, schema: pa.Schema) -> str:
        """What a snapshot must have in common with the query that reads it: the question and the columns."""
        return fingerprint(
            problem="across",
            k=self.k,
            id=self.id,
            value=self.value,
            window=repr(self.window),
            streams=self.streams,
            stream=self.stream,
            combine=self.combine,
            bounds=[[repr(end) for end in pair] for pair in self.bounds],
            repeat=self.repeat,
            max_repeats=self.max_repeats,
            clip=self.clip,
            emit=self.emit,
            lateness=repr(self.lateness),
            idle_after=repr(self.idle_after),
            max_jump=repr(self.max_jump),
            recall=self.recall,
            columns=columns_of(schema),
        )


def _check_max_repeats(most: object, repeat: str | None) -> int | None:
    if most is None:
        return None
    number = whole_number(most)
    if number is None or number < 1:
        raise InvalidQuery(f"max_repeats must be a whole number, at least 1, or None; got {most!r}.")
    if repeat is None:
        raise InvalidQuery(
            f"max_repeats={most} says how often an object may come again, but repeat=None says that none does. Say "
            f"what several values make: repeat={', '.join(map(repr, get_args(Repeat)))}."
        )
    return number


def _check_streams(streams: Any, stream: str | None, value: str, combine: Any, bounds: Any) -> tuple[str, ...]:
    if streams is None:
        named_by = next((given for given in (combine, bounds) if isinstance(given, Mapping)), None)
        if named_by is None and stream is not None:
            raise InvalidQuery(
                f"stream={stream!r} names the stream of each row, but the answer has a column for each stream: give "
                "their names too, as in streams=('r1', 'r2')."
            )
        streams = (value,) if named_by is None else tuple(named_by)
    if isinstance(streams, str) or not isinstance(streams, Sequence) or not streams:
        raise InvalidQuery(f"streams must be a list of names, got {streams!r}.")
    if not all(isinstance(name, str) for name in streams):
        raise InvalidQuery(f"streams must be names, got {list(streams)!r}.")
    if len(set(streams)) != len(streams):
        raise InvalidQuery(f"streams has a name twice: {', '.join(streams)}.")
    return tuple(streams)


def _check_bounds(bounds: Any, streams: tuple[str, ...], repeat: str | None) -> tuple[Bounds, ...]:
    if isinstance(bounds, Mapping):
        if unknown := [name for name in bounds if name not in streams]:
            raise InvalidQuery(f"bounds has {unknown[0]!r}, which is no stream. Streams: {', '.join(streams)}.")
        if missing := [name for name in streams if name not in bounds]:
            raise InvalidQuery(f"bounds has nothing for the stream {missing[0]!r}.")
        pairs = [bounds[name] for name in streams]
    else:
        pairs = [bounds] * len(streams)
    for pair in pairs:
        numbers = (
            isinstance(pair, (tuple, list))
            and len(pair) == 2
            and all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in pair)
        )
        if not numbers or not -math.inf < pair[0] < pair[1]:
            raise InvalidQuery(
                "bounds must be the smallest and the largest value, as in (0, 1), or such a pair for each stream; the "
                f"smallest must be finite. Got {pair!r}."
            )
        if repeat == "sum" and pair[0] != 0:
            raise InvalidQuery(
                f"repeat='sum' needs bounds that start at 0, got {pair!r}: what is missing counts as the smallest "
                "value, and a sum of nothing is 0."
            )
    return tuple((float(low), float(high)) for low, high in pairs)


def _check_emit(emit: object, window: Window) -> Emit:
    if emit == "entries":
        raise InvalidQuery(
            "emit='entries' tells of each row once, but an object comes and goes. Use emit='changes' or emit='windows'."
        )
    return check_emit(emit, window)
