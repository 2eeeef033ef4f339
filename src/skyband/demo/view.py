"""What the demo shows: a ranked table that changes in place, or plain lines when nobody is watching."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, JustifyMethod
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

TITLE: Final = "Top 10 trades by price × volume, of the last 10 minutes, every minute"
_ROWS: Final = 10
_COLUMNS: Final[tuple[tuple[str, JustifyMethod, int], ...]] = (
    ("", "right", 2),
    ("", "left", 3),
    ("symbol", "left", 6),
    ("price", "right", 8),
    ("volume", "right", 7),
    ("price × volume", "right", 14),
    ("traded at", "left", 12),
    ("", "left", 0),
)
_WIDTH_WITHOUT_BAR: Final = 77
_LONGEST_BAR: Final = 30
_PLAIN_ROWS: Final = 3  # of each window, when there is a line for it

Row = dict[str, Any]


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
        self._window: list[Row] = []
        self._ranks_before: dict[tuple[object, ...], int] | None = None
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
            self._ranks_before = {_identity(row): row["rank"] for row in self._window} if self._window else None
            self._window = window
            self._closed += 1
            time.sleep(self._pause)

    def render(self) -> Group:
        return Group(self._table(), self._progress)

    def _table(self) -> Table:
        where = f"{span(self._window[0])} UTC, window {self._closed}" if self._window else "no window has closed yet"
        table = Table(title=Text.assemble((TITLE, "bold"), "\n", where), box=SIMPLE_HEAD, title_style="")
        for name, justify, width in _COLUMNS:
            table.add_column(name, justify=justify, min_width=width)
        bar_width = max(0, min(_LONGEST_BAR, self._console.width - _WIDTH_WITHOUT_BAR))
        best = max((row["score"] for row in self._window), default=1.0)
        for row in self._window:
            table.add_row(
                Text(str(row["rank"]), "bold"),
                self._movement(row),
                Text(row["symbol"], "cyan"),
                f"{row['price']:,.2f}",
                f"{row['volume']:,}",
                f"{row['score']:,.0f}",
                f"{row['ts']:%H:%M:%S.%f}"[:-3],
                Text("━" * round(bar_width * row["score"] / best), "green"),
            )
        for _ in range(_ROWS - len(self._window)):
            table.add_row()
        return table

    def _movement(self, row: Row) -> Text:
        """How the row moved since the window before."""
        if self._ranks_before is None:
            return Text("")
        before = self._ranks_before.get(_identity(row))
        if before is None:
            return Text("new", "bold yellow")
        moved = before - row["rank"]
        if moved == 0:
            return Text("=", "dim")
        return Text(f"▲{moved}", "green") if moved > 0 else Text(f"▼{-moved}", "red")


class _RowsColumn(ProgressColumn):
    """Rows done, if they are counted."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:,.0f} of {task.total:,.0f}", no_wrap=True)


def span(row: Row) -> str:
    return f"{row['window_start']:%H:%M}–{row['window_end']:%H:%M}"


def _identity(row: Row) -> tuple[object, ...]:
    return row["ts"], row["symbol"], row["price"], row["volume"]
