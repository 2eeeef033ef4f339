"""One point of a curve: what a row costs one algorithm, once its window is full, and how many rows it holds then.

Rows are pushed to the operator in batches of 100,000, or smaller ones if it is slow. The algorithms of a point take
turns, so that what else the machine does falls on all of them, and the best turn of each counts. The clock is the CPU
time of this thread, as in the papers; making the rows is not timed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.core.operator import Answer
from skyband.core.registry import every_algorithm_of, find
from skyband.errors import InvalidQuery
from skyband.kernels.panes import WORTH_GUESSING
from skyband.problems.rows.operator import Batch, RowOperator, Spec
from skyband.streams.batches import evenly
from skyband.streams.orders import uniform
from skyband.study.papers.experiments import Effort, Findings, Measure, Say

COST: Final = "ns per row"
HELD: Final = "rows held, mean"
MOST_HELD: Final = "rows held, most"
BYTES: Final = "KB of state"  # its arrays as a snapshot has them, without the columns of the rows

BATCH_ROWS: Final = 100_000
AHEAD: Final = 10  # batches made before they are timed, of a fast algorithm
ENDLESS: Final = 2**40  # rows of a stream that is made as it is read
_NO_GROUPS: Final = np.empty(0, np.int32)
_NO_TIMES: Final = np.empty(0, np.int64)
_compiled: set[tuple[str, bool, bool, int, bool, bool]] = set()


def random_order() -> pa.RecordBatchReader:
    return uniform(ENDLESS, batch_rows=BATCH_ROWS)


@dataclass(frozen=True, slots=True)
class Case:
    """One algorithm, asked one query about one stream."""

    label: str  # in tables and figures
    algorithm: str  # as `find` reads it
    spec: Spec
    stream: Callable[[], pa.RecordBatchReader] = random_order

    @property
    def unable(self) -> str | None:
        """Why this cannot be measured, or None."""
        return unable(self.algorithm, self.spec)


def unable(algorithm: str, spec: Spec) -> str | None:
    """Why this algorithm cannot be measured with this query, or None."""
    if algorithm.partition("(")[0] not in every_algorithm_of("rows"):
        return "not registered"
    try:
        return find(algorithm, "rows").refuses(spec)
    except InvalidQuery as error:
        return str(error)


def sweep(case: Callable[[str, float, Effort], Case]) -> Measure:
    """Measures, at each place of the axis, the case of each algorithm there: its cost, its rows and its bytes."""

    def measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
        findings = Findings()
        for x in values:
            cases = able((case(label, x, effort) for label in algorithms), findings)
            for contender in race(cases, effort, say):
                findings.add(COST, contender.case.label, x, contender.ns_per_row)
                if contender.held:
                    findings.add(HELD, contender.case.label, x, float(np.mean(contender.held)))
                    findings.add(MOST_HELD, contender.case.label, x, max(contender.held))
                    findings.add(BYTES, contender.case.label, x, contender.state_kb)
                if not contender.is_full:
                    findings.notes.append(
                        f"{contender.case.label} at {x:,.10g}: measured before its window was full, after "
                        f"{contender.rows:,} rows, because it is slow."
                    )
        return findings

    return measure


def able(cases: Iterable[Case], findings: Findings) -> list[Case]:
    """The cases that can be measured; of the others, `findings` says why not."""
    chosen = []
    for case in cases:
        why = case.unable
        if why is None:
            chosen.append(case)
        else:
            findings.missing[case.label] = why
    return chosen


class Feed:
    """A stream as the operator's batches, of any number of rows that divides that of the reader's batches."""

    def __init__(self, reader: pa.RecordBatchReader, *, by_count: bool) -> None:
        self._reader = iter(evenly(reader, BATCH_ROWS))
        self._by_count = by_count
        self._score, self._time = np.empty(0), _NO_TIMES
        self.first = 0
        self.ahead = 1  # batches of the reader's that are made at a time

    def take(self, rows: int) -> Batch:
        if not len(self._score):
            made = list(islice(self._reader, self.ahead))
            self._score, self._time = (
                np.concatenate([np.asarray(batch.column(name)) for batch in made]) for name in ("score", "time")
            )
        score, time_ = self._score[:rows], self._time[:rows]
        self._score, self._time = self._score[rows:], self._time[rows:]
        taken = Batch(score, _NO_TIMES if self._by_count else time_, _NO_GROUPS, self.first)
        self.first += len(score)
        return taken


@dataclass(slots=True)
class Contender:
    """A case that runs."""

    case: Case
    operator: RowOperator
    feed: Feed
    batch_rows: int = 100
    ns_per_row: float = math.inf
    is_full: bool = False
    held: list[int] = field(default_factory=list)  # sampled just after a slide

    @classmethod
    def open(cls, case: Case) -> Contender:
        return cls(
            case, find(case.algorithm, "rows").open(case.spec), Feed(case.stream(), by_count=case.spec.window.by_count)
        )

    @property
    def rows(self) -> int:
        return self.feed.first

    @property
    def state_kb(self) -> float:
        return sum(array.nbytes for array in self.operator.state().values()) / 1e3

    def fill(self, effort: Effort) -> None:
        """Push until the window is full, with larger and larger batches, or until that takes too long."""
        window = self.case.spec.window
        spent, cheap = 0.0, True
        while spent < effort.fill_seconds:
            if self.rows >= window.size + window.every and (self.batch_rows == BATCH_ROWS or not cheap):
                break
            seconds, _ = self.push()
            spent += seconds
            cheap = seconds < effort.turn_seconds / 20
            if cheap and self.rows % (10 * self.batch_rows) == 0:  # so that batches still end where slides do
                self.batch_rows = min(BATCH_ROWS, 10 * self.batch_rows)
        self.is_full = self.rows >= window.size
        if self.batch_rows == BATCH_ROWS:
            # Making rows leaves nothing of the operator's in the cache, and a batch is over too soon to make up for it.
            self.feed.ahead = AHEAD

    def take_turn(self, seconds: float) -> None:
        rows, spent = 0, 0.0
        while spent < seconds:
            before = self.rows
            spent += self.push()[0]
            rows += self.rows - before
            if not self.case.spec.window.every or self.rows % self.case.spec.window.every == 0:
                self.held.append(self.operator.rows_held())
        self.ns_per_row = min(self.ns_per_row, spent / rows * 1e9)

    def push(self) -> tuple[float, Answer]:
        """The seconds that the next batch took, and its answer."""
        batch = self.feed.take(self.batch_rows)
        started = time.thread_time()
        answer = self.operator.push(batch)
        return time.thread_time() - started, answer


def race(cases: Sequence[Case], effort: Effort, say: Say) -> list[Contender]:
    """Measure these cases in turn."""
    contenders = []
    for case in cases:
        compile_for(case, say)
        say(f"{case.label}: filling the window")
        contender = Contender.open(case)
        contender.fill(effort)
        contenders.append(contender)
    for _ in range(effort.passes):
        for contender in contenders:
            say(f"{contender.case.label}: measuring")
            contender.take_turn(effort.turn_seconds)
    return contenders


def compile_for(case: Case, say: Say) -> None:
    """Run a small query of the same kind, if none has run yet: what numba compiles depends on the kind alone."""
    spec, window = case.spec, case.spec.window
    k = min(spec.k, 10 if spec.k < WORTH_GUESSING else WORTH_GUESSING)  # a large k takes other loops
    kind = (
        case.algorithm.partition("(")[0],
        window.by_count,
        window.every > 0,
        spec.emit,
        spec.ad_hoc,
        k >= WORTH_GUESSING,
    )
    if kind in _compiled:
        return
    say(f"{case.label}: compiling")
    small = replace(window, size=min(window.size, 500), every=min(window.every, 100))
    contender = Contender.open(replace(case, spec=replace(spec, k=k, window=small)))
    for _ in range(20):
        contender.push()
    contender.operator.rows_held()
    _compiled.add(kind)
