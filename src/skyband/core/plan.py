"""The result of the chooser for every problem: what will run, and the alternatives."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOOK_SNAPSHOT = "it took the snapshot"


@dataclass(frozen=True, slots=True)
class Choice:
    """One algorithm, or one plan of a join, considered."""

    algorithm: str
    refused: str | None = None  # why it cannot answer the query
    rows: float = math.nan  # expected to be held per group, on random order; NaN if it cannot, or if nobody knows
    ns: float = math.nan  # expected to be spent on a row; NaN if it cannot, or if nobody knows
    for_comparing: bool = False  # never chosen


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run, and what else was considered."""

    algorithm: str
    why: str
    rows: float
    ns: float
    window_rows: float
    assumed: bool  # nobody said how many rows a window holds, or what the inputs are like
    considered: tuple[Choice, ...]
    pairs: float = 0.0  # expected to be held, if scores come in random order

    @classmethod
    def fixed(cls, algorithm: str, why: str) -> Plan:
        """Where nothing else can be considered."""
        return cls(algorithm, why, math.nan, math.nan, math.nan, False, ())

    @property
    def base(self) -> str:
        """The algorithm without its options."""
        return self.algorithm.partition("(")[0].strip()

    @property
    def assumption(self) -> str:
        """Behind a number in words, that nobody has said it."""
        return " (assumed)" if self.assumed else ""
