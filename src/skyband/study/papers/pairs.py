"""Shen, Cheema, Lin, Zhang, Wang, TKDE 2014: top-k pairs over sliding windows; figures 8 to 13, 17, 18, tables 2 and 3.

Its SCase is `staircase` here and its TA is `threshold`. Costs are of one row, once its window is full, averaged over
the paper's four scores of three attributes where it says nothing else. Its real data, readings of sensors, is not ours
to ship: rows like them are made, and ranked by the paper's function of them. Windows end at 100,000 rows, where the
paper goes on to a million: to fill those with every pair scored takes hours.
"""

from __future__ import annotations

from typing import Final

from skyband.study.pairs import SUPREME
from skyband.study.papers.claims import does_not_grow, falls, faster, grows, near
from skyband.study.papers.experiments import Axis, Claim, Experiment
from skyband.study.papers.pair_points import (
    ALL,
    ASKING,
    DISTRIBUTIONS,
    LINEAR,
    ONE_BY_ONE,
    PAIRS_HELD,
    TOGETHER,
    asked_by_count,
    asked_by_k,
    asked_by_window,
    by_attributes,
    by_colours,
    by_distribution,
    by_k,
    by_window,
    late,
    sensors_by_k,
    sensors_by_window,
    sizes_by_k,
    sizes_by_window,
)
from skyband.study.papers.printed import called

PAPER: Final = "Shen and others, TKDE 2014"
_KS: Final = Axis("K", (1, 5, 10, 20, 50, 100), quick=(1, 20, 100))
_WINDOWS: Final = Axis("window in rows", (1_000, 10_000, 50_000, 100_000), quick=(1_000, 10_000, 30_000))

EXPERIMENTS: Final = (
    Experiment(
        "pairs-sensors-k",
        f"{PAPER}, figure 8 (a)",
        "Cost of a row by K: sensor-like readings, window 10,000 rows",
        _KS,
        ALL,
        sensors_by_k,
        (
            Claim(
                "SCase is two or three orders of magnitude faster than naive.",
                faster("staircase", "naive", at_least=100, since=10),
            ),
            Claim("SCase comes close to supreme.", faster("staircase", SUPREME, at_least=1 / 3)),
        ),
    ),
    Experiment(
        "pairs-sensors-window",
        f"{PAPER}, figure 8 (b)",
        "Cost of a row by window: sensor-like readings, K = 20",
        _WINDOWS,
        ALL,
        sensors_by_window,
        (
            Claim(
                "SCase comes close to supreme in large windows.",
                faster("staircase", SUPREME, at_least=0.5, since=9_999),
            ),
        ),
    ),
    Experiment(
        "pairs-cost-k",
        f"{PAPER}, figures 9 (a), 10 (a) and 13 (a)",
        "Cost of a row by K: uniform values, 3 attributes, window 10,000 rows",
        _KS,
        ALL,
        by_k,
        (
            Claim(
                "SCase is two or three orders of magnitude faster than naive.",
                faster("staircase", "naive", at_least=100, since=10),
            ),
            Claim("SCase comes close to supreme.", faster("staircase", SUPREME, at_least=0.4, until=20)),
        ),
    ),
    Experiment(
        "pairs-cost-window",
        f"{PAPER}, figures 9 (b), 10 (b) and 13 (b)",
        "Cost of a row by window: uniform values, 3 attributes, K = 20",
        _WINDOWS,
        ALL,
        by_window,
        (
            Claim(
                "SCase comes close to supreme in large windows.",
                faster("staircase", SUPREME, at_least=0.5, since=9_999),
            ),
            Claim("TA outperforms SCase in large windows.", faster("threshold", "staircase", since=29_999)),
        ),
    ),
    Experiment(
        "pairs-cost-attributes",
        f"{PAPER}, figure 13 (c)",
        "Cost of a row by number of attributes: uniform values, window 10,000 rows, K = 20",
        Axis("attributes", (2, 3, 4, 5, 6), quick=(2, 4), log=False),
        ("supreme", "staircase", "threshold"),
        by_attributes,
        (
            Claim("TA degrades as attributes are added.", grows("threshold", at_least=1.5)),
            Claim("With two attributes TA outperforms SCase.", faster("threshold", "staircase", until=2)),
        ),
    ),
    Experiment(
        "pairs-cost-distribution",
        f"{PAPER}, figure 13 (d)",
        "Cost of a row by distribution of the values: 3 attributes, window 10,000 rows, K = 20",
        Axis("distribution", (0, 1, 2), log=False, names=DISTRIBUTIONS),
        ("supreme", "staircase", "threshold"),
        by_distribution,
        (
            Claim("TA is consistently better than SCase.", faster("threshold", "staircase")),
            Claim("SCase costs the same whatever the values.", does_not_grow("staircase", at_most=1.3)),
        ),
    ),
    Experiment(
        "pairs-asked-k",
        f"{PAPER}, figures 11 (a, c) and 12 (a)",
        "Time of a question for the best k of the last n, any k up to K and n up to 10,000 rows, by K",
        _KS,
        (ONE_BY_ONE, TOGETHER, LINEAR),
        asked_by_k,
        (Claim("All questions at once cost less than one by one.", faster(TOGETHER, ONE_BY_ONE, measure=ASKING)),),
    ),
    Experiment(
        "pairs-asked-window",
        f"{PAPER}, figures 11 (b, d) and 12 (b)",
        "Time of a question for the best k of the last n, any k up to 20 and n up to N rows, by N",
        _WINDOWS,
        (ONE_BY_ONE, TOGETHER, LINEAR),
        asked_by_window,
        (Claim("The time of a question hardly grows with N.", does_not_grow(ONE_BY_ONE, at_most=1.5, measure=ASKING)),),
    ),
    Experiment(
        "pairs-asked-count",
        f"{PAPER}, figure 18 (a)",
        "Time of a question, by how many are asked at once: any k up to 20 and n up to 10,000 rows",
        Axis("questions", (1, 10, 100, 1000, 10_000), quick=(1, 100, 10_000)),
        (ONE_BY_ONE, TOGETHER),
        asked_by_count,
        (
            Claim(
                "Many questions are answered sooner together than one by one.",
                faster(TOGETHER, ONE_BY_ONE, measure=ASKING, since=100),
            ),
        ),
    ),
    Experiment(
        "pairs-late",
        f"{PAPER}, figure 17 (a)",
        "Cost of a row by how many come late: an answer with each arrival, window 10,000 units, K = 20",
        Axis("% of rows late", (0, 10, 20, 40, 80), quick=(0, 20, 80), log=False),
        ("staircase",),
        late,
        (Claim("It costs less the more rows come late.", falls("staircase")),),
    ),
    Experiment(
        "pairs-colours",
        f"{PAPER}, figure 18 (b)",
        "Cost of a row by number of colours: s1, 3 attributes, window 10,000 rows, K = 20",
        Axis("colours", (1, 10, 100, 1000), quick=(1, 100)),
        ("any", "same", "different"),
        by_colours,
        (
            Claim("Pairs of the same colour cost less the more colours there are.", falls("same")),
            Claim("Pairs of different colours cost no more than any pairs.", faster("different", "any", at_least=0.9)),
        ),
    ),
    Experiment(
        "pairs-size-k",
        f"{PAPER}, table 2",
        "Pairs in the K-skyband and memory, by K: uniform values, window 10,000 rows",
        _KS,
        ("staircase",),
        sizes_by_k,
        (
            Claim(
                "The K-skyband has 2K (ln N - ln sqrt K) pairs.",
                near(PAIRS_HELD, "staircase", "2K (ln N - ln sqrt K)", within=0.15),
            ),
            Claim(
                "It has as many pairs as table 2 prints.",
                near(PAIRS_HELD, "staircase", called("staircase"), within=0.05),
            ),
        ),
    ),
    Experiment(
        "pairs-size-window",
        f"{PAPER}, table 3",
        "Pairs in the K-skyband and memory, by window: uniform values, K = 20",
        _WINDOWS,
        ("staircase",),
        sizes_by_window,
        (
            Claim(
                "The K-skyband has 2K (ln N - ln sqrt K) pairs.",
                near(PAIRS_HELD, "staircase", "2K (ln N - ln sqrt K)", within=0.05),
            ),
            Claim(
                "It has as many pairs as table 3 prints.",
                near(PAIRS_HELD, "staircase", called("staircase"), within=0.05),
            ),
        ),
    ),
)
