"""Windows in numbers before the columns are known."""

from __future__ import annotations

from skyband.windows import FOREVER, Ticks, Window


def ticks_of(window: Window) -> Ticks:
    """Durations and numbers mean the same to the planner: it only compares them with each other."""
    size = FOREVER if window.size is None else _number(window.size)
    return Ticks(size, 0 if window.every is None else _number(window.every), 0, window.by_count)


def _number(span: object) -> int:
    return span if isinstance(span, int) else int(span.total_seconds() * 1_000_000)  # type: ignore[attr-defined]
