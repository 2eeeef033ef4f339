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
        """Feed rows of a stream to the query, in the order in which they arrive.

        Parameters
        ----------
        rows
            Any input that `top_k` takes. `push` reads a stream to its end.
        stream
            The name of the stream. None: a column names it, or there is only one stream.

        Returns
        -------
        A pyarrow Table with the new answers. It is often empty.

        Raises
        ------
        InvalidInput
            The rows do not fit, or no stream has this name. The session took none of them and is as it was.
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
