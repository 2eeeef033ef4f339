"""Estimated: instances that are likely enough to enter an answer, estimated from how often streams share objects.

Paper:      Haghani, Michel, Aberer, CIKM 2009, section 4 (approxAlgo).
Invariant:  as `staircase`, but what an object may still get in a stream counts only as much as it is likely to come
            there, given the streams in which it has come: so much less is held, and some objects are missed.
Cost:       push as `staircase`, on fewer instances; the chances are estimated anew every so many rows, from a sketch a
            stream. State: the instances, and 320 kB of sketch for each stream.
Choose it:  for comparisons only; it guarantees nothing about what it misses.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.staircase import expected_rows as exact_rows
from skyband.problems.across.algorithms.staircase import refuses as refused_by_staircase
from skyband.problems.across.operator import AcrossSpec
from skyband.study.baselines.across.estimated.state import MOST_STREAMS, Estimated

NAME = "estimated"


def refuses(spec: AcrossSpec) -> str | None:
    if spec.streams > MOST_STREAMS:
        return f"it knows chances for each set of streams, of at most {MOST_STREAMS}"
    return refused_by_staircase(spec)


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """A fifth of what is needed for an exact answer, as the paper measured."""
    return exact_rows(spec, window_rows) / 5


def open(spec: AcrossSpec, *, patience: Count = 64) -> Estimated:
    return Estimated(spec, patience=patience)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows, exact=False, for_comparing=True),)
