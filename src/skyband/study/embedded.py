"""The embedded engine against one numpy pass over the same scores.

A workload pushes record batches of a million rows through `query.open(schema).push(batch)`, as a user would; the
batches are slices of one table that is larger than any cache. The reference is `scores > t` over the table's scores.
The two take turns, so that what else the machine does falls on both, and the fastest pass of each counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.session import Session
from skyband.problems.rows.query import TopK
from skyband.streams.orders import uniform
from skyband.study.results import Result
from skyband.windows import sliding

THRESHOLD = 0.999  # of the numpy pass; its cost does not depend on it
AGAINST = "numpy: scores > t"


@dataclass(frozen=True, slots=True)
class Input:
    """Rows to push, and their scores as one array."""

    batches: list[pa.RecordBatch]
    scores: npt.NDArray[np.float64]

    @property
    def rows(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    title: str
    query: TopK
    bar: float
    rows_expected: str
    ids: int | None = None


def _workloads() -> list[Workload]:
    """The lines of the table that are compared with numpy."""

    def by_arrival(k: int, bar: float) -> Workload:
        n = 40_000
        # By name: with k = 81 the planner may prefer relaxed+probabilistic, which holds recent rows besides.
        query = TopK(k=k, by="score", window=sliding(n), emit="changes", algorithm="relaxed")
        expected = f"{k * (1 + math.log(n / k)):,.0f}"  # k (1 + ln(n/k))
        return Workload(f"arrival-{k}", f"each row, window 40k, k = {k}", query, bar, expected)

    def by_panes(k: int, bar: float) -> Workload:
        query = TopK(k=k, by="score", window=sliding(1_000_000, every=100_000))
        expected = f"{2 * k:,}–{3.5 * k:,.0f}"
        return Workload(f"panes-{k}", f"window 1M, slide 100k, k = {k}", query, bar, expected)

    per_id = TopK(k=10, by="score", per="id", window=sliding(1_000_000, every=100_000, on="time"))
    return [
        by_panes(10, 0.35),
        by_panes(1000, 0.12),
        by_arrival(9, 0.1),
        by_arrival(81, 0.012),
        Workload("groups", "1000 groups, k = 10, window 1M ms, slide 100k ms", per_id, 0.02, "20,000–35,000", ids=1000),
    ]


WORKLOADS: Final = tuple(_workloads())


def make_input(rows: int, ids: int | None, batch_rows: int) -> Input:
    """One table in one piece, and its slices of `batch_rows`."""
    table = uniform(rows, ids=ids, batch_rows=batch_rows).read_all().combine_chunks()
    return Input(
        table.to_batches(max_chunksize=batch_rows), table.column("score").chunk(0).to_numpy(zero_copy_only=True)
    )


def measure(workload: Workload, data: Input, passes: int, say: Callable[[str], None]) -> Result:
    """Push all of `data` `passes` times, each time into a new session, in turn with the reference."""
    say(f"{workload.title}: counting rows held")
    rows_held = _rows_held(workload.query, data)  # compiles the kernels, too
    ours, reference = math.inf, math.inf
    for number in range(passes):
        say(f"{workload.title}: pass {number + 1} of {passes}")
        # Three to one: the pass is short, and a reference that was disturbed would flatter us.
        reference = min(reference, *(_time_numpy(data) for _ in range(3)))
        session = workload.query.open(data.batches[0].schema)
        ours = min(ours, time_push(session, data.batches))
    rate, reference_rate = data.rows / ours, data.rows / reference
    return Result(
        workload.name,
        workload.title,
        AGAINST,
        rate / reference_rate,
        workload.bar,
        rows_per_second=rate,
        reference_rows_per_second=reference_rate,
        rows_held=rows_held,
        rows_expected=workload.rows_expected,
        how=f"best of {passes} passes over {data.rows:,} rows; rows held: mean, just after a slide",
    )


def measure_growth(name: str, data: Input, sizes: Sequence[int], passes: int, say: Callable[[str], None]) -> Result:
    """The cost of a row in windows of `sizes` rows, full before the clock starts: the slowest against the smallest."""
    sessions = {}
    for size in sizes:
        say(f"growth: filling a window of {_short(size)} rows")
        sessions[size] = TopK(k=10, by="score", window=sliding(size, every=size // 10)).open(data.batches[0].schema)
        # Over and over, until there were as many rows as the window holds, and a slide more.
        for batch in islice(cycle(data.batches), math.ceil(1.1 * size / data.batches[0].num_rows)):
            sessions[size].push(batch)
    seconds = dict.fromkeys(sizes, math.inf)
    for number in range(passes):
        say(f"growth: pass {number + 1} of {passes}")
        for size, session in sessions.items():
            seconds[size] = min(seconds[size], time_push(session, data.batches))
    slowest = max(sizes, key=lambda size: seconds[size])
    smallest, largest = min(sizes), max(sizes)
    return Result(
        name,
        f"cost per row, window {_short(smallest)} → {_short(largest)}",
        "itself",
        seconds[slowest] / seconds[smallest],
        1.3,
        at_most=True,
        rows_per_second=data.rows / seconds[slowest],
        reference_rows_per_second=data.rows / seconds[smallest],
        rows_held=float(np.mean([session.stats().rows_held for session in sessions.values()])),
        rows_expected="20–35",
        how=f"best of {passes} passes over {data.rows:,} rows after the window is full; the slowest window "
        f"({_short(slowest)}) against {_short(smallest)}",
    )


def _time_numpy(data: Input) -> float:
    started = time.perf_counter()
    _ = data.scores > THRESHOLD
    return time.perf_counter() - started


def time_push(session: Session, batches: list[pa.RecordBatch]) -> float:
    started = time.perf_counter()
    for batch in batches:
        session.push(batch)
    return time.perf_counter() - started


def _rows_held(query: TopK, data: Input) -> float:
    """How many rows are held just after a slide, on average; the first quarter, while windows fill, does not count."""
    session = query.open(data.batches[0].schema)
    counts = []
    for batch in data.batches:
        session.push(batch.slice(0, 1))
        counts.append(session.stats().rows_held)
        session.push(batch.slice(1))
    return float(np.mean(counts[len(counts) // 4 :]))


def _short(rows: int) -> str:
    return f"{rows // 1_000_000}M" if rows >= 1_000_000 else f"{rows // 1_000}k"
