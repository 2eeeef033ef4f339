"""Pripužić, Podnar Žarko, Aberer, TODS 2015, section 8: many k-NN queries on one stream; figures 8 to 12.

With an index the paper's PA, RAPF and SASF are `pa_grid`, `rapf_grid` and `sasf_grid` here: queries in a grid, with one
buffer and one list by time. Its competitors are `cpmw` and `snn`. Without an index PA is `probabilistic`, RAPF
`relaxed+probabilistic`, SA with and without a filter `strict+strict` and `strict`: each runs once for every query.
`boxes`, `cells` and `scan` are ours.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from skyband.study.papers.claims import at, below, does_not_grow, falls, faster, grows, grows_less, in_groups
from skyband.study.papers.experiments import Axis, Claim, Experiment
from skyband.study.papers.subscriptions_points import (
    BOUND,
    CLUSTERED,
    CORRELATED,
    DATA,
    EXTRA,
    HELD,
    LONGEST,
    MISSED,
    QUERIES,
    QUICK_QUERIES,
    RANDOMISED,
    REFERENCES,
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
PA_GRID, SASF_GRID, RAPF_GRID = "pa_grid", "sasf_grid", "rapf_grid"
RAPF2: Final = f"{RAPF_GRID}{LONGEST}"  # the paper's name for it
RA: Final = "relaxed(gamma=0.2)"
BUFFER: Final = "buffer=2000"  # the paper's
# The paper's nine, in the three groups that it sees in figure 10: the fastest first.
GROUPS: Final = (
    (PA, "strict+probabilistic", RAPF),
    (RA, "strict+relaxed", "relaxed+relaxed"),
    ("strict", "strict+strict", "relaxed+strict"),
)
# With an index, and without one.
INDEXED: Final = {PA_GRID: PA, RAPF_GRID: RAPF, SASF_GRID: "strict+strict"}
NINE: Final = tuple(name for group in GROUPS for name in group)
_KS: Final = Axis("k", (1, 3, 9, 27, 81), quick=(3, 27))
_RANDOM: Final = (UNIFORM, CLUSTERED, RANDOMISED)
_ALL: Final = WINDOW / QUERIES  # rows of the window, for each query


def _by_k(data: str, columns: int, k: float) -> Setting:
    return Setting(data, columns, k=int(k), options=BUFFER)


def _cost(data: str, figure: str) -> Experiment:
    ours = Claim("Ours: `boxes` is faster than PA.", faster("boxes", PA_GRID))
    claims = [
        Claim("For k = 1 and 3 PA and RAPF2 are about as fast as CPM/w and SNN.",
              faster(RAPF2, COMPETITORS, at_least=0.5, until=3)),
        Claim("CPM/w scales poorly with k.", grows("cpmw", at_least=3)),
        Claim("SNN scales poorly with k.", grows("snn", at_least=3)),
        Claim("RAPF, RAPF2 and PA scale better with k than these.",
              grows_less(PA_GRID, (RAPF_GRID, RAPF2, *COMPETITORS))),
        Claim("PA is faster than RAPF.", faster(PA_GRID, RAPF_GRID)),
        Claim("For large k RAPF2 is 4 to 8 times as fast as CPM/w and SNN.",
              faster(RAPF2, COMPETITORS, at_least=4, since=27)),
        Claim("SASF is the slowest.", in_groups(((RAPF_GRID, RAPF2, PA_GRID, *COMPETITORS), (SASF_GRID,)))),
        ours,
    ]  # fmt: skip
    names: tuple[str, ...] = (*COMPETITORS, PA_GRID, SASF_GRID, RAPF_GRID, RAPF2, *OURS)
    if data == CORRELATED:
        claims = [
            Claim("RAPF and RAPF2 are faster than CPM/w for every k.", in_groups(((RAPF_GRID, RAPF2), ("cpmw",)))),
            Claim("They are faster than SNN for every k.", in_groups(((RAPF_GRID, RAPF2), ("snn",)))),
            Claim("SASF is the slowest.", in_groups(((RAPF_GRID, RAPF2, *COMPETITORS), (SASF_GRID,)))),
            Claim("Ours: `boxes` is faster than RAPF2.", faster("boxes", RAPF2)),
        ]
        names = tuple(name for name in names if name != PA_GRID)  # it errs too often, as the paper says
    return Experiment(
        f"subscriptions-k-{data.partition(' ')[0]}",
        f"{PAPER}, figure 9 ({figure})",
        f"Cost of a row by k, with an index: points {data}, 400 queries, window 40,000 rows, buffer 2000",
        _KS,
        names,
        sweep(partial(_by_k, data, 2)),
        tuple(claims),
    )


def _index(data: str, figures: str) -> Experiment:
    return Experiment(
        f"subscriptions-index-{data}",
        f"{PAPER}, figure 10 ({figures})",
        f"Cost of a row by k, without an index and with one: points {data}, 4 columns, 400 queries, window 40,000 rows",
        _KS,
        (*NINE, "scan", *INDEXED, *OURS),
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
            *(
                Claim(f"An index pays on uniform points: {indexed}.", faster(indexed, alone))
                if data == UNIFORM
                else Claim(
                    f"Where points are not uniform, an index pays for small k: {indexed}.",
                    faster(indexed, alone, until=9),
                )
                for indexed, alone in INDEXED.items()
            ),
            Claim("Ours: a vectorised loop without an index is faster than PA.", faster("scan", PA)),
        ),
    )


_EXPERIMENTS: Final = (
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
        "Cost of a row by number of columns: uniform points, 400 queries, k = 9, window 40,000 rows, ρ = 2",
        Axis("columns", (2, 4, 6, 8, 10), quick=(2, 4), log=False),
        (PA_GRID, RAPF_GRID, SASF_GRID, "scan", *OURS),
        sweep(lambda columns: Setting(columns=int(columns), options="resolution=2")),
        (
            Claim("The cost of PA grows less than the number of columns.", does_not_grow(PA_GRID, at_most=5)),
            Claim("So does that of RAPF.", does_not_grow(RAPF_GRID, at_most=5)),
            Claim("The cost of SASF grows more than theirs.", grows_less(PA_GRID, (SASF_GRID,))),
            Claim("Ours: an index pays with few columns.", faster("boxes", "scan", until=4)),
        ),
    ),
    Experiment(
        "subscriptions-resolution",
        f"{PAPER}, figure 11 (b)",
        "Cost of a row by resolution of the grid: uniform points, 2 columns, 400 queries, k = 9, window 40,000 rows",
        Axis("parts of a column", (2, 5, 10, 20, 40, 64), quick=(2, 10, 64)),
        (PA_GRID, RAPF_GRID, "cells", *COMPETITORS),
        sweep(lambda parts: Setting(options=f"resolution={int(parts)}")),
        (
            Claim("10 parts are better than 2: PA.", falls(PA_GRID, until=10)),
            Claim("10 parts are better than 2: RAPF.", falls(RAPF_GRID, until=10)),
            Claim("Many more parts are worse: RAPF.", grows(RAPF_GRID, at_least=1.0, since=10)),
            Claim("Ours: 10 parts are better than 2.", falls("cells", until=10)),
        ),
    ),
    Experiment(
        "subscriptions-queries",
        f"{PAPER}, figure 11 (c)",
        "Cost of a row by number of queries: uniform points, 2 columns, k = 9, window 40,000 rows",
        Axis("queries", (100, 400, 1_600, 6_400), quick=(100, 1_600)),
        (PA_GRID, RAPF_GRID, SASF_GRID, "cpmw", "scan", *OURS),
        sweep(lambda queries: Setting(queries=int(queries))),
        (
            Claim("All algorithms scale linearly with the number of queries: PA.", grows(PA_GRID, at_least=8)),
            Claim("RAPF scales linearly, too.", grows(RAPF_GRID, at_least=8)),
            Claim("PA is the fastest of the paper's.", faster(PA_GRID, (RAPF_GRID, SASF_GRID, "cpmw"))),
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
        (RAPF_GRID, SASF_GRID, RAPF, "strict+probabilistic"),
        sweep(lambda rows: Setting(options=f"buffer={int(rows)}")),
        (
            Claim("A longer buffer makes RAPF faster.", falls(RAPF_GRID)),
            Claim("So it does without an index.", falls(RAPF)),
        ),
    ),
    Experiment(
        "subscriptions-gamma",
        f"{PAPER}, figure 11 (e)",
        "Cost of a row by γ: uniform points, 2 columns, 400 queries, k = 9, window 40,000 rows",
        Axis("γ", (0.05, 0.1, 0.2, 0.4, 0.8), quick=(0.05, 0.8)),
        (RAPF_GRID, "relaxed", RAPF),
        sweep(lambda gamma: Setting(options=f"gamma={gamma}")),
        (
            Claim("A larger γ, which prunes more rarely, makes RA faster.", falls("relaxed")),
            Claim("It makes RAPF faster.", falls(RAPF_GRID)),
        ),
    ),
    Experiment(
        "subscriptions-window",
        f"{PAPER}, figure 11 (f)",
        "Cost of a row by window: uniform points, 2 columns, 400 queries, k = 9",
        Axis("window in rows", (10_000, 40_000, 160_000), quick=(10_000, 40_000)),
        (PA_GRID, RAPF_GRID, SASF_GRID, "cpmw", *OURS),
        sweep(lambda size: Setting(window=int(size))),
        (
            Claim("PA becomes cheaper as the window grows.", falls(PA_GRID)),
            Claim("RAPF becomes slightly more expensive.", does_not_grow(RAPF_GRID, at_most=1.5)),
            Claim("Ours: an index becomes cheaper, since a row concerns fewer queries.", falls("boxes")),
        ),
    ),
    Experiment(
        "subscriptions-space",
        f"{PAPER}, figure 12 (a) and (b)",
        "Rows held per query, those that several hold counted once, and references to rows, by k: uniform points",
        _KS,
        (PA_GRID, SASF_GRID, RAPF_GRID, "relaxed", "cpmw", "boxes"),
        sweep(lambda k: _by_k(UNIFORM, 2, k)._replace(queries=QUERIES)),
        (
            Claim("CPM/w stores the window: n / u = 100 rows per query.", at(HELD, "cpmw", 27, at_least=0.99 * _ALL)),
            Claim("Ours: so does `boxes`, once for all queries.", at(HELD, "boxes", 27, at_least=0.99 * _ALL)),
            Claim("All approach n / u as k grows: RA.", grows("relaxed", measure=HELD, at_least=1.5)),
            Claim("RAPF does.", grows(RAPF_GRID, measure=HELD, at_least=1.5)),
            Claim(
                "For large k PA refers to fewer rows than SASF.",
                faster(PA_GRID, SASF_GRID, measure=REFERENCES, since=27),
            ),
            Claim("RAPF refers to slightly more rows than SASF.", below(REFERENCES, RAPF_GRID, SASF_GRID, times=1.5)),
        ),
    ),
)
EXPERIMENTS: Final = tuple(
    replace(each, left_out=f"{QUICK_QUERIES} queries, not {QUERIES}") if "400 queries" in each.title else each
    for each in _EXPERIMENTS
)
