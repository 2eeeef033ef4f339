"""K-staircase: the K-skyband of all pairs of a window, and for each row the score that a pair with it must reach.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 5.1 and 6 (SCase: Algorithms 3 and 4).
Invariant:  it holds every pair that fewer than k better pairs outlive. A pair leaves with its older row, so one number
            for each older row says what a pair must reach. The number only rises: one that is out of date rules no
            pair out wrongly.
Cost:       push O(n), one vectorised comparison beside the score of each pair; state n rows and, on random order,
            2k (ln n - ln sqrt k) pairs, at most k n.
Choose it:  any score, if `threshold` cannot be used or does not pay.
"""

from __future__ import annotations

import math

from skyband.core.options import Count
from skyband.problems.pairs.algorithms.staircase.colours import Coloured
from skyband.problems.pairs.algorithms.staircase.state import Staircase
from skyband.problems.pairs.operator import PairAlgorithm, Spec

NAME = "staircase"


def expected_pairs(k: int, rows: float) -> float:
    """The size of the K-skyband of `rows` rows, if scores come in random order.

    >>> round(expected_pairs(20, 10_000), 1)
    308.5
    """
    return max(0.0, min(2 * k * (math.log(max(rows, 1)) - math.log(math.sqrt(k))), rows * (rows - 1) / 2))


def open(
    spec: Spec,
    *,
    batch: Count = 128,
    room: Count = 8192,
    step: Count = 8,
    share: Count = 8,
    least: Count = 256,
    lookup_cost: Count = 16,
) -> Staircase:
    """`share`, `least` and `lookup_cost` are for pairs of the same colour: see colours.py."""
    if spec.scoring.same:
        return Coloured(spec, batch=batch, room=room, step=step, share=share, least=least, lookup_cost=lookup_cost)
    return Staircase(spec, batch=batch, room=room, step=step)


ALGORITHMS = (PairAlgorithm(NAME, open),)
