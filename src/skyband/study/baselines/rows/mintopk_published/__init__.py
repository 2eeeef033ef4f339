"""MinTopK as published: one list for all open windows, with marks in its rows and a pointer into it for each window.

Paper:      Yang, Shastri, Rundensteiner, Ward, EDBT 2011, sections 4.2 to 4.5 and figure 6.
Invariant:  the super-top-k list has the rows that are among the k best so far of some open window, best first. A row's
            marks are the first and the last of these windows. A window's counter (tkc) says how many rows it has, up to
            k, and its lower bound pointer (lbp) leads to the worst of them.
Cost:       push O(1) for a row that no window has a place for, else O(log s) and one step for each window that takes
            it; a slide O(k); state s is 2k to 3.5k rows on random order, and 16 bytes for each of size / every windows.
Choose it:  for comparisons only; `mintopk` keeps no pointers, and reduces panes to their k best rows first.
"""

from __future__ import annotations

from skyband.core.options import Count
from skyband.problems.rows.algorithms.mintopk import expected_rows
from skyband.problems.rows.operator import Spec, row_algorithm
from skyband.study.baselines.rows.mintopk_published.state import SuperTopK
from skyband.study.baselines.rows.pretopk.state import windows_of

NAME = "mintopk_published"
MOST_WINDOWS = 2**20  # open at once; each has a pointer and a counter

__all__ = ["ALGORITHMS", "NAME", "expected_rows", "open", "refuses"]


def refuses(spec: Spec) -> str | None:
    if not spec.window.slides:
        return "the window slides with each arrival, so a row may be in as many windows as it has rows"
    if spec.window.endless:
        return "rows of a landmark window have no last window to be marked with"
    if spec.grouped:
        return "the paper has one list, for one ranking"
    if spec.ad_hoc:
        return "ad-hoc questions may start where no window does, and of each window only its k best rows are kept"
    if windows_of(spec) > MOST_WINDOWS:
        return f"a row may be in {windows_of(spec)} windows, each with a pointer; {MOST_WINDOWS} are possible"
    return None


def open(spec: Spec, *, initial_room: Count = 1024) -> SuperTopK:
    return SuperTopK(spec, initial_room=initial_room)


ALGORITHMS = (row_algorithm(NAME, open, refuses, expected_rows, for_comparing=True),)
