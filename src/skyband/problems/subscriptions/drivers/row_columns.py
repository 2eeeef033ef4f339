"""The rows of the window, kept once for all queries: the columns that scores read, with times and positions."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import FARTHEST, Saved


class Store:
    """Rows in order of arrival. Rows that are no longer needed stay until room runs short."""

    def __init__(self, columns: int, consecutive: bool, room: int = 1024) -> None:
        """If rows are `consecutive`, times and positions grow by one with each row: the clock after it is its time."""
        self.consecutive = consecutive
        self._columns = np.empty((columns, room))
        self._whole = np.empty((2 if consecutive else 3, room), np.int64)
        self.count = 0

    @property
    def columns(self) -> Floats:
        """The values that scores read, by column, then by row. Only the first `count` rows are in use."""
        return self._columns

    @property
    def time(self) -> Ints:
        return self._whole[0, : self.count]

    @property
    def position(self) -> Ints:
        return self._whole[1, : self.count]

    @property
    def now(self) -> Ints:
        """The clock after each row: the largest time seen so far, which never falls."""
        return self._whole[0 if self.consecutive else 2, : self.count]

    def append(self, columns: Floats, time: Ints, position: Ints, now: Ints, low: int) -> None:
        """Add rows. Rows before the time `low` are no longer needed."""
        n = len(time)
        if self.count + n > self._whole.shape[1]:
            self._make_room(n, low)
        end = self.count + n
        self._columns[:, self.count : end] = columns
        for kept, values in zip(self._whole, (time, position, now), strict=False):
            kept[self.count : end] = values
        self.count = end

    def _make_room(self, n: int, low: int) -> None:
        alive = self.time >= low
        live = int(np.count_nonzero(alive))
        first = self.count - live
        kept = slice(first, self.count) if alive[first:].all() else np.flatnonzero(alive)
        columns, whole = self._columns, self._whole
        if live + live // 2 + 2 * n > whole.shape[1]:
            room = 2 * live + 4 * n + 1024
            # Filling the arrays maps their pages at once, which is faster than to map each when it is first touched.
            columns, whole = np.full((len(columns), room), 0.0), np.full((len(whole), room), 0)
        columns[:, :live] = self._columns[:, kept]
        whole[:, :live] = self._whole[:, kept]
        self._columns, self._whole, self.count = columns, whole, live

    def put(self, column: int, position: Ints, values: Floats) -> None:
        """Change the values in a column of the rows at these positions, as far as they are still stored."""
        at = np.minimum(np.searchsorted(self.position, position), max(0, self.count - 1))
        is_there = self.position[at] == position if self.count else np.zeros(len(at), np.bool_)
        self._columns[column, at[is_there]] = values[is_there]

    def state(self) -> Arrays:
        return {
            "store_columns": self._columns[:, : self.count].copy(),
            "store_whole": self._whole[:, : self.count].copy(),
        }

    def validate(self, saved: Saved) -> None:
        whole = saved["store_whole"]
        rows = whole.shape[-1]
        saved.shape("store_whole", len(self._whole), rows)
        saved.shape("store_columns", len(self._columns), rows)
        saved.within("store_whole", whole, -FARTHEST, FARTHEST)
        saved.ascends("store_whole", whole[1], strictly=True)
        saved.ascends("store_whole", whole[0 if self.consecutive else 2])
        if self.consecutive:
            saved.promise(bool((np.diff(whole[:2], axis=1) == 1).all()), "'store_whole' leaves out arrivals")

    def restore(self, state: Arrays) -> None:
        self._columns, self._whole = state["store_columns"].copy(), state["store_whole"].copy()
        self.count = self._whole.shape[1]
