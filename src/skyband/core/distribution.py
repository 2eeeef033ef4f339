"""How Skyband distributes a query on Spark: over buckets by a key whose rows belong together, or in one bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skyband.core.emit import gives_windows
from skyband.windows import Ticks


@dataclass(frozen=True, slots=True)
class Distribution:
    """Over several buckets or not, and why."""

    is_spread: bool
    why: str


# A bucket by itself knows neither when the last row of all comes nor that others have rows where it has none.
FROM_THE_START: Final = Distribution(
    False, "in one bucket: a window from the start on is shown as long as rows come, of whatever key"
)


def by_pane(ticks: Ticks) -> bool:
    """Do answers come at the ends of windows by value?"""
    return ticks.closes_by_value


def by_its_rows(ticks: Ticks) -> bool:
    """Does what a window shows depend on nothing but the rows that it shows, and time?

    In a window of arrivals, and without a slide, a row matters to queries that do not want it; and a window from the
    start on is shown as long as any row comes.
    """
    return by_pane(ticks) and not ticks.endless


def shows_without_rows(ticks: Ticks, emit: str | None) -> bool:
    """Is a window shown even where its key has no new row? So is one from the start on: see `FROM_THE_START`."""
    return by_pane(ticks) and ticks.endless and gives_windows(emit)


def merged_by_window(ticks: Ticks, emit: str | None, how: str) -> Distribution:
    """Over buckets, as `how` says, if what they answer about each window can be merged."""
    if not by_pane(ticks) or not gives_windows(emit):
        return Distribution(False, "in one bucket: answers do not come window by window")
    return FROM_THE_START if shows_without_rows(ticks, emit) else Distribution(True, how)
