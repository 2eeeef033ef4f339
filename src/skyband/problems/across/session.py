"""A top-k query across streams, running: rows say of which stream they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import rows_for
from skyband.core.operator import Codes
from skyband.core.session import Session, entry
from skyband.problems.across.codec import AcrossCodec, AcrossStats
from skyband.problems.across.query import TopKAcross


class AcrossSession(Session):
    """A top-k query across streams, running: fed by `push`, asked by `top`, saved by `snapshot`."""

    query: TopKAcross
    _codec: AcrossCodec

    @entry
    def push(self, rows: Any, stream: str | None = None) -> pa.Table:
        """Take rows in, in arrival order; return what they make known, always as a pyarrow Table.

        Rows are whatever `top_k` takes; of a stream, all there are. `stream` says whose rows they are, unless a column
        does, or there is only one stream.
        """
        rows = rows_for(rows, self.schema)
        return self._push(rows, self._codec.stream_number(stream))

    @entry
    def push_merged(self, batch: pa.RecordBatch, streams: Codes) -> pa.Table:
        """Rows of several streams in the order of their times, with the number of the stream of each."""
        return self._push(batch, streams)

    def stats(self) -> AcrossStats:
        """Counts of rows so far, and of what is held now."""
        stats = super().stats()
        assert isinstance(stats, AcrossStats)
        return stats
