"""Uniform scores in random order: what the papers' bounds are about, and what the benchmark measures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.streams.batches import cut

SCHEMA: Final = pa.schema([("score", pa.float64()), ("id", pa.int64()), ("time", pa.int64())])

_BLOCK_ROWS: Final = 65_536  # made at a time; part of what a seed means


def uniform(rows: int, *, ids: int | None = None, seed: int = 1, batch_rows: int = 1_000_000) -> pa.RecordBatchReader:
    """`rows` rows with a score from [0, 1), an id and a time: 0, 1, 2, ….

    The id is the row's number or, with `ids`, one of so many, at random.
    """
    return pa.RecordBatchReader.from_batches(SCHEMA, cut(_blocks(ids, seed), rows, batch_rows))


def _blocks(ids: int | None, seed: int) -> Iterator[pa.RecordBatch]:
    number = 0
    while True:
        random = np.random.default_rng((seed, number))
        time = np.arange(number * _BLOCK_ROWS, (number + 1) * _BLOCK_ROWS)
        score = random.random(_BLOCK_ROWS)
        who = time if ids is None else random.integers(ids, size=_BLOCK_ROWS)
        yield pa.record_batch([pa.array(score), pa.array(who), pa.array(time)], schema=SCHEMA)
        number += 1
