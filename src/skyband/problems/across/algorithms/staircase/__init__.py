"""Staircase: the instances that may still enter an answer, selected by one small staircase over time.

Paper:      ours, after Haghani, Michel, Aberer, CIKM 2009 (EAA) and the staircase of Shen et al., TKDE 2014.
Invariant:  an instance (an object with those of its values that live until some moment) is held unless k objects, sure
            to live as long, score more than it ever can. What objects are sure to score is kept as a k-skyband, whose
            k-th best score is a staircase over time; after pruning, what is held is what EAA holds.
Cost:       push a few passes over the skyband of f = k (1 + ln(n / k)) points, O(log f) amortised for pruning, which
            waits until the state has doubled; state s as EAA's, up to twice that before pruning. If values fall, f = n.
Choose it:  objects come once in each stream while they live, and memory matters.
"""

from __future__ import annotations

import math

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.operator import ONCE, AcrossSpec

NAME = "staircase"


def refuses(spec: AcrossSpec) -> str | None:
    if spec.repeat != ONCE:
        return "an object may come again in a stream, so nothing about it is certain"
    return None


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """As measured with three streams, half in step, k = 10 and windows of 1,000 to a million rows. With one stream, it
    is a skyband."""
    ratio = max(window_rows / spec.k, 1.0)
    return min(window_rows, spec.k * (1 + math.log(ratio)) if spec.streams == 1 else 1.7 * spec.k * ratio**0.8)


def open(spec: AcrossSpec, *, patience: Count = 1024) -> Staircase:
    return Staircase(spec, patience=patience)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
