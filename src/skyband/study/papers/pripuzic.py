"""Pripužić, Podnar Žarko, Aberer, TODS 2015: an answer with each arrival, figures 8 to 12.

The paper runs 400 nearest-neighbour queries behind a grid; here it is one query on scores, which is what its
algorithms see. Those of the paper go by these names: SA strict, RA relaxed(gamma=0.2), PA probabilistic, and a filter
behind a plus sign: RAPF is relaxed+probabilistic. `relaxed` alone is our own, which takes rows in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.core.emit import ENTRIES
from skyband.core.operator import Ints
from skyband.problems.rows.operator import Spec
from skyband.streams.orders import daily_cycle, falling, random_walk, rising
from skyband.study.papers.claims import at, below, does_not_grow, falls, faster, grows, near
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Say
from skyband.study.papers.points import (
    BATCH_ROWS,
    ENDLESS,
    HELD,
    Case,
    Contender,
    able,
    compile_for,
    random_order,
    sweep,
)
from skyband.windows import Ticks

PAPER: Final = "Pripužić and others, TODS 2015"
FILTERED: Final = tuple(
    f"{query}+{before}" for query in ("strict", "relaxed") for before in ("strict", "relaxed", "probabilistic")
)
RAPF: Final = "relaxed+probabilistic"
RA: Final = "relaxed(gamma=0.2)"
EXACT: Final = ("strict", RA, *FILTERED)
OURS: Final = ("relaxed", "partitioned", "hybrid", "sma", "tma")
PUBLISHED: Final = "probabilistic_published"
LONG_BUFFER: Final = f"{RAPF}, longest buffer"
WINDOW: Final = 40_000  # rows; the paper's
BUFFER: Final = 2000

MISSED, EXTRA = "false negatives", "false positives"
MISSED_BOUND, EXTRA_BOUND = "bound: σ N / n", "bound: 1.5 σ N / n"
ORDERS: Final = ("random", "rising", "daily cycle", "random walk", "falling")


def each_arrival(k: float, size: int) -> Spec:
    return Spec(int(k), Ticks(size, 0, 0, by_count=True), emit=ENTRIES)


def _with_options(label: str, effort: Effort, *, buffer: float = BUFFER, gamma: float = 0.2) -> str:
    """The algorithm of that label, with the paper's settings or these."""
    if label == LONG_BUFFER:
        return f"{RAPF}(buffer={effort.rows(WINDOW / 2)})"
    if label == "relaxed, row by row":
        return f"relaxed(gamma={gamma:.3f})"
    return f"{label}(buffer={effort.rows(buffer)}, gamma={gamma:.3f})" if "+" in label else label


def _by_k(label: str, k: float, effort: Effort) -> Case:
    return Case(label, _with_options(label, effort), each_arrival(k, effort.rows(WINDOW)))


def _by_window(label: str, size: float, effort: Effort) -> Case:
    return Case(label, _with_options(label, effort), each_arrival(27, effort.rows(size)))


def _by_buffer(label: str, buffer: float, effort: Effort) -> Case:
    return Case(label, _with_options(label, effort, buffer=buffer), each_arrival(27, effort.rows(WINDOW)))


def _by_gamma(label: str, gamma: float, effort: Effort) -> Case:
    return Case(label, _with_options(label, effort, gamma=gamma), each_arrival(27, effort.rows(WINDOW)))


def _by_order(label: str, order: float, effort: Effort) -> Case:
    spec = each_arrival(9, effort.rows(WINDOW))
    return Case(label, _with_options(label, effort), spec, partial(_ordered, ORDERS[int(order)]))


def _ordered(order: str) -> pa.RecordBatchReader:
    streams = {"rising": rising, "daily cycle": daily_cycle, "random walk": random_walk, "falling": falling}
    return streams[order](ENDLESS, batch_rows=BATCH_ROWS) if order in streams else random_order()


# -- errors -----------------------------------------------------------------------------------------------------------


def errors(
    values: Sequence[float], effort: Effort, say: Say, *, k: int | None = None, sigma: float | None = None
) -> Findings:
    """By k or sigma, whichever is not given: the entries that `probabilistic` misses, and those it makes up."""
    findings = Findings()
    n = effort.rows(1000)
    for x in values:
        k_here, sigma_here = int(k or x), sigma or x
        case = _approximate(k_here, n, sigma_here)
        if able([case], findings):
            say(f"probabilistic: entries, k = {k_here}, σ = {sigma_here}")
            missed, extra = _differences(case, effort.error_rows, say)
            windows = effort.error_rows / n
            findings.add(MISSED, "probabilistic", x, missed)
            findings.add(MISSED, MISSED_BOUND, x, sigma_here * windows)
            findings.add(EXTRA, "probabilistic", x, extra)
            findings.add(EXTRA, EXTRA_BOUND, x, 1.5 * sigma_here * windows)
    return findings


def errors_by_k(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    return errors(values, effort, say, sigma=0.1)


def errors_by_sigma(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    return errors(values, effort, say, k=9)


def errors_by_order(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings = Findings()
    n, sigma = effort.rows(1000), 0.001
    rows = effort.error_rows // 10
    for x in values:
        case = _approximate(9, n, sigma, order=ORDERS[int(x)])
        if able([case], findings):
            say(f"probabilistic: entries, {ORDERS[int(x)]}")
            missed, _extra = _differences(case, rows, say)
            findings.add(MISSED, "probabilistic", x, missed)
            findings.add(MISSED, MISSED_BOUND, x, sigma * rows / n)
    return findings


def _approximate(k: int, n: int, sigma: float, order: str = "random") -> Case:
    return Case("probabilistic", f"probabilistic(sigma={sigma:.6f})", each_arrival(k, n), partial(_ordered, order))


def _differences(case: Case, rows: int, say: Say) -> tuple[int, int]:
    """Of the first so many rows: how many an exact algorithm shows and this one never does, and the other way round."""
    compile_for(case, say)
    shown = _entries(case, rows)
    exact = _entries(Case("relaxed", "relaxed", case.spec, case.stream), rows)
    return len(np.setdiff1d(exact, shown)), len(np.setdiff1d(shown, exact))


def _entries(case: Case, rows: int) -> Ints:
    """The positions of the rows that were ever in an answer."""
    contender = Contender.open(case)
    contender.batch_rows = min(rows, BATCH_ROWS)
    found = []
    while contender.rows < rows:
        found.append(contender.push()[1].position)
    return np.concatenate(found)


# -- sizes ------------------------------------------------------------------------------------------------------------

SIZE: Final = "rows held"
SUM, PRINTED = "k (1 + H_n - H_k)", "k ln(n/k), as printed"


def skyband_size(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    """Rows of a strict k-skyband, on average, beside what is expected of them."""
    findings = Findings()
    n = effort.rows(10_000)
    for k in values:
        for case in able([Case(label, label, each_arrival(k, n)) for label in algorithms], findings):
            compile_for(case, say)
            say(f"{case.label}: rows held, k = {k:g}")
            contender = Contender.open(case)
            contender.batch_rows = min(1000, n)  # often enough; a sample has little to do with one n rows later
            while contender.rows < n:
                contender.push()
            held = []
            for _ in range(effort.size_samples):
                contender.push()
                held.append(contender.operator.rows_held())
            findings.add(SIZE, case.label, k, float(np.mean(held)))
        findings.add(SIZE, SUM, k, expected_size(n, int(k)))
        findings.add(SIZE, PRINTED, k, k * float(np.log(max(1.0, n / k))))
    return findings


def expected_size(n: int, k: int) -> float:
    """Each of the i newest of n rows is in the k-skyband with chance min(1, k/i)."""
    return float(np.minimum(1.0, k / np.arange(1, n + 1)).sum())


# -- the experiments --------------------------------------------------------------------------------------------------

EXPERIMENTS: Final = (
    Experiment(
        "pripuzic-errors-k",
        f"{PAPER}, figure 8, with a larger σ so that there are errors to count",
        "Entries that PA misses or makes up, by k: window 1000 rows, σ = 0.1",
        Axis("k", (1, 3, 9, 27, 81)),
        ("probabilistic",),
        errors_by_k,
        (
            Claim("PA misses fewer rows than σ N / n.", below(MISSED, "probabilistic", MISSED_BOUND)),
            Claim("PA makes up fewer rows than 1.5 σ N / n.", below(EXTRA, "probabilistic", EXTRA_BOUND)),
        ),
    ),
    Experiment(
        "pripuzic-errors-sigma",
        f"{PAPER}, lemma 4.6",
        "Entries that PA misses or makes up, by σ: window 1000 rows, k = 9",
        Axis("σ", (0.001, 0.01, 0.1, 0.5), quick=(0.01, 0.1, 0.5)),
        ("probabilistic",),
        errors_by_sigma,
        (
            Claim("PA misses fewer rows than σ N / n, for every σ.", below(MISSED, "probabilistic", MISSED_BOUND)),
            Claim("PA makes up fewer rows than 1.5 σ N / n.", below(EXTRA, "probabilistic", EXTRA_BOUND)),
        ),
    ),
    Experiment(
        "pripuzic-errors-order",
        f"{PAPER}, section 8.1",
        "Entries that PA misses when scores are not in random order: window 1000 rows, k = 9, σ = 0.001",
        Axis("order of scores", (0, 1, 2, 3, 4), log=False, names=ORDERS),
        ("probabilistic",),
        errors_by_order,
        (
            Claim(
                "PA errs often when each score is worse than the one before.",
                at(MISSED, "probabilistic", ORDERS.index("falling"), at_least=100),
            ),
            Claim(
                "PA makes no errors when each score is better than the one before.",
                at(MISSED, "probabilistic", ORDERS.index("rising"), at_most=0),
            ),
        ),
    ),
    Experiment(
        "pripuzic-k",
        f"{PAPER}, figures 9, 10 and 12",
        "Cost of a row and rows held, by k: an answer with each arrival, window 40,000 rows, buffer 2000",
        Axis("k", (1, 3, 9, 27, 81), quick=(3, 27, 81)),
        (*EXACT, LONG_BUFFER, "probabilistic", PUBLISHED, *OURS),
        sweep(_by_k),
        (
            Claim(
                "For large k (27 and more) RAPF is the fastest of the paper's exact algorithms.",
                faster(RAPF, [name for name in EXACT if name != RAPF], at_least=0.95, since=27),
            ),
            Claim(
                "At k = 81 RAPF is at least 3 times as fast as SASF.",
                faster(RAPF, "strict+strict", at_least=3, since=81),
            ),
            Claim("PA is faster than every exact algorithm of the paper.", faster("probabilistic", EXACT)),
            Claim("The cost of PA hardly changes with k.", does_not_grow("probabilistic", at_most=1.5)),
            Claim("Nor does it as published.", does_not_grow(PUBLISHED, at_most=1.5)),
            Claim(
                "Ours: a pass over the rows held costs about as little as a list by time.",
                faster("probabilistic", PUBLISHED, at_least=0.8),
            ),
            Claim("SASF is slightly faster than SA.", faster("strict+strict", "strict", at_least=0.95)),
            Claim(
                "PA holds fewer rows than SA for large k: a quarter at k = 81.",
                faster("probabilistic", "strict", measure=HELD, at_least=3, since=81),
            ),
            Claim("RA holds about a tenth more than SA.", below(HELD, RA, "strict", times=1.2)),
            Claim("With the longest buffer, half of the window, RAPF is faster still.", faster(LONG_BUFFER, RAPF)),
            Claim(
                "RAPF with the longest buffer is 4 to 8 times as fast as those that index the window (SMA, TMA).",
                faster(LONG_BUFFER, ("sma", "tma"), at_least=4, since=9),
            ),
        ),
    ),
    Experiment(
        "pripuzic-window",
        f"{PAPER}, figure 11 (f)",
        "Cost of a row and rows held, by window: an answer with each arrival, k = 27, buffer 2000",
        Axis("window in rows", (10_000, 40_000, 160_000, 640_000), quick=(10_000, 160_000)),
        ("strict", RA, RAPF, "probabilistic", PUBLISHED, *OURS),
        sweep(_by_window),
        (
            Claim("PA becomes cheaper as the window grows.", falls("probabilistic")),
            Claim("RAPF costs slightly more as the window grows.", does_not_grow(RAPF, at_most=1.5)),
        ),
    ),
    Experiment(
        "pripuzic-buffer",
        f"{PAPER}, figure 11 (d)",
        "Cost of a row and rows held, by buffer: an answer with each arrival, window 40,000 rows, k = 27",
        Axis("buffer in rows", (500, 1000, 2000, 5000, 20_000), quick=(500, 2000, 20_000)),
        FILTERED,
        sweep(_by_buffer),
        (Claim("A longer buffer makes RAPF faster.", falls(RAPF)),),
    ),
    Experiment(
        "pripuzic-gamma",
        f"{PAPER}, figure 11 (e)",
        "Cost of a row and rows held, by γ: an answer with each arrival, window 40,000 rows, k = 27",
        Axis("γ", (0.05, 0.1, 0.2, 0.4, 0.8), quick=(0.05, 0.2, 0.8)),
        ("relaxed, row by row", "relaxed+relaxed", RAPF),
        sweep(_by_gamma),
        (
            Claim("A larger γ, which prunes more rarely, makes RA faster.", falls("relaxed, row by row")),
            Claim("It holds more rows then.", grows("relaxed, row by row", measure=HELD, at_least=1.05)),
        ),
    ),
    Experiment(
        "pripuzic-order",
        f"{PAPER}, figure 9 (d)",
        "Cost of a row and rows held, by order of scores: an answer with each arrival, window 40,000 rows, k = 9",
        Axis("order of scores", (0, 1, 2, 3, 4), quick=(0, 3, 4), log=False, names=ORDERS),
        ("strict", RA, "strict+strict", RAPF, LONG_BUFFER, *OURS),
        sweep(_by_order),
        (
            Claim("Scores that depend on time slow SASF down.", grows("strict+strict", at_least=2)),
            Claim("They slow RAPF down.", grows(RAPF, at_least=2)),
            Claim(
                "The worst case of RA is only logarithmic, since nothing can be pruned.", does_not_grow(RA, at_most=3)
            ),
            Claim("SASF is slower than RAPF in every order.", faster(RAPF, "strict+strict")),
            Claim("Ours: `relaxed` in blocks becomes slower on falling scores.", grows("relaxed", at_least=3)),
            Claim(
                "Ours: `partitioned` on falling scores takes at most 3 times what it takes in random order.",
                does_not_grow("partitioned", at_most=3.0),
            ),
        ),
    ),
    Experiment(
        "pripuzic-skyband",
        f"{PAPER}, section 7.1",
        "Rows of a strict k-skyband, by k, and what is expected: window 10,000 rows, random order",
        Axis("k", (1, 3, 9, 27, 81), quick=(3, 27, 81)),
        ("strict",),
        skyband_size,
        (
            Claim("A strict k-skyband has k ln(n/k) rows in random order.", near(SIZE, "strict", PRINTED, within=0.1)),
            Claim("Ours: it has k (1 + H_n - H_k).", near(SIZE, "strict", SUM, within=0.1)),
        ),
    ),
)
