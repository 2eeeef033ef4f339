"""Supreme: score every new pair once and do nothing else, as if an oracle did the rest in no time.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 7.1.2: the lower bound of algorithms for any score.
Invariant:  none: nothing is ranked, so no query can be answered.
Cost:       push O(n), with the loop of `staircase` but for its comparison; state n rows.
Choose it:  never; benchmarks measure the others against it.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs.supreme.state import Supreme

NAME = "supreme"


def refuses(spec: Spec) -> str | None:
    return "it only scores pairs and ranks none: it is the lower bound that benchmarks compare with"


def open(spec: Spec) -> Supreme:
    return Supreme(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, exact=False, for_comparing=True),)
