"""What the experiments about pairs measure: the cost of a row, the time of a question, how much is held."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import geometric_mean
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.core.emit import CHANGES
from skyband.core.operator import Arrays
from skyband.core.registry import find
from skyband.expressions.pairs import bind
from skyband.problems.pairs.algorithms.staircase import expected_pairs
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import Batch, Spec, best_first
from skyband.streams.points import anticorrelated, correlated, uniform_points
from skyband.study.baselines.pairs.naive.state import Naive
from skyband.study.baselines.pairs.staircase_published.state import PublishedSkyband
from skyband.study.baselines.pairs.supreme.state import Supreme
from skyband.study.pairs import SCORES, SUPREME, spec_of
from skyband.study.papers.experiments import Effort, Findings, Say
from skyband.study.papers.points import COST
from skyband.windows import Ticks

K: Final = 20
WINDOW: Final = 10_000
ATTRIBUTES: Final = 3
ALL: Final = ("supreme", "staircase", "threshold", "naive")
MAINTAINED: Final = ("supreme", "staircase", "threshold", "staircase_published", "basic", "threshold_published")
PAIRS_HELD: Final = "pairs held"
MEMORY: Final = "MB"
ASKING: Final = "µs per question"
ONE_BY_ONE, TOGETHER = "one by one", "all at once"
MET: Final = "rows met by a new row"
FAGIN: Final = "bound: (d + 1) N^(d/(d+1)) K^(1/(d+1))"
SENSORS: Final = "abs(a.t - b.t) / (abs(a.temp - b.temp) * abs(a.humidity - b.humidity))"
DISTRIBUTIONS: Final = ("uniform", "correlated", "anti-correlated")

Floats = npt.NDArray[np.float64]


class Stream(NamedTuple):
    """Rows, made as they are needed: by column, then by row."""

    make: Callable[[int], Floats]
    colours: int = 0

    def rows(self, count: int, first: int) -> Batch:
        values = self.make(count)
        colours = np.random.default_rng(first).integers(0, max(self.colours, 1), (min(self.colours, 1), count))
        return Batch(values, colours.astype(np.float64), np.empty(0, np.int64), first)


def points(maker: Callable[..., pa.RecordBatchReader], attributes: int) -> Stream:
    """One of the paper's distributions, over and over with another seed."""
    seeds = iter(range(1, 1 << 30))

    def make(count: int) -> Floats:
        table = maker(count, dimensions=max(2, attributes), seed=next(seeds)).read_all()
        return np.array([table.column(f"x{axis}").to_numpy() for axis in range(attributes)])

    return Stream(make)


def sensors() -> Stream:
    """Readings of 54 sensors: temperature and humidity drift over time, differ by sensor, and are noisy."""
    random, clock = np.random.default_rng(1), [0]

    def make(count: int) -> Floats:
        t = np.arange(clock[0], clock[0] + count, dtype=np.float64)
        clock[0] += count
        mote = random.integers(0, 54, count)
        temp = 20 + 5 * np.sin(t / 5_000) + mote / 20 + random.normal(0, 0.3, count)
        humidity = 40 - 8 * np.sin(t / 5_000) - mote / 15 + random.normal(0, 0.8, count)
        return np.array([t, temp, humidity])

    return Stream(make)


def sensor_spec(k: int, size: int) -> Spec:
    schema = pa.schema([(name, pa.float64()) for name in ("t", "temp", "humidity")])
    return Spec(k, Ticks(size, 0, 0, by_count=True), scoring_of(bind(SENSORS, None, True, schema)), CHANGES)


# -- what a row costs --------------------------------------------------------------------------------------------------


class Contender:
    """One operator, its window full."""

    def __init__(self, name: str, spec: Spec, stream: Stream, effort: Effort) -> None:
        self.name, self.spec, self.stream = name, spec, stream
        self.operator: Any = Supreme(spec) if name == SUPREME else find(name, "pairs").open(spec)
        size = spec.window.size
        self.first = 0
        if isinstance(self.operator, Naive):
            # Row by row, with an answer for each, this would take longer than all the rest.
            values = stream.make(size)
            self.operator.fill(values)
            self.first = size
        elif isinstance(self.operator, PublishedSkyband):
            filled = Contender("staircase", spec, stream, effort)
            self.first = filled.first
            self.operator.restore(_by_rank(filled.operator.state()))
        limit = time.perf_counter() + 4 * effort.fill_seconds
        while self.first < size and (self.first < 96 or time.perf_counter() < limit):
            self._push(min(size - self.first, 960))
        self.full = self.first >= size
        self.best = math.inf

    def _push(self, count: int) -> float:
        batch = self.stream.rows(count, self.first)
        started = time.thread_time()
        self.operator.push(batch)
        self.first += count
        return time.thread_time() - started

    def turn(self, effort: Effort) -> None:
        rows = 96 if self.name != "naive" else 4
        spent, count = self._push(rows), rows
        while spent < effort.turn_seconds and count < 20 * rows:
            spent, count = spent + self._push(rows), count + rows
        self.best = min(self.best, 1e9 * spent / count)


def _by_rank(state: Arrays) -> Arrays:
    """The state of a skyband as the published one has it: the same rows and pairs, sorted by rank."""
    return {**state, "band": state["band"][best_first(state["band"])]}


def costs(
    specs: Sequence[Spec], streams: Sequence[Stream], algorithms: Sequence[str], effort: Effort, say: Say
) -> tuple[dict[str, float], dict[str, Any]]:
    """Nanoseconds a row of each algorithm, the mean over the scores; and its operator of the last one."""
    found: dict[str, list[float]] = {name: [] for name in algorithms}
    operators: dict[str, Any] = {}
    for spec, stream in zip(specs, streams, strict=True):
        contenders = []
        for name in algorithms:
            if name == SUPREME or find(name, "pairs").refuses(spec) is None:
                say(f"{name}: filling a window of {spec.window.size:,}")
                contenders.append(Contender(name, spec, stream, effort))
        for _ in range(effort.passes):
            for contender in contenders:
                say(f"{contender.name}: measuring")
                contender.turn(effort)
        for contender in contenders:
            if contender.full:
                found[contender.name].append(contender.best)
                operators[contender.name] = contender.operator
    return {name: geometric_mean(ns) for name, ns in found.items() if ns}, operators


def _scores(effort: Effort) -> Sequence[str]:
    return ("s1", "s4") if effort.quick else tuple(SCORES)


def _swept(
    at_x: Callable[[float, Effort], tuple[list[Spec], list[Stream]]],
    values: Sequence[float],
    algorithms: Sequence[str],
    effort: Effort,
    say: Say,
) -> Findings:
    findings = Findings()
    for x in values:
        specs, streams = at_x(x, effort)
        # To fill a larger window takes `naive` longer than anybody waits; the paper gave up as well.
        some = [name for name in algorithms if name != "naive" or specs[0].window.size <= WINDOW]
        ns, operators = costs(specs, streams, some, effort, say)
        for name, cost in ns.items():
            findings.add(COST, name, x, cost)
        if "staircase" in operators:
            findings.add(PAIRS_HELD, "staircase", x, len(operators["staircase"]._candidates()))
    return findings


_MAKERS: Final = (uniform_points, correlated, anticorrelated)
by_k: Final = partial(_swept, lambda k, effort: _of_all(effort, k=int(k)))
by_window: Final = partial(_swept, lambda size, effort: _of_all(effort, size=effort.rows(size)))
by_attributes: Final = partial(_swept, lambda d, effort: _of_all(effort, attributes=int(d)))
by_distribution: Final = partial(_swept, lambda i, effort: _of_all(effort, maker=_MAKERS[int(i)]))
sensors_by_k: Final = partial(_swept, lambda k, effort: ([sensor_spec(int(k), effort.rows(WINDOW))], [sensors()]))
sensors_by_window: Final = partial(_swept, lambda size, effort: ([sensor_spec(K, effort.rows(size))], [sensors()]))


def met_by_window(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """How many rows a new row meets in the threshold algorithm, of all in its window."""
    findings = Findings()
    for x in values:
        n, rows = effort.rows(x), 96
        for name in algorithms:
            say(f"{name}: filling a window of {n:,}")
            contender = Contender(name, spec_of("s1", ATTRIBUTES, n), points(uniform_points, ATTRIBUTES), effort)
            before = contender.operator.met
            contender._push(rows)
            findings.add(MET, name, x, (contender.operator.met - before) / rows)
        findings.add(MET, FAGIN, x, (ATTRIBUTES + 1) * (n**ATTRIBUTES * K) ** (1 / (ATTRIBUTES + 1)))
        findings.add(MET, "the rows themselves", x, n)
    return findings


def by_colours(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """What a row costs `staircase` when pairs must have the same colour, or different ones."""
    findings = Findings()
    for x in values:
        for label in algorithms:
            colours = {} if label == "any" else {label: True}
            spec = spec_of("s1", ATTRIBUTES, effort.rows(WINDOW), **colours)
            stream = points(uniform_points, ATTRIBUTES)._replace(colours=int(x) if colours else 0)
            ns, _ = costs([spec], [stream], ["staircase"], effort, say)
            for cost in ns.values():
                findings.add(COST, label, x, cost)
    return findings


def _of_all(
    effort: Effort,
    *,
    k: int = K,
    size: int | None = None,
    attributes: int = ATTRIBUTES,
    maker: Callable[..., pa.RecordBatchReader] = uniform_points,
) -> tuple[list[Spec], list[Stream]]:
    rows = effort.rows(WINDOW) if size is None else size
    scores = _scores(effort)
    return [spec_of(s, attributes, rows, k=k) for s in scores], [points(maker, attributes) for _ in scores]


def late(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """What a row costs when so many of a hundred come late, by up to the length of the window."""
    findings = Findings()
    size = effort.rows(WINDOW)
    for x in values:
        for name in algorithms:
            say(f"{name}: {x:g} % late")
            plain = spec_of("s1", ATTRIBUTES, size)
            operator = find(name, "pairs").open(Spec(K, Ticks(size, 0, 0, by_count=False), plain.scoring, CHANGES))
            findings.add(COST, name, x, _cost_of_late(operator, x / 100, size, effort))
    return findings


def _cost_of_late(operator: Any, share: float, size: int, effort: Effort) -> float:
    random, first, best = np.random.default_rng(1), 0, math.inf
    while first < size + 96 * 10 * effort.passes:
        count = 960
        time_of = np.arange(first, first + count)
        behind = random.integers(1, size, count)
        time_of = np.where(random.random(count) < share, np.maximum(time_of - behind, 0), time_of)
        batch = Batch(random.random((ATTRIBUTES, count)), np.empty((0, count)), time_of, first)
        started = time.perf_counter()
        operator.push(batch)
        spent = time.perf_counter() - started
        if first >= size:
            best = min(best, 1e9 * spent / count)
        first += count
    return best


# -- questions ---------------------------------------------------------------------------------------------------------


def asked_by_count(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """Random k up to K, and sizes up to N, asked of one K-skyband."""
    findings, n = Findings(), effort.rows(WINDOW)
    for count in map(int, values):
        say(f"filling a window of {n:,}")
        operator = Contender("threshold", spec_of("s1", 2, n, k=K), points(uniform_points, 2), effort).operator
        random = np.random.default_rng(1)
        ks, sizes = (random.integers(1, most, count, endpoint=True) for most in (K, n))
        ask = {ONE_BY_ONE: _one_by_one, TOGETHER: _together}
        for name in algorithms:
            say(f"{count} questions, {name}")
            ask[name](operator, ks[:1], sizes[:1])
            spent = min(_timed(ask[name], operator, ks, sizes) for _ in range(effort.passes))
            findings.add(ASKING, name, count, 1e6 * spent / count)
    return findings


def _timed(ask: Callable[..., None], operator: Any, ks: Any, sizes: Any) -> float:
    started = time.perf_counter()
    ask(operator, ks, sizes)
    return time.perf_counter() - started


def _one_by_one(operator: Any, ks: Any, sizes: Any) -> None:
    for k, size in zip(ks.tolist(), sizes.tolist(), strict=True):
        operator.top(k, size)


def _together(operator: Any, ks: Any, sizes: Any) -> None:
    operator.top_many(ks, sizes)


# -- how many pairs, how much memory -----------------------------------------------------------------------------------


def _sizes(
    at_x: Callable[[float, Effort], tuple[int, int]],
    values: Sequence[float],
    _: Sequence[str],
    effort: Effort,
    say: Say,
) -> Findings:
    findings = Findings()
    for x in values:
        k, n = at_x(x, effort)
        say(f"K = {k}, N = {n:,}")
        contender = Contender(
            "staircase", spec_of("s1", ATTRIBUTES, n, k=k), points(uniform_points, ATTRIBUTES), effort
        )
        held = []
        for _sample in range(effort.size_samples):
            contender._push(96)
            held.append(len(contender.operator._candidates()))
        findings.add(PAIRS_HELD, "staircase", x, float(np.mean(held)))
        findings.add(PAIRS_HELD, "2K (ln N - ln sqrt K)", x, expected_pairs(k, n))
        findings.add(MEMORY, "staircase", x, contender.operator.nbytes / 1e6)
        findings.add(MEMORY, "the rows themselves", x, 8 * ATTRIBUTES * n / 1e6)
    return findings


sizes_by_k: Final = partial(_sizes, lambda k, effort: (int(k), effort.rows(WINDOW)))
sizes_by_window: Final = partial(_sizes, lambda n, effort: (K, effort.rows(n)))
