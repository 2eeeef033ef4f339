"""The rows behind the positions an operator holds: columns in Arrow, each row found by its arrival position."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]


class RowStore:
    """Rows in order of arrival. It keeps those an operator holds and, for a while, some that it no longer does.

    Small batches are appended whole and cleaned up when less than half of the rows are still held, so the cost of
    keeping rows is constant per row however the stream is cut into batches.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.load(np.empty(0, np.int64), schema.empty_table())

    def load(self, positions: Ints, table: pa.Table) -> None:
        self._positions = [positions]  # ascending, chunk by chunk those of _chunks
        self._chunks = [table]
        self._total = len(positions)

    def append(self, first: int, batch: pa.RecordBatch) -> None:
        """Rows that arrived at positions first, first + 1, …"""
        self._positions.append(np.arange(first, first + batch.num_rows))
        self._chunks.append(pa.Table.from_batches([batch], self._schema))
        self._total += batch.num_rows

    def take(self, positions: Ints) -> pa.Table:
        """The rows at these positions, in their order."""
        known, table = self._all()
        return table.take(pa.array(np.searchsorted(known, positions)))

    def keep(self, held: Ints) -> None:
        """Forget the rows at other positions than these, which are ascending."""
        self.load(held, self.take(held).combine_chunks())

    def is_wasteful(self, rows_held: int) -> bool:
        return self._total > 2 * rows_held + 64

    def _all(self) -> tuple[Ints, pa.Table]:
        if len(self._chunks) > 1:
            self._positions = [np.concatenate(self._positions)]
            self._chunks = [pa.concat_tables(self._chunks)]
        return self._positions[0], self._chunks[0]
