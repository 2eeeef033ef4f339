"""Thresholds with rows in boxes: a query looks only into those that can hold something for it.

Paper:      after the grids of Mouratidis and Papadias (TKDE 2007) and Pripužić et al. (TODS 2015, section 6.1); here it
            is the rows of a block that are put into boxes, as narrow as they are, and no query is ever indexed again.
Invariant:  as `thresholds`; a box lies in a run of boxes, and a row in its box.
Cost:       queries that are near each other, up to 16 of them, meet each run of boxes once a block, then the boxes of
            the runs they can find something in, then the rows of such boxes; each query is scored for the rows that are
            left. Of 10,000 rows, with as many queries whose lists cover a thousandth of the space, these are about 60.
Choose it:  there are many queries, and what a score can be is known from few columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.core.options import Count, CountOrNone, Deviations
from skyband.core.registry import Algorithm
from skyband.kernels.compiling import kernel, part
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import BLOCK, Scoring
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "boxes"

ROWS = 40  # in a box, about
SPLIT = 4  # columns at most by which rows are split
TOGETHER = 16  # queries that are asked together, if there are many
SAMPLE = 512  # values from which it is known where to split
FULLEST = 4  # times as many rows as should be in a box: then it is asked again where to split
TOO_FULL = -1


def refuses(spec: Spec) -> str | None:
    score = spec.scoring.score
    if not score.columns or score.bound is None:
        return "what a score can be is not known: it has no columns, or more in it than + - * / abs sqrt and squares"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The rows of the window, once for all queries."""
    return window_rows


def open(
    spec: Spec,
    *,
    slack: Deviations = SLACK,
    hits: Count = HITS,
    parts: Count = PARTS,
    few: Count = FEW,
    rows: Count = ROWS,
    together: CountOrNone = 0,
) -> Thresholds:
    """`rows` in a box; `together`: queries that are asked together, 0: as many as there are neighbours."""
    return Thresholds(spec, Boxes(spec.scoring, rows, together), slack=slack, hits=hits, parts=parts, few=few)


class Laid(NamedTuple):
    """Rows in boxes, in arrays that are longer than what is in them."""

    columns: Floats  # by column, then by row, box after box
    order: Ints  # which row it was
    starts: Ints  # of boxes among rows, and where the last one ends
    low: Floats  # by column, then by box; NaN in the last box, in which are rows that are not finite
    high: Floats
    runs: Ints  # of runs among boxes, and where the last one ends
    low_run: Floats
    high_run: Floats


class Room(NamedTuple):
    """For putting rows into boxes."""

    box: Ints  # by row
    size: Ints  # by box: its rows
    number: Ints  # by box: how many before it have rows
    following: Ints  # by box with rows: where its next row goes


class Boxes:
    def __init__(self, scoring: Scoring, rows: int, together: int) -> None:
        self._scoring = scoring
        self._rows = rows
        self._together = together
        self._columns, self._first = np.empty((0, 0)), 0
        self._parts, self._cuts, self._fullest = 0, np.empty((0, 0)), 0
        self._runs = 0
        self._make_room(0, 0)

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """Queries that are near each other one after the other: cut into strips by one parameter, these by the next."""
        values, n = parameters[:SPLIT, which], len(which)
        parts, strip = math.ceil((n / TOGETHER) ** (1 / max(1, len(values)))), np.zeros(n, np.int64)
        order = np.arange(n)
        for c in range(len(values)):
            order = np.lexsort((values[c], strip))
            strip[order] = np.arange(n) * parts ** (c + 1) // n
        return which[order]

    def lay(self, columns: Floats, first: int, end: int) -> None:
        n = end - first
        split = min(len(columns), SPLIT)
        parts = max(1, round((n / self._rows) ** (1 / split)))
        self._columns, self._first = columns, first
        if n > len(self._near) or parts**split > len(self._in_box):
            self._make_room(n, parts**split)
        # Where rows are spread as those before them, the cuts do as well.
        self._runs = TOO_FULL
        if parts == self._parts:
            self._runs = lay_boxes(columns, first, end, self._cuts, parts, self._fullest, self._laid, self._room)
        if self._runs == TOO_FULL:
            self._parts, self._cuts = parts, self._cut(columns[:split, first:end], parts)
            self._runs = lay_boxes(columns, first, end, self._cuts, parts, n, self._laid, self._room)
            # Columns may depend on each other, so that no cuts make all boxes alike.
            self._fullest = max(FULLEST * self._rows, 2 * int(self._room.size[: parts**split].max()))

    def _cut(self, columns: Floats, parts: int) -> Floats:
        """Where parts of each column begin, so that each has about as many rows."""
        sample = np.sort(columns[:, :: max(1, columns.shape[1] // SAMPLE)], axis=1)
        cuts = np.full((len(columns), -(-(parts - 1) // 4) * 4), np.inf)  # to no finite row do the last ones matter
        cuts[:, : parts - 1] = sample[:, np.arange(1, parts) * sample.shape[1] // parts]
        return cuts

    def _make_room(self, rows: int, boxes: int) -> None:
        """What is kept from block to block: to have the system find so much memory each time would take longer."""
        width = len(self._columns)
        boxes += 2  # one for rows that are not finite, and an end
        ends = (np.empty((width, boxes)) for _ in range(4))
        self._laid = Laid(
            np.empty((width, rows)), np.empty(rows, np.int64), np.empty(boxes, np.int64), next(ends), next(ends),
            np.empty(boxes, np.int64), next(ends), next(ends),
        )  # fmt: skip
        self._room = Room(np.empty(rows, np.int64), *(np.empty(boxes, np.int64) for _ in range(3)))
        self._near, self._others = np.empty(rows, np.int64), np.empty(rows, np.int64)
        self._scores, self._found = np.empty(rows), np.empty((width, rows))
        self._in_run, self._in_box = np.empty(boxes, np.bool_), np.empty(boxes, np.bool_)

    def sweep(self, parameters: Floats, threshold: Floats, which: Ints, begin: int, hits: Hits) -> tuple[int, int]:
        # Of few among many, neighbours are far from each other.
        together = self._together or min(TOGETHER, max(1, len(which) // 512))
        found: tuple[int, int] = self._scoring.sweep_boxes(
            *self._laid._replace(runs=self._laid.runs[: self._runs + 1]),
            *(self._columns, self._first, parameters, threshold, which, begin, together),
            *(hits.row, hits.score, hits.ends),
            *(self._scores, self._in_run, self._in_box, self._near, self._others, self._found),
        )
        return found


@kernel
def lay_boxes(columns, first, end, cuts, parts, most, laid, room):
    """Put rows into parts ** len(cuts) boxes by where the cuts are, and those that are not finite into one more.

    Boxes that share a part of the first column are a run. Empty ones are left out. Returns how many runs there are, or
    TOO_FULL if a box would have more than the most rows.
    """
    n, width, split = end - first, len(columns), len(cuts)
    boxes = parts**split
    find_boxes(columns, first, end, cuts, parts, room.box)
    room.size[: boxes + 1] = 0
    for i in range(n):
        room.size[room.box[i]] += 1
    for b in range(boxes):
        if room.size[b] > most:
            return TOO_FULL
    # From here on, boxes are those with rows.
    used, rows, runs, run_before = 0, 0, 0, -1
    for b in range(boxes + 1):
        room.number[b] = used
        if room.size[b] > 0:
            run = b * parts // boxes
            if run != run_before:
                laid.runs[runs] = used
                runs += 1
                run_before = run
            laid.starts[used] = room.following[used] = rows
            rows += room.size[b]
            used += 1
    laid.starts[used], laid.runs[runs] = rows, used
    for i in range(n):
        b = room.number[room.box[i]]
        laid.order[room.following[b]] = i
        room.following[b] += 1
    for c in range(width):
        for i in range(n):
            laid.columns[c, i] = columns[c, first + laid.order[i]]
        ends_of(laid.columns[c], laid.starts, used, laid.low[c], laid.high[c])
        if room.size[boxes] > 0:
            laid.low[c, used - 1] = laid.high[c, used - 1] = np.nan
        for r in range(runs):
            b = laid.runs[r]
            laid.low_run[c, r], laid.high_run[c, r] = laid.low[c, b], laid.high[c, b]  # if it is NaN, it has one box
            for b in range(laid.runs[r] + 1, laid.runs[r + 1]):
                laid.low_run[c, r] = min(laid.low_run[c, r], laid.low[c, b])
                laid.high_run[c, r] = max(laid.high_run[c, r], laid.high[c, b])
    return runs


@part
def find_boxes(columns, first, end, cuts, parts, box):
    """The number of each row's box; behind the last one if it is not finite."""
    n, split = end - first, len(cuts)
    for begin in range(0, n, BLOCK):
        some = box[begin : min(n, begin + BLOCK)]
        some[:] = 0
        for c in range(split):
            values = columns[c, first + begin : first + begin + len(some)]
            for i in range(len(some)):
                some[i] *= parts
            for cut in range(0, cuts.shape[1], 4):  # four at a time: what takes long is to write the sums down
                a, b, x, y = cuts[c, cut], cuts[c, cut + 1], cuts[c, cut + 2], cuts[c, cut + 3]
                for i in range(len(some)):
                    value = values[i]
                    some[i] += (value >= a) + (value >= b) + (value >= x) + (value >= y)
    for c in range(len(columns)):
        values = columns[c, first:end]
        outside = 0
        for i in range(n):
            outside += not abs(values[i]) < np.inf
        if outside > 0:
            for i in range(n):
                if not abs(values[i]) < np.inf:
                    box[i] = parts**split


@part
def ends_of(values, starts, boxes, low, high):
    """The least and the largest value in each box; two by two, since each has to wait for the one before."""
    for b in range(boxes):
        begin, end = starts[b], starts[b + 1]
        least = most = other_least = other_most = values[begin]
        for i in range(begin + 1, end - 1, 2):
            value, other = values[i], values[i + 1]
            least = value if value < least else least
            most = value if value > most else most
            other_least = other if other < other_least else other_least
            other_most = other if other > other_most else other_most
        value = values[end - 1]  # once more, or else it has not been
        least, most = min(least, value), max(most, value)
        low[b], high[b] = min(least, other_least), max(most, other_most)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
