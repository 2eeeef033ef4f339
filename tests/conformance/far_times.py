"""Streams moved to the two ends of time, where an end of a window or of a row may lie beyond every time of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from oracle import Advance

FARTHEST: Final = 2**62 - 1  # no row may have a time beyond it, on either side of zero
EDGES: Final = (None, None, None, FARTHEST, -FARTHEST)  # None: where it is


def moved(events: Sequence[Any], edge: int | None) -> list[Any]:
    """The same events, so far away that the latest row, or the earliest, is at `edge`; None: where they are."""
    times = [event.time for event in events if getattr(event, "time", None) is not None]
    if edge is None or not times:
        return list(events)
    far = edge - (max(times) if edge > 0 else min(times))
    return [_later(event, far) for event in events]


def _later(event: Any, by: int) -> Any:
    if isinstance(event, Advance):
        return Advance(max(-FARTHEST, min(FARTHEST, event.watermark + by)))  # no watermark is beyond either
    return event._replace(time=event.time + by) if getattr(event, "time", None) is not None else event
