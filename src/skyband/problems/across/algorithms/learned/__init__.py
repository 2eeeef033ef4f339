"""Learned: as many objects as a promised share of the answers needs, by what the streams have shown so far.

Paper:      ours, after Haghani, Michel, Aberer, CIKM 2009, section 4.
Invariant:  an object is held while its retention value is at least a bar: the share of its time in which answers are
            expected to need it. What is let go leaves a record in a shadow, with which every answer is compared. The
            bar is the highest that misses no more than was allowed; it falls to 0, so that all is held as `staircase`
            holds it, when more is seen to be missed, and while it is learnt what to expect: in the first window.
Cost:       push as `staircase`, on fewer objects, and a microsecond or two for judging; all that is held and all that
            is on record is looked at 20 times a window. State: the objects held, 32 bytes for each row on record, and
            some kilobytes of what was learnt, whatever the window.
Choose it:  recall=0.95, that is, a share of the objects is enough, and memory matters.
"""

from __future__ import annotations

from skyband.core.registry import Algorithm
from skyband.problems.across.algorithms.learned.state import MOST_K, MOST_STREAMS, Learned
from skyband.problems.across.algorithms.staircase import expected_rows as exact_rows
from skyband.problems.across.algorithms.staircase import refuses as refused_by_staircase
from skyband.problems.across.operator import AcrossSpec

NAME = "learned"


def refuses(spec: AcrossSpec) -> str | None:
    if not spec.recall:
        return "it needs recall=, the share of objects that is enough"
    if spec.window.endless:
        return "nothing leaves a window from the start on, so it never knows what it is worth to hold an object"
    if spec.k > MOST_K:
        return f"it looks ahead for at most {MOST_K:,} objects, and k is {spec.k:,}"
    if spec.streams > MOST_STREAMS:
        return f"it tells apart at most {MOST_STREAMS} streams, and there are {spec.streams}"
    return refused_by_staircase(spec)


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """As measured for recall=0.95, three streams half in step, objects that come again within 1/7 of the window."""
    return exact_rows(spec, window_rows) / 5


def open(spec: AcrossSpec) -> Learned:
    return Learned(spec)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows, exact=False),)
