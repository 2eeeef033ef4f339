"""Subscriptions, as users ask for them: each question gets the same answer from every engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from conformance.asked import ONE, Asked
from engines.spark.streams import trades

import skyband as sb

ROWS = 400
TRADES = {ONE: trades(ROWS)}
QUERIES = pa.table(
    {
        "id": list("abcdefg"),
        "price": [1.0, 9.0, 20.0, 39.0, 50.0, 20.0, 7.0],
        "k": [1, 2, 3, 1, 2, 3, 4],
        "symbol": ["S0", "S1", "S1", "S2", "S3", "S4", "nowhere"],
        "often": ["5 seconds", "10 seconds"] * 3 + ["20 seconds"],
    }
)
COMMON = {  # one score: one to compile
    "k": "q.k",
    "by": "abs(price - q.price)",
    "where": "symbol <> q.symbol",
    "ascending": True,
    "for_each": QUERIES,
}


def asked(*, closes: bool = True, **options: Any) -> Asked:
    # `recompute` cannot give each query its own slide; `scan` scores each row for each query.
    reference = {"algorithm": "scan" if "every" in options else "recompute"}
    return Asked(sb.top_k, TRADES, COMMON | options, closes=closes, least=100, reference=reference)


QUESTIONS = {
    "time": asked(every="q.often", window=sb.sliding("20 seconds", every="5 seconds", on="ts")),
    "changes": asked(window=sb.sliding("20 seconds", every="5 seconds", on="ts"), emit="changes"),
    "each arrival": asked(window=sb.sliding(30, order="seq"), closes=False),
}
