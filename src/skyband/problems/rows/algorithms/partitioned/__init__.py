"""Self-adaptive partitioning: exact top-k with each arrival, at much the same cost whatever the order of scores.

Paper:      later work known as SAP (self-adaptive partitioning); we worked it out from its idea, not from its text.
Invariant:  every live row at or before a threshold is in one ranked list, of k to k + 2 slack rows if there are so
            many; every other row that may be shown is in its partition, sorted once that has closed.
Cost:       push O(1) for a row below the threshold, O(k + slack) for one above it; closing a partition O(log m) a row;
            lowering the threshold, once in `slack` rows that expire, O(sqrt(n/k) + slack), and O(sqrt(n/k)) each time
            that the next row comes from another partition. State: the rows of each partition that fewer than k later
            ones of it outrank, nor k of a later partition, a quarter as many in gaps, and a partition of
            m = 2 sqrt(n k) rows: on random order about the k-skyband and m; the whole window and m when scores fall.
Choose it:  you want an answer with each arrival, and scores may fall for a long time.
"""

from __future__ import annotations

import math

from skyband.core.options import Count
from skyband.problems.rows.algorithms import relaxed
from skyband.problems.rows.algorithms.partitioned.state import Partitioned
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "partitioned"


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The k-skyband, a quarter as many rows in gaps, and half a partition."""
    if spec.window.endless:
        return min(spec.k, window_rows)
    return min(window_rows, 1.25 * relaxed.expected_rows(spec, window_rows) + math.sqrt(spec.k * window_rows))


def open(spec: Spec, *, partition: Count = 64, slack: Count = 64, initial_room: Count = 1024) -> Partitioned:
    return Partitioned(spec, partition=partition, slack=slack, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, expected_rows=expected_rows),)
