"""From blocks of whatever length to batches of the length asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def cut(blocks: Iterator[pa.RecordBatch], rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The first `rows` rows of `blocks`, in batches of `batch_rows`; the last one may be shorter."""
    waiting: list[pa.RecordBatch] = []
    missing = min(batch_rows, rows)
    while rows:
        block = next(blocks)
        while block.num_rows >= missing > 0:
            waiting.append(block.slice(0, missing))
            block = block.slice(missing)
            yield pa.concat_batches(waiting)
            waiting = []
            rows -= min(batch_rows, rows)
            missing = min(batch_rows, rows)
        if block.num_rows and missing:
            waiting.append(block)
            missing -= block.num_rows
