"""What a row costs the algorithms for subscriptions, piece by piece: the planner adds the pieces up.

The figures come with the package, and `skyband calibrate --subscriptions` measures them on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from skyband.core import cost_files

PIECES: Final = {
    "score": "for a row and a query",
    "score_column": "and for each column that the score reads",
    "lay": "to put a row into its box",
    "lay_column": "and for each column",
    "bound": "for a row and a query: boxes that are passed over",
    "met": "for a row and each query that it meets in its cell",
    "drawn": "for a row and a query: the grid, which is made anew now and then",
    "listed": "for a row that comes into a query's list, and goes",
    "shared": "to put a row into the band of all queries",
    "score_group": "or into that of the queries that see it",
}


@dataclass(frozen=True)
class SubscriptionCosts:
    """Nanoseconds for each of PIECES."""

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
