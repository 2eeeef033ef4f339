"""What a pipeline asks that a test stops, kills or damages: each of the five problems."""

from __future__ import annotations

import pyarrow as pa

WINDOW = "[WINDOW 20 SECONDS EVERY 10 SECONDS]"
STATEMENTS = {
    "rows": "SELECT price, seq FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol",
    "pairs": (
        "SELECT a.seq AS one, b.seq AS other FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol <> b.symbol "
        "ORDER BY abs(a.price - b.price) + (b.seq - a.seq) / 1000 LIMIT 3 WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "subscriptions": (
        f"SELECT seq, price FROM trades t {WINDOW}, watches q WHERE t.symbol <> q.ignored "
        "ORDER BY abs(t.price - q.near) LIMIT 2 BY q.id"
    ),
    "changes": "SELECT seq, symbol, price FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 5 "
    "EMIT CHANGES",
    "across": (
        "SELECT seq FROM trades FULL JOIN others USING (seq) ORDER BY trades.price + others.price DESC LIMIT 2 "
        "WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "joins": (
        f"SELECT t.symbol, COUNT(*) AS n, SUM(o.price) AS paid FROM trades t {WINDOW}, others o {WINDOW} "
        "WHERE t.symbol = o.symbol GROUP BY t.symbol"
    ),
}
WATCHES = pa.table({"id": ["a", "b", "c"], "near": [1.0, 20.0, 39.0], "ignored": ["S0", "S1", "nowhere"]})
