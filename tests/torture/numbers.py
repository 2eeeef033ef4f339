"""Line 12: sums, numbers at the edges of their types, and times in every unit, against Python's own numbers."""

from __future__ import annotations

import math
from collections import deque
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from torture.campaign import Result

EDGES = [2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 0, 1, -1]
FLOATS = [0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1e16, 1.0, 0.1, -0.3, 1e-300]
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def sums(rng: np.random.Generator) -> str | None:
    """Sums over a window that slides with each row are those of `math.fsum`, however many values have come and gone."""
    n, size = 2_000, int(rng.integers(1, 60))
    scale = 10.0 ** rng.integers(-200, 200, n)
    values = np.where(rng.random(n) < 0.3, rng.choice(FLOATS, n), rng.normal(size=n) * scale)
    table = pa.table({"t": np.arange(n), "v": values})
    query = sb.JoinAggregate(inputs={"a": sb.sliding(size, on="t")}, aggregates={"s": "SUM(v)"}, emit="changes")
    said = query.open({"a": table.schema}).push(table, input="a")
    window: deque[float] = deque(maxlen=size)
    right = {}
    for at, value in enumerate(values.tolist()):
        window.append(value)
        exact = sum(map(Fraction, window), Fraction())
        try:
            right[at] = float(exact)
        except OverflowError:
            right[at] = math.inf if exact > 0 else -math.inf
    for at, change, total in zip(*(said[name].to_pylist() for name in ("at", "change", "s")), strict=True):
        if change == "upsert" and total != right[at]:
            return f"size {size}: the sum at {at} is {total!r}, not {right[at]!r}"
    return None


def whole(rng: np.random.Generator) -> str | None:
    """64-bit scores are ranked and shown as they are."""
    scores = [int(EDGES[i]) for i in rng.integers(0, len(EDGES), 30)] + rng.integers(-(2**62), 2**62, 30).tolist()
    kind = pa.uint64() if rng.random() < 0.3 else pa.int64()
    scores = [abs(score) if kind == pa.uint64() else score for score in scores]
    table = pa.table({"n": pa.array(scores, kind)})
    said = sb.top_k(table, k=7, by="n", window=sb.sliding(20, every=20))["score"].to_pylist()
    right = [score for i in range(0, 60, 20) for score in sorted(scores[i : i + 20], reverse=True)[:7]]
    return None if said == right else f"{kind}: {said} and not {right}"


def times(rng: np.random.Generator) -> str | None:
    """Windows of an hour, in every unit and zone, before the epoch too, have the rows that datetime says."""
    unit = str(rng.choice(list(UNITS)))
    zone = rng.choice([None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
    start = int(rng.choice([-(10**9), -1, 0, 1_711_846_800, 1_730_000_000])) // 3600 * 3600  # two are clock changes
    seconds = sorted([*(start + rng.integers(-2, 3 * 3600, 40)).tolist(), start, start - 1, start + 3600])
    ticks = pa.array([second * UNITS[unit] for second in seconds], pa.int64())
    kind = pa.timestamp(unit, zone if zone is None else str(zone))
    table = pa.table({"ts": ticks.cast(kind) if zone is None else ticks.view(kind), "v": np.arange(len(seconds))})
    said = sb.top_k(table, k=99, by="v", window=sb.tumbling("1 hour", on="ts"))
    ends = said["window_end"].cast(pa.int64()).to_pylist()
    right: dict[int, int] = {}
    for second in seconds:
        end = (second // 3600 + 1) * 3600 * UNITS[unit]
        right[end] = right.get(end, 0) + 1
    counted: dict[int, int] = {}
    for end in ends:
        counted[end] = counted.get(end, 0) + 1
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=start)
    return None if counted == right else f"{unit} {zone} from {moment}: {counted} and not {right}"


def watermark(rng: np.random.Generator) -> str | None:
    """A row at the watermark, just before it and just behind it, near ±2**62."""
    late, base = int(rng.integers(0, 5)), int(rng.choice([0, 10**12, 2**62 - 1000, -(2**62) + 1000])) // 10 * 10
    query = sb.TopK(k=9, by="v", window=sb.tumbling(10, on="t"), lateness=late)
    session = query.open(pa.schema({"t": pa.int64(), "v": pa.int64()}))

    def push(t: int) -> list[int]:
        return session.push(pa.table({"t": [t], "v": [t - base]}))["score"].to_pylist()

    said: list[Any] = [push(base + 3), push(base + 9 + late), push(base + 9), push(base + 10 + late), push(base + 9)]
    first = sorted([3, 9, *([9 + late] if late == 0 else [])], reverse=True)
    counted = session.stats()
    return None if said == [[], [], [], first, []] and counted.rows_late == 1 else f"lateness {late} at {base}: {said}"


CHECKS = (sums, whole, times, watermark)


def run(first: int, count: int) -> Result:
    result = Result()
    for seed in range(first, first + count):
        check = CHECKS[seed % len(CHECKS)]
        try:
            wrong = check(np.random.default_rng(seed))
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        result.note(seed, f"{check.__name__} right" if wrong is None else f"{check.__name__} wrong", wrong)
    return result
