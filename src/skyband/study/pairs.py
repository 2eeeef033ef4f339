"""Pairs against `supreme`, which scores every pair once and does nothing else; and against the rows themselves.

Windows slide with each arrival and are full before the clock starts. The two take turns, on the same rows, so that what
else the machine does falls on both, and the fastest turn of each counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.emit import CHANGES
from skyband.core.registry import find
from skyband.expressions.pairs import bind
from skyband.problems.pairs.algorithms.staircase import expected_pairs
from skyband.problems.pairs.algorithms.staircase.state import Staircase
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.drivers.window_rows import Rows
from skyband.problems.pairs.operator import Batch, Spec
from skyband.problems.pairs.planning import plan
from skyband.problems.pairs.query import TopKPairs
from skyband.streams.arrivals import late
from skyband.streams.points import uniform_points
from skyband.study.baselines.pairs.supreme.state import Supreme
from skyband.study.results import Result
from skyband.windows import Ticks, sliding

K: Final = 20
SUPREME: Final = "supreme"
MEMORY: Final = "pairs-memory"
LATE: Final = "pairs-late"
Floats = npt.NDArray[np.float64]
Say = Callable[[str], None]


class Score(NamedTuple):
    """One of the paper's scores, in its words: smallest first, or turned around largest first."""

    joined: str
    ascending: bool


SCORES: Final = {
    "s1": Score(" + ", True),
    "s2": Score(" + ", False),
    "s3": Score(" * ", True),
    "s4": Score(" * ", False),
}


def spec_of(score: str, attributes: int, size: int, *, k: int = K, **colours: bool) -> Spec:
    """One of the paper's four scores of so many attributes, in a window of arrivals."""
    by = SCORES[score].joined.join(f"abs(a.x{i} - b.x{i})" for i in range(attributes))
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(attributes)])
    scoring = scoring_of(bind(by, None, SCORES[score].ascending, schema), **colours)
    return Spec(k, Ticks(size, 0, 0, by_count=True), scoring, CHANGES)


class Line(NamedTuple):
    name: str
    title: str
    score: str
    attributes: int
    size: int
    ours: str | None  # None: whatever the planner chooses
    against: str
    bar: float
    at_most: bool = True


LINES: Final = (
    *(
        Line(f"pairs-10k-{score}", f"staircase, {score}, window 10k", score, 3, 10_000, "staircase", SUPREME, 2.0)
        for score in SCORES
    ),
    Line("pairs-100k", "staircase, s1, window 100k", "s1", 3, 100_000, "staircase", SUPREME, 1.3),
    Line("pairs-naive", "naive, s1, window 10k", "s1", 3, 10_000, "naive", "staircase", 100.0, at_most=False),
    Line("pairs-planned", "the planner's choice, s1 of 2, window 100k", "s1", 2, 100_000, None, SUPREME, 1.0),
)
NAMES: Final = (*(line.name for line in LINES), LATE, MEMORY)


def measure(wanted: Collection[str], passes: int, say: Say) -> Iterator[Result]:
    """The lines called `wanted`, as they are measured; `say` is told what is being done."""
    for line in LINES:
        if line.name in wanted:
            yield _compared(line, passes, say)
    if LATE in wanted:
        yield _late(10_000, passes, say)
    if MEMORY in wanted:
        yield _memory(1_000_000, say)


def _compared(line: Line, passes: int, say: Say) -> Result:
    spec = spec_of(line.score, line.attributes, line.size)
    ours = line.ours or plan(spec).algorithm
    say(f"{line.title}: filling windows")
    values = np.random.default_rng(1).random((line.attributes, line.size))
    contenders = {name: opened(name, spec, values) for name in (ours, line.against)}
    say(f"{line.title}: measuring")
    seconds = take_turns(contenders, spec, line.size, 4 * passes)
    rate, reference = 1 / seconds[ours], 1 / seconds[line.against]
    return Result(
        line.name,
        line.title if line.ours else f"{line.title}: {ours}",
        line.against,
        seconds[ours] / seconds[line.against],
        line.bar,
        at_most=line.at_most,
        rows_per_second=rate,
        reference_rows_per_second=reference,
        rows_held=float(line.size),
        rows_expected=f"{line.size:,}",
        how=f"seconds a row, of the processor, best of {4 * passes} turns on the same rows, once the window is full",
    )


def opened(name: str, spec: Spec, values: Floats) -> Any:
    """An operator whose window is full of these rows."""
    operator = Supreme(spec) if name == SUPREME else find(name, "pairs").open(spec)
    if isinstance(operator, Supreme):
        operator.fill(values)
    else:
        push(operator, values, 0)
    return operator


def push(operator: Any, values: Floats, first: int) -> None:
    colours = np.empty((0, values.shape[1]))
    operator.push(Batch(values, colours, np.empty(0, np.int64), first))


def take_turns(contenders: dict[str, Any], spec: Spec, size: int, turns: int) -> dict[str, float]:
    """Seconds of the processor a row, of each: the best of so many turns. `naive` gets fewer rows."""
    random, first = np.random.default_rng(2), size
    best = dict.fromkeys(contenders, math.inf)
    # The first turn compiles.
    rows = max(128, min(1_920, 40_000_000 // size // 128 * 128))
    done = dict.fromkeys(contenders, first)
    for turn in range(turns + 1):
        values = random.random((spec.scoring.width, rows))
        for name, operator in contenders.items():
            some = values[:, :10] if name == "naive" else values
            started = time.thread_time()
            push(operator, some, done[name])
            spent = (time.thread_time() - started) / some.shape[1]
            done[name] += some.shape[1]
            if turn:
                best[name] = min(best[name], spent)
    return best


def _late(size: int, passes: int, say: Say) -> Result:
    """Rows that come up to a tenth of the window late: two shares of them, against rows in order."""
    say("pairs: late rows")
    by = " + ".join(f"abs(a.x{i} - b.x{i})" for i in range(3))
    query = TopKPairs(k=K, by=by, ascending=True, window=sliding(size, on="time"))
    turn, batch = size // 2, min(1_000, size // 2)
    rows = (2 + passes) * turn + size
    ordered = uniform_points(rows, dimensions=3).read_all()
    sessions, best = {}, dict.fromkeys((0.0, 0.2, 0.8), math.inf)
    for share in best:
        delivered = late(ordered.to_reader(), share=share, at_most=size // 10, column="time").read_all()
        sessions[share] = query.open(delivered.schema), delivered
    for start in range(0, rows, turn):
        for share, (session, delivered) in sessions.items():
            started = time.thread_time()
            for first in range(start, start + turn, batch):
                session.push(delivered.slice(first, batch))
            if start >= 2 * size:  # the window is full, and everything is compiled
                best[share] = min(best[share], (time.thread_time() - started) / turn)
    each = ", ".join(f"{share:.0%}: {1e6 * seconds:.1f} µs" for share, seconds in best.items())
    return Result(
        LATE,
        f"rows that come late, s1, window 10k: {session.algorithm}",
        "rows in order",
        max(best.values()) / best[0.0],
        2.0,
        at_most=True,
        rows_held=float(size),
        rows_expected=f"{size:,}",
        how=f"a row with so many late, by up to a tenth of the window, best turn of {turn:,} rows: {each}",
    )


def _memory(size: int, say: Say) -> Result:
    """What `staircase` keeps of a window of so many rows: put there without scoring, which would take minutes."""
    say("pairs: memory")
    values = np.random.default_rng(1).random((3, size))
    operator = Staircase(spec_of("s1", 3, size))
    operator.reserve_window(size)
    operator._rows.append(Rows(values, np.empty((0, size)), np.arange(size), np.arange(size)))
    pairs = expected_pairs(K, size)
    kept = operator.nbytes + int(2 * pairs) * operator._heap.dtype.itemsize
    return Result(
        MEMORY,
        "what staircase keeps, window 1M, 3 attributes",
        "the rows themselves",
        kept / values.nbytes,
        1.5,
        at_most=True,
        rows_held=float(size),
        rows_expected=f"{size:,}",
        how="bytes of all arrays of the operator, with room for the pairs that theory expects, against those of the "
        "rows' attributes; a session keeps the Arrow rows besides, to show them",
    )
