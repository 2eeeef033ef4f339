"""How Spark distributes a query: over buckets by a key, or in one bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skyband.core.emit import gives_windows
from skyband.windows import Ticks


@dataclass(frozen=True, slots=True)
class Distribution:
    """Does a query run in several buckets, and why?"""

    is_spread: bool
    why: str


# A bucket does not know when the last row of all buckets comes, nor whether other buckets have rows when it has none.
FROM_THE_START: Final = Distribution(
    False, "in one bucket: a window from the start on is shown as long as rows come, of whatever key"
)


def by_pane(ticks: Ticks) -> bool:
    """Does each answer belong to a window by value that closes?"""
    return ticks.closes_by_value


def by_its_rows(ticks: Ticks) -> bool:
    """Does the answer of a window depend only on the rows that it shows, and on time?

    In a window of arrivals, and without a slide, a row also matters to queries that do not select it. A landmark window
    shows an answer as long as any row comes.
    """
    return by_pane(ticks) and not ticks.endless


def shows_without_rows(ticks: Ticks, emit: str | None) -> bool:
    """Does a window show an answer for a key even if no new row has the key? Landmark windows do."""
    return by_pane(ticks) and ticks.endless and gives_windows(emit)


def merged_by_window(ticks: Ticks, emit: str | None, how: str) -> Distribution:
    """Distribute over buckets, as `how` says, if their answers about each window can be merged."""
    if not by_pane(ticks) or not gives_windows(emit):
        return Distribution(False, "in one bucket: answers do not come window by window")
    return FROM_THE_START if shows_without_rows(ticks, emit) else Distribution(True, how)
