"""How soon a fresh process answers its first query: seconds after `import skyband`, with kernels cached and without.

Each query runs in two processes of its own; the first finds an empty cache, which it fills for the second. The slowest
query counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Final

from skyband.bench.results import Result

# What a fresh process does. Only the query is timed: neither the imports nor making the rows.
_PROGRAM: Final = """
import time
import pyarrow as pa
import skyband as sb
price, volume = [float(i * 37 % 101) for i in range(1000)], [1 + i % 7 for i in range(1000)]
rows = pa.table({{"t": range(1000), "price": price, "volume": volume}})
started = time.perf_counter()
assert sb.top_k(rows, {query}).num_rows
print(time.perf_counter() - started)
"""

QUERIES: Final = {
    "panes": "k=10, by='price', window=sb.sliding(100, every=10)",
    "time": "k=10, by='price * volume', window=sb.sliding(100, every=10, on='t')",
    "arrival": "k=10, by='price', window=sb.sliding(100)",
}
CACHED, UNCACHED = "startup-cached", "startup-uncached"


def measure(queries: Sequence[str], step: Callable[[], None]) -> list[Result]:
    """Each of `queries` twice, from an empty cache: without compiled kernels, and with those of the first time."""
    seconds: dict[str, list[float]] = {}
    for name in queries:
        with tempfile.TemporaryDirectory(prefix="skyband-kernels-") as cache:
            seconds[name] = []
            for _ in (UNCACHED, CACHED):
                seconds[name].append(_seconds(QUERIES[name], cache))
                step()
    uncached, cached = (max(zip(times, seconds, strict=True)) for times in zip(*seconds.values(), strict=True))
    what = "a fresh process answers its first query"
    return [
        _result(CACHED, f"{what}, kernels cached", *cached, bar=1.0),
        _result(UNCACHED, f"{what}, nothing compiled", *uncached, bar=15.0),
    ]


def _seconds(query: str, cache: str) -> float:
    program = _PROGRAM.format(query=query)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    answer = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return float(answer.stdout)


def _result(name: str, workload: str, seconds: float, slowest: str, *, bar: float) -> Result:
    how = f"seconds from after `import skyband` to the answer; the slowest query: top_k(rows, {QUERIES[slowest]})"
    return Result(name, workload, "the clock", seconds, bar, at_most=True, unit="s", how=how)
