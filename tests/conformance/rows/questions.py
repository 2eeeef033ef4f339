"""Top-k rows, as users ask for them: each question gets the same answer from every engine."""

from __future__ import annotations

from typing import Any

from conformance.asked import ONE, Asked
from engines.spark.streams import trades

import skyband as sb

MINUTE = sb.sliding("1 minute", every="10 seconds", on="ts")
UNEVEN = sb.sliding("25 seconds", every="10 seconds", on="ts")
TRADES = {ONE: trades(600)}


def asked(*, closes: bool = True, **options: Any) -> Asked:
    return Asked(sb.top_k, TRADES, options, closes=closes, in_order="per" not in options)


QUESTIONS = {
    "time": asked(k=3, by="price", window=MINUTE),
    "time, per group, ascending": asked(k=2, by="price * 2 - seq / 1000", window=MINUTE, per="symbol", ascending=True),
    "uneven panes, per two columns": asked(k=2, by="price", window=UNEVEN, per=["symbol", "buys"]),
    "integer column": asked(k=4, by="price", window=sb.sliding(100, every=30, on="seq"), lateness=20),
    "landmark": asked(k=3, by="price", window=sb.landmark(every="20 seconds", on="ts"), per="buys"),
    "landmark, the last rows without a score": asked(
        k=3, by="CASE WHEN seq < 400 THEN price END", window=sb.landmark(every="5 seconds", on="ts"), per="buys"
    ),
    "changes, the last rows without a score": asked(
        k=3, by="CASE WHEN seq < 400 THEN price END", window=sb.tumbling("5 seconds", on="ts"), emit="changes"
    ),
    "a function": asked(k=3, by=lambda seq, price: price * 100 + seq % 7, window=sb.tumbling("20 seconds", on="ts")),
    "changes": asked(k=3, by="price", window=MINUTE, emit="changes"),
    "entries, per group": asked(k=2, by="price", window=MINUTE, emit="entries", per="symbol"),
    "count": asked(k=3, by="price", window=sb.sliding(100, every=25, order="seq")),
    "count, per group": asked(k=3, by="price", window=sb.sliding(20, every=5, order="seq"), per="symbol"),
    "count, per group, silent groups forgotten": asked(
        k=2, by="price", window=sb.sliding(20, every=2, order="seq"), per="symbol", forget_after=9
    ),
    "equal rows ranked together": asked(k=3, by="seq % 7", window=MINUTE, ties="rank"),
    "equal rows ranked densely, per group, changes": asked(
        k=2, by="seq % 5", window=MINUTE, per="symbol", ties="dense", emit="changes", ascending=True
    ),
    "equal rows of several keys, by count": asked(
        k=2, by=["seq % 3", "symbol ASC"], window=sb.sliding(30, every=10, order="seq"), ties="rank"
    ),
    "each arrival, by count": asked(k=3, by="price", window=sb.sliding(50, order="seq"), closes=False),
    "each arrival, by value, per group": asked(
        k=2, by="price", window=sb.sliding("15 seconds", on="ts"), per="symbol", closes=False
    ),
}
