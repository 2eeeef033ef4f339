"""MinTopK: exact top-k of windows that slide by panes, from the fewest rows possible.

Paper:      Yang, Shastri, Rundensteiner, Ward, EDBT 2011, section 5 (the super-top-k list).
Invariant:  each group has the rows of closed panes that some future window may show, best first, each with its last
            window; and the k best rows so far of each open pane. A row is dropped when k better ones live as long;
            where panes have few rows, those of recent panes wait in a list of their own, to be dropped together.
Cost:       push one comparison a row, O(log k) for a row that enters its pane's best k; a slide with n rows of its pane
            O(k + n log n + sqrt(n s)), however many slides make a window; state s is 2k to 3.5k rows per group on
            random order, never more than k for each pane of the window, and sqrt(n s) young rows.
Choose it:  the window slides by more than a row, and you want an answer when it slides.
"""

from __future__ import annotations

import math

from skyband.core.options import Count
from skyband.problems.rows.algorithms.mintopk.state import MinTopK
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "mintopk"


def refuses(spec: Spec) -> str | None:
    if not spec.window.slides:
        return "the window slides with each arrival, so there are no panes"
    if spec.ad_hoc:
        return "ad-hoc queries may cut a pane in two, and it keeps only the k best rows of a pane"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The open pane has k rows. On random order, the slides before it have k, k/2, k/3, … rows left."""
    slides = 2 if spec.window.endless else math.ceil(spec.window.size / spec.window.every)
    harmonic = sum(1 / i for i in range(1, min(slides, 1000))) + math.log(max(1.0, slides / 1000))
    return min(window_rows, spec.k * (1 + harmonic))


def open(spec: Spec, *, slack: Count = 8, initial_room: Count = 1024) -> MinTopK:
    return MinTopK(spec, slack=slack, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows),)
