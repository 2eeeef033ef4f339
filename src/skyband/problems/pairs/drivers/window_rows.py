"""The rows of a window in flat arrays, in their order: by time, then by arrival."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats, Ints
from skyband.kernels.compiling import kernel

SPARE = 16  # room is made for one row in so many beside those of the window: as much is moved when it is used up


@kernel
def open_gaps(columns, colours, limit, time, position, places, tail):  # type: ignore[no-untyped-def]
    """Make room for one row before each of these places, ascending: rows behind s of them move up by s."""
    stop = tail
    for s in range(len(places), 0, -1):
        start = places[s - 1]
        for table in (columns, colours):
            for c in range(len(table)):
                for i in range(stop - 1, start - 1, -1):
                    table[c, i + s] = table[c, i]
        for i in range(stop - 1, start - 1, -1):
            limit[i + s] = limit[i]
            time[i + s] = time[i]
            position[i + s] = position[i]
        # No pair has the new row as its older one yet, so what the next row's pairs must reach is right for it too.
        new = start + s - 1
        limit[new] = limit[new + 1] if new + 1 < tail + len(places) else -np.inf
        stop = start


class Rows(NamedTuple):
    """Some rows."""

    columns: Floats  # by column, then by row
    colours: Floats  # likewise; as wide as the columns, so that loops over both vectorise
    time: Ints  # by count: their arrivals
    position: Ints

    def take(self, which: Ints | npt.NDArray[np.bool_] | slice) -> Rows:
        return Rows(self.columns[:, which], self.colours[:, which], self.time[which], self.position[which])

    def in_order(self) -> Rows:
        order = np.lexsort((self.position, self.time))
        return self.take(order)

    def copied(self) -> Rows:
        return Rows(self.columns.copy(), self.colours.copy(), self.time.copy(), self.position.copy())

    @property
    def length(self) -> int:
        return len(self.position)

    @classmethod
    def none(cls, width: int, colours: int) -> Rows:
        empty = np.empty(0, np.int64)
        return cls(np.empty((width, 0)), np.empty((colours, 0)), empty, empty)

    @classmethod
    def joined(cls, parts: list[Rows]) -> Rows:
        return cls(*(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)))


class WindowRows:
    """Live rows are [head, tail) of each array. A row's number is its index plus `base`: it stays as rows move down.

    `limit` is for algorithms that keep one number a row: what a pair with that older row must reach. By count, arrivals
    are numbers, so neither times nor positions are stored.
    """

    def __init__(self, width: int, colours: int, by_count: bool, room: int = 64) -> None:
        self.by_count = by_count
        self.base = self.head = self.tail = 0
        self.columns = np.empty((width, room))
        self.colours = np.empty((colours, room))
        self.time = np.empty(0 if by_count else room, np.int64)
        self.position = np.empty(0 if by_count else room, np.int64)
        self.limit = np.empty(room)

    @property
    def count(self) -> int:
        return self.tail - self.head

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays())

    def append(self, rows: Rows) -> None:
        """Rows that come after all others."""
        self.reserve(rows.length)
        end = self.tail + rows.length
        self.columns[:, self.tail : end] = rows.columns
        self.colours[:, self.tail : end] = rows.colours
        if self.by_count:
            assert not rows.length or rows.position[0] == self.base + self.tail, "arrivals are numbers"
        else:
            self.time[self.tail : end], self.position[self.tail : end] = rows.time, rows.position
        self.limit[self.tail : end] = -np.inf
        self.tail = end

    def insert(self, rows: Rows) -> tuple[Ints, Ints]:
        """Rows that come before some of the others; returns their indices, and before which rows they were put.

        The first are in the order in which the rows are given. The second are indices as they were, ascending: what was
        at one of them or behind it has a new number.
        """
        self.reserve(rows.length)
        order = np.lexsort((rows.position, rows.time))
        places = self._places(rows.time[order], rows.position[order])
        open_gaps(self.columns, self.colours, self.limit, self.time, self.position, places, self.tail)
        at = np.empty(rows.length, np.int64)
        at[order] = places + np.arange(rows.length)
        self.columns[:, at], self.colours[:, at] = rows.columns, rows.colours
        self.time[at], self.position[at] = rows.time, rows.position
        self.tail += rows.length
        return at, places

    def _places(self, time: Ints, position: Ints) -> Ints:
        """For each time and arrival, both in order: the index of the first live row that comes after it."""
        times = self.time[self.head : self.tail]
        low = self.head + np.searchsorted(times, time, "left")
        high = self.head + np.searchsorted(times, time, "right")
        tied = np.flatnonzero((low < high) & (self.position[np.maximum(high - 1, 0)] > position))
        for i in tied:
            high[i] = low[i] + np.searchsorted(self.position[low[i] : high[i]], position[i], "right")
        return high

    def first_at(self, time: int) -> int:
        """The index of the first live row of this time or a later one."""
        if self.by_count:
            return min(max(time - self.base, self.head), self.tail)
        return self.head + int(np.searchsorted(self.time[self.head : self.tail], time, "left"))

    def times(self) -> Ints:
        if self.by_count:
            return np.arange(self.base + self.head, self.base + self.tail)
        return self.time[self.head : self.tail]

    def positions(self) -> Ints:
        return self.times() if self.by_count else self.position[self.head : self.tail]

    def reserve(self, more: int) -> None:
        """Make room behind the last row: by moving all down if enough have left, else by growing."""
        room = self.columns.shape[1]
        if self.tail + more <= room:
            return
        enough = self.count + more + self.count // SPARE
        head, tail = self.head, self.tail
        if enough <= room:
            for array in self._arrays():
                array[..., : tail - head] = array[..., head:tail].copy()
        else:
            for name in ("columns", "colours", "limit", *(() if self.by_count else ("time", "position"))):
                old = getattr(self, name)
                new = np.empty((*old.shape[:-1], enough + 64), old.dtype)
                new[..., : tail - head] = old[..., head:tail]
                setattr(self, name, new)
        self.base += head
        self.head, self.tail = 0, tail - head

    def state(self) -> Arrays:
        live = slice(self.head, self.tail)
        return {
            "columns": self.columns[:, live].copy(),
            "colours": self.colours[:, live].copy(),
            "limit": self.limit[live].copy(),
            "time": self.time[live].copy(),
            "position": self.position[live].copy(),
            "base": np.array([self.base + self.head], np.int64),
        }

    def restore(self, state: Arrays) -> None:
        self.columns, self.colours = state["columns"].copy(), state["colours"].copy()
        self.limit, self.time, self.position = (state[name].copy() for name in ("limit", "time", "position"))
        self.base, self.head, self.tail = int(state["base"][0]), 0, self.columns.shape[1]

    def check(self) -> None:
        assert 0 <= self.head <= self.tail <= self.columns.shape[1], "live rows are inside the arrays"
        if not self.by_count:
            live = slice(self.head, self.tail)
            order = np.lexsort((self.position[live], self.time[live]))
            assert (order == np.arange(self.count)).all(), "rows are in order of time, then of arrival"

    def _arrays(self) -> list[npt.NDArray[Any]]:
        arrays: list[npt.NDArray[Any]] = [self.columns, self.colours, self.limit]
        return arrays if self.by_count else [*arrays, self.time, self.position]
