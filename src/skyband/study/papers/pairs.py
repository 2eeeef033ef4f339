"""Shen, Cheema, Lin, Zhang, Wang, TKDE 2014: top-k pairs over sliding windows; figures 8 to 13, 17, 18, tables 2 and 3.

Its SCase is `staircase` here and its TA is `threshold`; as published, they are `staircase_published` and
`threshold_published`. Costs are of one row, once its window is full, averaged over the paper's four scores of three
attributes where it says nothing else. Its real data, readings of sensors, is not ours to ship: rows like them are
made, and ranked by the paper's function of them. Windows end at 100,000 rows, where the paper goes on to a million:
to fill those with every pair scored takes hours. Questions are asked of one score, the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from skyband.study.pairs import SUPREME
from skyband.study.papers.claims import below, does_not_grow, falls, faster, grows, grows_less, near
from skyband.study.papers.experiments import Axis, Claim, Experiment
from skyband.study.papers.pair_answers import (
    ANSWER_NS,
    CONTINUOUS,
    LINEAR,
    NAIVE_KNOWING,
    PUBLISHED,
    SNAPSHOT,
    SUPREME_KNOWING,
    UPDATE_NS,
    continuous_by_count,
    continuous_by_most_k,
    known_by_k,
    known_by_n,
    snapshots_by_k,
    snapshots_by_most_k,
    snapshots_by_most_n,
    snapshots_by_n,
)
from skyband.study.papers.pair_points import (
    ALL,
    ASKING,
    DISTRIBUTIONS,
    FAGIN,
    MAINTAINED,
    MET,
    ONE_BY_ONE,
    PAIRS_HELD,
    TOGETHER,
    asked_by_count,
    by_attributes,
    by_colours,
    by_distribution,
    by_k,
    by_window,
    late,
    met_by_window,
    sensors_by_k,
    sensors_by_window,
    sizes_by_k,
    sizes_by_window,
)
from skyband.study.papers.printed import called

PAPER: Final = "Shen and others, TKDE 2014"
_KS: Final = Axis("K", (1, 5, 10, 20, 50, 100), quick=(1, 20, 100))
_WINDOWS: Final = Axis("window in rows", (1_000, 10_000, 50_000, 100_000), quick=(1_000, 10_000, 30_000))

TA: Final = "threshold_published"
# What the paper says of SCase, TA and basic, judged on all three as published.
_PUBLISHED: Final = (
    Claim("SCase outperforms basic, which has no staircase.", faster("staircase_published", "basic")),
    Claim("TA outperforms SCase and basic.", faster(TA, ("staircase_published", "basic"))),
    Claim("Ours: `staircase` is faster than SCase as published.", faster("staircase", "staircase_published")),
    Claim("Ours: `threshold` is faster than TA as published.", faster("threshold", TA)),
)
_SNAPSHOT: Final = Claim(
    "The search tree is faster than a scan of the skyband.", faster(SNAPSHOT, LINEAR, measure=ANSWER_NS)
)

_EXPERIMENTS: Final = (
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
        f"{PAPER}, figures 9 (a) and 13 (a)",
        "Cost of a row by K: uniform values, 3 attributes, window 10,000 rows",
        _KS,
        (*MAINTAINED, "naive"),
        by_k,
        (
            Claim(
                "SCase is two or three orders of magnitude faster than naive.",
                faster("staircase", "naive", at_least=100, since=10),
            ),
            Claim("SCase comes close to supreme.", faster("staircase", SUPREME, at_least=0.4, until=20)),
            *_PUBLISHED,
        ),
    ),
    Experiment(
        "pairs-cost-window",
        f"{PAPER}, figures 9 (b) and 13 (b)",
        "Cost of a row by window: uniform values, 3 attributes, K = 20",
        _WINDOWS,
        (*MAINTAINED, "naive"),
        by_window,
        (
            Claim(
                "SCase comes close to supreme in large windows.",
                faster("staircase", SUPREME, at_least=0.5, since=9_999),
            ),
            Claim("TA outperforms even supreme in large windows.", faster(TA, SUPREME, since=29_999)),
            Claim("Ours: so does `threshold`.", faster("threshold", SUPREME, since=29_999)),
            Claim(
                "TA meets a part of the window only: its cost grows less than that of SCase.",
                grows_less(TA, "staircase_published"),
            ),
            Claim(
                "Ours: `threshold` outperforms `staircase` in large windows.",
                faster("threshold", "staircase", since=29_999),
            ),
            *_PUBLISHED,
        ),
    ),
    Experiment(
        "pairs-met",
        f"{PAPER}, section 5.2.2",
        "Rows that a new row meets in TA, by window: uniform values, 3 attributes, K = 20",
        _WINDOWS,
        (TA,),
        met_by_window,
        (
            Claim("TA meets (d + 1) N^(d/(d+1)) K^(1/(d+1)) rows, or fewer.", below(MET, TA, FAGIN)),
            Claim("They grow less than the window.", grows_less(TA, "the rows themselves", measure=MET)),
        ),
    ),
    Experiment(
        "pairs-cost-attributes",
        f"{PAPER}, figure 13 (c)",
        "Cost of a row by number of attributes: uniform values, window 10,000 rows, K = 20",
        Axis("attributes", (2, 3, 4, 5, 6), quick=(2, 4), log=False),
        MAINTAINED,
        by_attributes,
        (
            Claim("TA degrades as attributes are added.", grows(TA, at_least=1.5)),
            Claim("Ours: `threshold` degrades, too.", grows("threshold", at_least=1.2)),
            Claim(
                "SCase as published hardly depends on the number of attributes: scoring is not its main cost.",
                does_not_grow("staircase_published", at_most=1.3),
            ),
            Claim("Nor does basic.", does_not_grow("basic", at_most=1.3)),
            *_PUBLISHED,
        ),
    ),
    Experiment(
        "pairs-cost-distribution",
        f"{PAPER}, figure 13 (d)",
        "Cost of a row by distribution of the values: 3 attributes, window 10,000 rows, K = 20",
        Axis("distribution", (0, 1, 2), log=False, names=DISTRIBUTIONS),
        MAINTAINED,
        by_distribution,
        (Claim("SCase costs the same whatever the values.", does_not_grow("staircase", at_most=1.3)), *_PUBLISHED),
    ),
    Experiment(
        "pairs-known-k",
        f"{PAPER}, figure 10 (a)",
        "Cost of a row by k: one query for k pairs of 10,000 rows, known beforehand (++), or any k up to 20",
        Axis("k", (1, 5, 10, 15, 20), quick=(1, 10, 20), log=False),
        (PUBLISHED, NAIVE_KNOWING, SUPREME_KNOWING),
        known_by_k,
        (
            Claim("naive++ is faster than SCase for k = 1.", faster(NAIVE_KNOWING, PUBLISHED, until=1)),
            Claim("SCase is faster than naive++ for larger k.", faster(PUBLISHED, NAIVE_KNOWING, since=5)),
            Claim("SCase costs the same whatever the k.", does_not_grow(PUBLISHED, at_most=1.3)),
        ),
    ),
    Experiment(
        "pairs-known-n",
        f"{PAPER}, figure 10 (b)",
        "Cost of a row by n: one query for 20 pairs of n rows, known beforehand (++), or any n up to 10,000",
        Axis("n in rows", (1_000, 2_000, 5_000, 10_000), quick=(1_000, 10_000)),
        (PUBLISHED, NAIVE_KNOWING, SUPREME_KNOWING),
        known_by_n,
        (
            Claim("SCase is faster than naive++ even for n = 1000.", faster(PUBLISHED, NAIVE_KNOWING)),
            Claim("supreme++ costs more the larger n is.", grows(SUPREME_KNOWING, at_least=2)),
            Claim("SCase costs the same whatever the n.", does_not_grow(PUBLISHED, at_most=1.3)),
        ),
    ),
    *(
        Experiment(
            f"pairs-snapshot-{name}",
            f"{PAPER}, figure 11 ({panel})",
            title,
            axis,
            (SNAPSHOT, LINEAR, SUPREME),
            measure,
            claims,
            log=True,
        )
        for name, panel, title, axis, measure, claims in (
            (
                "most-k",
                "a",
                "Time of a question by K: the best 20 pairs of the last 1000 rows, from the skyband of 10,000 rows",
                Axis("K", (20, 50, 100), quick=(20, 100)),
                snapshots_by_most_k,
                (_SNAPSHOT, Claim("It hardly grows with K.", does_not_grow(SNAPSHOT, at_most=1.5, measure=ANSWER_NS))),
            ),
            (
                "most-n",
                "b",
                "Time of a question by N: the best 20 pairs of the last 1000 rows, from the skyband of N rows",
                Axis("N in rows", (1_000, 10_000, 50_000), quick=(1_000, 10_000)),
                snapshots_by_most_n,
                (
                    Claim(
                        "Where n is a small part of N, the search tree is faster than a scan of the skyband.",
                        faster(SNAPSHOT, LINEAR, measure=ANSWER_NS, since=9_999),
                    ),
                    Claim("It hardly grows with N.", does_not_grow(SNAPSHOT, at_most=1.5, measure=ANSWER_NS)),
                ),
            ),
            (
                "k",
                "c",
                "Time of a question by k: the best k pairs of the last 1000 rows, from a skyband with K = 100",
                Axis("k", (1, 5, 10, 20, 50, 100), quick=(1, 20, 100)),
                snapshots_by_k,
                (_SNAPSHOT, Claim("It grows with k.", grows(SNAPSHOT, at_least=3, measure=ANSWER_NS))),
            ),
            (
                "n",
                "d",
                "Time of a question by n: the best 20 pairs of the last n rows, from a skyband with K = 100",
                Axis("n in rows", (100, 1_000, 2_000, 5_000, 10_000), quick=(100, 1_000, 10_000)),
                snapshots_by_n,
                (
                    Claim(
                        "The search tree is faster than a scan where n is small.",
                        faster(SNAPSHOT, LINEAR, measure=ANSWER_NS, until=1_000),
                    ),
                    Claim(
                        "A scan is faster where n is N: it then looks at k pairs.",
                        faster(LINEAR, SNAPSHOT, measure=ANSWER_NS, since=10_000),
                    ),
                ),
            ),
        )
    ),
    Experiment(
        "pairs-continuous-k",
        f"{PAPER}, figure 12 (a)",
        "Time to bring an answer up to date by K: many questions for any k up to K and n up to 10,000 rows",
        Axis("K", (5, 10, 20, 50, 100), quick=(20, 100)),
        (CONTINUOUS, SNAPSHOT, LINEAR),
        continuous_by_most_k,
        (
            Claim("Following is faster than searching the tree.", faster(CONTINUOUS, SNAPSHOT, measure=UPDATE_NS)),
            Claim("It is faster than a scan of the skyband.", faster(CONTINUOUS, LINEAR, measure=UPDATE_NS)),
            Claim("It scales better with K.", grows_less(CONTINUOUS, (SNAPSHOT, LINEAR), measure=UPDATE_NS)),
        ),
    ),
    Experiment(
        "pairs-continuous-count",
        f"{PAPER}, figure 12 (b)",
        "Time to bring an answer up to date by number of questions: any k up to 20 and n up to 10,000 rows",
        Axis("questions", (100, 300, 1_000, 3_000), quick=(100, 1_000)),  # of fewer the call would be seen
        (CONTINUOUS, SNAPSHOT, LINEAR),
        continuous_by_count,
        (
            Claim(
                "With many questions, following is faster than searching the tree or scanning the skyband.",
                faster(CONTINUOUS, (SNAPSHOT, LINEAR), measure=UPDATE_NS),
            ),
        ),
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
EXPERIMENTS: Final = tuple(
    replace(each, left_out="two of the four scores") if each.name.startswith("pairs-cost") else each
    for each in _EXPERIMENTS
)
