"""Subscriptions against the published competitors, and against a loop that only computes all distances.

Points and queries are uniform; windows are of 40,000 arrivals, slide with each, and are full before the clock starts.
The contenders take turns on the same rows, so that what else the machine does falls on all. No row comes twice, and the
median turn counts: what is rare and expensive, such as computing an answer anew, is part of an algorithm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.emit import ENTRIES, WINDOWS
from skyband.core.operator import Floats
from skyband.core.registry import find
from skyband.expressions import subscriptions
from skyband.problems.rows.operator import Batch as RowBatch
from skyband.problems.rows.operator import Spec as RowSpec
from skyband.problems.rows.planning import plan as plan_rows
from skyband.problems.subscriptions.drivers.scoring import BLOCK, scoring_of
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.problems.subscriptions.planning import plan
from skyband.study.results import Result
from skyband.windows import Ticks

WINDOW: Final = 40_000
ROWS: Final = 10_000  # of a turn
LOOP: Final = "all distances"
SHARED: Final = "subscriptions-shared"
SYMBOLS: Final = "subscriptions-symbols"
Say = Callable[[str], None]


class Line(NamedTuple):
    name: str
    queries: int
    columns: int
    k: int
    against: str
    bar: float
    at_most: bool = False  # the ratio is how many times as fast, or with at_most how many times as slow


LINES: Final = (
    *(Line(f"subscriptions-{name}-9", 400, 2, 9, name, 4.0) for name in ("cpmw", "snn")),
    *(Line(f"subscriptions-{name}-81", 400, 2, 81, name, 8.0) for name in ("cpmw", "snn")),
    Line("subscriptions-10000", 10_000, 2, 9, LOOP, 5.0),
    Line("subscriptions-d10", 400, 10, 9, LOOP, 1.5, at_most=True),
)
NAMES: Final = (*(line.name for line in LINES), SHARED, SYMBOLS)


def spec_of(columns: int, *, k: int | None = None, size: int = WINDOW, every: int = 0) -> Spec:
    """The nearest points of so many dimensions, in a window of arrivals."""
    names = [f"x{i}" for i in range(columns)]
    by = f"sqrt({' + '.join(f'({name} - q.{name})**2' for name in names)})"
    schema = pa.schema([(name, pa.float64()) for name in names])
    scoring = scoring_of(subscriptions.bind(by, True, schema, schema))
    return Spec(Ticks(size, every, 0, by_count=True), scoring, WINDOWS if every else ENTRIES, k)


def same(queries: int, k: int, size: int, parameters: Floats) -> Queries:
    """So many queries that differ only in their parameters."""
    return Queries(np.full(queries, k), np.full(queries, size), np.zeros(queries, np.int64), parameters)


def measure(wanted: Collection[str], passes: int, say: Say) -> Iterator[Result]:
    """The lines called `wanted`, as they are measured; `say` is told what is being done."""
    for line in LINES:
        if line.name in wanted:
            yield _compared(line, passes, say)
    for name in (SHARED, SYMBOLS):
        if name in wanted:
            yield _shared(name, passes, say)


def _compared(line: Line, passes: int, say: Say) -> Result:
    title = f"{line.queries:,} queries, d = {line.columns}, k = {line.k}"
    spec = spec_of(line.columns, k=line.k)
    ours = plan(spec, line.queries).algorithm
    rng = np.random.default_rng(1)
    queries = same(line.queries, line.k, WINDOW, rng.random((line.columns, line.queries)))
    rows = rng.random((line.columns, WINDOW + ROWS * (1 + 3 * passes)))
    say(f"{title}: filling windows")
    contenders: dict[str, Callable[[int], Any]] = {ours: opened(ours, spec, queries, rows)}
    contenders[line.against] = (
        scoring_all(spec, queries, rows) if line.against == LOOP else opened(line.against, spec, queries, rows)
    )
    say(f"{title}: measuring")
    seconds = take_turns(contenders, 3 * passes)
    ratio = seconds[ours] / seconds[line.against]
    return Result(
        line.name,
        f"{title}: {ours}",
        line.against,
        ratio if line.at_most else 1 / ratio,
        line.bar,
        at_most=line.at_most,
        rows_per_second=1 / seconds[ours],
        reference_rows_per_second=1 / seconds[line.against],
        rows_held=float(WINDOW),
        rows_expected=f"{WINDOW:,}, once for all queries",
        how=f"seconds a row, of the processor, median of {3 * passes} turns of {ROWS:,} rows, once the window is full",
    )


def _shared(name: str, passes: int, say: Say) -> Result:
    """1,000 queries that differ only in k and in how far they look back, against the one that asks for most; or where
    each query sees one of 100 symbols, against one ranking for each symbol."""
    size, every, k, count, symbols = 1_000_000, 100_000, 10, 1_000, 100 if name == SYMBOLS else 1
    what = "one score" if symbols == 1 else f"{symbols} symbols"
    title = f"1,000 queries with {what}, k to 10, windows to 1M"
    say(title)
    fields = [("symbol", pa.float64()), ("x", pa.float64())]
    by = "x" if symbols == 1 else subscriptions.filtered("x", "symbol = q.symbol")
    scoring = scoring_of(subscriptions.bind(by, False, pa.schema(fields), pa.schema(fields)))
    spec = Spec(Ticks(size, every, 0, by_count=True), scoring, WINDOWS)
    rng = np.random.default_rng(1)
    sizes = rng.integers(every, size, count, endpoint=True)
    ours = plan(spec, count, score_groups=symbols).algorithm
    operator = find(ours, "subscriptions").open(spec)
    ks = rng.integers(1, k, count, endpoint=True)
    asked_for = rng.integers(0, symbols, (len(scoring.score.parameters), count)).astype(np.float64)
    operator.add(Queries(ks, sizes, np.full(count, every), asked_for), backfill=False)
    # In windows of arrivals each symbol would have its own: the same windows are those by value, one arrival a tick.
    row_spec = RowSpec(k, Ticks(size, every, 0, by_count=symbols == 1), WINDOWS, grouped=symbols > 1)
    one = plan_rows(row_spec).algorithm
    alone = find(one, "rows").open(row_spec)
    rows = np.array([rng.integers(0, symbols, size), rng.random(size)])
    group, none = rows[0].astype(np.int32), np.empty(0, np.int64)

    def rank_alone(turn: int) -> None:
        begin = turn * every % size
        time = none if symbols == 1 else turn * every + np.arange(every)
        of = np.empty(0, np.int32) if symbols == 1 else group[begin : begin + every]
        alone.push(RowBatch(rows[1, begin : begin + every], time, of, turn * every))

    read = rows[-len(scoring.score.columns) :]
    contenders: dict[str, Callable[[int], Any]] = {
        ours: lambda turn: operator.push(Batch(_slide(read, turn, every), none, turn * every)),
        one: rank_alone,
    }
    take_turns(contenders, size // every + 1, every)
    seconds = take_turns(contenders, 3 * passes, every, first=size // every + 1)
    return Result(
        name,
        f"{title}: {ours}",
        f"one query{'' if symbols == 1 else ' for each symbol'} with k 10, window 1M: {one}",
        seconds[ours] / seconds[one],
        3.0 if symbols == 1 else 5.0,
        at_most=True,
        rows_per_second=1 / seconds[ours],
        reference_rows_per_second=1 / seconds[one],
        rows_held=float(operator.rows_held()),
        rows_expected=f"{symbols * k * (1 + math.log(size / symbols / k)):,.0f}",
        how=f"seconds a row, of the processor, median of {3 * passes} slides of {every:,} rows, answers included",
    )


def _slide(rows: Floats, turn: int, every: int) -> Floats:
    begin = turn * every % rows.shape[1]
    return rows[:, begin : begin + every]


def opened(name: str, spec: Spec, queries: Queries, rows: Floats) -> Callable[[int], Any]:
    """An operator whose window is full; called with the turn, it takes rows in."""
    operator = find(name, "subscriptions").open(spec)
    operator.add(queries, backfill=False)
    first = 0
    # What runs short is met once before the clock starts, so that nothing is compiled while it runs.
    while first < spec.window.size + ROWS:
        operator.push(Batch(np.ascontiguousarray(rows[:, first : first + ROWS]), np.empty(0, np.int64), first))
        first += ROWS

    def take(turn: int) -> None:
        begin = first + turn * ROWS
        chosen = np.ascontiguousarray(rows[:, begin : begin + ROWS])
        operator.push(Batch(chosen, np.empty(0, np.int64), begin))

    return take


def scoring_all(spec: Spec, queries: Queries, rows: Floats) -> Callable[[int], Any]:
    """What takes the same rows, computes the distance of each to each query, and does nothing else."""
    out = np.empty(BLOCK)

    def take(turn: int) -> None:
        spec.scoring.score_all(rows, 0, ROWS, queries.parameters, len(queries.k), out)

    spec.scoring.score_all(rows, 0, 1, queries.parameters, len(queries.k), out)
    return take


def take_turns(
    contenders: dict[str, Callable[[int], Any]], turns: int, rows: int = ROWS, first: int = 0
) -> dict[str, float]:
    """Seconds a row of the median turn of each."""
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders.items())
    for turn in range(first, first + turns):
        order.reverse()  # who comes second finds the rows nearby
        for name, take in order:
            begun = time.thread_time()
            take(turn)
            spent[name].append((time.thread_time() - begun) / rows)
    return {name: median(seconds) for name, seconds in spent.items()}
