"""The state of Supreme: the rows of the window, and the scores of their pairs, which nobody ranks."""

from __future__ import annotations

import numpy as np

from skyband.core.clock import WindowClock
from skyband.core.operator import Floats
from skyband.problems.pairs.drivers.loop_texts import BLOCK
from skyband.problems.pairs.drivers.window_rows import Rows, WindowRows
from skyband.problems.pairs.operator import Batch, Spec


class Supreme:
    """Windows of arrivals only, as in the paper's experiments."""

    def __init__(self, spec: Spec, *, batch: int = 128) -> None:
        self.spec = spec
        self._batch = batch
        self._clock = WindowClock(spec.window)
        self._rows = WindowRows(spec.scoring.width, spec.scoring.colours, timed=False)
        self._scores = np.empty(BLOCK)

    def fill(self, values: Floats) -> None:
        """Fill a window with these rows, by column and row, without scoring their pairs."""
        position = np.arange(values.shape[1])
        self._rows.append(Rows(values, np.empty((0, len(position))), position, position))

    def push(self, batch: Batch) -> None:
        window = self._rows
        for i in range(0, batch.columns.shape[1], self._batch):
            part = slice(i, i + self._batch)
            columns, colours = batch.columns[:, part], batch.colours[:, part]
            position = np.arange(batch.first + i, batch.first + i + columns.shape[1])
            window.append(Rows(columns, colours, position, position))
            heads = window.firsts_at(self._clock.starts_at(position))
            self.spec.scoring.score_all(
                window.columns, window.colours, window.tail - len(position), heads, self._scores
            )
            window.head = int(heads[-1])
