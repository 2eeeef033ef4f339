"""Top-k across streams against itself as published, against smaller windows, and against a table of sums.

Rows are pushed through `query.open(schema).push(batch)`, as a user would, into sessions whose window is full. What is
compared takes turns, so that what else the machine does falls on both, and the fastest pass of each counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.kernels.compiling import allocating
from skyband.problems.across.algorithms import staircase
from skyband.problems.across.query import TopKAcross
from skyband.problems.across.session import AcrossSession
from skyband.streams.incomplete import incomplete
from skyband.study.baselines.across import early_aggregation
from skyband.study.embedded import time_push
from skyband.study.results import Result
from skyband.study.sizes import Sizes
from skyband.windows import sliding

STAIRCASE: Final = "across-staircase"
GROWTH: Final = "across-growth"
SUMS: Final = "across-sums"
RECALL: Final = "across-recall"
NAMES: Final = (STAIRCASE, GROWTH, SUMS, RECALL)

STREAMS: Final = ("r1", "r2", "r3")
OBJECTS: Final = 1_000_000

Say = Callable[[str], None]


def measure(wanted: Collection[str], sizes: Sizes, say: Say) -> Iterator[Result]:
    """The lines called `wanted`, as they are measured; `say` is told what is being done."""
    if STAIRCASE in wanted:
        yield _against_the_paper(sizes.passes, say)
    if GROWTH in wanted:
        yield _growth(sizes.across_windows, sizes.passes, say)
    if SUMS in wanted:
        yield _sums(sizes.across_window, sizes.passes, say)
    if RECALL in wanted:
        yield _recall(1_000, sizes.passes, say)


def _against_the_paper(passes: int, say: Say) -> Result:
    say("across streams: filling windows of 10,000 rows")
    ours, fast_rows = _filled(10_000, 20_000, staircase.NAME)
    theirs, slow_rows = _filled(10_000, 2_000, early_aggregation.NAME)
    fast, slow = math.inf, math.inf
    for number in range(passes):
        say(f"across streams, staircase: pass {number + 1} of {passes}")
        slow = min(slow, time_push(theirs, next(slow_rows)) / 2_000)
        fast = min(fast, time_push(ours, next(fast_rows)) / 20_000)
    return Result(
        STAIRCASE,
        "3 streams, each row, window 10k, k = 10",
        "the published algorithm, compiled",
        slow / fast,
        20,
        rows_per_second=1 / fast,
        reference_rows_per_second=1 / slow,
        rows_held=ours.stats().rows_held,
        rows_expected=f"{theirs.stats().rows_held:,}",
        how=f"best of {passes} passes over 20,000 and 2,000 rows; rows expected: what the published one holds",
    )


def _growth(windows: tuple[int, ...], passes: int, say: Say) -> Result:
    sessions = {}
    for size in windows:
        say(f"across streams: filling a window of {size:,} rows")
        sessions[size] = _filled(size, 20_000, staircase.NAME)
    seconds = dict.fromkeys(windows, math.inf)
    for number in range(passes):
        say(f"across streams, growth: pass {number + 1} of {passes}")
        for size, (session, rows) in sessions.items():
            seconds[size] = min(seconds[size], time_push(session, next(rows)))
    smallest, slowest = min(windows), max(windows, key=lambda size: seconds[size])
    return Result(
        GROWTH,
        f"3 streams: cost per row, window {smallest:,} → {max(windows):,}",
        "itself",
        seconds[slowest] / seconds[smallest],
        4,
        at_most=True,
        rows_per_second=20_000 / seconds[slowest],
        reference_rows_per_second=20_000 / seconds[smallest],
        rows_held=sessions[max(windows)][0].stats().rows_held,
        how=f"best of {passes} passes over 20,000 rows after the window is full; the slowest window ({slowest:,}) "
        f"against the smallest",
    )


def _sums(window: int, passes: int, say: Say) -> Result:
    say("across streams: making flows")
    ids, sizes = flows((passes + 2) * window)
    table = pa.table({"flow": ids, "bytes": sizes})
    query = TopKAcross(
        k=10, id="flow", value="bytes", repeat="sum", bounds=(0, math.inf), window=sliding(window, every=window // 10)
    )
    session = query.open(table.schema)
    keys, known, sums = np.empty(1 << 21, np.int64), np.zeros(1 << 21, np.bool_), np.zeros(1 << 21)
    ours, reference = math.inf, math.inf
    for number in range(passes + 2):
        say(f"across streams, sums: pass {number - 1} of {passes}")
        part = slice(number * window, (number + 1) * window)
        batches = table.slice(number * window, window).to_batches(max_chunksize=100_000)
        took, spent = time_push(session, batches), _time_sums(ids[part], sizes[part], keys, known, sums)
        if number >= 2:  # the window is full, and so is the table of sums
            ours, reference = min(ours, took), min(reference, spent)
    return Result(
        SUMS,
        f"heaviest of 1M flows (Zipf), window {window:,}, slide {window // 10:,}, k = 10",
        "numba: a table of sums, without a window",
        reference / ours,
        0.3,
        rows_per_second=window / ours,
        reference_rows_per_second=window / reference,
        rows_held=session.stats().rows_held,
        rows_expected=f"{window:,}",
        how=f"best of {passes} passes over {window:,} rows after the window is full",
    )


def _recall(window: int, passes: int, say: Say) -> Result:
    """Items held for recall=0.95, and the recall measured: of streams whose objects wait 20 rows of each for values."""
    held, found = [], []
    for seed in range(max(passes, 3)):
        say(f"across streams, recall: stream {seed + 1} of {max(passes, 3)}")
        table = incomplete(8 * window, streams=3, xi=0.5, recent=window // 50, seed=seed).combine_chunks()
        asked: dict[str, Any] = {"k": 10, "id": "id", "value": "value", "stream": "stream", "streams": STREAMS}
        ours, exact = (
            TopKAcross(window=sliding(window), **asked, **options).open(table.schema)
            for options in ({"recall": 0.95}, {"algorithm": "totals"})
        )
        for first in range(0, 8 * window, window // 20):
            for session in (ours, exact):
                session.push(table.slice(first, window // 20))
            if first >= 2 * window:
                true = set(exact.top()["id"].to_pylist())
                found.append(len(true & set(ours.top()["id"].to_pylist())) / len(true))
                held.append(ours.stats().rows_held)
    return Result(
        RECALL,
        f"3 streams, each row, window {window:,}, k = 10, recall=0.95: items held",
        f"recall measured: {np.mean(found):.3f}",
        float(np.mean(held)) if np.mean(found) >= 0.95 else math.inf,
        100,
        at_most=True,
        unit="",
        rows_held=float(np.mean(held)),
        how="mean over looks from the third window on; objects come to other streams within 60 rows",
    )


def flows(rows: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Packets of a million flows: how often a flow comes falls with its rank, as Zipf found it of words."""
    random = np.random.default_rng(1)
    often = np.cumsum(1 / np.arange(1, OBJECTS + 1))
    rank = np.searchsorted(often, random.random(rows) * often[-1])
    return random.permutation(OBJECTS)[rank], random.integers(40, 1500, rows).astype(np.float64)


def _filled(window: int, batch: int, algorithm: str) -> tuple[AcrossSession, Iterator[list[pa.RecordBatch]]]:
    """A session whose window is full, and rows to push, without end, so many at a time."""
    query = TopKAcross(
        k=10, id="id", value="value", stream="stream", streams=STREAMS, window=sliding(window), algorithm=algorithm
    )
    rows = window + window // 4 + 40 * batch
    table = incomplete(rows, streams=3, xi=0.5, recent=max(window // 10, 10)).combine_chunks()
    session = query.open(table.schema)
    full = window + window // 4
    for part in table.slice(0, full).to_batches(max_chunksize=20_000):
        session.push(part)
    return session, (table.slice(start, batch).to_batches() for start in range(full, rows, batch))


def _time_sums(ids: Any, amounts: Any, keys: Any, known: Any, sums: Any) -> float:
    started = time.perf_counter()
    _add(ids, amounts, keys, known, sums)
    return time.perf_counter() - started


@allocating
def _add(ids, amounts, keys, known, sums):  # type: ignore[no-untyped-def]
    """The reference: a hash table of sums, open addressing, half full, and nothing else."""
    mask = len(keys) - 1
    for i in range(len(ids)):
        slot = np.int64((np.uint64(ids[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        while known[slot] and keys[slot] != ids[i]:
            slot = (slot + 1) & mask
        known[slot] = True
        keys[slot] = ids[i]
        sums[slot] += amounts[i]
