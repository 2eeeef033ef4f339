"""The lines about joins: aggregating early against late, and against recomputing; the best groups of many.

All run in this process. Rows go through `query.open(schemas).push(batch, input)`, as a user would push them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skyband.problems.joins.costs import enumerate_plans
from skyband.problems.joins.query import JoinAggregate
from skyband.study.papers import tran
from skyband.study.papers.experiments import FULL, QUICK
from skyband.study.results import Result
from skyband.windows import sliding

EARLY, RATE, RECOMPUTED, TOP = "joins-early", "joins-rate", "joins-recomputed", "joins-top"
NAMES: Final = (EARLY, RATE, RECOMPUTED, TOP)

ITEMS, KINDS, WINDOW = 10_000, 100, 100_000  # 10 rows of each item in a window, so that a row finds 10 matches
SLIDE = WINDOW // 100
BATCH = 100_000


def measure(wanted: Collection[str], passes: int, say: Callable[[str], None]) -> Iterator[Result]:
    if EARLY in wanted:
        yield early_against_late(passes, say)
    if not {RATE, RECOMPUTED}.isdisjoint(wanted):
        rate = best_rate(passes, say)
        if RATE in wanted:
            yield Result(
                *(RATE, "two streams, 10 matches a row, SUM and COUNT by group, in M rows/s", "the clock"),
                *(rate / 1e6, 3.0),
                unit="M/s",
                rows_per_second=rate,
                how=f"best of {passes} passes over {20 * BATCH:,} rows, {ITEMS:,} items of {KINDS} kinds, windows of "
                f"{WINDOW:,} rows that slide by {SLIDE:,}; with the Arrow tables in and out",
            )
        if RECOMPUTED in wanted and (recomputed := duckdb_rate(say)):
            yield Result(
                *(RECOMPUTED, "the same", "DuckDB, recomputing each window", rate / recomputed, 20.0),
                rows_per_second=rate,
                reference_rows_per_second=recomputed,
                how="DuckDB joins and groups the rows of 5 windows, each from scratch, on one thread; a rate is of new "
                "rows",
            )
    if TOP in wanted:
        yield best_groups(passes, say)


def early_against_late(passes: int, say: Callable[[str], None]) -> Result:
    """The paper's default setting: the late plan against the best of the others."""
    effort = FULL if passes > 3 else QUICK
    say("the paper's setting")
    candidates = enumerate_plans(2)
    measured = tran.measure_second(tran.TWO, candidates, effort)
    spent = dict(zip(map(tran.name_of, candidates), measured, strict=True))
    best = min(spent, key=lambda name: spent[name])
    published = min(value for name, value in spent.items() if name.startswith("EAP"))
    return Result(
        *(EARLY, "the paper's default setting: the best early plan", "the late plan", spent["LAP"] / spent[best], 20.0),
        rows_per_second=600e3 / spent[best],
        reference_rows_per_second=600e3 / spent["LAP"],
        how=f"{best} is the best; the best of the paper's is {spent['LAP'] / published:.1f}x as fast as the late plan",
    )


def streams(rows: int) -> dict[str, pa.Table]:
    """Offers and sales of items; an item is of one kind."""
    random = np.random.default_rng(1)

    def stream() -> pa.Table:
        item = random.integers(0, ITEMS, rows)
        return pa.table({"t": np.arange(rows), "item": item, "kind": item % KINDS, "n": random.integers(0, 1000, rows)})

    return {"offers": stream(), "sales": stream()}


def query() -> JoinAggregate:
    window = sliding(WINDOW, every=SLIDE, on="t")
    return JoinAggregate(
        inputs={"offers": window, "sales": window},
        on="offers.item = sales.item",
        group_by="offers.kind",
        aggregates={"n": "COUNT(*)", "total": "SUM(sales.n)"},
    )


def best_rate(passes: int, say: Callable[[str], None]) -> float:
    """Rows of both streams, together, a second."""
    data = streams(10 * BATCH)
    schemas = {name: table.schema for name, table in data.items()}
    batches = {name: table.to_batches(max_chunksize=BATCH) for name, table in data.items()}
    fastest = math.inf
    for number in range(passes + 1):  # the first compiles
        say(f"two streams: pass {number} of {passes}")
        session = query().open(schemas)
        began = time.perf_counter()
        for pieces in zip(*batches.values(), strict=True):
            for name, piece in zip(batches, pieces, strict=True):
                session.push(piece, name)
        fastest = min(fastest, time.perf_counter() - began)
    return 20 * BATCH / fastest


def duckdb_rate(say: Callable[[str], None]) -> float | None:
    """New rows a second when DuckDB recomputes each window; None: it is not installed."""
    try:
        import duckdb
    except ModuleNotFoundError:
        return None
    say("the same in DuckDB")
    data = streams(2 * WINDOW)
    connection: Any = duckdb.connect(config={"threads": 1})
    for name, table in data.items():
        connection.register(f"arrow_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
    fastest = math.inf
    for end in range(WINDOW, WINDOW + 5 * SLIDE, SLIDE):
        bounds = f"offers.t >= {end - WINDOW} AND offers.t < {end} AND sales.t >= {end - WINDOW} AND sales.t < {end}"
        began = time.perf_counter()
        connection.execute(
            "SELECT offers.kind, COUNT(*), SUM(sales.n) FROM offers JOIN sales ON offers.item = sales.item "
            f"WHERE {bounds} GROUP BY offers.kind"
        ).fetchall()
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * SLIDE / fastest


def best_groups(passes: int, say: Callable[[str], None]) -> Result:
    """What a row costs when the ten best of a thousand groups are asked for, and of a million."""
    seconds = {}
    rows = 20 * BATCH
    question = JoinAggregate(
        inputs=sliding(5 * BATCH, every=BATCH, on="t"), group_by="g", aggregates={"n": "COUNT(*)"}, order_by="n", k=10
    )
    for groups in (1_000, 1_000_000):
        table = zipf(rows, groups)
        seconds[groups] = math.inf
        for number in range(passes + 1):
            say(f"the ten best of {groups:,} groups: pass {number} of {passes}")
            session = question.open(table.schema)
            began = time.perf_counter()
            for batch in table.to_batches(max_chunksize=BATCH):
                session.push(batch)
            seconds[groups] = min(seconds[groups], time.perf_counter() - began)
    few, many = seconds.values()
    return Result(
        *(TOP, "top 10 groups, Zipf, 1k → 1M groups: cost of a row", "itself", many / few, 3.0),
        at_most=True,
        rows_per_second=rows / many,
        reference_rows_per_second=rows / few,
        how=f"best of {passes} passes over {rows:,} rows, window {5 * BATCH:,} rows, slide {BATCH:,}",
    )


def zipf(rows: int, groups: int) -> pa.Table:
    """Groups whose frequency falls with their number."""
    random = np.random.default_rng(2)
    weights = 1 / np.arange(1, groups + 1)
    cumulative = np.cumsum(weights) / weights.sum()
    return pa.table({"t": np.arange(rows), "g": np.searchsorted(cumulative, random.random(rows))})
