"""What a row costs the algorithms for many queries, piece by piece: the planner adds the pieces up.

The figures come with the package, and `skyband calibrate --many` measures them on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from skyband.planner import figures

FILE: Final = "many_costs.json"

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
}


@dataclass(frozen=True)
class ManyCosts:
    """Nanoseconds for each of PIECES."""

    machine: str
    ns: Mapping[str, float]

    def score(self, columns: int) -> float:
        return self.ns["score"] + self.ns["score_column"] * columns

    def lay(self, columns: int) -> float:
        return self.ns["lay"] + self.ns["lay_column"] * columns


def cache_file() -> Path:
    return figures.cache_file(FILE)


def _grid() -> dict[str, Any]:
    return {"pieces": list(PIECES)}


def write(costs: ManyCosts, path: Path) -> None:
    figures.write(path, costs.machine, _grid(), costs.ns)


def read(path: Path) -> ManyCosts:
    return ManyCosts(*figures.read(path, _grid(), "skyband calibrate --many"))


@cache
def known_many_costs() -> ManyCosts:
    return figures.known(FILE, read)
