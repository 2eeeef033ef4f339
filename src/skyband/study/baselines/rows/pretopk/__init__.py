"""PreTopk: exact top-k of windows that slide by more than a row, from a predicted answer for each of them.

Paper:      Yang, Shastri, Rundensteiner, Ward, EDBT 2011, section 3.2 (PreTopk).
Invariant:  each open window has a heap of the k best rows so far that it holds; a row is in each with a place for it.
Cost:       push O(1) for a row that is not among the k best of its slide so far, else O(log k) for each heap it enters;
            a slide O(k log k), to sort what it shows; state k rows for each of size / every windows, of which 2k differ
            on random order.
Choose it:  for comparisons only; `mintopk` keeps the lists of all windows in one.
"""

from __future__ import annotations

import numpy as np

from skyband.core.options import Count
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.pretopk.state import MOST_WINDOWS, PredictedTopK, windows_of

NAME = "pretopk"


def refuses(spec: Spec) -> str | None:
    if not spec.window.slides:
        return "the window slides with each arrival, so a row may be in as many windows as it has rows"
    if spec.ad_hoc:
        return "ad-hoc questions may start where no window does, and of each window only its k best rows are kept"
    if windows_of(spec) > MOST_WINDOWS:
        return f"a row may be in {windows_of(spec)} windows, each with a list of its own; {MOST_WINDOWS} are possible"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """It holds the k best rows of one slide, of two, …, of the whole window."""
    windows = max(1, windows_of(spec))
    return float(np.minimum(spec.k, np.arange(1, windows + 1) * (window_rows / windows)).sum())


def open(spec: Spec, *, initial_room: Count = 1024) -> PredictedTopK:
    return PredictedTopK(spec, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, for_comparing=True),)
