"""What the demo shows: a ranked table that changes in place, or plain lines when nobody is watching."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from skyband.leaderboard import Column, Leaderboard, Row

TITLE: Final = "Top 10 trades by price × volume, of the last 10 minutes, every minute"
_COLUMNS: Final = (
    Column("symbol", lambda value: Text(value, "cyan"), width=6),
    Column("price", lambda value: f"{value:,.2f}", is_number=True, width=8),
    Column("volume", lambda value: f"{value:,}", is_number=True, width=7),
    Column("score", lambda value: f"{value:,.0f}", "price × volume", is_number=True),
    Column("ts", lambda value: f"{value:%H:%M:%S.%f}"[:-3], "traded at", width=12),
)
_IDENTITY: Final = ("ts", "symbol", "price", "volume")
_ROWS: Final = 10
_PLAIN_ROWS: Final = 3  # of each window, when there is a line for it


class View(Protocol):
    def phase(self, what: str, total: int | None = None) -> None:
        """The next part of the work begins; `total` rows of it are known."""
        ...

    def rows(self, done: int) -> None: ...

    def answers(self, table: pa.Table) -> None:
        """Windows that have just closed."""
        ...


def windows_of(table: pa.Table) -> Iterator[list[Row]]:
    """The rows of each window, best first, in the order of the windows."""
    if not table.num_rows:
        return
    rows = table.sort_by([("window_end", "ascending"), ("rank", "ascending")]).to_pylist()
    while rows:
        length = sum(row["window_end"] == rows[0]["window_end"] for row in rows)
        yield rows[:length]
        rows = rows[length:]


@contextmanager
def open_view(console: Console, pause: float | None) -> Iterator[View]:
    """A live table on a terminal, with a pause after each window so that eyes can follow; else lines."""
    if not console.is_terminal:
        console.print(TITLE)
        yield PlainView(console)
        return
    view = LiveView(console, 0.15 if pause is None else pause)
    with Live(console=console, get_renderable=view.render, refresh_per_second=12):
        yield view


class PlainView:
    """A line for each phase and each window."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def phase(self, what: str, total: int | None = None) -> None:
        self._console.print(what if total is None else f"{what} ({total:,})")

    def rows(self, done: int) -> None:
        pass

    def answers(self, table: pa.Table) -> None:
        for window in windows_of(table):
            best = "  ".join(f"{row['rank']}. {row['symbol']} {row['score']:,.0f}" for row in window[:_PLAIN_ROWS])
            self._console.print(f"{span(window[0])}  {best}  …", soft_wrap=True, highlight=False)


class LiveView:
    """The last closed window, what moved since the one before, and how far the stream is."""

    def __init__(self, console: Console, pause: float) -> None:
        self._console = console
        self._pause = pause
        self._board = Leaderboard(TITLE, _COLUMNS, identity=_IDENTITY, rows=_ROWS)
        self._board.show([], "no window has closed yet")
        self._closed = 0
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            _RowsColumn(),
            TimeElapsedColumn(),
            console=console,
            expand=True,
        )
        self._task = self._progress.add_task("", total=None)

    def phase(self, what: str, total: int | None = None) -> None:
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total)

    def rows(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def answers(self, table: pa.Table) -> None:
        for window in windows_of(table):
            self._closed += 1
            self._board.show(window, f"{span(window[0])} UTC, window {self._closed}")
            time.sleep(self._pause)

    def render(self) -> Group:
        return Group(self._board.render(self._console.width), self._progress)


class _RowsColumn(ProgressColumn):
    """Rows done, if they are counted."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}", no_wrap=True)


def span(row: Row) -> str:
    return f"{row['window_start']:%H:%M}–{row['window_end']:%H:%M}"
