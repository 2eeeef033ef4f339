"""Estimated: instances that are likely enough to enter an answer, estimated from how often streams share objects.

Paper:      Haghani, Michel, Aberer, CIKM 2009, sections 4 and 5 (approxAlgo).
Invariant:  as `staircase`, or as `early_aggregation` if objects come again; but what an object may still get in a
            stream counts only as much as it is likely to come there, given the streams in which it has come, and as
            often as objects come there: so much less is held, and some objects are missed.
Cost:       push as these, on fewer instances; the chances are estimated anew every so many rows, from sketches of each
            stream. State: the instances, and 350 kB of sketches for each stream.
Choose it:  for comparisons only; it guarantees nothing about what it misses.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.staircase import expected_rows as exact_rows
from skyband.problems.across.algorithms.staircase import refuses as refused_by_staircase
from skyband.problems.across.operator import ONCE, AcrossSpec
from skyband.study.baselines.across.early_aggregation import refuses as refused_by_early_aggregation
from skyband.study.baselines.across.estimated.state import MOST_STREAMS, Estimated, EstimatedRepeats

NAME = "estimated"


def refuses(spec: AcrossSpec) -> str | None:
    if spec.streams > MOST_STREAMS:
        return f"it knows chances for each set of streams, of at most {MOST_STREAMS}"
    return refused_by_staircase(spec) if spec.repeat == ONCE else refused_by_early_aggregation(spec)


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """A fifth of what is needed for an exact answer, as the paper measured."""
    return exact_rows(spec, window_rows) / 5


def open(spec: AcrossSpec, *, patience: Count = 64) -> Estimated | EstimatedRepeats:
    return (Estimated if spec.repeat == ONCE else EstimatedRepeats)(spec, patience=patience)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows, exact=False, for_comparing=True),)
