"""Tran and Lee, JCSE 2009, what section 8 leaves to future work: space as a cost, and a greedy search for a plan.

And what section 7.2.2 says of three streams beside two: that aggregating early gains more. And what it costs that join
and group columns are strings, as section 7.2.1 has them: the other experiments number their values beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.problems.joins.costs import Statistics, cost, enumerate_plans, known_constants, worth_considering
from skyband.problems.joins.operator import Plan
from skyband.problems.joins.query import JoinAggregate
from skyband.study.papers.claims import at, below, does_not_grow, falls, faster, grows, near
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Say
from skyband.study.papers.figures import FORMULA
from skyband.study.papers.tran import AT_ONCE, PAPER, TICKS, TWO, Setting, filled, measure_second, plan_of
from skyband.study.papers.tran_claims import PLANS_OF_TWO
from skyband.study.papers.tran_costs import space
from skyband.windows import sliding

# -- space ------------------------------------------------------------------------------------------------------------

ENTRIES: Final = "rows and entries held"


def measure_space(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """What each plan holds when its windows are full, beside what the paper's letters say of it."""
    findings = Findings()
    for x in values:
        setting = replace(TWO, windows=(1500, 1500), groups=(x, 30))
        for name in algorithms:
            say(f"{name} at {x:g}")
            plan = plan_of(name, 2)
            known = filled(setting, plan).known()  # without the rows of a slide that has yet to end
            sets = [each.cells for each, early in zip(known, plan.early, strict=True) if early]
            findings.add(ENTRIES, name, x, sum(each.rows for each in known) + sum(sets))
            findings.add(ENTRIES, FORMULA + name, x, space(setting.streams(), plan.early))
    return findings


PRICED: Final = "the plan chosen"
TIME: Final = "ms per second of stream, estimated"


def measure_prices(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """Which plan is chosen when a row or entry that is held costs something, too: its time, and what it holds."""
    findings, constants = Findings(), known_constants()
    setting = replace(TWO, windows=(1500, 1500), groups=(2187, 30))
    offered = {
        name: (
            cost(plan_of(name, 2), setting.statistics(), constants, slide=1.0),
            space(setting.streams(), plan_of(name, 2).early),
        )
        for name in PLANS_OF_TWO[:4]
    }
    for x in values:
        chosen = min(offered, key=lambda name: offered[name][0] + x * offered[name][1])
        findings.notes.append(f"{x:,.10g} ns for each: {chosen}.")
        findings.add(TIME, PRICED, x, offered[chosen][0] / 1e6)
        findings.add(ENTRIES, PRICED, x, offered[chosen][1])
    return findings


# -- a greedy search --------------------------------------------------------------------------------------------------

REGRET, WORST = "cost of the plan found / of the best, mean", "cost of the plan found / of the best, worst"
LOOKED_AT: Final = "plans looked at"
EARLY: Final = "streams that the best plan makes early, mean"
GREEDY, EXHAUSTIVE = "greedy", "all plans"


def measure_search(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """By number of inputs: what the greedy search finds, of joins drawn at random, beside the best of all plans."""
    findings, constants = Findings(), known_constants()
    for x in values:
        random, inputs = np.random.default_rng(1), int(x)
        ratios, made_early, looked_at = [], [], {GREEDY: 0, EXHAUSTIVE: 0}
        joins = effort.questions // 2
        say(f"{joins} joins of {inputs} inputs")
        for _ in range(joins):
            drawn = [_drawn(random) for _ in range(inputs)]
            costs: dict[Plan, float] = {}

            def estimate(plan: Plan, drawn: list[Statistics] = drawn, costs: dict[Plan, float] = costs) -> float:
                if plan not in costs:
                    costs[plan] = cost(plan, drawn, constants, slide=1.0)
                return costs[plan]

            # The last plan multiplies, which the paper's search does not know.
            found = min(map(estimate, worth_considering(inputs, estimate, most_enumerated=1)[:-1]))
            looked_at[GREEDY] += len(costs)
            best = min(map(estimate, enumerate_plans(inputs)[:-1]))
            looked_at[EXHAUSTIVE] += len(costs)
            ratios.append(found / best)
            made_early.append(sum(min(costs, key=lambda plan: costs[plan]).early))
        findings.add(REGRET, GREEDY, x, float(np.mean(ratios)))
        findings.add(WORST, GREEDY, x, max(ratios))
        findings.add(EARLY, EXHAUSTIVE, x, float(np.mean(made_early)))
        for name, count in looked_at.items():
            findings.add(LOOKED_AT, name, x, count / joins)
    return findings


def _drawn(random: np.random.Generator) -> Statistics:
    """An input of which nothing is known beforehand, but that few of its rows match: if many do, all is made early."""
    draw = partial(_log_uniform, random)
    rows = draw(100, 10_000)
    return Statistics.of(draw(10, 1000), rows, draw(1, 10_000), draw(0.5, 10) / rows)


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


# -- how much is gained -----------------------------------------------------------------------------------------------

GAIN: Final = "time of the late plan / of the best early one"


def measure_gain(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """Streams that are alike in all but their groups, as in the paper's setting of three."""
    findings = Findings()
    for x in values:
        say(f"{x:g} streams")
        inputs = int(x)
        groups = (20.0, *[1.0] * (inputs - 1))
        setting = Setting((200.0,) * inputs, (300.0,) * inputs, groups, (0.1,) * inputs)
        chosen = [plan for plan in enumerate_plans(inputs) if not plan.multiply]
        late, *early = measure_second(setting, chosen, effort)
        findings.add(GAIN, "EAP", x, late / min(early))
    return findings


# -- strings -----------------------------------------------------------------------------------------------------------

KINDS: Final = ("whole numbers", "strings")
PLANS: Final = {"LAP": "late", "EAP11": "early:a,b"}
OF_SESSION: Final = "ms per second of stream, in a session"


def measure_kinds(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """What a second of two streams takes from Arrow tables on: their columns are numbered, too."""
    findings = Findings()
    for x in values:
        for name in algorithms:
            say(f"{name}: {KINDS[int(x)]}")
            findings.add(OF_SESSION, name, x, 1e3 * _session_seconds(PLANS[name], KINDS[int(x)] == "strings", effort))
    return findings


def _session_seconds(plan: str, as_strings: bool, effort: Effort) -> float:
    size = math.ceil(TWO.windows[0] / TWO.rates[0] * TICKS)
    query = JoinAggregate(
        inputs=dict.fromkeys("ab", sliding(size, on="t")),
        on="a.j = b.j",
        group_by=["a.g", "b.g"],
        aggregates={"x": "SUM(a.v)", "y": "SUM(b.v)"},
        every=TICKS,
        plan=plan,
    )
    random, best, spent = np.random.default_rng(1), math.inf, 0.0
    tables = [_table(TWO, i, 0, as_strings, random) for i in range(2)]
    session = query.open({name: table.schema for name, table in zip("ab", tables, strict=True)})
    second, full = 0, 2 * size // TICKS
    while second <= full or spent < effort.turn_seconds * effort.passes:
        tables = [_table(TWO, i, second, as_strings, random) for i in range(2)]
        began = time.thread_time()
        for name, table in zip("ab", tables, strict=True):
            session.push(table, name)
        took = time.thread_time() - began
        second += AT_ONCE
        if second > full:
            best, spent = min(best, took / AT_ONCE), spent + took
    return best


def _table(setting: Setting, i: int, second: int, as_strings: bool, random: np.random.Generator) -> pa.Table:
    """What comes in some seconds."""
    n, keys = AT_ONCE * int(setting.rates[i]), round(1 / setting.selectivity[i])
    when = second * TICKS + np.arange(n) * TICKS // int(setting.rates[i])
    j, g = random.integers(0, keys, n), random.integers(0, int(setting.groups[i]), n)
    v = random.integers(0, 100, n)
    if not as_strings:
        return pa.table({"t": when, "j": j, "g": g, "v": v})
    joined, grouped = (pa.array([f"of the stream: {number:08d}" for number in column]) for column in (j, g))
    return pa.table({"t": when, "j": joined, "g": grouped, "v": v})


EXPERIMENTS: Final = (
    Experiment(
        "tran-strings",
        f"{PAPER}, section 7.2.1: its columns are strings",
        "Join and group columns of strings beside whole numbers, in a session: two streams",
        Axis("join and group columns", (0.0, 1.0), log=False, names=KINDS),
        tuple(PLANS),
        measure_kinds,
        (
            *(
                Claim(f"Strings cost {name} at most half as much again as whole numbers.",
                      does_not_grow(name, measure=OF_SESSION, at_most=1.5))
                for name in PLANS
            ),
            Claim("With strings, too, aggregating early is faster.",
                  faster("EAP11", "LAP", measure=OF_SESSION)),
        ),
    ),
    Experiment(
        "tran-gain",
        f"{PAPER}, section 7.2.2 and figure 5",
        "What aggregating early gains, by number of streams: windows of 300 rows, 200 rows a second each",
        Axis("streams", (2, 3), log=False),
        ("EAP",),
        measure_gain,
        (
            Claim("Aggregating early gains more with three streams than with two.",
                  grows("EAP", measure=GAIN, at_least=1.2)),
        ),
    ),
    Experiment(
        "tran-space",
        f"{PAPER}, section 8 (future work)",
        "Rows of windows and entries of aggregation sets: two streams, windows of 1,500 rows, 30 groups in the second",
        Axis("groups of the first stream", (3, 27, 243, 2187), quick=(3, 2187)),
        PLANS_OF_TWO[:4],
        measure_space,
        (
            *(
                Claim(f"What {name} holds follows from the paper's letters: the windows, and α for each set.",
                      near(ENTRIES, name, FORMULA + name, within=0.05))
                for name in PLANS_OF_TWO[:4]
            ),
            Claim("Aggregating early costs space: LAP holds the least.",
                  below(ENTRIES, "LAP", "EAP11")),
        ),
    ),
    Experiment(
        "tran-space-price",
        f"{PAPER}, section 8 (future work)",
        "Space in the cost function: the plan chosen, by the price of a row or entry held, for 2,187 and 30 groups",
        Axis("ns a second for each row or entry", (10, 100, 1_000, 10_000, 100_000)),
        (PRICED,),
        measure_prices,
        (
            Claim("The dearer space is, the less the plan chosen holds.",
                  falls(PRICED, measure=ENTRIES, at_most=0.8)),
            Claim("It takes more time then.", grows(PRICED, measure=TIME, at_least=1.1)),
        ),
    ),
    Experiment(
        "tran-greedy",
        f"{PAPER}, section 8 (future work)",
        "A greedy search for a plan beside all plans, by number of streams: joins drawn at random, our costs",
        Axis("streams", (2, 3, 4, 5, 6), log=False),
        (GREEDY, EXHAUSTIVE),
        measure_search,
        (
            Claim("The greedy search finds the best plan, or one as good within 1 %, with two streams.",
                  at(WORST, GREEDY, 2, at_most=1.01)),
            Claim("With six streams what it finds costs 1 % more on average, at most.",
                  at(REGRET, GREEDY, 6, at_most=1.01)),
            Claim("With six streams what it finds costs a tenth more in the worst case, at most.",
                  at(WORST, GREEDY, 6, at_most=1.1)),
            Claim("The plans differ: with six streams the best one makes some early, but not all.",
                  at(EARLY, EXHAUSTIVE, 6, at_least=1, at_most=5)),
            Claim("It looks at fewer plans, with six streams at less than half of them.",
                  at(LOOKED_AT, GREEDY, 6, at_most=32)),
        ),
    ),
)  # fmt: skip
