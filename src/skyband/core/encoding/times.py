"""Times of rows in the ticks of the column that a window measures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.operator import Ints
from skyband.errors import InvalidInput, InvalidQuery
from skyband.kernels.compiling import kernel
from skyband.windows import NEVER, Span, Ticks, parse_span, span_ticks, whole_number

_NO_TIMES = np.empty(0, np.int64)
MOST_WINDOWS: Final = 1_000_000  # how many windows one row, or the end of the input, may close


def measured_type(on: str | None, schema: pa.Schema) -> pa.DataType | None:
    """The type of the column that a window measures; None if it counts arrivals."""
    return None if on is None else schema.field(on).type


def with_times(batch: pa.RecordBatch, on: str | None, *, in_order: bool = False) -> tuple[pa.RecordBatch, Ints]:
    """Drop the rows without a time, and return the others with their times in ticks of the column.

    `in_order`: the times ascend, so that only the first and the last need a check of their range.
    """
    if on is None:
        return batch, _NO_TIMES
    column = batch.column(on)
    if column.null_count:
        batch = batch.filter(pc.is_valid(column))
        column = batch.column(on)
    time = ticks_of(column, on).to_numpy(zero_copy_only=True)
    if not all_within(time[[0, -1]] if in_order and len(time) else time, NEVER):
        raise InvalidInput(f"Column {on!r} has values of ±2**62 or beyond, which are too large for a window.")
    return batch, time


def ticks_of(column: pa.Array, name: str) -> pa.Array:
    """Convert a column of timestamps or whole numbers to int64."""
    if pa.types.is_timestamp(column.type):
        return column.view(pa.int64())
    if column.type == pa.int64():
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"Column {name!r} does not fit in 64 bits with a sign: {error}") from None


def as_ticks(watermark: int | datetime, on: str, on_type: pa.DataType | None) -> int:
    """Convert a watermark to ticks of the window's column."""
    is_moment = isinstance(watermark, datetime) and pa.types.is_timestamp(on_type)
    number = int(pa.scalar(watermark, on_type).value) if is_moment else whole_number(watermark)
    if number is None:
        raise InvalidQuery(f"A watermark on {on!r} ({on_type}) cannot be {watermark!r}.")
    if abs(number) >= NEVER:
        raise InvalidQuery(
            f"A watermark on {on!r} cannot be {watermark}: no row has a time of ±2**62 or beyond. To close all "
            "windows, use finish()."
        )
    return number


class Times:
    """Reads the times of a session's rows. It remembers nothing of a batch before `accept`."""

    def __init__(self, window: Ticks, max_jump: Span | None, on: str | None, on_type: pa.DataType | None) -> None:
        self._jumps, self._reach = Jumps(max_jump, on, on_type), Reach(window)

    def read(
        self, batch: pa.RecordBatch, on: str | None, next_close: Callable[[], int | None] | None, *, in_order: bool
    ) -> tuple[pa.RecordBatch, Ints, int]:
        """Return the rows that have a time and do not jump, their times, and the number of rows that jump.

        `next_close` finds the end of the operator's next window; None if these rows alone close no window. Raises for
        a batch that the session cannot take.
        """
        batch, time = with_times(batch, on, in_order=in_order)
        timed = batch.num_rows
        if (kept := self._jumps.keep(time)) is not None:
            batch, time = batch.filter(pa.array(kept)), time[kept]
        if next_close is not None:
            self._reach.check(time, next_close)
        return batch, time, timed - batch.num_rows

    def check_end(self, next_close: Callable[[], int | None]) -> None:
        """Raise if the end of the input would close more windows than memory can hold."""
        self._reach.check_end(next_close)

    def accept(self, time: Ints) -> None:
        """Note that the session has taken the batch that was read last."""
        self._jumps.accept()
        self._reach.accept(time)

    def state(self) -> dict[str, int]:
        return self._jumps.state()

    def restore(self, counters: dict[str, int]) -> None:
        self._jumps.restore(counters)


class Reach:
    """Refuses a batch if one of its rows would close more windows than memory can hold."""

    def __init__(self, window: Ticks) -> None:
        self._window = window
        self._latest: int | None = None  # the latest time seen; None: not known yet

    def check(self, time: Ints, next_close: Callable[[], int | None]) -> None:
        """Raise if one of these rows comes too far after all rows before it."""
        every = self._window.every
        if not self._window.is_closed_by_rows or not len(time):
            return
        if self._latest is not None and int(time.max()) - self._latest <= MOST_WINDOWS * every:
            return
        before = self._latest
        if before is None:  # the first rows, or the first since a snapshot
            due = next_close()
            before = int(time[0]) if due is None else min(due, int(time[0]))
        gaps = np.diff(np.maximum.accumulate(np.append(before, time)))
        row = int(gaps.argmax())
        windows = min(int(gaps[row]), self._window.size) // every
        if windows > MOST_WINDOWS:
            raise InvalidInput(
                f"Row {row} of this batch comes {int(gaps[row]):,} later than all rows before it. It would close "
                f"{windows:,} windows by itself, and one row may close at most {MOST_WINDOWS:,}. "
                "Skyband rejected the batch. Drop such rows with max_jump=, or use a larger slide (every=)."
            )

    def check_end(self, next_close: Callable[[], int | None]) -> None:
        """Raise if too many of the windows that hold the last row are still open."""
        size, every = self._window.size, self._window.every
        if not self._window.closes_by_value or self._window.endless or size // every <= MOST_WINDOWS:
            return
        if (due := next_close()) is None:
            return
        latest = due if self._latest is None else self._latest  # not known just behind a snapshot
        windows = min((latest + size) // every - due // every + 1, size // every)
        if windows > MOST_WINDOWS:
            raise InvalidInput(
                f"Each row is in {size // every:,} windows. The end of the input would close {windows:,} of them, and "
                f"it may close at most {MOST_WINDOWS:,}. Use a larger slide (every=, or EVERY in SQL) or a smaller "
                "window. Without an end, advance() closes them step by step."
            )

    def accept(self, time: Ints) -> None:
        if self._window.closes_by_value and len(time):
            self._latest = max(int(time.max()), -NEVER if self._latest is None else self._latest)


class Jumps:
    """Drops rows whose time is so far ahead of all earlier ones that it would make other rows late (`max_jump`)."""

    def __init__(self, most: Span | None, on: str | None, on_type: pa.DataType | None) -> None:
        self._most = None if most is None else span_ticks(parse_span(most, "max_jump"), on, on_type, "max_jump")
        self._clocks = np.full(2, NO_TIME, np.int64)
        self._next = self._clocks

    def keep(self, time: Ints) -> npt.NDArray[np.bool_] | None:
        """Find the rows that stay; None: all of them."""
        if self._most is None or not len(time):
            return None
        self._next, kept = self._clocks.copy(), np.empty(len(time), np.bool_)
        # A copy, because numba would compile the kernel a second time for a read-only array.
        return kept if set_aside(time.copy(), self._most, self._next, kept) else None

    def accept(self) -> None:
        self._clocks = self._next

    def state(self) -> dict[str, int]:
        return {f"jumps_{i}": int(clock) for i, clock in enumerate(self._clocks)}

    def restore(self, counters: dict[str, int]) -> None:
        self._clocks = self._next = np.array([counters[f"jumps_{i}"] for i in range(2)], np.int64)


_AT_ONCE = 4096  # how many numbers are compared before the loop looks whether one was out of order


@kernel
def ascends(values):
    """Is no number smaller than the one before it? The loop runs as fast as memory delivers the numbers."""
    for start in range(0, len(values) - 1, _AT_ONCE):
        part = values[start : start + _AT_ONCE + 1]  # one more: it is compared with the next ones, too
        smaller = 0
        for j in range(1, len(part)):
            smaller += part[j] < part[j - 1]
        if smaller:
            return False
    return True


@kernel
def all_within(values, limit):
    """Are all these numbers between -limit and limit, both excluded?"""
    beyond = 0
    for j in range(len(values)):
        beyond += (values[j] >= limit) | (values[j] <= -limit)
    return beyond == 0


# Two clocks: the largest time accepted, and the time of the row before if it was set aside.
LATEST, ASIDE = 0, 1
NO_TIME = -(2**63)


@kernel
def set_aside(time, most, clocks, kept):
    """Set aside rows that are more than `most` ahead of all accepted ones, and mark the others in `kept`.

    A row is accepted if the row just before it was set aside and its time is within `most`. So a single row never moves
    the clock far, but two in succession do. Returns the number of rows that are set aside.
    """
    aside = 0
    for i in range(len(time)):
        ahead = clocks[LATEST] != NO_TIME and time[i] - clocks[LATEST] > most
        again = clocks[ASIDE] != NO_TIME and abs(time[i] - clocks[ASIDE]) <= most
        kept[i] = not ahead or again
        clocks[ASIDE] = NO_TIME if kept[i] else time[i]
        if kept[i]:
            clocks[LATEST] = max(clocks[LATEST], time[i])
        else:
            aside += 1
    return aside
