"""Pripužić, Podnar Žarko, Aberer, TODS 2015, section 8: many k-NN queries on one stream; figures 8 to 12.

Its PA is `probabilistic` here, its RAPF `relaxed+probabilistic`, its SA with and without a filter `strict+strict` and
`strict`: each runs once for every query, as the paper has it without query indexing, also beside those with an index.
With indexing there are its two competitors, CPM/w (`cpmw`) and SNN (`snn`), and what was made here: `boxes`, and
`cells`, after the paper's grid. Its buffer and its γ belong to one query and are varied for one: `skyband bench papers
objects --only pripuzic`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from skyband.study.papers.claims import at, below, does_not_grow, falls, faster, grows, in_groups
from skyband.study.papers.experiments import Axis, Claim, Experiment
from skyband.study.papers.subscriptions_points import (
    BOUND,
    CLUSTERED,
    CORRELATED,
    DATA,
    EXTRA,
    HELD,
    MISSED,
    QUERIES,
    RANDOMISED,
    UNIFORM,
    WINDOW,
    Setting,
    errors,
    sweep,
)

PAPER: Final = "Pripužić and others, TODS 2015"
COMPETITORS: Final = ("cpmw", "snn")
OURS: Final = ("boxes", "cells")
PA, RAPF = "probabilistic", "relaxed+probabilistic"
RA: Final = "relaxed(gamma=0.2)"
BUFFER: Final = "buffer=2000"  # the paper's
# The paper's nine, in the three groups that it sees in figure 10: the fastest first.
GROUPS: Final = (
    (PA, "strict+probabilistic", RAPF),
    (RA, "strict+relaxed", "relaxed+relaxed"),
    ("strict", "strict+strict", "relaxed+strict"),
)
NINE: Final = tuple(name for group in GROUPS for name in group)
_KS: Final = Axis("k", (1, 3, 9, 27, 81), quick=(3, 27))
_RANDOM: Final = (UNIFORM, CLUSTERED, RANDOMISED)
_ALL: Final = WINDOW / QUERIES  # rows of the window, for each query


def _by_k(data: str, columns: int, k: float) -> Setting:
    return Setting(data, columns, k=int(k), options=BUFFER)


def _cost(data: str, figure: str) -> Experiment:
    claims = [
        Claim("CPM/w scales poorly with k.", grows("cpmw", at_least=3)),
        Claim("SNN scales poorly with k.", grows("snn", at_least=3)),
        Claim(
            "RAPF with the longest buffer is 4 to 8 times as fast as CPM/w and SNN; here, `boxes`.",
            faster("boxes", COMPETITORS, at_least=4, since=9),
        ),
    ]
    if data == CORRELATED:
        claims = [
            Claim("RAPF is up to one order of magnitude faster than CPM/w; here, `boxes`.", faster("boxes", "cpmw")),
            Claim("It is up to two orders of magnitude faster than SNN; here, `boxes`.", faster("boxes", "snn")),
        ]
    return Experiment(
        f"subscriptions-k-{data.partition(' ')[0]}",
        f"{PAPER}, figure 9 ({figure})",
        f"Cost of a row by k, with an index but for RAPF: points {data}, 400 queries, window 40,000 rows, buffer 2000",
        _KS,
        (*COMPETITORS, *OURS, RAPF),
        sweep(partial(_by_k, data, 2)),
        tuple(claims),
    )


def _index(data: str, figures: str) -> Experiment:
    return Experiment(
        f"subscriptions-index-{data}",
        f"{PAPER}, figure 10 ({figures})",
        f"Cost of a row by k, without an index and with one: points {data}, 4 columns, 400 queries, window 40,000 rows",
        _KS,
        (*NINE, "scan", *OURS),
        sweep(partial(_by_k, data, 4)),
        (
            Claim(
                "Without an index and for large k, PA and the probabilistic filters are faster than all others.",
                in_groups((GROUPS[0], (*GROUPS[1], *GROUPS[2])), since=27),
            ),
            Claim(
                "Of the others, RA and the relaxed filters are faster than SA and the strict ones.",
                in_groups(GROUPS[1:], since=27),
            ),
            Claim("Without an index, PA outperforms RAPF.", faster(PA, RAPF)),
            Claim("The cost of PA hardly changes with k.", does_not_grow(PA, at_most=1.5)),
            Claim(
                "An index pays on uniform points."
                if data == UNIFORM
                else "Where points are not uniform, an index pays only for small k.",
                faster("boxes", "scan", until=float("inf") if data == UNIFORM else 9),
            ),
            Claim("Ours: a vectorised loop without an index is faster than PA.", faster("scan", PA)),
        ),
    )


EXPERIMENTS: Final = (
    Experiment(
        "subscriptions-errors",
        f"{PAPER}, figure 8",
        "Rows that PA misses or makes up per query, by k: 400 queries, window 40,000 rows, σ = 0.001",
        Axis("k", (1, 3, 9, 27, 81), quick=(1, 9)),
        _RANDOM,
        errors,
        (
            *(Claim(f"PA misses fewer rows than σ N / n: {kind}.", below(MISSED, kind, BOUND)) for kind in _RANDOM),
            *(Claim(f"PA makes up fewer than 1.5 σ N / n: {kind}.", below(EXTRA, kind, BOUND)) for kind in _RANDOM),
            Claim("PA makes no errors at k = 1.", at(MISSED, UNIFORM, 1, at_most=0)),
        ),
        log=False,
    ),
    *(_cost(data, figure) for data, figure in zip(DATA, "abcd", strict=True)),
    *(_index(data, figures) for data, figures in zip(_RANDOM, ("a, b", "c, d", "e, f"), strict=True)),
    Experiment(
        "subscriptions-columns",
        f"{PAPER}, figure 11 (a)",
        "Cost of a row by number of columns: uniform points, 400 queries, k = 9, window 40,000 rows",
        Axis("columns", (2, 4, 6, 8, 10), quick=(2, 4), log=False),
        (PA, RAPF, "scan", *OURS),
        sweep(lambda columns: Setting(columns=int(columns))),
        (
            Claim("The cost of PA grows less than the number of columns.", does_not_grow(PA, at_most=5)),
            Claim("Ours: an index pays with few columns.", faster("boxes", "scan", until=4)),
        ),
    ),
    Experiment(
        "subscriptions-resolution",
        f"{PAPER}, figure 11 (b)",
        "Cost of a row by resolution of the grid: uniform points, 2 columns, 400 queries, k = 9, window 40,000 rows",
        Axis("parts of a column", (2, 5, 10, 20, 40, 64), quick=(2, 10, 64)),
        ("cells", *COMPETITORS),
        sweep(lambda parts: Setting(options=f"resolution={int(parts)}")),
        (Claim("10 parts are better than 2.", falls("cells")),),
    ),
    Experiment(
        "subscriptions-queries",
        f"{PAPER}, figure 11 (c)",
        "Cost of a row by number of queries: uniform points, 2 columns, k = 9, window 40,000 rows",
        Axis("queries", (100, 400, 1_600, 6_400), quick=(100, 1_600)),
        ("cpmw", "scan", *OURS),
        sweep(lambda queries: Setting(queries=int(queries))),
        (
            Claim("All algorithms scale linearly with the number of queries.", grows("scan", at_least=8)),
            Claim(
                "Ours: with thousands of queries an index over them pays most.", faster("cells", "scan", since=1_600)
            ),
        ),
    ),
    Experiment(
        "subscriptions-buffer",
        f"{PAPER}, figure 11 (d)",
        "Cost of a row by buffer: uniform points, 2 columns, 400 queries, k = 9, window 40,000 rows",
        Axis("buffer in rows", (250, 500, 1000, 2000, 5000), quick=(250, 2000)),
        (RAPF, "strict+probabilistic"),
        sweep(lambda rows: Setting(options=f"buffer={int(rows)}")),
        (Claim("A longer buffer makes RAPF faster.", falls(RAPF)),),
    ),
    Experiment(
        "subscriptions-gamma",
        f"{PAPER}, figure 11 (e)",
        "Cost of a row by γ: uniform points, 2 columns, 400 queries, k = 9, window 40,000 rows",
        Axis("γ", (0.05, 0.1, 0.2, 0.4, 0.8), quick=(0.05, 0.8)),
        ("relaxed", RAPF),
        sweep(lambda gamma: Setting(options=f"gamma={gamma}")),
        (Claim("A larger γ, which prunes more rarely, makes RA faster.", falls("relaxed")),),
    ),
    Experiment(
        "subscriptions-window",
        f"{PAPER}, figure 11 (f)",
        "Cost of a row by window: uniform points, 2 columns, 400 queries, k = 9",
        Axis("window in rows", (10_000, 40_000, 160_000), quick=(10_000, 40_000)),
        (PA, RAPF, "cpmw", *OURS),
        sweep(lambda size: Setting(window=int(size))),
        (
            Claim("PA becomes cheaper as the window grows.", falls(PA)),
            Claim("Ours: so does an index, since a row concerns fewer queries.", falls("boxes")),
        ),
    ),
    Experiment(
        "subscriptions-space",
        f"{PAPER}, figure 12 (a); (b) is `rows held` of pripuzic-k",
        "Rows held per query, those that several hold counted once, by k: uniform points, 400 queries",
        _KS,
        (PA, RAPF, "relaxed", "cpmw", "boxes"),
        sweep(partial(_by_k, UNIFORM, 2)),
        (
            Claim(
                "CPM/w stores the window: n / u = 100 rows per query.",
                at(HELD, "cpmw", 27, at_least=0.99 * _ALL),
            ),
            Claim(
                "Ours: so does `boxes`, once for all queries.",
                at(HELD, "boxes", 27, at_least=0.99 * _ALL),
            ),
            Claim("All approach n / u as k grows.", grows("relaxed", measure=HELD, at_least=1.5)),
        ),
    ),
)
