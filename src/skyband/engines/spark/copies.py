"""Rows with a copy in several buckets, which are counted once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.engines.spark.bucket_job import PREFIX
from skyband.engines.spark.gathering import Gatherer, pane_tally, times_of
from skyband.engines.spark.pages import Tally
from skyband.kernels.panes import shape_of

COPY: Final = PREFIX + "side"  # which of a row's copies it is; of each row one is 0. Checkpoints know it by this name


class CopyGatherer(Gatherer):
    """Counts each row once, however many buckets it is sent to: where its copy is 0."""

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        timeless = self.timeless(table)
        weights = self.weights(table)
        tally = Tally(int(weights.sum()), int(weights[timeless].sum()), 0)
        if self._job.by_pane:
            times = times_of(table.column(str(self._job.window.on)))[~timeless]
            shape = shape_of(self._job.ticks.size, self._job.ticks.every)
            tally.ends, tally.rows = pane_tally(times, weights[~timeless], shape)
        return self.typed(table, ~timeless), tally

    def weights(self, table: pa.Table) -> npt.NDArray[np.int32]:
        """How many input rows each row stands for."""
        if COPY not in table.column_names:
            return np.ones(table.num_rows, np.int32)
        return (table.column(COPY).to_numpy() == 0).astype(np.int32)
