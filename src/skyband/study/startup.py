"""How soon a fresh process answers its first query: seconds after `import skyband`, with kernels cached and without.

Each query runs in processes of its own; the first finds an empty cache, which it fills for the others. The slowest
query counts. Python's own bytecode is there from the start, since pip writes it when it installs a package.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from skyband.study.results import Result

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


def measure(queries: Sequence[str], rounds: int, say: Callable[[str], None]) -> list[Result]:
    """Each of `queries` from an empty cache, and then `rounds` times, the best of them, with what that compiled."""
    cached, uncached = {}, {}
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)
    for name in queries:
        with tempfile.TemporaryDirectory(prefix="skyband-kernels-") as cache:
            say(f"a fresh process, nothing compiled: {name}")
            uncached[name] = _seconds(QUERIES[name], cache)
            say(f"a fresh process, kernels cached: {name}")
            cached[name] = min(_seconds(QUERIES[name], cache) for _ in range(rounds))
    what = "first answer of a process"
    return [
        _slowest(CACHED, f"{what}, kernels cached", cached, bar=1.0),
        _slowest(UNCACHED, f"{what}, nothing compiled", uncached, bar=15.0),
    ]


def _seconds(query: str, cache: str) -> float:
    program = _PROGRAM.format(query=query)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return float(answer.stdout)


def _slowest(name: str, workload: str, seconds: dict[str, float], *, bar: float) -> Result:
    slowest = max(seconds, key=lambda query: seconds[query])
    how = f"seconds from after `import skyband` to the answer; the slowest query: top_k(rows, {QUERIES[slowest]})"
    return Result(name, workload, "the clock", seconds[slowest], bar, at_most=True, unit="s", how=how)
