"""Measures what the planner adds up for subscriptions, on this machine: see problems/subscriptions/costs.py.

What single loops cost is timed by itself; what only happens inside an operator is what is left of its time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.cost_files import machine
from skyband.core.emit import WINDOWS
from skyband.core.registry import find
from skyband.expressions import subscriptions
from skyband.problems.subscriptions.algorithms.boxes.state import Boxes
from skyband.problems.subscriptions.algorithms.cells.state import Cells
from skyband.problems.subscriptions.algorithms.scan.state import Scan
from skyband.problems.subscriptions.costs import SubscriptionCosts
from skyband.problems.subscriptions.drivers.lists import Hits
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.drivers.thresholds import Index
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.problems.subscriptions.planning import listed_share, met_in_cells, seen_in_boxes
from skyband.study.subscriptions import ROWS, WINDOW, opened, same, spec_of
from skyband.windows import Ticks

FEW: Final = 2  # columns
QUERIES: Final = 400
TURNS: Final = 7  # the fastest counts
KS: Final = (9, 81)
SYMBOLS: Final = 100
NOBODY: Final = -1e-9  # as a threshold: no row is so near


class Effort(NamedTuple):
    """How much is measured: for tests, little."""

    rows: int = ROWS
    window: int = WINDOW
    queries: int = QUERIES
    more: int = 10  # columns


def settings_to_measure() -> int:
    return 10


def measure(step: Callable[[str], None], effort: Effort = Effort()) -> SubscriptionCosts:  # noqa: B008
    """All pieces; `step` is told what is measured next."""
    ns: dict[str, float] = {}
    sweeps: list[float] = []
    lays: list[float] = []
    for columns in (FEW, effort.more):
        step(f"scores of {columns} columns")
        sweeps.append(_swept(Scan(spec_of(columns).scoring), columns, effort))
    for columns in (FEW, effort.more):
        step(f"boxes of {columns} columns")
        index, rows = Boxes(spec_of(columns).scoring, 16, 0), np.random.default_rng(1).random((columns, effort.rows))
        lays.append(_fastest(partial(index.lay, rows, 0, effort.rows)) / effort.rows)
    ns["score"], ns["score_column"] = _line(sweeps, effort.more)
    ns["lay"], ns["lay_column"] = _line(lays, effort.more)
    ns["bound"] = _swept(Boxes(spec_of(FEW).scoring, 16, 0), FEW, effort)
    step("lists")
    score = ns["score"] + FEW * ns["score_column"]
    lay = ns["lay"] + FEW * ns["lay_column"]
    share = listed_share(KS[0], effort.window)
    found = ns["bound"] + 1.3 * seen_in_boxes(share, FEW) * score
    ns["listed"] = _left(_pushed("boxes", KS[0], effort) - lay, effort.queries * found, effort.queries * share)
    mets, swept = [], []
    for k in KS:
        step(f"cells, k = {k}")
        share = listed_share(k, effort.window)
        mets.append(met_in_cells(share, FEW))
        radius = math.sqrt(share / math.pi)
        swept.append(_swept(Cells(spec_of(FEW).scoring, 0), FEW, effort, -radius))
    ns["met"] = max(1.0, (swept[1] - swept[0]) / (mets[1] - mets[0]))
    step("cells")
    rest = (_pushed("cells", KS[0], effort) - lay) / effort.queries - ns["listed"] * listed_share(KS[0], effort.window)
    ns["drawn"] = max(0.01, rest - ns["met"] * mets[0])
    step("one skyband")
    ns["shared"] = max(0.1, _shared("x", effort) - ns["score"] - ns["score_column"])
    step("a skyband for each symbol")
    by_symbol = subscriptions.filtered("x", "symbol = q.symbol")
    ns["score_group"] = max(0.1, _shared(by_symbol, effort) - ns["shared"] - ns["score"] - 2 * ns["score_column"])
    return SubscriptionCosts(machine(), {name: float(f"{each:.3g}") for name, each in ns.items()})


def _swept(index: Index, columns: int, effort: Effort, limit: float = NOBODY) -> float:
    """What it costs, for a row and a query, to find the rows that reach a threshold."""
    rng = np.random.default_rng(1)
    rows, parameters = rng.random((columns, effort.rows)), rng.random((columns, effort.queries))
    which = index.arrange(parameters, np.arange(effort.queries))
    hits = Hits(np.empty(4 * effort.rows, np.int64), np.empty(4 * effort.rows), np.empty(effort.queries, np.int64))
    limits = np.full(effort.queries, limit)
    index.lay(rows, 0, effort.rows)
    return _fastest(lambda: index.sweep(parameters, limits, which, 0, hits)) / effort.rows / effort.queries


def _pushed(name: str, k: int, effort: Effort) -> float:
    """Nanoseconds a row once the window is full."""
    spec = spec_of(FEW, k=k, size=effort.window)
    rng = np.random.default_rng(1)
    queries = same(effort.queries, k, effort.window, rng.random((FEW, effort.queries)))
    take = opened(name, spec, queries, rng.random((FEW, effort.window + ROWS * (TURNS + 3))))
    turns = iter(range(TURNS + 1))
    return _fastest(lambda: take(next(turns))) / ROWS


def _shared(by: str, effort: Effort) -> float:
    """Nanoseconds a row where queries share one skyband, or one for each symbol. Each skyband has one query: answers
    cost the same whatever finds them."""
    fields = [("symbol", pa.float64()), ("x", pa.float64())]
    scoring = scoring_of(subscriptions.bind(by, False, pa.schema(fields), pa.schema(fields[:1])))
    size, n = effort.window, SYMBOLS if scoring.score.seen_by else 1
    spec = Spec(Ticks(size, size, 0, by_count=True), scoring, WINDOWS)
    operator, full = find("shared", "subscriptions").open(spec), np.full(n, size)
    symbols = np.arange(n, dtype=np.float64)[None, :] if scoring.score.seen_by else np.empty((0, n))
    operator.add(Queries(np.full(n, 10), full, full, symbols), backfill=False)
    rng, first = np.random.default_rng(1), iter(range(0, 10**9, effort.rows))
    rows = np.array([rng.integers(0, n, effort.rows), rng.random(effort.rows)])[-len(scoring.score.columns) :].copy()
    return _fastest(lambda: operator.push(Batch(rows, np.empty(0, np.int64), next(first)))) / effort.rows


def _fastest(run: Callable[[], Any]) -> float:
    """Nanoseconds of the processor. The first time is not counted: it may compile."""
    run()
    spent = []
    for _ in range(TURNS):
        begun = time.thread_time()
        run()
        spent.append(time.thread_time() - begun)
    return min(spent) * 1e9


def _line(costs: list[float], more: int) -> tuple[float, float]:
    """From the costs of few and of more columns, what is there anyhow and what each column adds."""
    column = max(0.01, (costs[1] - costs[0]) / (more - FEW))
    return max(0.01, costs[0] - FEW * column), column


def _left(total: float, known: float, times: float) -> float:
    return max(1.0, (total - known) / times)
