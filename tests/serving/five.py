"""A question of each of the five problems, over streams that never end: for tests of pictures, and for screenshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.serving.workshop import Feed, table_feed
from skyband.streams.trades import SCHEMA, trades

ROWS_PER_SECOND = 400.0

READINGS = pa.schema({"mote": pa.string(), "temp": pa.float64(), "hum": pa.float64(), "t": pa.int64()})
FLOWS = pa.schema({"flow": pa.string(), "size": pa.float64(), "t": pa.int64()})
BIDS = pa.schema({"auction": pa.string(), "price": pa.int64(), "t": pa.int64()})
CARS = pa.schema({"taxi": pa.string(), "x": pa.float64(), "y": pa.float64(), "t": pa.int64()})
PEOPLE = pa.table(
    {
        "name": ["ann", "bob", "cleo", "dan", "eve", "finn"],
        "x": [1.0, 8.0, 4.0, 6.0, 2.0, 9.0],
        "y": [2.0, 3.0, 8.0, 5.0, 7.0, 9.0],
    }
)

STATEMENTS = {
    "rows": "SELECT symbol, price, volume, ts FROM trades [WINDOW 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 8",
    "pairs": """SELECT * FROM readings a [WINDOW 300 EVERY 10 ON t], readings b
WHERE a.t < b.t AND a.mote <> b.mote
ORDER BY |a.temp - b.temp| + |a.hum - b.hum| LIMIT 8""",
    "across": """SELECT flow FROM north FULL JOIN south USING (flow) FULL JOIN west USING (flow)
ORDER BY north.size + south.size + west.size DESC LIMIT 8
WINDOW [400 EVERY 10 ON t] WITH BOUNDS (0, 1)""",
    "subscriptions": """SELECT q.name, taxi, taxis.x, taxis.y FROM taxis [WINDOW 200 EVERY 10 ON t], people q
ORDER BY POWER(taxis.x - q.x, 2) + POWER(taxis.y - q.y, 2) LIMIT 3 BY q.name""",
    "joins": """SELECT offers.auction, COUNT(bids.*) AS bids, MAX(bids.price) AS best
FROM offers [WINDOW 600 ON t], bids [WINDOW 200 EVERY 10 ON t]
WHERE offers.auction = bids.auction GROUP BY offers.auction ORDER BY bids DESC LIMIT 8""",
}


def _endless(schema: pa.Schema, seed: int, draw: Any) -> Any:
    """From the rows of a batch to batches without end; `t` counts rows."""

    def opened(batch_rows: int) -> pa.RecordBatchReader:
        def batches() -> Iterator[pa.RecordBatch]:
            random, first = np.random.default_rng(seed), 0
            while True:
                t = np.arange(first, first + batch_rows)
                yield pa.record_batch({**draw(random, t), "t": t}, schema=schema)
                first += batch_rows

        return pa.RecordBatchReader.from_batches(schema, batches())

    return opened


def _readings(random: Any, t: Any) -> dict[str, Any]:
    mote = random.integers(0, 40, len(t))
    return {
        "mote": [f"mote {each}" for each in mote],
        "temp": 18 + mote / 4 + random.normal(0, 1.5, len(t)),
        "hum": 40 + mote / 2 + random.normal(0, 3, len(t)),
    }


def _flows(random: Any, t: Any) -> dict[str, Any]:
    # Each object comes once on each stream while it lives, at moments of the stream's own.
    return {"flow": [f"flow {each}" for each in (t + random.permutation(len(t)) - t % len(t))],
            "size": random.beta(1.2, 4, len(t))}  # fmt: skip


def _bids(random: Any, t: Any) -> dict[str, Any]:
    auction = t // 40 + random.geometric(0.25, len(t))
    return {"auction": [f"auction {each}" for each in auction], "price": random.integers(10, 900, len(t))}


def _cars(random: Any, t: Any) -> dict[str, Any]:
    return {
        "taxi": [f"taxi {each}" for each in random.integers(0, 500, len(t))],
        "x": random.uniform(0, 10, len(t)),
        "y": random.uniform(0, 10, len(t)),
    }


def feeds(rows_per_second: float = ROWS_PER_SECOND) -> dict[str, Feed]:
    """The tables that the statements read."""
    drawn = {
        "readings": (READINGS, _readings, 1),
        "north": (FLOWS, _flows, 2),
        "south": (FLOWS, _flows, 3),
        "west": (FLOWS, _flows, 4),
        "offers": (BIDS, _bids, 5),
        "bids": (BIDS, _bids, 6),
        "taxis": (CARS, _cars, 7),
    }
    found = {
        name: Feed(name, schema, _endless(schema, seed, draw), rows_per_second)
        for name, (schema, draw, seed) in drawn.items()
    }
    found["trades"] = Feed("trades", SCHEMA, lambda rows: trades(2**50, batch_rows=rows), 4 * rows_per_second)
    return {**found, "people": table_feed("people", PEOPLE, None)}
