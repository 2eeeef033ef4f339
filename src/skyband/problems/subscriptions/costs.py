"""What a row costs the algorithms for subscriptions, step by step. The planner adds the steps up.

The package comes with figures; `skyband calibrate --subscriptions` measures them on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from skyband.core import cost_files

PIECES: Final = {
    "score": "to score a row for a query",
    "score_column": "… and for each column that the score reads",
    "lay": "to put a row into its box",
    "lay_column": "… and for each column",
    "bound": "for a row and a query: to pass over boxes",
    "met": "for a row and each query that it meets in its cell",
    "drawn": "for a row and a query: to draw the grid again now and then",
    "listed": "to put a row into a query's list, and to remove it",
    "shared": "to put a row into the band of all queries",
    "score_group": "… or into the band of the queries that see it",
}


@dataclass(frozen=True)
class SubscriptionCosts:
    """How many nanoseconds each of PIECES takes on a machine."""

    machine: str
    ns: Mapping[str, float]

    def score(self, columns: int) -> float:
        return self.ns["score"] + self.ns["score_column"] * columns

    def lay(self, columns: int) -> float:
        return self.ns["lay"] + self.ns["lay_column"] * columns


_file = cost_files.File(
    "subscriptions",
    {"pieces": list(PIECES)},
    "skyband calibrate --subscriptions",
    SubscriptionCosts,
)
cache_file, write, read, known_subscription_costs = _file.cache_file, _file.write, _file.read, cache(_file.known)
