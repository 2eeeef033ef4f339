"""A web log of several servers: Zipf clients, and what each downloaded from a server in each stretch of time.

In the place of the World Cup log of Haghani, Michel, Aberer, CIKM 2009, section 6.1.1, with the same shape.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from skyband.streams.batches import check_count

_WEBLOG: Final = (8,)  # random numbers of its own


def weblog(rows: int, *, servers: int = 2, clients: int = 2_000, requests: int = 400, seed: int = 1) -> pa.Table:
    """About `rows` rows: `time`, `stream` (the server: r1, r2, …), `id` (the client) and `value`, from [0, 1].

    In each stretch of time there are so many requests, of Zipf clients; each asks one or more servers. A row is what a
    client downloaded from a server in that stretch, as a share of the most. A client that comes again in a later
    stretch is another one, as when addresses change: so an object comes at most once in each stream.
    """
    check_count("rows", rows, at_least=1)
    check_count("servers", servers, at_least=1)
    random = np.random.default_rng([seed, *_WEBLOG])
    often = np.cumsum(1 / np.arange(1, clients + 1))
    parts: list[tuple[np.typing.NDArray[np.int64], ...]] = []
    made, stretch = 0, 0
    while made < rows:
        client = np.searchsorted(often, random.random(requests) * often[-1])
        server = random.integers(0, servers, requests)
        size = random.lognormal(9, 1.3, requests).astype(np.int64)
        pair, which = np.unique(client * servers + server, return_inverse=True)
        order = random.permutation(len(pair))
        total = np.bincount(which, size).astype(np.int64)
        parts.append(((stretch * clients + pair // servers)[order], (pair % servers)[order], total[order]))
        made, stretch = made + len(pair), stretch + 1
    ids, streams, totals = (np.concatenate(columns)[:rows] for columns in zip(*parts, strict=True))
    names = pa.array([f"r{s + 1}" for s in range(servers)])
    return pa.table(
        {
            "time": np.arange(rows, dtype=np.int64),
            "stream": pa.DictionaryArray.from_arrays(pa.array(streams.astype(np.int32)), names).cast(pa.string()),
            "id": ids,
            "value": totals / totals.max(),
        }
    )
