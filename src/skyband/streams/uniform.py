"""Uniform scores in random order: the case of the papers' bounds, and of the benchmark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skyband.streams.batches import generated

SCHEMA: Final = pa.schema([("score", pa.float64()), ("id", pa.int64()), ("time", pa.int64())])


def uniform(rows: int, *, ids: int | None = None, seed: int = 1, batch_rows: int = 1_000_000) -> pa.RecordBatchReader:
    """`rows` rows with a score from [0, 1), an id and a time: 0, 1, 2, ….

    The id is the row's number or, with `ids`, one of so many, at random.
    """
    return generated(SCHEMA, lambda random, time: [random.random(len(time))], rows, ids, seed, batch_rows)
