"""Line 10: thirty days of event time with groups that come and go. What is held, and what a row costs, stays the same.

Each day has its own groups for the most part. What a session holds is measured at the end of each day, as the bytes of
its snapshot and the groups that it knows: no other work on the machine changes these.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from torture.campaign import Result

DAYS, SETTLED, DAY = 30, 10, 86_400
ROWS_A_DAY = int(os.environ.get("TORTURE_ROWS_A_DAY", "4000"))  # a long run sets more
GROUP_BYTES = 64  # about what a group takes that a snapshot leaves out, because nothing of it is held
MOST_GROWTH = 0.01  # of the bytes held, from the tenth day to the last: a fitted line
MOST_SLOWER = 1.5  # times: the fastest of the last ten days against the fastest of the ten before; machines are noisy

HOUR = sb.sliding(3_600, every=600, on="t")
QUERIES: dict[str, Any] = {
    "rows": sb.TopK(k=5, by="v", window=HOUR, per="g"),
    "rows, changes": sb.TopK(k=5, by="v", window=sb.sliding(3_600, on="t"), per="g"),
    "pairs": sb.TopKPairs(k=5, by="abs(a.v - b.v)", window=HOUR, same="g"),
    "across": sb.TopKAcross(k=5, id="g", value="x", stream="s", streams=["r1", "r2"], repeat="sum", window=HOUR),
    "joins": sb.JoinAggregate(
        inputs={"a": sb.sliding(3_600, on="t"), "b": sb.sliding(1_800, on="t")},
        on="a.g = b.g",
        group_by="a.g",
        aggregates={"n": "COUNT(*)", "total": "SUM(b.v)"},
        every=600,
    ),
    "subscriptions": sb.TopKForEach(
        k=2,
        by="v * q.w",
        window=HOUR,
        queries=pa.table({"id": [1, 2, 3], "w": [1.0, -1.0, 0.5]}),
        key="id",
    ),
}


def day_of(day: int, rng: np.random.Generator) -> pa.Table:
    """A day's rows: nine in ten belong to groups that no other day has."""
    n = ROWS_A_DAY
    own = rng.integers(0, n // 3, n) + 10**6 * day
    groups = np.where(rng.random(n) < 0.9, own, rng.integers(0, 20, n))
    return pa.table(
        {
            "t": day * DAY + np.sort(rng.integers(0, DAY, n)),
            "g": groups,
            "v": rng.random(n),
            "x": rng.random(n),
            "s": rng.choice(["r1", "r2"], n),
        }
    )


def one(seed: int) -> tuple[str, str | None]:
    name = list(QUERIES)[seed % len(QUERIES)]
    query, rng = QUERIES[name], np.random.default_rng(seed)
    schema = day_of(0, rng).schema
    inputs = [name for name, _ in query.inputs] if isinstance(query, sb.JoinAggregate) else [None]
    session = query.open(schema if inputs == [None] else dict.fromkeys(inputs, schema))
    held, cost = [], []
    for day in range(DAYS):
        rows, began = day_of(day, rng), time.process_time()
        for hour in range(24):
            part = rows.slice(hour * ROWS_A_DAY // 24, ROWS_A_DAY // 24)
            for which in inputs:
                session.push(part, **({} if which is None else {"input": which}))
        cost.append(time.process_time() - began)
        held.append(len(session.snapshot()) + GROUP_BYTES * session.stats().groups)
    settled = np.array(held[SETTLED:], np.float64)
    slope = np.polyfit(np.arange(len(settled)), settled, 1)[0] * len(settled) / settled.mean()
    slower = min(cost[20:]) / min(cost[SETTLED:20])
    noise = settled.std() / settled.mean()
    told = f"{name}: {slope:+.1%} of {settled.mean():,.0f} bytes in 20 days, a row costs {slower:.2f} times"
    # A line fitted to noise has a slope, too: three times what that would be is growth.
    grows = slope > MOST_GROWTH + 3 * noise * np.sqrt(12 / len(settled))
    return f"{name} steady", told if grows or slower > MOST_SLOWER else None


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        outcome, wrong = one(seed)
        result.note(seed, outcome if wrong is None else "grows", wrong)
    return result
