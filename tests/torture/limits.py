"""Line 11: bursts, one hot key, falling scores, k and windows at their limits, in processes with little memory.

The answers are those of `recompute`, and once the burst is over a session holds what it held before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from torture.campaign import Result
from torture.processes import environment

MEMORY = 3 << 30  # bytes of address space that a process may take beyond what it has when it starts
PATIENCE_S = 600
ENDLESS = 2**61 - 1  # the largest size that a window may have
QUIET, BURST = 40, 10  # rows of a batch; times so many while the burst lasts
AFTER = 11  # from this batch on, no window holds a row of the burst
LAZY, SPARE = 2, 64  # an algorithm may prune late: so many times what it would hold, and so many rows more

KINDS: dict[str, Any] = {
    "rows": lambda w: (sb.TopK, {"k": 3, "by": "v", "window": w, "per": "g"}),
    "rows, k at its limit": lambda w: (sb.TopK, {"k": 2**31 - 1, "by": "v", "window": w}),
    "rows, each arrival": lambda w: (sb.TopK, {"k": 3, "by": "v", "window": sb.sliding(w.size, on="t")}),
    "pairs": lambda w: (sb.TopKPairs, {"k": 3, "by": "abs(a.v - b.v)", "window": w, "same": "g"}),
    "across": lambda w: (
        sb.TopKAcross,
        {"k": 3, "id": "g", "value": "x", "stream": "s", "streams": ["r1", "r2"], "repeat": "sum", "window": w},
    ),
    "joins": lambda w: (
        sb.JoinAggregate,
        {
            "inputs": {"a": sb.sliding(w.size, on="t")},
            "group_by": "g",
            "aggregates": {"n": "COUNT(*)", "total": "SUM(v)", "low": "MIN(v)"},
            "every": w.every,
        },
    ),
    "subscriptions": lambda w: (
        sb.TopKForEach,
        {
            "k": 2,
            "by": "v * q.w",
            "queries": pa.table({"id": [1, 2], "w": [1.0, -1.0]}),
            "key": "id",
            "window": w,
        },
    ),
}
WINDOWS = (
    sb.sliding(60, every=20, on="t"),
    sb.sliding(50, every=20, on="t"),  # no multiple of its slide
    sb.sliding(60, every=1, on="t"),
    sb.sliding(1, every=1, on="t"),
    sb.sliding(ENDLESS, every=20, on="t"),
)


def batches(rng: np.random.Generator) -> list[pa.Table]:
    """Fifteen batches, the middle five of them ten times as large; falling scores, or 90 % on one key, or both."""
    falling, hot, time, found = rng.random() < 0.5, rng.random() < 0.5, 0, []
    for number in range(15):
        n = QUIET * (BURST if 5 <= number < 10 else 1)
        t = time + np.sort(rng.integers(0, 40, n))
        time += 40
        v = -(t + np.arange(n) / n) if falling else rng.integers(0, 50, n).astype(float)
        g = np.where(rng.random(n) < (0.9 if hot else 0.0), 0, rng.integers(0, 8, n))
        found.append(pa.table({"t": t, "g": g, "v": v, "x": rng.random(n), "s": rng.choice(["r1", "r2"], n)}))
    return found


def one(seed: int) -> tuple[str, str | None]:
    name = list(KINDS)[seed % len(KINDS)]
    rng = np.random.default_rng(seed)
    window = WINDOWS[int(rng.integers(len(WINDOWS)))]
    kind, options = KINDS[name](window)
    pushed = batches(rng)
    if name == "pairs":  # the definition looks at every pair
        pushed = [rows.slice(0, 30) for rows in pushed]
    exact = {"plan" if name == "joins" else "algorithm": "recompute"}
    finishes = window.size < ENDLESS
    said, held = _answers(kind(**options), pushed, finishes=finishes)
    right, _ = _answers(kind(**options, **exact), pushed, finishes=finishes)
    if said != right:
        return name, f"{name}, {window}: {len(said)} rows, not these {len(right)}"
    _, calm = _answers(kind(**options), pushed[AFTER:], finishes=finishes)  # as if there had been no burst
    if finishes and held > LAZY * calm + SPARE:
        return name, f"{name}, {window}: {held} rows held after a burst, {calm} without one"
    return name, None


def _answers(query: Any, pushed: list[pa.Table], *, finishes: bool) -> tuple[list[Any], int]:
    """The answers, and how many rows were held before the end."""
    joins = isinstance(query, sb.JoinAggregate)
    session = query.open({"a": pushed[0].schema} if joins else pushed[0].schema)
    found: list[Any] = []
    for rows in pushed:
        found += session.push(rows, **({"input": "a"} if joins else {})).to_pylist()
    counted = session.stats()
    assert counted.rows_used + counted.rows_late == sum(rows.num_rows for rows in pushed), f"{counted}"
    if finishes:  # at the end every window that holds a row is closed: those would be without end
        found += session.finish().to_pylist()
    return [repr(row) for row in found], int(counted.rows_held)


def worker(first: int, count: int) -> None:
    """In a process of its own, which may take no more memory than said."""
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    for seed in range(first, first + count):
        try:
            outcome, wrong = one(seed)
        except Exception as error:
            outcome, wrong = "raw error", f"{type(error).__name__}: {error}"
        print(f"got\t{seed}\t{outcome}\t{wrong or ''}".replace("\n", " "), flush=True)


def run(first: int, count: int) -> Result:
    result = Result()
    command = [sys.executable, "-m", "torture.limits", str(first), str(count)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=environment(), timeout=PATIENCE_S + 10 * count, check=False
    )
    seen = first
    for line in done.stdout.splitlines():
        if line.startswith("got\t"):
            _, seed, outcome, wrong = line.split("\t", 3)
            result.note(int(seed), f"{outcome} the same" if not wrong else "different", wrong or None)
            seen = int(seed) + 1
    if seen < first + count:
        result.note(seen, "died", f"the process ended with {done.returncode}")
    return result


if __name__ == "__main__":
    from torture.planted import planted_here

    with planted_here():
        worker(int(sys.argv[1]), int(sys.argv[2]))
