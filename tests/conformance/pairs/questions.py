"""Top-k pairs, as users ask for them: each question gets the same answer from every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from conformance.asked import ONE, Asked
from engines.spark.streams import INSTANTS, START_US

import skyband as sb

ROWS = 400
ALIKE = "abs(a.price - b.price) + abs(a.volume - b.volume)"
WINDOW = sb.sliding("20 seconds", every="5 seconds", on="ts")


def trades() -> pa.Table:
    rng = np.random.default_rng(1)
    number = np.arange(ROWS)
    return pa.table(
        {
            "ts": pa.array(START_US + number * 250_000, INSTANTS),
            "seq": pa.array(number),
            "symbol": pa.array([f"S{code}" for code in rng.integers(0, 5, ROWS)]),
            "price": pa.array(rng.integers(1, 40, ROWS).astype(np.float64)),  # few, so that many scores are equal
            "volume": pa.array([None if i % 50 == 0 else float(rng.integers(1, 9)) for i in number]),
        }
    )


TRADES = {ONE: trades()}


def asked(*, closes: bool = True, **options: Any) -> Asked:
    # As many states as cells, not as colours or rows: a value and a timer for each, and for a cell with more than a few
    # rows a page and the last entries of its journal.
    return Asked(sb.top_k_pairs, TRADES, options, closes=closes, most_states=4 * 16)


# Two scores, since every worker has to compile each.
QUESTIONS = {
    "time": asked(k=4, by=ALIKE, ascending=True, window=WINDOW),
    "time, same": asked(k=3, by=ALIKE, ascending=True, window=WINDOW, same="symbol"),
    "time, different, where, late": asked(
        k=3,
        by=ALIKE,
        window=sb.sliding(60, every=20, on="seq"),
        different=["symbol"],
        where="a.price < b.price",
        lateness=7,
    ),
    "time, per": asked(k=2, by=ALIKE, ascending=True, window=WINDOW, per="symbol"),
    "count, per": asked(k=2, by=ALIKE, ascending=True, window=sb.sliding(12, every=6, order="seq"), per=["symbol"]),
    "changes": asked(k=2, by=ALIKE, ascending=True, window=WINDOW, emit="changes"),
    "strings and times": asked(
        k=3,
        by="abs(a.ts - b.ts) + a.seq",
        window=WINDOW,
        where="a.symbol < b.symbol AND a.symbol <> 'S3' AND b.ts > '2000-01-01 00:00:00'",
    ),
    "count": asked(k=2, by=ALIKE, ascending=True, window=sb.sliding(50, every=25, order="seq")),
    "each arrival": asked(k=2, by=ALIKE, ascending=True, window=sb.sliding(30, order="seq"), closes=False),
}
