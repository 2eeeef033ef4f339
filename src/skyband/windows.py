"""Windows: which rows count, and when an answer is due.

A `Window` has the sizes that the user wrote. `Window.ticks(schema)` converts them to whole numbers in the unit of its
column; operators see only these.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from skyband.errors import InvalidQuery, UnknownColumn

FOREVER: Final = 2**62  # the size of a landmark window; sums with it still fit in 64 bits
NEVER: Final = FOREVER  # a time that never comes
LONGEST: Final = 2**61  # the limit of spans, so that the sum of a time, a size and a slide fits in 64 bits

Span = int | str | timedelta

_UNIT_US: Final = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
    "w": 604_800_000_000,
}
_SPOKEN_US: Final = {unit: _UNIT_US[unit] for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond")}
_DURATION = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")
# How many ticks of a column's unit make a second.
_TICKS_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Ticks:
    """A window in whole numbers: arrivals if `by_count`, else units of its column."""

    size: int  # FOREVER for a landmark window
    every: int  # 0: an answer with each arrival
    lateness: int  # FOREVER: rows do not move the watermark, only `advance` does
    by_count: bool

    @property
    def endless(self) -> bool:
        """Is it a landmark window? No row ever leaves it."""
        return self.size >= FOREVER

    @property
    def slides(self) -> bool:
        """Are answers due when windows close? Otherwise they are due with each arrival."""
        return self.every > 0

    @property
    def closes_by_value(self) -> bool:
        """Do windows close when the watermark reaches their end?"""
        return self.slides and not self.by_count

    @property
    def is_closed_by_rows(self) -> bool:
        """Do windows close when later rows come? With a watermark that the caller moves, they do not."""
        return self.closes_by_value and self.lateness < FOREVER

    @property
    def moves_by_value(self) -> bool:
        """Does each row move the end of the window to its own time?"""
        return not self.slides and not self.by_count

    @property
    def known_rows(self) -> int | None:
        """How many rows a full window contains; None if that depends on their times."""
        return self.size if self.by_count and not self.endless else None

    def with_outside_watermark(self) -> Ticks:
        """The same window, with a watermark that the caller moves."""
        return replace(self, lateness=FOREVER)

    def over_numbers(self) -> Ticks:
        """The same window by value, for an operator whose times are arrival numbers and whose caller closes windows."""
        return replace(self, by_count=False, lateness=FOREVER if self.slides else 0) if self.by_count else self


@dataclass(frozen=True, slots=True)
class Window:
    """Which rows count, and when answers are due. `sliding`, `tumbling` and `landmark` create one more readably.

    Parameters
    ----------
    size
        The length of the window: a number of arrivals, or a span of the column `on`. None: from the start of the
        stream.
    every
        How often the window slides and gives an answer. None: with each arrival.
    on
        The column that the window measures. None: the window counts arrivals.
    order
        The column that defines the order of the rows. Spark needs it for windows of arrivals.

    Raises
    ------
    InvalidQuery
        A size is not positive, a duration has no column, or `every` is larger than `size`.

    Examples
    --------
    >>> import skyband as sb
    >>> sb.sliding(100, every=10) == sb.Window(size=100, every=10)
    True
    >>> print(sb.landmark(every="1 day", on="ts"))
    from the start, every day, on ts
    """

    size: int | timedelta | None
    every: int | timedelta | None
    on: str | None = None
    order: str | None = None

    def __post_init__(self) -> None:
        for what in ("size", "every"):
            if (span := getattr(self, what)) is not None:
                object.__setattr__(self, what, parse_span(span, what))
        _check(self)

    @property
    def by_count(self) -> bool:
        return self.on is None

    @property
    def is_same_for_groups(self) -> bool:
        """Do all groups of rows have the same windows? By count, each group counts its own arrivals."""
        return not self.by_count

    @property
    def lacks_order(self) -> bool:
        """Does it need a column that says in which order rows arrive, where rows have none by themselves?"""
        return self.by_count and self.order is None

    def check_columns(self, columns: list[str]) -> None:
        """Raise `UnknownColumn` unless `columns` has all columns of the window."""
        check_names(columns, ([self.on], "the window's on="), ([self.order], "the window's order="))

    def ticks(self, schema: pa.Schema, lateness: int | timedelta | None = None) -> Ticks:
        """This window in the unit of its column in `schema`."""
        self.check_columns(schema.names)
        column_type = None if self.on is None else schema.field(self.on).type
        size = size_ticks(self.size, self.on, column_type, "size")
        every = 0 if self.every is None else span_ticks(self.every, self.on, column_type, "every")
        late = 0 if lateness is None else span_ticks(lateness, self.on, column_type, "lateness")
        return Ticks(size, every, late, self.by_count)

    def planned(self) -> Ticks:
        """This window before the type of its column is known: durations in microseconds.

        The planner only compares size and slide with each other, so their unit does not matter to it.
        """
        tick = timedelta(microseconds=1)
        size, every = (each // tick if isinstance(each, timedelta) else each for each in (self.size, self.every))
        return Ticks(FOREVER if size is None else size, every or 0, 0, self.by_count)

    def __str__(self) -> str:
        unit = " rows" if self.by_count else ""
        kind = "from the start" if self.size is None else f"the last {_spoken(self.size)}{unit}"
        slide = "with each arrival" if self.every is None else f"every {_spoken(self.every)}{unit}"
        return f"{kind}, {slide}" + (f", on {self.on}" if self.on else "")


def check_names(columns: Iterable[str], *used: tuple[Iterable[str | None], str]) -> None:
    """Raise `UnknownColumn` unless `columns` has all these names, each group with what it is used as."""
    for names, used_as in used:
        for name in names:
            if name is not None and name not in columns:
                raise UnknownColumn.named(name, columns, used_as=used_as)


def sliding(size: Span, *, every: Span | None = None, on: str | None = None, order: str | None = None) -> Window:
    """A window over the last `size` arrivals, or the last `size` of the column `on`, that slides by `every`.

    Without `every`, the window slides with each arrival.

    Parameters
    ----------
    size
        The length of the window: a whole number of arrivals or of units of `on`, a duration such as "1 hour", or a
        timedelta.
    every
        How often the window slides. None: with each arrival.
    on
        The column that the window measures. None: the window counts arrivals.
    order
        The column that defines the order of the rows. Spark needs it for windows of arrivals.

    Returns
    -------
    A window, for `window=` of any query.

    Raises
    ------
    InvalidQuery
        A size is not positive, a duration has no column, or `every` is larger than `size`.

    Examples
    --------
    >>> import skyband as sb
    >>> print(sb.sliding("1 hour", every="1 minute", on="ts"))
    the last hour, every minute, on ts
    >>> print(sb.sliding(40_000))
    the last 40,000 rows, with each arrival
    """
    return Window(parse_span(size, "size"), None if every is None else parse_span(every, "every"), on, order)


def tumbling(size: Span, *, on: str | None = None, order: str | None = None) -> Window:
    """Windows that do not overlap: each row is in exactly one.

    Parameters
    ----------
    size
        The length of the window: a whole number of arrivals or of units of `on`, a duration such as "1 hour", or a
        timedelta.
    on
        The column that the window measures. None: the window counts arrivals.
    order
        The column that defines the order of the rows. Spark needs it for windows of arrivals.

    Returns
    -------
    A window, for `window=` of any query.

    Raises
    ------
    InvalidQuery
        A size is not positive, a duration has no column, or `every` is larger than `size`.

    Examples
    --------
    >>> import skyband as sb
    >>> sb.tumbling("1 minute", on="ts") == sb.sliding("1 minute", every="1 minute", on="ts")
    True
    """
    return sliding(size, every=size, on=on, order=order)


def landmark(*, every: Span | None = None, on: str | None = None, order: str | None = None) -> Window:
    """A window from the start of the stream until now.

    Parameters
    ----------
    every
        How often the window gives an answer. None: with each arrival.
    on
        The column that the window measures. None: the window counts arrivals.
    order
        The column that defines the order of the rows. Spark needs it for windows of arrivals.

    Returns
    -------
    A window, for `window=` of any query.

    Raises
    ------
    InvalidQuery
        A size is not positive, a duration has no column, or `every` is larger than `size`.

    Examples
    --------
    >>> import skyband as sb
    >>> print(sb.landmark(every=1_000))
    from the start, every 1,000 rows
    """
    return Window(None, None if every is None else parse_span(every, "every"), on, order)


def parse_span(span: Span, what: str) -> int | timedelta:
    """A positive count or duration, as a user may write it: 600, "10 minutes", "1 hour 30 min", a timedelta."""
    number = whole_number(span)
    if number is None and not isinstance(span, (str, timedelta)):
        raise InvalidQuery(f"{what} must be a whole number, a duration or a timedelta, got {span!r}.")
    value: Any = _parse_duration(span, what) if isinstance(span, str) else span if number is None else number
    if (value <= timedelta(0)) if isinstance(value, timedelta) else (value <= 0):
        raise InvalidQuery(f"{what} must be more than 0, got {span!r}.")
    if isinstance(value, int) and value >= LONGEST:
        raise InvalidQuery(f"{what} must be less than 2**61, got {span!r}; landmark() has no end.")
    return value


def whole_number(value: object) -> int | None:
    """`value` as an int, if it is a whole number of Python or numpy; None otherwise, and for True and False."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _parse_duration(text: str, what: str) -> timedelta:
    total_us, at = 0, 0
    while at < len(text) or not text:
        part = _DURATION.match(text, at)
        unit = part and (_UNIT_US.get(part[2].lower()) or _UNIT_US.get(part[2].lower().removesuffix("s")))
        if not part or not unit:
            raise InvalidQuery(
                f"{what}={text!r} is not a duration. Write a number and a unit, such as '10 minutes' or "
                "'1 hour 30 minutes'; units: microseconds, milliseconds, seconds, minutes, hours, days, weeks "
                "(months and calendar days have no fixed length)."
            )
        total_us += int(part[1]) * unit
        at = part.end()
    try:
        return timedelta(microseconds=total_us)
    except OverflowError:
        raise InvalidQuery(f"{what}={text!r} is too long. landmark() has no end.") from None


def _in_words(span: int | timedelta) -> str:
    """A span as a person writes it: 90, or 1 hour 30 minutes."""
    if isinstance(span, int):
        return str(span)
    left_us, parts = span // timedelta(microseconds=1), []
    for unit, unit_us in _SPOKEN_US.items():
        number, left_us = divmod(left_us, unit_us)
        if number:
            parts.append(f"{number} {unit}{'s' * (number > 1)}")
    return " ".join(parts)


def _spoken(span: int | timedelta) -> str:
    """A span behind "the last" or "every": 1,000, or hour, or 90 minutes."""
    if isinstance(span, int):
        return f"{span:,}"
    words = _in_words(span)
    return words.removeprefix("1 ") if words.count(" ") == 1 else words


def _check(window: Window) -> None:
    """Raise unless the parts of the window fit together."""
    for name, column in (("on", window.on), ("order", window.order)):
        if column is not None and not isinstance(column, str):
            raise InvalidQuery(f"{name} must be the name of a column, got {column!r}.")
    spans = [span for span in (window.size, window.every) if span is not None]
    durations = [isinstance(span, timedelta) for span in spans]
    if window.on is None and any(durations):
        raise InvalidQuery(f"A duration needs the column that holds the time: add on='…' to {_in_words(spans[0])}.")
    if len(set(durations)) > 1:
        size, every = (_in_words(span) for span in spans)
        raise InvalidQuery(f"size={size} and every={every} must both be durations or both be numbers.")
    if window.size is not None and window.every is not None and window.every > window.size:  # type: ignore[operator]
        size, every = (_in_words(span) for span in spans)
        raise InvalidQuery(
            f"every={every} is larger than size={size}: some rows would be in no window. "
            "Use tumbling(size) or a smaller every."
        )


def size_ticks(size: int | timedelta | None, on: str | None, column_type: pa.DataType | None, what: str) -> int:
    """`span_ticks` of a window's size; None means a landmark window."""
    return FOREVER if size is None else span_ticks(size, on, column_type, what)


def span_ticks(span: int | timedelta, on: str | None, column_type: pa.DataType | None, what: str) -> int:
    """Convert `span` to the window's unit: arrivals, or units of its integer or timestamp column."""
    if column_type is None or pa.types.is_integer(column_type):
        if isinstance(span, timedelta):
            raise InvalidQuery(
                f"{what} is a duration ({_in_words(span)}), but "
                + ("the window counts arrivals." if on is None else f"column {on!r} is {column_type}, not a timestamp.")
                + " Give a whole number in the column's own unit, or a timestamp column."
            )
        return span
    if not pa.types.is_timestamp(column_type):
        raise InvalidQuery(f"A window needs a timestamp or integer column, but {on!r} is {column_type}.")
    if isinstance(span, int):
        raise InvalidQuery(
            f"{what}={span} has no unit, but column {on!r} is {column_type}. Write it as '{span} seconds'."
        )
    whole_us = span // timedelta(microseconds=1)
    ticks, rest = divmod(whole_us * _TICKS_PER_SECOND[column_type.unit], 1_000_000)
    if rest:
        raise InvalidQuery(f"{what}={_in_words(span)} is finer than the unit of column {on!r} ({column_type}).")
    if ticks >= LONGEST:
        raise InvalidQuery(f"{what}={_in_words(span)} is too long for column {on!r} ({column_type}).")
    return ticks
