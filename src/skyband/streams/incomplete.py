"""Streams that are never in step: each row tells one attribute of an object, and objects come to other streams later,
or never. The generator of Haghani, Michel, Aberer, CIKM 2009, section 6.1.1."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.kernels.compiling import allocating
from skyband.streams.batches import check_count, check_number

_INCOMPLETE: Final = (7,)  # random numbers of its own


def incomplete(rows: int, *, streams: int = 3, xi: float = 0.5, recent: int = 300, seed: int = 1) -> pa.Table:
    """`rows` rows of the streams r1, r2, … in turn: `time` (0, 1, 2, …), `stream`, `id`, and `value` from [0, 1).

    With probability `xi` a row is about an object that is among the `recent` last ones of another stream, chosen at
    random; else, or if that one has come in this stream before, about a new one. So an object comes at most once in
    each stream. The paper does not say how long its memory is: here `recent` rows of each stream.
    """
    check_count("rows", rows, at_least=0)
    check_count("streams", streams, at_least=1)
    check_count("recent", recent, at_least=1)
    check_number("xi", xi, at_least=0, at_most=1)
    random = np.random.default_rng([seed, *_INCOMPLETE])
    stream = np.arange(rows, dtype=np.int64) % streams
    ids = np.empty(rows, np.int64)
    seen = np.zeros((rows, streams), np.bool_)
    pick = random.random(rows) < xi
    _fill(ids, stream, pick, random.random((rows, 2)), seen, np.zeros((streams, recent), np.int64))
    names = pa.array([f"r{s + 1}" for s in range(streams)])
    return pa.table(
        {
            "time": np.arange(rows, dtype=np.int64),
            "stream": pa.DictionaryArray.from_arrays(pa.array(stream.astype(np.int32)), names).cast(pa.string()),
            "id": ids,
            "value": random.random(rows),
        }
    )


@allocating
def _fill(ids, stream, pick, chance, seen, recent):  # type: ignore[no-untyped-def]
    streams, length = recent.shape
    counts = np.zeros(streams, np.int64)  # rows of each stream so far
    fresh = 0
    for i in range(len(ids)):
        s, found = stream[i], -1
        if pick[i] and streams > 1:
            other = int(chance[i, 0] * (streams - 1))
            other += other >= s
            kept = min(counts[other], length)
            if kept:
                found = recent[other, int(chance[i, 1] * kept)]
                if seen[found, s]:
                    found = -1
        if found < 0:
            found = fresh
            fresh += 1
        ids[i] = found
        seen[found, s] = True
        recent[s, counts[s] % length] = found
        counts[s] += 1
