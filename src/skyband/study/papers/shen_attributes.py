"""Shen, Cheema, Lin, Zhang, Wang, TKDE 2014: top-k objects by number of attributes; figures 14 and 16 (b).

Its SMA indexes objects in a grid of as many dimensions as the score has attributes. For one score SMA here has a grid
over the score alone, so this one is `snn`, the same algorithm for many queries, asked one. No-PST is `strict` or
`relaxed`, SCASE `staircase`: these see scores, as they were computed before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.core.emit import ENTRIES
from skyband.core.registry import find
from skyband.expressions import subscriptions
from skyband.problems.rows.operator import Spec
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.operator import Batch
from skyband.problems.subscriptions.operator import Spec as SubscriptionSpec
from skyband.streams.points import anticorrelated
from skyband.study.papers.claims import does_not_grow, faster, grows
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Say
from skyband.study.papers.points import BATCH_ROWS, COST, ENDLESS, Case, race
from skyband.study.papers.shen import PAPER, K
from skyband.study.subscriptions import same
from skyband.windows import Ticks

WINDOW: Final = 200_000
PUSHED: Final = 10_000  # rows at once, to the grid
MEMORY: Final = "KB held"
GRID: Final = "sma, grid over all attributes"
BY_SCORE: Final = ("strict", "relaxed", "staircase")


def measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings, size = Findings(), effort.rows(WINDOW)
    for x in values:
        d = int(x)
        ticks = Ticks(size, 0, 0, by_count=True)
        stream = partial(_sums, d)
        names = [name for name in algorithms if name in BY_SCORE]
        cases = [Case(n, n, Spec(K, ticks, ENTRIES, ad_hoc=n == "staircase"), stream) for n in names]
        for contender in race(cases, effort, say):
            held = float(np.mean(contender.held or [contender.operator.rows_held()]))
            findings.add(COST, contender.case.label, x, contender.ns_per_row)
            findings.add(MEMORY, contender.case.label, x, contender.state_kb + 8 * d * held / 1e3)
        if GRID in algorithms:
            say(f"{GRID}: {d} attributes")
            ns, kilobytes = _in_grid(d, ticks, effort)
            findings.add(COST, GRID, x, ns)
            findings.add(MEMORY, GRID, x, kilobytes)
    return findings


def _sums(d: int) -> pa.RecordBatchReader:
    """Points by the sum of their attributes."""
    schema = pa.schema([("score", pa.float64()), ("time", pa.int64())])

    def made() -> Iterator[pa.RecordBatch]:
        for block in anticorrelated(ENDLESS, dimensions=d, batch_rows=BATCH_ROWS):
            columns = [np.asarray(block.column(f"x{axis}")) for axis in range(d)]
            yield pa.record_batch([np.sum(columns, axis=0), block.column("time")], schema)

    return pa.RecordBatchReader.from_batches(schema, made())


def _in_grid(d: int, ticks: Ticks, effort: Effort) -> tuple[float, float]:
    """What a row costs, and how much is held, once the window is full."""
    names = [f"x{axis}" for axis in range(d)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    score = subscriptions.bind(" + ".join(names), False, schema, pa.schema([]))
    operator: Any = find("snn", "subscriptions").open(SubscriptionSpec(ticks, scoring_of(score), ENTRIES))
    operator.add(same(1, K, ticks.size, np.empty((0, 1))), backfill=False)
    first, best, spent = 0, math.inf, 0.0
    for block in anticorrelated(ENDLESS, dimensions=d, batch_rows=PUSHED):
        columns = np.array([np.asarray(block.column(name)) for name in names])
        started = time.thread_time()
        operator.push(Batch(columns, np.empty(0, np.int64), first))
        took = time.thread_time() - started
        first += PUSHED
        if first > ticks.size + PUSHED:
            best, spent = min(best, 1e9 * took / PUSHED), spent + took
            if spent > effort.passes * effort.turn_seconds:
                break
    arrays = [*operator._grid, *operator._lists]
    return best, sum(each.nbytes for each in arrays) / 1e3


EXPERIMENTS: Final = (
    Experiment(
        "shen-attributes",
        f"{PAPER}, figures 14 and 16 (b), by number of attributes",
        "Cost of a row and memory, by attributes: one query, anti-correlated points, window 200,000 rows, K = 20",
        Axis("attributes", (2, 3, 4, 5), quick=(2, 4), log=False),
        (*BY_SCORE, GRID),
        measure,
        (
            Claim("No-PST is faster than SMA.", faster("relaxed", GRID)),
            Claim("Keeping what any question needs costs more than SMA.", faster(GRID, "staircase")),
            Claim("SMA needs far more memory than a skyband: ten times, or more.",
                  faster("staircase", GRID, measure=MEMORY, at_least=10)),
            Claim("No-PST needs less memory than SCASE.", faster("strict", "staircase", measure=MEMORY)),
            Claim("The memory of SMA grows with the attributes.", grows(GRID, measure=MEMORY, at_least=1.1)),
            Claim("That of the skyband does not, but for the attributes themselves.",
                  does_not_grow("staircase", measure=MEMORY, at_most=1.5)),
        ),
    ),
)  # fmt: skip
