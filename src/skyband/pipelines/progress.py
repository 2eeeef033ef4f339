"""The display of a running pipeline: a line for each query that changes in place; plain lines; or JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from skyband.pipelines.figures import Figures

_PLAIN_SECONDS: Final = 1.0  # from one line about a query to the next


class View(Protocol):
    """Where news goes."""

    def news(self, figures: Figures) -> None:
        """A micro-batch of a query is done, or the query has ended."""
        ...

    def show(self, what: Any) -> None:
        """Something to print: an answer, a word to the user."""
        ...


@contextmanager
def open_view(console: Console, *, as_json: bool) -> Iterator[View]:
    if as_json:
        yield JsonView(console)
        return
    if not console.is_terminal:
        view = PlainView(console)
        yield view
        view.close()
        return
    live = LiveView(console)
    with Live(console=console, get_renderable=live.render, refresh_per_second=4):
        yield live


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """For what is said before the first answer: what takes its time (it ends in …) is a line that moves, and goes, on a
    terminal; elsewhere, and whatever else is said, a line that stays."""
    console = Console(stderr=True)
    say = partial(console.print, soft_wrap=True, highlight=False, markup=False)
    if not console.is_terminal:
        yield say
        return
    with console.status("") as status:
        yield lambda text: status.update(escape(text)) if text.endswith("…") else say(text)


class LiveView:
    """A table with a line for each query; what else is shown scrolls by above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._figures: dict[str, Figures] = {}

    def news(self, figures: Figures) -> None:
        self._figures[figures.query] = figures

    def show(self, what: Any) -> None:
        self._console.print(what)

    def render(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in ("query", "rows/s", "rows in", "behind", "held", "late", "set aside", "batch"):
            table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
        for figures in self._figures.values():
            table.add_row(Text(figures.query, "bold" if figures.up else "dim"), *_cells(figures).values())
        return table


class PlainView:
    """A line now and then for each query, and one at its end."""

    def __init__(self, console: Console, seconds: float = _PLAIN_SECONDS, clock: Callable[[], float] = time.monotonic):
        self._console, self._seconds, self._clock = console, seconds, clock
        self._told: dict[str, float] = {}
        self._waiting: dict[str, Figures] = {}

    def news(self, figures: Figures) -> None:
        self._waiting[figures.query] = figures
        now = self._clock()
        if not figures.up or now - self._told.get(figures.query, -self._seconds) >= self._seconds:
            self._tell(figures, now)

    def show(self, what: Any) -> None:
        self._console.print(what)

    def close(self) -> None:
        for figures in [*self._waiting.values()]:
            self._tell(figures, self._clock())

    def _tell(self, figures: Figures, now: float) -> None:
        del self._waiting[figures.query]
        self._told[figures.query] = now
        cells = ", ".join(f"{name} {value}" for name, value in _cells(figures).items())
        end = "" if figures.up else " (ended)"
        self._console.print(f"{figures.query}: {cells}{end}", soft_wrap=True, highlight=False, markup=False)


class JsonView:
    """An object a line for each micro-batch of each query; what is shown to people is left out."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def news(self, figures: Figures) -> None:
        now = datetime.now(UTC)
        line = {"at": now.isoformat(), **figures.as_json(now)}
        self._console.print(json.dumps(line), soft_wrap=True, highlight=False, markup=False)

    def show(self, what: Any) -> None:
        pass


def _cells(figures: Figures) -> dict[str, str]:
    lag = figures.lag_seconds(datetime.now(UTC))
    return {
        "rows/s": f"{figures.rows_per_second:,.0f}",
        "rows in": f"{figures.rows_in:,}",
        "behind": "–" if lag is None else span(lag),
        "held": f"{figures.rows_held:,}",
        "late": f"{figures.rows_late:,}",
        "set aside": f"{figures.rows_set_aside:,}",
        "batch": str(figures.batch),
    }


def span(seconds: float) -> str:
    """A length of time at a glance.

    >>> [span(seconds) for seconds in (0.25, 75, 7200, 400000)]
    ['0.2 s', '75 s', '120 min', '5 d']
    """
    for unit, length, most in (("s", 1, 120), ("min", 60, 7_201), ("h", 3_600, 172_800)):
        if abs(seconds) < most:
            return f"{seconds / length:.1f} {unit}" if abs(seconds) < 10 else f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
