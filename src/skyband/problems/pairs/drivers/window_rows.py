"""The rows of a window in flat arrays, in their order: by time, then by arrival."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.pairs.drivers.kernels import open_gaps

SPARE = 16  # room is made for one row in so many beside those of the window: as much is moved when it is used up


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


def validate_pairs(saved: Saved, name: str, *, timed: bool) -> None:
    """Pairs of a window that was saved: each once, its older row first, with the arrivals of both."""
    pairs, base, n = saved[name], int(saved["rows_base"][0]), saved["rows_columns"].shape[1]
    saved.numbers(f"{name}.score", pairs["score"])
    for side in ("a", "b"):
        numbers = pairs[side]
        saved.within(f"{name}.{side}", numbers, base, base + n - 1)
        position = saved["rows_position"][numbers - base] if timed else numbers
        same = np.array_equal(position, pairs[f"{side}_position"])
        saved.promise(same, f"'{name}.{side}_position' is not when the rows of '{name}.{side}' came")
    saved.promise(bool((pairs["a"] < pairs["b"]).all()), f"'{name}' has pairs whose older row is not the first")
    saved.distinct(name, pairs["b"], pairs["a"])


class WindowRows:
    """Live rows are [head, tail) of each array. A row's number is its index plus `base`: it stays as rows move down.

    `limit` is for algorithms that keep one number a row: what a pair with that older row must reach. `timed`: rows have
    times, and may come out of order; otherwise arrivals are numbers, and neither times nor positions are stored.
    """

    def __init__(self, width: int, colours: int, *, timed: bool, room: int = 64) -> None:
        self.timed = timed
        self.base = self.head = self.tail = 0
        self.columns = np.empty((width, room))
        self.colours = np.empty((colours, room))
        self.time = np.empty(room if timed else 0, np.int64)
        self.position = np.empty(room if timed else 0, np.int64)
        self.limit = np.empty(room)

    @property
    def count(self) -> int:
        return self.tail - self.head

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays().values())

    def append(self, rows: Rows) -> None:
        """Rows that come after all others."""
        self.reserve(rows.length)
        end = self.tail + rows.length
        self.columns[:, self.tail : end] = rows.columns
        self.colours[:, self.tail : end] = rows.colours
        if self.timed:
            self.time[self.tail : end], self.position[self.tail : end] = rows.time, rows.position
        else:
            assert not rows.length or rows.position[0] == self.base + self.tail, "arrivals are numbers"
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

    def before_last(self, rows: Rows) -> int:
        """By value: how many of these rows, which are in order, come before the last one here."""
        if not self.count:
            return 0
        time, position = self.time[self.tail - 1], self.position[self.tail - 1]
        after = (rows.time > time) | ((rows.time == time) & (rows.position > position))
        return int(np.argmax(after)) if after.any() else rows.length

    def follow(self, time: Ints) -> bool:
        """Do rows of these times, one after the other, come after all others?"""
        if not self.timed:
            return True
        return bool((not self.count or time[0] >= self.time[self.tail - 1]) and (time[1:] >= time[:-1]).all())

    def first_at(self, time: int) -> int:
        """The index of the first live row of this time or a later one."""
        return int(self.firsts_at(np.array([time]))[0])

    def firsts_at(self, time: Ints) -> Ints:
        """As `first_at`, for each of these times."""
        if self.timed:
            return self.head + np.searchsorted(self.time[self.head : self.tail], time, "left")
        return np.clip(time, self.base + self.head, self.base + self.tail) - self.base

    def times(self) -> Ints:
        if self.timed:
            return self.time[self.head : self.tail]
        return np.arange(self.base + self.head, self.base + self.tail)

    def positions(self) -> Ints:
        return self.position[self.head : self.tail] if self.timed else self.times()

    def times_of(self, numbers: Ints) -> Ints:
        return self.time[numbers - self.base] if self.timed else numbers

    def positions_of(self, numbers: Ints) -> Ints:
        """When the rows of these numbers arrived."""
        return self.position[numbers - self.base] if self.timed else numbers

    def reserve(self, more: int) -> None:
        """Make room behind the last row: by moving all down if enough have left, else by growing."""
        room = self.columns.shape[1]
        if self.tail + more <= room:
            return
        enough = self.count + more + self.count // SPARE
        head, tail = self.head, self.tail
        for name, array in self._arrays().items():
            live = array[..., head:tail]
            if enough <= room:
                array[..., : tail - head] = live.copy()
            else:
                longer = np.empty((*array.shape[:-1], enough + 64), array.dtype)
                longer[..., : tail - head] = live
                setattr(self, name, longer)
        self.base += head
        self.head, self.tail = 0, tail - head

    def state(self) -> Arrays:
        live = slice(self.head, self.tail)
        saved: Arrays = {name: array[..., live].copy() for name, array in self._arrays().items()}
        return saved | {"base": np.array([self.base + self.head], np.int64)}

    def validate(self, saved: Saved) -> None:
        n = len(saved["limit"])
        saved.shape("columns", len(self.columns), n)
        saved.shape("colours", len(self.colours), n)
        saved.length(1, "base")
        saved.within("base", saved["base"], -FARTHEST, FARTHEST)
        if self.timed:
            saved.length(n, "time", "position")
            time, position = saved["time"], saved["position"]
            saved.within("time", time, -FARTHEST, FARTHEST)
            saved.counts("position", position)
            saved.ascends("time", time)
            after = (time[1:] > time[:-1]) | (position[1:] > position[:-1])
            saved.promise(bool(after.all()), "rows of one time are not in the order in which they came")

    def validate_others(self, saved: Saved) -> None:
        """Rows in no order that may come to be among these."""
        n = len(saved["position"])
        saved.shape("columns", len(self.columns), n)
        saved.shape("colours", len(self.colours), n)
        saved.length(n, "time")
        saved.within("time", saved["time"], -FARTHEST, FARTHEST)
        saved.counts("position", saved["position"])

    def restore(self, state: Arrays) -> None:
        for name in self._arrays():
            setattr(self, name, state[name].copy())
        self.base, self.head, self.tail = int(state["base"][0]), 0, self.columns.shape[1]

    def check(self) -> None:
        assert 0 <= self.head <= self.tail <= self.columns.shape[1], "live rows are inside the arrays"
        order = np.lexsort((self.positions(), self.times()))
        assert (order == np.arange(self.count)).all(), "rows are in order of time, then of arrival"

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("columns", "colours", "limit", *(("time", "position") if self.timed else ()))
        return {name: getattr(self, name) for name in names}
