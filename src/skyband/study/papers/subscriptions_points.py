"""What the experiments about subscriptions measure: the cost of a row, the errors of PA, how many rows are held.

Rows are points, queries are sampled from them, a score is the distance. Real readings of sensors are not ours to ship:
rows like them are made, in their order ("correlated in time") or drawn from it at random ("randomised").
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from skyband.core.operator import Floats
from skyband.core.registry import find
from skyband.problems.subscriptions.operator import Batch, Queries, Spec
from skyband.study.baselines.subscriptions.indexed.state import Indexed
from skyband.study.papers.experiments import Effort, Findings, Measure, Say
from skyband.study.papers.points import COST
from skyband.study.subscriptions import same, spec_of

QUERIES: Final = 400
QUICK_QUERIES: Final = 100
K: Final = 9
WINDOW: Final = 40_000
ROWS: Final = 1_000_000
SIGMA: Final = 0.001
BATCH: Final = 10_000  # rows that are pushed together; fewer if an algorithm is slow
HELD: Final = "rows held per query"
REFERENCES: Final = "references per query"  # one to each row that a query or its filter holds
LONGEST: Final = ", longest buffer"  # behind an algorithm's name: half of the window
MISSED, EXTRA = "rows missed per query", "rows made up per query"
BOUND: Final = "bound"

UNIFORM, CLUSTERED, RANDOMISED, CORRELATED = "uniform", "clustered", "randomised", "correlated in time"
DATA: Final = (UNIFORM, CLUSTERED, RANDOMISED, CORRELATED)
WHY_FILTERS_ARE_SLOW: Final = (
    "A filter knows the last readings only, and these lie in few cells: with a window of 10,000 rows 99 of 100 queries "
    "are in such a cell, and 9 with CPM/w, whose lists know the whole window. For the claim to hold, the readings of a "
    "buffer would have to spread over more cells, or lists of CPM/w to run short more often."
)
_SENSORS: Final = 90
_POOL: Final = 1 << 17  # readings from which randomised ones are drawn

_NO_TIMES: Final = np.empty(0, np.int64)
_compiled: set[tuple[str, int]] = set()  # what has run once, with so many columns


class Points:
    """A stream of points, made as it is read: by column, then by row."""

    def __init__(self, kind: str, columns: int, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._columns = columns
        self._made = 0
        self._centres = self._random.random((columns, 2))
        self._phase = self._random.random((columns, _SENSORS))
        self._pool = self._readings(_POOL) if kind == RANDOMISED else np.empty((columns, 0))
        makers: dict[str, Callable[[int], Floats]] = {
            UNIFORM: lambda count: self._random.random((columns, count)),
            CLUSTERED: self._around_centres,
            RANDOMISED: lambda count: self._pool[:, self._random.integers(0, _POOL, count)],
            CORRELATED: self._readings,
        }
        self.take = makers[kind]

    def _around_centres(self, count: int) -> Floats:
        centre = self._centres[:, self._random.integers(0, 2, count)]
        return centre + self._random.normal(0, 0.1, (self._columns, count))

    def _readings(self, count: int) -> Floats:
        """Each sensor says in its turn what changes slowly, somewhat later in one place than in another."""
        t = self._made + np.arange(count)
        self._made += count
        days = t / 30_000 * (1 + np.arange(self._columns)[:, np.newaxis] / 3) + self._phase[:, t % _SENSORS] / 4
        return 0.5 + 0.4 * np.sin(2 * np.pi * days) + self._random.normal(0, 0.01, (self._columns, count))


class Setting(NamedTuple):
    """One place of an axis: what is asked of what."""

    data: str = UNIFORM
    columns: int = 2
    queries: int = 0  # 0: as many as the paper has, or fewer for a quick look
    k: int = K
    window: int = WINDOW
    options: str = ""  # of the algorithm
    seed: int = 1  # of the stream, whose first points are also the queries

    def spec(self, effort: Effort) -> Spec:
        return spec_of(self.columns, size=effort.rows(self.window))

    def points(self) -> Points:
        return Points(self.data, self.columns, self.seed)

    def asked(self, effort: Effort) -> Queries:
        count = self.queries or (QUICK_QUERIES if effort.quick else QUERIES)
        points = np.ascontiguousarray(self.points().take(count))
        return same(count, self.k, effort.rows(self.window), points)


class Contender:
    """One algorithm, its window full, or as full as it gets in the time there is."""

    def __init__(self, label: str, algorithm: str, setting: Setting, effort: Effort) -> None:
        self.label = label
        spec, asked = setting.spec(effort), setting.asked(effort)
        self.operator: Any = find(algorithm, "subscriptions").open(spec)
        self.queries = len(asked.k)
        self._points = setting.points()
        self.operator.add(asked, backfill=False)
        self.rows, self._batch, spent = 0, min(BATCH, max(1, spec.window.size // 4)), 0.0
        while self.rows < 1.25 * spec.window.size and spent < effort.fill_seconds:
            spent += self.push()[0]
        self.is_full = self.rows >= spec.window.size
        self.ns_per_row = math.inf

    def push(self) -> tuple[float, Any]:
        columns = np.ascontiguousarray(self._points.take(self._batch))
        started = time.thread_time()
        answer = self.operator.push(Batch(columns, _NO_TIMES, self.rows))
        self.rows += self._batch
        return time.thread_time() - started, answer

    def take_turn(self, seconds: float) -> None:
        spent, before = 0.0, self.rows
        while spent < seconds:
            spent += self.push()[0]
        self.ns_per_row = min(self.ns_per_row, 1e9 * spent / (self.rows - before))


def algorithm_of(label: str, setting: Setting, effort: Effort) -> str:
    """The algorithm of that label, with what the setting says of its options."""
    name = label.removesuffix(LONGEST)
    given = [
        each for each in setting.options.split(", ") if each.partition("=")[0] in find(name, "subscriptions").options
    ]
    if name != label:
        given = [
            *(each for each in given if not each.startswith("buffer=")),
            f"buffer={effort.rows(setting.window / 2)}",
        ]
    return f"{name}({', '.join(given)})" if given else name


def sweep(setting: Callable[[float], Setting]) -> Measure:
    """Measures, at each place of the axis, what a row costs each algorithm, and how many rows it holds."""

    def measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
        findings = Findings()
        if setting(values[0]).data == CORRELATED:
            findings.notes.append(WHY_FILTERS_ARE_SLOW)
        for x in values:
            here = setting(x)
            contenders = []
            for label in algorithms:
                algorithm = algorithm_of(label, here, effort)
                refused = find(algorithm, "subscriptions").refuses(here.spec(effort))
                if refused:
                    findings.missing[label] = refused
                    continue
                if (label, here.columns) not in _compiled:
                    say(f"{label}: compiling")
                    _compiled.add((label, here.columns))
                    name = label.removesuffix(LONGEST)
                    Contender(label, name, here._replace(queries=100, window=2_000), effort).take_turn(0.001)
                say(f"{label}: filling the window")
                contenders.append(Contender(label, algorithm, here, effort))
            for _ in range(effort.passes):
                for contender in contenders:
                    say(f"{contender.label}: measuring")
                    contender.take_turn(effort.turn_seconds)
            for contender in contenders:
                findings.add(COST, contender.label, x, contender.ns_per_row)
                findings.add(HELD, contender.label, x, len(contender.operator.held()) / contender.queries)
                if isinstance(contender.operator, Indexed):
                    findings.add(REFERENCES, contender.label, x, contender.operator.references() / contender.queries)
                if not contender.is_full:
                    findings.notes.append(
                        f"{contender.label} at {x:,.10g}: measured before its window was full, after "
                        f"{contender.rows:,} rows, because it is slow."
                    )
        return findings

    return measure


def errors(values: Sequence[float], data: Sequence[str], effort: Effort, say: Say) -> Findings:
    """By k, for each kind of data: rows that PA never shows to a query although it should, and the other way round."""
    findings = Findings()
    rows = effort.rows(ROWS // (10 if effort.quick else 1))
    findings.notes.append(f"Runs: {effort.error_runs}, each of {rows:,} rows; the paper has 200 of {ROWS:,}.")
    for k in values:
        for kind in data:
            missed, extra, queries = 0, 0, 0
            for run in range(effort.error_runs):
                say(f"entries, {kind}, k = {k:g}, run {run + 1} of {effort.error_runs}")
                setting = Setting(kind, k=int(k), seed=1 + run)
                exact, shown = (_entries(algorithm, setting, effort, rows) for algorithm in ("boxes", "probabilistic"))
                missed += len(np.setdiff1d(exact, shown))
                extra += len(np.setdiff1d(shown, exact))
                queries += len(setting.asked(effort).k)
            findings.add(MISSED, kind, k, missed / queries)
            findings.add(EXTRA, kind, k, extra / queries)
        windows = rows / effort.rows(WINDOW)
        findings.add(MISSED, BOUND, k, SIGMA * windows)
        findings.add(EXTRA, BOUND, k, 1.5 * SIGMA * windows)
    return findings


def _entries(algorithm: str, setting: Setting, effort: Effort, rows: int) -> Any:
    """Which rows were ever shown to which query, as numbers."""
    operator, asked = find(algorithm, "subscriptions").open(setting.spec(effort)), setting.asked(effort)
    points = setting.points()
    operator.add(asked, backfill=False)
    found, batch = [], min(rows, BATCH)
    for first in range(0, rows, batch):
        answer = operator.push(Batch(np.ascontiguousarray(points.take(batch)), _NO_TIMES, first))
        found.append(answer.position * len(asked.k) + answer.group)
    return np.concatenate(found)
