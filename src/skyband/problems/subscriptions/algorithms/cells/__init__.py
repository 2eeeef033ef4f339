"""Queries in a grid: a row meets only the queries whose threshold it can reach in its cell.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 6.1: a regular grid over the space of the rows; each
            cell lists the queries that a row in it may concern, and follows the thresholds. Here each cell has about
            the same number of rows, which the paper suggests for uneven data.
Invariant:  as `drivers/thresholds.py`; a query is in the list of every cell in which a row can reach the threshold that
            the grid knows of it. Once its threshold has fallen below that, it is in a list that every row meets.
Cost:       a row finds its cell, and is scored for the queries of the cell: slightly more than it concerns, if cells
            are about as wide as the queries' range. The grid is rebuilt when a quarter of all thresholds have moved.
Choose it:  there are thousands of queries, each sees a small range, and a score has few columns.
"""

from __future__ import annotations

from skyband.core.options import Count, Deviations, PartsOrBest
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.algorithms.boxes import refuses
from skyband.problems.subscriptions.algorithms.cells.state import Cells
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "cells"


def open(
    spec: Spec,
    *,
    slack: Deviations = SLACK,
    hits: Count = HITS,
    parts: Count = PARTS,
    few: Count = FEW,
    resolution: PartsOrBest = 0,
) -> Thresholds:
    """Each column is divided into `resolution` parts; 0: so many that there are about CELLS cells."""
    return Thresholds(spec, Cells(spec.scoring, resolution), slack=slack, hits=hits, parts=parts, few=few)


ALGORITHMS = (Algorithm(NAME, open, refuses),)
