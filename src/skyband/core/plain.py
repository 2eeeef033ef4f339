"""The definition of windows and emit: each promise of the page on semantics as a few lines of plain Python.

    docs/reference/semantics.md                                             here
    a window ends at a multiple of `every`                                  `PlainWindow.end_after`
    it holds end - size <= value < end                                      `PlainWindow.holds`
    without `every`, and for `top`, it holds the values after now - size    `PlainWindow.last`
    the watermark is the largest value seen minus `lateness`                `PlainWindow.arrive`
    a row counts in those of its windows that are open when it comes        `HeldRow.first`
    a row is late if every window that would hold it has closed             `PlainWindow.arrive`
    a window closes when the watermark reaches its end                      `closing`
    at the end of the input every window by value that holds a row closes   `PlainWindow.last_end`
    windows, changes and entries show parts of each answer                  `PlainEmit.show`

By count, the value of a row is its number, from 0. The `recompute` of every problem is built on this module, and adds
what a row is, how rows are ranked, and how an answer is written. Tests compare all algorithms with it. So it shares no
code with `core/clock.py`, keeps every row that a window may still show, and is slow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from skyband.core.emit import ENTER, LEAVE, is_once, takes_back
from skyband.core.operator import Arrays
from skyband.windows import FOREVER, Ticks

RowT = TypeVar("RowT")
ItemT = TypeVar("ItemT")  # what is ranked: a row, a pair of rows, an object

BEFORE: Final = -2 * FOREVER  # before every value, and every watermark


class HeldRow(NamedTuple, Generic[RowT]):
    """A row that some window may still show."""

    row: RowT
    value: int  # what the window measures
    first: int  # the end of the first window that holds it and was open when it came


class PlainWindow(Generic[RowT]):
    """One window, and its rows in a list in arrival order."""

    def __init__(self, window: Ticks) -> None:
        self.size = math.inf if window.size >= FOREVER else window.size
        self.lateness = math.inf if window.lateness >= FOREVER else window.lateness
        self.every, self.by_count = window.every, window.by_count
        self.rows: list[HeldRow[RowT]] = []
        self.late = 0
        self.unranked = 0
        self.arrivals = 0
        self.now = BEFORE  # the largest value seen
        self.watermark = BEFORE
        self.closed = BEFORE  # the end of the last window that has closed

    # -- which rows a window holds ------------------------------------------------------------------------------------

    def end_after(self, value: int) -> int:
        """The end of the first window that ends later than this."""
        return (value // self.every + 1) * self.every

    def holds(self, end: int, held: HeldRow[Any]) -> bool:
        """Does the row count in the window that ends here?"""
        return end - self.size <= held.value < end and held.first <= end

    def live(self, end: int) -> list[RowT]:
        """The rows of the window that ends here."""
        return [held.row for held in self.rows if self.holds(end, held)]

    def last(self, size: float) -> list[RowT]:
        """The rows of the last `size`, now."""
        return [held.row for held in self.rows if held.value > self.now - size]

    def asked(self, size: int | None) -> tuple[int, list[RowT]]:
        """The `at` and the rows of an answer now: of the last `size`, or if it is None of the window that closes
        next of those that hold a row."""
        if size is None and self.every:
            end = self.next_end(showing=False)
            return (BEFORE, []) if end is None else (end, self.live(end))
        return self.moment, self.last(self.size if size is None else size)

    @property
    def moment(self) -> int:
        """The `at` of an answer now that does not belong to a slide."""
        return self.arrivals if self.by_count else self.now

    # -- rows come ----------------------------------------------------------------------------------------------------

    def arrive(self, row: RowT | None, value: int, reached: int | None = None) -> bool:
        """Take a row, and return whether it was in time. A row without a score is None: it takes its place in the
        window, and no answer shows it.

        `reached` is how far the input has come, if that is not the largest value seen.
        """
        value = self.arrivals if self.by_count else value
        self.arrivals += 1
        self.now = max(self.now, value)
        if self.lateness < math.inf:  # otherwise only `advance` closes windows
            self.watermark = max(self.watermark, (self.now if reached is None else reached) - int(self.lateness))
        if self.every:
            first = self.end_after(max(value, self.watermark, self.closed))
            in_time = first - self.size <= value
        else:
            first = self.now
            in_time = value > self.now - self.size
        self.late += not in_time
        if in_time and row is not None:
            self.rows.append(HeldRow(row, value, first))
        elif in_time:
            self.unranked += 1
        return in_time

    # -- windows close ------------------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """Windows that end here or before close now. By count, a window closes with its last row."""
        return self.arrivals if self.by_count else self.watermark

    def next_end(self, *, showing: bool) -> int | None:
        """The end of the earliest open window that holds a row or, if `showing`, that takes back the last answer."""
        following = self.end_after(self.closed)
        ends = [max(held.first, following) for held in self.rows if self.holds(max(held.first, following), held)]
        return min([*ends, following] if showing else ends, default=None)

    def last_end(self, held: HeldRow[Any]) -> int:
        """The end of the last window that the row makes worth closing. A landmark window shows it once as new."""
        if self.size == math.inf:
            return held.first
        return (held.value + int(self.size)) // self.every * self.every

    def forget_before(self, end: int) -> None:
        """Forget rows that are neither in the window that ends here, nor in a later one, nor among the last `size`."""
        self.rows = [
            held
            for held in self.rows
            if held.value > self.now - self.size or (self.every and self.holds(max(held.first, end), held))
        ]

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> list[Any]:
        return [self.late, self.unranked, self.arrivals, self.now, self.watermark, self.closed, self.rows]

    def restore(self, state: Sequence[Any], read_row: Callable[[Sequence[Any]], RowT]) -> None:
        self.late, self.unranked, self.arrivals, self.now, self.watermark, self.closed, rows = state
        self.rows = [HeldRow(read_row(row), value, first) for row, value, first in rows]


def closing(windows: Sequence[PlainWindow[Any]], until: int, showing: Callable[[], bool]) -> Iterator[int]:
    """Close the windows that end at `until` or before, and yield the end of each that has something to show.

    Windows of several inputs close together. A window without rows is passed over, unless it takes back the last
    answer.
    """
    while ends := [end for each in windows if (end := each.next_end(showing=showing())) is not None]:
        if min(ends) > until:
            break
        yield min(ends)
        for each in windows:
            each.closed = min(ends)
    for each in windows:
        each.closed = max(each.closed, until // each.every * each.every)


class Line(NamedTuple, Generic[ItemT]):
    """One entry of an answer."""

    at: int
    group: int
    rank: int
    item: ItemT
    change: np.int8


class PlainEmit(Generic[ItemT]):
    """Picks the lines of each answer that the query emits.

    `key` identifies an item: a row or pair by its arrivals. `ranks` gives the ranks of items that come best first.
    """

    def __init__(
        self, emit: int, key: Callable[[ItemT], tuple[int, ...]], ranks: Callable[[list[ItemT]], Sequence[int]]
    ) -> None:
        self._emit, self._key, self._ranks = emit, key, ranks
        self.shown: dict[int, list[ItemT]] = {}  # changes: the last answer of each group, if it is not empty
        self.entered: set[tuple[int, ...]] = set()  # entries: the keys of all items shown
        self.lines: list[Line[ItemT]] = []

    def show(self, at: int, group: int, best: list[ItemT]) -> None:
        """Add the lines that the query emits when these items are the best now."""
        entering = [Line(at, group, rank, item, ENTER) for rank, item in self._ranked(best)]
        if is_once(self._emit):
            entering = [line for line in entering if self._key(line.item) not in self.entered]
            self.entered |= self._keys(best)
        elif takes_back(self._emit):
            before = self.shown.pop(group, [])
            then, now = self._keys(before), self._keys(best)
            leaving = [Line(at, group, rank, item, LEAVE) for rank, item in self._ranked(before)]
            self.lines += [line for line in leaving if self._key(line.item) not in now]
            entering = [line for line in entering if self._key(line.item) not in then]
            if best:
                self.shown[group] = best
        self.lines += entering

    def _ranked(self, items: list[ItemT]) -> Iterator[tuple[int, ItemT]]:
        return zip(self._ranks(items), items, strict=True)

    def _keys(self, items: list[ItemT]) -> set[tuple[int, ...]]:
        return {self._key(item) for item in items}

    def all_shown(self) -> list[ItemT]:
        return [item for items in self.shown.values() for item in items]

    def replace(self, change: Callable[[ItemT], ItemT]) -> None:
        self.shown = {group: [change(item) for item in items] for group, items in self.shown.items()}


def saved(what: Any) -> Arrays:
    """Save values as JSON in an array of bytes; whole numbers and floats keep their exact values."""
    return {"plain": np.frombuffer(json.dumps(what).encode(), np.uint8).copy()}


def read(state: Arrays) -> Any:
    """Read what `saved` wrote, with tuples instead of lists."""
    return _as_tuples(json.loads(state["plain"].tobytes()))


def _as_tuples(what: Any) -> Any:
    return tuple(map(_as_tuples, what)) if isinstance(what, list) else what
