"""The operator behind `recompute` of rows, pairs and across: it sorts the window again whenever an answer is due.

Windows and emit come from `core/plain.py`. A problem adds what a row is, which items are best, and how an answer is
written. Joins rank no rows and have several inputs, so their `recompute` uses the same windows but not this operator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER
from skyband.core.operator import Arrays, Ints
from skyband.core.plain import HeldRow, Line, PlainEmit, PlainWindow, closing, read, saved
from skyband.core.validation import Saved
from skyband.windows import Ticks


class Row(Protocol):
    @property
    def position(self) -> int: ...


RowT = TypeVar("RowT", bound=Row)
ItemT = TypeVar("ItemT")  # what is ranked: a row, a pair of rows, an object
BatchT = TypeVar("BatchT")
AnswerT = TypeVar("AnswerT")


class Arrival(NamedTuple, Generic[RowT]):
    """A row of a batch."""

    row: RowT | None  # None: it has no score
    value: int  # what the window measures; a window of arrivals ignores it and counts itself
    group: int = 0
    reached: int | None = None  # how far the input has come, if that is not the largest value seen


class Recomputing(ABC, Generic[BatchT, RowT, ItemT, AnswerT]):
    """An operator that keeps the whole window and ranks it anew for every answer."""

    def __init__(
        self,
        window: Ticks,
        k: int,
        emit: int,
        read_row: Callable[[Sequence[Any]], RowT],
        read_item: Callable[[Sequence[Any]], ItemT],
    ) -> None:
        """`read_row` and `read_item` rebuild a row and an item from their saved fields."""
        self._ticks, self._k, self._read_row, self._read_item = window, k, read_row, read_item
        self._waits = window.every > 0 and not window.by_count  # does the watermark close windows?
        self._counts = window.by_count  # does each group count its own rows, in a window of its own?
        self.windows: dict[int, PlainWindow[RowT]] = {}
        self._unranked_before = 0  # rows without a score of groups that were dropped since
        self.emit: PlainEmit[ItemT] = PlainEmit(emit, self.key, self.ranks)

    # -- a problem implements these -----------------------------------------------------------------------------------

    @abstractmethod
    def arrivals(self, batch: BatchT) -> Iterator[Arrival[RowT]]:
        """Read the rows of a batch."""

    @abstractmethod
    def ranked(self, rows: list[RowT]) -> list[ItemT]:
        """Rank what these rows of one group make, best first."""

    @abstractmethod
    def answer(self, lines: Sequence[Line[ItemT]]) -> AnswerT:
        """Write lines into arrays."""

    @abstractmethod
    def key(self, item: ItemT) -> tuple[int, ...]:
        """What identifies an item: if answers show rows, the arrivals of its rows."""

    def group_of(self, row: RowT) -> int:
        return 0

    def ranks(self, items: list[ItemT]) -> Sequence[int]:
        """The ranks of items that come best first."""
        return range(1, len(items) + 1)

    # -- the protocol -------------------------------------------------------------------------------------------------

    @property
    def late(self) -> int:
        return sum(window.late for window in self.windows.values())

    @property
    def unranked(self) -> int:
        return self._unranked_before + sum(window.unranked for window in self.windows.values())

    def push(self, batch: BatchT) -> AnswerT:
        for row, value, group, reached in self.arrivals(batch):
            window = self._window_of(group)
            in_time = window.arrive(row, value, reached)
            if window.every:
                self._close(group, window.due)
            elif in_time:
                self._show(group, *window.asked(None))
                window.forget_before(window.now)
        return self._take_answer()

    def advance(self, watermark: int) -> AnswerT:
        self._close(0, watermark)
        return self._take_answer()

    def finish(self) -> AnswerT:
        if self._waits and (window := self._window_of(0)).arrivals:
            # The latest row counts even if it has no score, so that it is not held.
            latest: HeldRow[Any] = HeldRow(None, window.now, window.end_after(window.now))
            self._close(0, max(map(window.last_end, [*window.rows, latest])))
        return self._take_answer()

    def next_close(self) -> int | None:
        return self._window_of(0).next_end(showing=self._is_showing(0)) if self._waits else None

    def next_held(self) -> int | None:
        return self._window_of(0).next_end(showing=False) if self._waits else None

    def top(self, k: int, size: int | None = None) -> AnswerT:
        found = []
        for group in sorted({self.group_of(row) for row in self.rows()}):
            at, rows = self._window_of(group).asked(size)
            best = self._best([row for row in rows if self.group_of(row) == group], k)
            found += [Line(at, group, rank, item, ENTER) for rank, item in zip(self.ranks(best), best, strict=True)]
        return self.answer(found)

    def held(self) -> Ints:
        shown = {position for item in self.emit.all_shown() for position in self.key(item)}
        return np.array(sorted({row.position for row in self.rows()} | shown), np.int64)

    def rows_held(self) -> int:
        return len(self.held())

    def state(self) -> Arrays:
        windows = [(group, window.state()) for group, window in self.windows.items()]
        return saved((windows, list(self.emit.shown.items()), sorted(self.emit.entered), self._unranked_before))

    def restore(self, state: Arrays) -> None:
        windows, shown, entered, self._unranked_before = read(state)
        self.windows = {}
        for group, window in windows:
            self._window_of(group).restore(window, self._read_row)
        self.emit.shown = {group: [self._read_item(item) for item in items] for group, items in shown}
        self.emit.entered, self.emit.lines = set(entered), []

    def validate(self, saved: Saved) -> None:
        """No compiled loop reads these arrays: `restore` raises for wrong ones, or they do no harm."""

    def check(self) -> None:
        for window in self.windows.values():
            positions = [held.row.position for held in window.rows]
            assert positions == sorted(set(positions)), "rows are held once each, in arrival order"

    # -- closing windows and showing answers --------------------------------------------------------------------------

    def _window_of(self, group: int) -> PlainWindow[RowT]:
        return self.windows.setdefault(group if self._counts else 0, PlainWindow(self._ticks))

    def _is_showing(self, group: int) -> bool:
        """Did the last answer show something that the next one may take back?"""
        return group in self.emit.shown if self._counts else bool(self.emit.shown)

    def _close(self, group: int, until: int) -> None:
        window = self._window_of(group)
        for end in closing([window], until, lambda: self._is_showing(group)):
            self._show(group, end, window.live(end))
        window.forget_before(window.end_after(window.closed))

    def _show(self, group: int, at: int, rows: list[RowT]) -> None:
        """Show the best of these rows: of one group by count, of every group by value."""
        groups = {group} if self._counts else {*map(self.group_of, rows), *self.emit.shown}
        for each in sorted(groups):
            self.emit.show(at, each, self._best([row for row in rows if self.group_of(row) == each], self._k))

    def _best(self, rows: list[RowT], k: int) -> list[ItemT]:
        items = self.ranked(rows)
        return [item for item, rank in zip(items, self.ranks(items), strict=True) if rank <= k]

    def _take_answer(self) -> AnswerT:
        lines, self.emit.lines = self.emit.lines, []
        held = {row.position for row in self.rows()}
        self.emit.entered = {key for key in self.emit.entered if held.issuperset(key)}
        return self.answer(lines)

    # -- renumbering codes --------------------------------------------------------------------------------------------

    def rows(self) -> list[RowT]:
        """All rows that are held."""
        return [held.row for window in self.windows.values() for held in window.rows]

    def replace_rows(self, change: Callable[[RowT], RowT]) -> None:
        for window in self.windows.values():
            window.rows = [held._replace(row=change(held.row)) for held in window.rows]

    def groups(self) -> set[int]:
        """The groups that have rows, that the last answer shows, or that count rows."""
        return {*map(self.group_of, self.rows()), *self.emit.shown, *(self.windows if self._counts else ())}

    def rename_groups(self, code: Mapping[int, int]) -> None:
        """Give groups their new codes, and drop those that have none."""
        self.emit.shown = {code[group]: items for group, items in self.emit.shown.items() if group in code}
        if self._counts:
            dropped = (window.unranked for group, window in self.windows.items() if group not in code)
            self._unranked_before += sum(dropped)
            self.windows = {code[group]: window for group, window in self.windows.items() if group in code}


def live(codes: set[int]) -> npt.NDArray[np.bool_]:
    """For each code: is it one of these?"""
    return np.array([code in codes for code in range(max(codes, default=-1) + 1)], np.bool_)


def measured(time: Ints, first: int, count: int) -> Iterable[int]:
    """What the window measures of each row of a batch: its time, or if there are no times its arrival number."""
    return time.tolist() if len(time) else range(first, first + count)
