"""The driver of operators that keep only the k best rows of each open window: `top` can answer only for these."""

from __future__ import annotations

import numpy as np

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.operator import Ints
from skyband.errors import InvalidQuery
from skyband.problems.rows.drivers.step_driver import StepDriver


class OpenWindowDriver(StepDriver):
    """A step driver that refuses ad-hoc questions about other spans than open windows."""

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        window = self.spec.window
        start, closed = self._windows.reach(size, self._arrivals())  # for all groups, even those without rows
        held = np.zeros(start.shape, np.bool_)
        if not window.endless:
            end = start + window.size
            held = (end % window.every == 0) & (end > closed)
        refused = np.argwhere((size != NEXT_WINDOW) & ~held)
        if len(refused):
            g, q = refused[0]
            raise InvalidQuery(
                f"size={size[q]} reaches back to {start[g, q]}, where no open window begins. Of each open window the "
                f"session keeps only the {self.spec.k} best rows. Leave out size for the window as it stands, or open "
                "the query with ad_hoc=True for any size."
            )
        return super()._spans(groups, size)
