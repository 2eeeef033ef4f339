"""Windows before the columns are known: as numbers, and as text for EXPLAIN."""

from __future__ import annotations

from datetime import timedelta

from skyband.kernels.panes import shape_of
from skyband.windows import FOREVER, Ticks, Window


def ticks_of(window: Window) -> Ticks:
    """Durations and numbers mean the same to the planner: it only compares them with each other."""
    size = FOREVER if window.size is None else _number(window.size)
    return Ticks(size, 0 if window.every is None else _number(window.every), 0, window.by_count)


def in_panes(window: Window) -> str:
    """The window in words, and how many panes it is cut into. All rows of a pane are in the same windows."""
    ticks = ticks_of(window)
    if not ticks.slides or ticks.endless:
        return str(window)
    shape = shape_of(ticks.size, ticks.every)
    if shape.rest:
        return f"{window}: {2 * shape.whole + 1} panes, two a slide"
    return f"{window}: {shape.whole} pane{'s' * (shape.whole > 1)}"


def _number(span: int | timedelta) -> int:
    return span if isinstance(span, int) else int(span.total_seconds() * 1_000_000)
