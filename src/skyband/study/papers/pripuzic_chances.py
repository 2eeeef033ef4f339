"""Pripužić, Podnar Žarko, Aberer, TODS 2015: what section 4.1.1 and the appendix calculate; tables V and X, figure 13.

Nothing is measured here. The printed numbers stand beside what their formulas give, and beside what the definitions say
that the formulas are for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates, chance, log_choose
from skyband.study.papers.claims import Judge, below, near
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Readings, Say, Verdict

PAPER: Final = "Pripužić and others, TODS 2015"

# -- table V ----------------------------------------------------------------------------------------------------------

# Candidates beyond k for sigma = 0.001, as printed: by n, for these k.
TABLE_K: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
TABLE: Final = {
    1_000: (18, 21, 26, 32, 40, 56, 72, 91, 106),
    10_000: (22, 25, 30, 37, 46, 65, 86, 116, 172),
    100_000: (25, 28, 34, 41, 51, 72, 95, 128, 192),
    1_000_000: (28, 32, 38, 46, 56, 78, 103, 138, 207),
}
_SIGMA: Final = 0.001


def table_v(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    """The printed numbers, the formula behind them, and the sum of all chances left out, which is what we use."""
    findings = Findings()
    for n, printed in TABLE.items():
        measure = f"candidates beyond k, n = {n:,}"
        for k, number in zip(TABLE_K, printed, strict=True):
            if k in values:
                say(f"table V: n = {n:,}, k = {k}")
                findings.add(measure, "printed", k, number)
                findings.add(measure, "formula", k, formula(n, k, _SIGMA))
                findings.add(measure, "sum of chances", k, candidates(n, k, _SIGMA))
    return findings


def formula(n: int, k: int, sigma: float) -> int:
    """The first rank behind k that becomes one of the best k with a chance below sigma / 2, minus 1 and k."""
    ranks = np.arange(k + 1, min(n, 3 * k + 200) + 1)
    small: npt.NDArray[np.bool_] = chance(ranks, n, k) < sigma / 2
    return int(ranks[int(np.argmax(small))]) - 1 - k


_TABLE_MEASURES: Final = tuple(f"candidates beyond k, n = {n:,}" for n in TABLE)

# -- the appendix -----------------------------------------------------------------------------------------------------

# The rank L, as printed: by n, for the k of TABLE_K.
TABLE_X: Final = {
    1_000: (4, 7, 12, 19, 33, 69, 125, 232, 539),
    10_000: (4, 7, 12, 19, 33, 69, 126, 236, 555),
    100_000: (4, 7, 12, 19, 33, 69, 126, 237, 557),
    1_000_000: (4, 7, 12, 19, 33, 69, 126, 237, 557),
}
CONVEX: Final = "first rank with a convex chance, n = 1,000"
SHARE: Final = "sum of chances / its bound, n = 1,000"
_SUMMED: Final = 20  # as k: up to here the definitions are summed up


def rank_l(n: int, k: int) -> int:
    """Equation (13), the first rank that is above it."""
    inner = -8 * k * k * n + 4 * k * k + 8 * k * n * n + 4 * k * n - 4 * k - 5 * n * n - 2 * n + 3
    return math.ceil((3 * n - 4 * k + 2 * k * n + 3 + math.sqrt(3 * inner)) / (2 * n + 2))


def rank_chance(first: int, then: int, n: int, steps: Ints) -> Floats:
    """Lemma 4.3: how likely a row that came with one rank has another after each of so many steps."""
    s, better = np.meshgrid(steps, np.arange(then), indexing="ij")  # better rows that came since
    gone = first - then + better  # better rows that have left since
    possible = (gone >= 0) & (gone < first) & (gone <= s) & (s - gone <= n - first) & (better <= s)
    s, better, gone = s[possible], better[possible], gone[possible]
    log = log_choose(first - 1, gone) + log_choose(n - first, s - gone) - log_choose(n - 1, s)
    log += log_choose(first - 1 + better, better) + log_choose(n - first + s - better, s - better)
    log -= log_choose(n + s - 1, s)
    found = np.zeros(possible.shape)
    found[possible] = n / (n + s) * np.exp(log)
    summed: Floats = found.sum(axis=1)
    return summed


def top_chance(rank: int, k: int, n: int) -> Floats:
    """How likely a row that came with this rank is among the best k, after 1, 2, … n - 1 steps."""
    steps = np.arange(1, n)
    return np.array([rank_chance(rank, then, n, steps) for then in range(1, k + 1)]).sum(axis=0)


def table_x(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings = Findings()
    for n, printed in TABLE_X.items():
        for k, number in zip(TABLE_K, printed, strict=True):
            if k in values:
                findings.add(_rank_of(n), "printed", k, number)
                findings.add(_rank_of(n), "formula", k, rank_l(n, k))
    n = min(TABLE_X)
    for k, number in zip(TABLE_K, TABLE_X[n], strict=True):
        if k in values and k <= _SUMMED:
            say(f"table X: n = {n:,}, k = {k}")
            convex = [rank for rank in range(number + 6, k, -1) if (np.diff(top_chance(rank, k, n), 2) < -1e-15).any()]
            findings.add(CONVEX, "printed", k, number)
            findings.add(CONVEX, "definition", k, max(convex, default=k) + 1)
            chances = top_chance(number, k, n)
            findings.add(SHARE, "definition", k, float(chances.sum() / (n / 2 * chances[-1])))
            findings.add(SHARE, "bound", k, 1.0)
    return findings


def _rank_of(n: int) -> str:
    return f"rank L, n = {n:,}"


# Figure 13: by panel, which ranks a row may have later that came with rank 35 of 1000.
PANELS: Final = {"chance (a)": (35, 34), "chance (b)": (27,), "chance (c)": (16,)}


def figure_13(values: Sequence[float], _: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings = Findings()
    steps = np.array(values, np.int64)
    for panel, ranks in PANELS.items():
        for rank in ranks:
            for step, value in zip(values, rank_chance(35, rank, 1_000, steps), strict=True):
                findings.add(panel, f"rank {rank}", step, float(value))
    return findings


def _slopes(panel: str, rank: int, wanted: str) -> Judge:
    """The slopes from step to step are as wanted: "falls", "rises then falls", "rises early" or "rises ever faster"."""

    def judge(readings: Readings) -> Verdict:
        curve = readings.curve(panel, f"rank {rank}")
        if len(curve) < 4:
            return Verdict(None, "too few points were measured")
        slopes = np.diff(list(curve.values())) / np.diff(list(curve))
        turns = int((np.diff(np.sign(slopes[slopes != 0])) != 0).sum())  # a chance that is still 0 does not rise
        steepest = list(curve)[int(np.argmax(slopes))]
        holds = {
            "falls": bool((slopes < 0).all()),
            "rises then falls": bool(slopes[0] > 0 > slopes[-1]) and turns == 1,
            "rises early": bool((slopes >= 0).all()) and steepest < max(curve) / 2,
            "rises ever faster": bool((slopes >= 0).all() and (np.diff(slopes) >= 0).all()),
        }[wanted]
        course = f"from {slopes[0]:.2g} to {slopes[-1]:.2g} a step, steepest after step {steepest:,.10g}"
        return Verdict(holds, f"{course}; it turns {turns} times")

    return judge


EXPERIMENTS: Final = (
    Experiment(
        "pripuzic-table-v",
        f"{PAPER}, table V",
        "Candidates of PA beyond k, for σ = 0.001: as printed, by the formula, and by the sum of all chances left out",
        Axis("k", TABLE_K),
        (),
        table_v,
        (
            *(
                Claim(
                    f"The formula gives the printed line: {measure[len('candidates beyond k, ') :]}.",
                    near(measure, "formula", "printed", within=0.0),
                )
                for measure in _TABLE_MEASURES
            ),
            *(
                Claim(
                    f"The printed line keeps what definition 4.5 asks: {measure[len('candidates beyond k, ') :]}.",
                    below(measure, "sum of chances", "printed"),
                )
                for measure in _TABLE_MEASURES
            ),
        ),
    ),
    Experiment(
        "pripuzic-table-x",
        f"{PAPER}, table X",
        "The rank L from which equation (9) may be used, by k: as printed, by equation (13), and by the definition",
        Axis("k", TABLE_K),
        (),
        table_x,
        (
            *(
                Claim(
                    f"Equation (13) gives the printed line: n = {n:,}.",
                    near(_rank_of(n), "formula", "printed", within=0.0),
                )
                for n in TABLE_X
            ),
            Claim(
                "From this rank on, the chance to be among the best k is convex in time (lemma A.2).",
                below(CONVEX, "definition", "printed"),
            ),
            Claim(
                "The bound that needs it, n / 2 times the last chance, holds there.",
                below(SHARE, "definition", "bound"),
            ),
        ),
    ),
    Experiment(
        "pripuzic-figure-13",
        f"{PAPER}, figure 13",
        "How likely a row that came with rank 35 of 1000 has some other rank, by steps since",
        Axis("steps", (1, 5, 20, 50, 100, 200, 350, 600, 999)),
        (),
        figure_13,
        (
            Claim("Rank 35 becomes less likely all the time.", _slopes("chance (a)", 35, "falls")),
            Claim("Rank 34 first becomes more likely, then less.", _slopes("chance (a)", 34, "rises then falls")),
            Claim(
                "Rank 27 becomes more likely, most quickly in the beginning.", _slopes("chance (b)", 27, "rises early")
            ),
            Claim("Rank 16 becomes more likely ever faster.", _slopes("chance (c)", 16, "rises ever faster")),
        ),
    ),
)
