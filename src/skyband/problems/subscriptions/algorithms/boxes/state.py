"""The rows of a block in boxes, and the queries in an order in which neighbours follow each other."""

from __future__ import annotations

import math

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.problems.subscriptions.algorithms.boxes.kernels import TOO_FULL, Laid, Room, lay_boxes
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import Scoring

ROWS = 40  # a box should have about so many rows
SPLIT = 4  # boxes divide at most so many columns
TOGETHER = 16  # if there are many queries, so many are asked together
SAMPLE = 512  # so many values are sampled to say where to cut
FULLEST = 4  # if a box has so many times as many rows as it should, the cuts are drawn again


class Boxes:
    """The index of `boxes`."""

    def __init__(self, scoring: Scoring, rows: int, together: int) -> None:
        self._scoring = scoring
        self._rows = rows
        self._together = together
        self._columns, self._first = np.empty((0, 0)), 0
        self._parts, self._cuts, self._fullest = 0, np.empty((0, 0)), 0
        self._runs = 0
        self._make_room(0, 0)

    def arrange(self, parameters: Floats, which: Ints) -> Ints:
        """Put neighbouring queries next to each other: cut them into strips by one parameter, and these by the next."""
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
        # If rows are spread as in the block before, its cuts still fit.
        self._runs = TOO_FULL
        if parts == self._parts:
            self._runs = lay_boxes(columns, first, end, self._cuts, parts, self._fullest, self._laid, self._room)
        if self._runs == TOO_FULL:
            self._parts, self._cuts = parts, self._cut(columns[:split, first:end], parts)
            self._runs = lay_boxes(columns, first, end, self._cuts, parts, n, self._laid, self._room)
            # If columns depend on each other, no cuts can make all boxes equally full.
            self._fullest = max(FULLEST * self._rows, 2 * int(self._room.size[: parts**split].max()))

    def _cut(self, columns: Floats, parts: int) -> Floats:
        """Where the parts of each column begin, so that all parts have about the same number of rows."""
        sample = np.sort(columns[:, :: max(1, columns.shape[1] // SAMPLE)], axis=1)
        cuts = np.full((len(columns), -(-(parts - 1) // 4) * 4), np.inf)  # cuts at infinity divide no finite rows
        cuts[:, : parts - 1] = sample[:, np.arange(1, parts) * sample.shape[1] // parts]
        return cuts

    def _make_room(self, rows: int, boxes: int) -> None:
        """Allocate the arrays that are kept from block to block: to map so much memory for each block takes longer."""
        width = len(self._columns)
        boxes += 2  # one box for rows that are not finite, and one entry for the end
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
        # If only few of many queries are swept, neighbours are far from each other.
        together = self._together or min(TOGETHER, max(1, len(which) // 512))
        found: tuple[int, int] = self._scoring.sweep_boxes(
            *self._laid._replace(runs=self._laid.runs[: self._runs + 1]),
            *(self._columns, self._first, parameters, threshold, which, begin, together),
            *(hits.row, hits.score, hits.ends),
            *(self._scores, self._in_run, self._in_box, self._near, self._others, self._found),
        )
        return found
