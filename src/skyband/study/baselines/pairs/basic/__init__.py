"""The K-skyband of pairs without a staircase: for each new pair, count which of the pairs held dominate it.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 7.1.4 (basic), with the dominance counters of Mouratidis,
            Bakiras, Papadias, SIGMOD 2006.
Invariant:  that of `staircase_published`; each pair held counts the pairs held that dominate it, fewer than k.
Cost:       push O(n s), to compare each pair of the new row with those held; otherwise as `staircase_published`.
Choose it:  for comparisons only: it shows what the staircase saves.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs.basic.state import Basic
from skyband.study.baselines.pairs.staircase_published import refuses

NAME = "basic"

__all__ = ["ALGORITHMS", "NAME", "open", "refuses"]


def open(spec: Spec, *, initial_room: Count = 64) -> Basic:
    return Basic(spec, initial_room=initial_room)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
