"""The input and output of operators for subscriptions: flat arrays. An answer's groups are queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Answer, Floats, Ints, Operator
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.drivers.scoring import Scoring
from skyband.windows import Ticks


@dataclass(frozen=True, slots=True)
class Spec:
    """What all queries have in common, in numbers."""

    window: Ticks  # of the query that looks back furthest
    scoring: Scoring
    emit: int = WHOLE_CODE
    k: int | None = None  # None: each query has its own
    backfill: bool = False  # do queries that come later see the rows that are in the window already?
    own_slides: bool = False  # has each query its own slide, a multiple of the window's?


class Queries(NamedTuple):
    """What differs between queries, one entry per query."""

    k: Ints
    size: Ints  # in ticks, at most the window's
    every: Ints  # in ticks, a multiple of the window's slide, and at most the size; 0: with each arrival
    parameters: Floats  # by query column that the score reads, then by query; null is NaN


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    columns: Floats  # by row column that the score reads, then by row; null is NaN
    time: Ints  # what the window measures; empty in a window of arrivals
    first: int


class SubscriptionOperator(Operator[Batch, Answer, Ints], Protocol):
    """A running algorithm for subscriptions. Queries are numbered from 0, in the order in which they came."""

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        """Add queries, with the next numbers. They see the rows from now on; with `backfill` those in the window, too.

        Returns their answers: without a slide they are due at once.
        """
        ...


SubscriptionAlgorithm = Algorithm[Spec, SubscriptionOperator]
