"""Naive: each row has its k best pairs with older rows; when one of these leaves the window, all are scored again.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, section 7.1.2 (Naive).
Invariant:  every row has its k best pairs with older rows of the window, so the k best of all are among these.
Cost:       push O(n), and O(n) for each row that had a pair with the row that left: about k ln(n/k) of them; state k n.
Choose it:  for comparisons only.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs.naive.state import Naive

NAME = "naive"
MOST = 10_000  # as k


def refuses(spec: Spec) -> str | None:
    return f"k is above {MOST:,}, and it keeps the k best partners of each row" if spec.k > MOST else None


def open(spec: Spec) -> Naive:
    return Naive(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, for_comparing=True),)
