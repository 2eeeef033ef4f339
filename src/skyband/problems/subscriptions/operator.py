"""What operators for many queries take and give: flat arrays in, flat arrays out. An answer's groups are queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from skyband.core.operator import WINDOWS, Answer, Floats, Ints, Operator
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.drivers.scoring import Scoring
from skyband.windows import Ticks


@dataclass(frozen=True, slots=True)
class Spec:
    """What is the same for all queries, in numbers."""

    window: Ticks  # of the query that looks back furthest
    scoring: Scoring
    emit: int = WINDOWS
    k: int | None = None  # of all queries; None: each has its own
    backfill: bool = False  # do queries that come later see the rows of the window?
    own_slides: bool = False  # have queries slides of their own, each so many times the window's?

    @property
    def slides_with_each_arrival(self) -> bool:
        return self.window.every == 0


class Queries(NamedTuple):
    """What is different, one entry per query."""

    k: Ints
    size: Ints  # in ticks, at most the window's
    every: Ints  # in ticks, so many times the window's slide, and at most the size; 0: with each arrival
    parameters: Floats  # by column that the score reads of a query, then by query; null is NaN


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    columns: Floats  # by column that the score reads of a row, then by row; null is NaN
    time: Ints  # what the window measures, within ±FOREVER; empty in a window of arrivals
    first: int


class ManyOperator(Operator[Batch, Answer], Protocol):
    """An algorithm for many queries at once, running. They are numbered from 0, in the order in which they came."""

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        """More queries, numbered on. They see the rows from now on; with `backfill` those in the window, too.

        Returns what these show: without a slide an answer is due at once.
        """
        ...

    def compact(self, kept: Ints) -> None:
        """Query kept[i] becomes query i; the others are forgotten. `kept` is ascending."""
        ...

    def top(self, k: int | None, size: int | None) -> Answer:
        """The best rows right now for each query: its k or the smaller one given, of its window or the last `size`."""
        ...

    def held(self) -> Ints:
        """The positions of the rows this operator may still show, ascending."""
        ...

    def rows_held(self) -> int:
        """How many those are, or a little more: without counting them one by one."""
        ...


ManyAlgorithm = Algorithm[Spec, ManyOperator]
