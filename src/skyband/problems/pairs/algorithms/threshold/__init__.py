"""Threshold algorithm: a new row looks only at the pairs that may reach the staircase.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 5.2 (TA: Algorithm 5).
Invariant:  that of `staircase`. All rows but the latest are listed by value, for each column whose distance the score
            depends on; no pair that was not scored could reach what pairs of listed rows must reach.
Cost:       push sees about n^(d/(d+1)) pairs for d distances; state n rows, their place in d lists, and the skyband.
Choose it:  the score only rises or only falls with each distance |a.x - b.x|, has few columns, and windows are large.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.pairs.algorithms.threshold.state import Threshold
from skyband.problems.pairs.operator import Spec

NAME = "threshold"


def refuses(spec: Spec) -> str | None:
    if spec.scoring.score.distances is None:
        return "the score does not only rise or only fall with distances such as abs(a.x - b.x)"
    return None


def open(
    spec: Spec,
    *,
    batch: Count = 128,
    room: Count = 8192,
    step: Count = 8,
    share: Count = 8,
    least: Count = 256,
    lookup_cost: Count = 16,
) -> Threshold:
    return Threshold(spec, batch=batch, room=room, step=step, share=share, least=least, lookup_cost=lookup_cost)


ALGORITHMS = (Algorithm(NAME, open, refuses),)
