"""The session of a top-k query across streams: each row belongs to a stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import rows_for
from skyband.core.operator import Codes
from skyband.core.session import Session, entry
from skyband.problems.across.codec import AcrossCodec, AcrossStats
from skyband.problems.across.query import TopKAcross


class AcrossSession(Session):
    """A running top-k query across streams: `push` feeds it rows, `top` ranks objects now, `snapshot` saves it."""

    query: TopKAcross
    _codec: AcrossCodec

    @entry
    def push(self, rows: Any, stream: str | None = None) -> pa.Table:
        """Feed rows in the order in which they arrive, and return the new answers as a pyarrow Table.

        `rows` is anything that `top_k` takes; `push` reads a stream to its end. `stream` names the stream of the rows,
        unless a column does, or there is only one stream.
        """
        rows = rows_for(rows, self.schema)
        return self._push(rows, self._codec.stream_number(stream))

    @entry
    def push_merged(self, batch: pa.RecordBatch, streams: Codes) -> pa.Table:
        """Feed rows of several streams, merged in order of time. `streams` has the number of each row's stream."""
        return self._push(batch, streams)

    def stats(self) -> AcrossStats:
        """Counts of the rows so far, and of the rows held now."""
        stats = super().stats()
        assert isinstance(stats, AcrossStats)
        return stats
