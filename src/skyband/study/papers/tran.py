"""Tran and Lee, JCSE 2009: aggregation before or after a join, figures 4 to 6.

Streams as the paper's generator makes them: join and grouping columns independent and uniform, aggregated columns whole
numbers, two sums. Costs are of what arrives in a second, with windows that slide every second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from skyband.problems.joins.algorithms import plans
from skyband.problems.joins.costs import Statistics, cost, enumerate_plans, known_constants
from skyband.problems.joins.operator import SUM, Aggregate, Batch, Cells, Input, JoinOperator, Plan, Rows, Spec
from skyband.study.baselines.joins import nested_loop
from skyband.study.papers.claims import faster, near
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Readings, Say, Verdict
from skyband.study.papers.tran_claims import (
    AS_PRINTED,
    CHOSEN,
    CLAIMS,
    ESTIMATED,
    IN_ORDER,
    MEASURED,
    OF_THE_PAPER,
    PLANNER,
    PLANS_OF_THREE,
    PLANS_OF_TWO,
    TRENDS,
)
from skyband.study.papers.tran_costs import CostFunction, Stream, hashed, tuned
from skyband.study.papers.tran_costs import nested_loop as nested_loop_cost

PAPER: Final = "Tran and Lee, JCSE 2009"
TICKS: Final = 1_000_000  # of a second
SHORTEST_RUN: Final = 0.002  # seconds that can be timed
ENOUGH_RUNS: Final = 10
# Of any plan. With hundreds of thousands of groups a run is long, and every few runs all plans make room for groups, or
# forget those that are gone: a run or two may be three times as slow as the others.
FEWEST_RUNS: Final = 7
AT_ONCE: Final = 5  # seconds of the streams that come as one batch: plans are compared, not what a batch costs


@dataclass(frozen=True, slots=True)
class Setting:
    """Of each stream: rows a second, rows in its window, groups, and one over its number of join values."""

    rates: tuple[float, ...]
    windows: tuple[float, ...]
    groups: tuple[float, ...]
    selectivity: tuple[float, ...]

    def statistics(self) -> list[Statistics]:
        parts = zip(self.rates, self.windows, self.groups, self.selectivity, strict=True)
        return [Statistics.of(*part) for part in parts]

    def streams(self) -> list[Stream]:
        """In the paper's letters."""
        return [Stream(*each) for each in zip(self.rates, self.windows, self.groups, self.selectivity, strict=True)]

    def spec(self) -> Spec:
        inputs = [
            Input(math.ceil(window / rate * TICKS), (0,), True, (False,))
            for rate, window in zip(self.rates, self.windows, strict=True)
        ]
        inputs = [replace(each, size=max(each.size, TICKS)) for each in inputs]
        return Spec(tuple(inputs), tuple(Aggregate(SUM, i, 0) for i in range(min(2, len(inputs)))), TICKS)


TWO: Final = Setting((300, 300), (5000, 5000), (150, 1), (0.1, 0.1))
THREE: Final = Setting((200, 200, 200), (300, 300, 300), (20, 1, 1), (0.1, 0.1, 0.1))


def name_of(plan: Plan) -> str:
    """As the paper calls it: LAP, or EAP with a 1 for each input that is aggregated early."""
    if plan.multiply:
        return "multiply"
    return "EAP" + "".join("01"[early] for early in plan.early) if any(plan.early) else "LAP"


def plan_of(name: str, inputs: int) -> Plan:
    return next(plan for plan in enumerate_plans(inputs) if name_of(plan) == name)


class Feed:
    """The streams of a setting, some seconds at once."""

    def __init__(self, setting: Setting, seed: int = 1) -> None:
        self._setting = setting
        self._random = np.random.default_rng(seed)
        self._second = 0
        self._told = False

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        setting = self._setting
        rows: list[Rows] = []
        cells: list[Cells | None] = []
        for rate, groups, selectivity in zip(setting.rates, setting.groups, setting.selectivity, strict=True):
            n, keys, g = AT_ONCE * int(rate), max(1, round(1 / selectivity)), int(groups)
            rows.append(
                Rows(
                    self._second * TICKS + np.arange(n) * TICKS // int(rate),
                    self._random.integers(0, keys * g, n).astype(np.int32),
                    self._random.integers(0, 100, (n, 1)),
                    np.ones(n, np.int64),
                )
            )
            every = np.arange(keys * g, dtype=np.int32)
            cells.append(
                None if self._told else Cells((every // g)[:, None], every % g, np.zeros((len(every), 0), np.int32))
            )
        self._told = True
        self._second += AT_ONCE
        return Batch(tuple(rows), tuple(cells))


Opener = Callable[[Spec, Plan], JoinOperator]


def open_nested(spec: Spec, plan: Plan) -> JoinOperator:
    """The same plan, with a nested-loop join."""
    return nested_loop.open(spec, inputs=sum(1 << i for i, early in enumerate(plan.early) if early))


def filled(setting: Setting, plan: Plan) -> JoinOperator:
    """A plan whose windows are full, for those who only look at what it holds."""
    operator, feed = plans.open(setting.spec(), plan), Feed(setting)
    seconds = math.ceil(max(w / r for w, r in zip(setting.windows, setting.rates, strict=True)))
    for _ in range(0, 2 * seconds, AT_ONCE):
        operator.push(next(feed))
    return operator


class _Runner:
    """A plan whose windows are full, timed in runs of seconds of its streams."""

    def __init__(self, setting: Setting, plan: Plan, effort: Effort, opened: Opener) -> None:
        _compile(setting, plan, opened)
        self.fastest = math.inf  # seconds that a second of the streams takes
        self.spent = 0.0
        self._runs = 0  # that could be timed
        self._fewest, self._enough = (3, 5) if effort.quick else (FEWEST_RUNS, ENOUGH_RUNS)
        self._operator, self._feed, self._run = opened(setting.spec(), plan), Feed(setting), 1
        seconds = math.ceil(max(w / r for w, r in zip(setting.windows, setting.rates, strict=True)))
        began = time.thread_time()
        for _ in range(0, seconds, AT_ONCE):
            self._operator.push(next(self._feed))
            if time.thread_time() - began > effort.fill_seconds:
                break

    def is_unsure(self, near: float) -> bool:
        """Has it had too few runs, as may be the best?"""
        return self._runs < self._fewest or (self.fastest < near < math.inf and self._runs < self._enough)

    def time(self) -> None:
        """One run more; it is made longer until it can be timed."""
        batches = [next(self._feed) for _ in range(self._run)]
        began = time.thread_time()
        for batch in batches:
            self._operator.push(batch)
        took = time.thread_time() - began
        self.spent += took
        if took < SHORTEST_RUN:
            self._run *= 2
        else:
            self.fastest = min(self.fastest, took / (self._run * AT_ONCE))
            self._runs += 1


def measure_second(
    setting: Setting, plans_of_it: Sequence[Plan], effort: Effort, opened: Opener = plans.open
) -> list[float]:
    """Milliseconds that a second of the streams takes by each of these plans, when the windows are full.

    The fastest of some runs. Plans take turns, so that what else the machine does hits all of them.
    """
    runners = [_Runner(setting, plan, effort, opened) for plan in plans_of_it]
    enough, near = effort.turn_seconds * effort.passes, math.inf
    while waiting := [each for each in runners if each.spent < enough or each.is_unsure(near)]:
        for runner in waiting:
            runner.time()
        near = 1.5 * min(runner.fastest for runner in runners)
    return [1e3 * runner.fastest for runner in runners]


def _compile(setting: Setting, plan: Plan, opened: Opener) -> None:
    """All that will run: also what lets rows go, so that no compiling is taken for filling the windows."""
    small = replace(setting, windows=setting.rates)
    operator, feed = opened(small.spec(), plan), Feed(small)
    for _ in range(4):
        operator.push(next(feed))


def _sweep(setting_at: Callable[[float], Setting]) -> Callable[..., Findings]:
    def measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
        findings, constants = Findings(), known_constants()
        for x in values:
            setting = setting_at(x)
            inputs = setting.statistics()
            say(f"at {x:g}")
            chosen_from = [plan_of(name, len(inputs)) for name in algorithms]
            measured = dict(zip(algorithms, measure_second(setting, chosen_from, effort), strict=True))
            estimated = {
                name: cost(plan, inputs, constants, slide=1.0) / 1e6
                for name, plan in zip(algorithms, chosen_from, strict=True)
            }
            for name in algorithms:
                findings.add(MEASURED, name, x, measured[name])
                findings.add(ESTIMATED, name, x, estimated[name])
            for who, among in ((PLANNER, algorithms), (OF_THE_PAPER, [n for n in algorithms if n != "multiply"])):
                chosen = min(among, key=lambda name: estimated[name])
                findings.add(CHOSEN, who, x, measured[chosen] / min(measured[name] for name in among))
        if len(setting_at(values[0]).rates) == 2:
            _estimate_as_printed(findings, hashed, setting_at, values, algorithms)
        return findings

    return measure


def _estimate_as_printed(
    findings: Findings,
    function: CostFunction,
    setting_at: Callable[[float], Setting],
    values: Sequence[float],
    algorithms: Sequence[str],
) -> None:
    """What the paper's equations say of its own plans, beside what was measured of them."""
    points = {}
    for name in (each for each in algorithms if each != "multiply"):
        one, other = plan_of(name, 2).early
        for x in values:
            first, second = setting_at(x).streams()
            points[name, x] = first, second, (one, other)
    if not points:
        return
    readings = {(each.algorithm, each.x): each.value for each in findings.readings if each.measure == MEASURED}
    tuning = tuned(function, list(points.values()), [readings[point] for point in points])
    for (name, x), point in points.items():
        findings.add(AS_PRINTED, name, x, function(*point, tuning))


def _measure_nested(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """The same with nested-loop joins, for which there is nothing to choose from: no planner of ours considers them."""
    findings = Findings()
    for x in values:
        say(f"at {x:g}")
        chosen = [plan_of(name, 2) for name in algorithms]
        for name, took in zip(algorithms, measure_second(_showcase(x), chosen, effort, open_nested), strict=True):
            findings.add(MEASURED, name, x, took)
    _estimate_as_printed(findings, nested_loop_cost, _showcase, values, algorithms)
    return findings


def _experiment(
    name: str, figure: str, axis: Axis, setting_at: Callable[[float], Setting], plan_names: tuple[str, ...]
) -> Experiment:
    title = f"Late, early and multiplying plans by {axis.label}"
    claims = (*CLAIMS, IN_ORDER, *TRENDS[name.rpartition("-")[2]]) if plan_names == PLANS_OF_TWO else CLAIMS
    return Experiment(name, f"{PAPER}, figure {figure}", title, axis, plan_names, _sweep(setting_at), claims)


def _first(values: tuple[float, ...], x: float) -> tuple[float, ...]:
    return (x, *values[1:])


def _experiments(base: Setting, figure: str, prefix: str, plan_names: tuple[str, ...], most: float) -> list[Experiment]:
    """Each parameter of the first stream varied, the others as they are; selectivity is varied of all."""
    windows = tuple(most * share for share in (0.2, 0.4, 0.6, 0.8, 1.0))
    groups = tuple(float(3**i) for i in range(1, 10)) if len(base.rates) == 2 else (1.0, 3.0, 9.0, 27.0, 81.0, 243.0)
    rates = (100.0, 300.0, 500.0, 700.0, 900.0) if len(base.rates) == 2 else (50.0, 100.0, 200.0, 400.0)
    ends = groups[0], groups[len(groups) // 2], groups[-1]
    sigmas = (0.0005, 0.005, 0.05, 0.5) if len(base.rates) == 2 else (0.005, 0.05, 0.5)
    return [
        _experiment(
            f"{prefix}-window", f"{figure}a", Axis("rows in the first window", windows, windows[::2], log=False),
            lambda x: replace(base, windows=_first(base.windows, x)), plan_names,
        ),
        _experiment(
            f"{prefix}-groups", f"{figure}b", Axis("groups of the first stream", groups, ends),
            lambda x: replace(base, groups=_first(base.groups, x)), plan_names,
        ),
        _experiment(
            f"{prefix}-rate", f"{figure}c", Axis("rows a second of the first stream", rates, rates[::2], log=False),
            lambda x: replace(base, rates=_first(base.rates, x)), plan_names,
        ),
        _experiment(
            f"{prefix}-selectivity", f"{figure}d", Axis("join selectivity of all streams", sigmas),
            lambda x: replace(base, selectivity=(x,) * len(base.rates)), plan_names,
        ),
    ]  # fmt: skip


# Figure 6: which plan is best depends on the groups of both streams.
_LOW, _HIGH = 2.0, 2000.0
_SHOWCASES: Final = (("EAP11", _LOW, _LOW), ("EAP10", _LOW, _HIGH), ("EAP01", _HIGH, _LOW), ("LAP", _HIGH, _HIGH))


def _showcase(x: float) -> Setting:
    _, one, other = _SHOWCASES[int(x)]
    return replace(TWO, windows=(2000, 2000), groups=(one, other))


def _best_by_groups(readings: Readings) -> Verdict:
    names = [name for name in readings.algorithms(MEASURED) if name != "multiply"]
    found = []
    for x, (expected, *_) in enumerate(_SHOWCASES):
        curves = {name: readings.curve(MEASURED, name).get(float(x), math.nan) for name in names}
        if expected in curves and not any(map(math.isnan, curves.values())):
            found.append((expected, curves[expected] / min(curves.values())))
    if not found:
        return Verdict(None, "not measured")
    said = ", ".join(f"{name} {ratio:.2f}x the best" for name, ratio in found)
    return Verdict(all(ratio <= 1.2 for _, ratio in found), said)


_GROUPS: Final = Axis(
    "groups", (0.0, 1.0, 2.0, 3.0), log=False, names=("low, low", "low, high", "high, low", "high, high")
)
_BEST: Final = Claim("Both low: EAP11 is best; one low: the plan that is early there; both high: LAP.", _best_by_groups)
SHOWCASES: Final = Experiment(
    "tran-showcases",
    f"{PAPER}, figure 6",
    "Which plan is best with nested-loop joins, by the groups of both streams",
    _GROUPS,
    PLANS_OF_TWO[:4],
    _measure_nested,
    (_BEST, IN_ORDER),
)
HASHED: Final = Experiment(
    "tran-showcases-hashed",
    f"{PAPER}, figure 6, with our joins by a hash table",
    "Which plan is best with hash joins, by the groups of both streams",
    _GROUPS,
    PLANS_OF_TWO,
    _sweep(_showcase),
    (_BEST, *CLAIMS[1:], IN_ORDER),
)

_EARLY: Final = ("EAP10", "EAP01", "EAP11")
LATE: Final = Experiment(
    "tran-late",
    f"{PAPER}, figure 6 (d), by window",
    "When aggregating late is best: hash joins, 2,000 groups in both streams, by window",
    Axis("rows in both windows", (200, 500, 2000, 5000, 20_000), quick=(500, 2000, 20_000)),
    PLANS_OF_TWO[:4],
    _sweep(lambda x: replace(TWO, windows=(x, x), groups=(_HIGH, _HIGH))),
    (
        Claim(
            "LAP is best where nearly every row is alone in its cell: an aggregation set is as large as the window.",
            faster("LAP", _EARLY, measure=MEASURED, at_least=0.95, until=500),
        ),
        Claim("Our estimates say so, too.", faster("LAP", _EARLY, measure=ESTIMATED, until=500)),
        Claim(
            "With 2,000 rows plans differ by next to nothing, measured: whichever comes first is chance.",
            near(MEASURED, "EAP11", "LAP", within=0.15, until=2000, since=2000),
        ),
        Claim("In larger windows rows share cells, and EAP11 is best.",
              faster("EAP11", "LAP", measure=MEASURED, since=20_000)),
        IN_ORDER,
    ),
)  # fmt: skip

EXPERIMENTS: Final = (
    *_experiments(TWO, "4", "tran-two", PLANS_OF_TWO, 5000),
    *_experiments(THREE, "5", "tran-three", PLANS_OF_THREE, 300),
    SHOWCASES,
    HASHED,
    LATE,
)
