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
    """The part of the task that all queries share, in numbers."""

    window: Ticks  # the window of the query that looks back furthest
    scoring: Scoring
    emit: int = WHOLE_CODE
    k: int | None = None  # None: each query has its own k
    backfill: bool = False  # do queries that come later see the rows that are in the window already?
    own_slides: bool = False  # has each query its own slide, a multiple of the window's?


class Queries(NamedTuple):
    """The part that differs between queries, one entry per query."""

    k: Ints
    size: Ints  # in ticks, at most the window's
    every: Ints  # in ticks, a multiple of the window's slide, and at most the size; 0: with each arrival
    parameters: Floats  # by query column that the score reads, then by query; NaN for null


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    columns: Floats  # by row column that the score reads, then by row; NaN for null
    time: Ints  # what the window measures; empty in a window of arrivals
    first: int


class SubscriptionOperator(Operator[Batch, Answer, Ints], Protocol):
    """A running algorithm for subscriptions. Queries are numbered from 0, in the order in which they were added."""

    def add(self, queries: Queries, *, backfill: bool) -> Answer:
        """Add queries; they get the next numbers. They see later rows, and with `backfill` also those in the window.

        Returns their first answers, which are due at once if the window has no slide.
        """
        ...


SubscriptionAlgorithm = Algorithm[Spec, SubscriptionOperator]
