"""Rows in boxes: neighbouring queries look only into the boxes that can contain rows for them.

Paper:      after the grids of Mouratidis and Papadias (TKDE 2007) and Pripužić et al. (TODS 2015, section 6.1). Here
            the boxes index the rows of a block, each box as narrow as its rows; queries are never re-indexed.
Invariant:  as `drivers/thresholds.py`; every row lies in its box, and every box in a run of boxes.
Cost:       up to 16 neighbouring queries meet each run of boxes once per block, then the boxes of the runs that can
            contain a hit, then the rows of such boxes. Each query scores the remaining rows: about 60 of 10,000, with
            10,000 queries whose lists cover a thousandth of the space.
Choose it:  there are many queries, and few columns bound the score.
"""

from __future__ import annotations

from skyband.core.options import Count, CountOrNone, Deviations
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.algorithms.boxes.state import ROWS, Boxes
from skyband.problems.subscriptions.drivers.kernels.lists import SLACK
from skyband.problems.subscriptions.drivers.thresholds import FEW, HITS, PARTS, Thresholds
from skyband.problems.subscriptions.operator import Spec

NAME = "boxes"


def refuses(spec: Spec) -> str | None:
    score = spec.scoring.score
    if not score.columns or score.bound is None:
        return "it cannot bound the score, which reads no columns or uses more than + - * / abs sqrt and squares"
    return None


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
    """A box has about `rows` rows. `together` queries are asked together; 0: as many as are neighbours."""
    return Thresholds(spec, Boxes(spec.scoring, rows, together), slack=slack, hits=hits, parts=parts, few=few)


ALGORITHMS = (Algorithm(NAME, open, refuses),)
