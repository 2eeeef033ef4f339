"""Chooses the algorithm that answers subscriptions, and says why, and what it will hold and cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from skyband.core.chooser import Chooser, WindowRows
from skyband.core.emit import code_of
from skyband.core.plan import Plan
from skyband.core.registry import candidates_of, find
from skyband.expressions.subscriptions import QueryScore
from skyband.problems.subscriptions.algorithms import boxes, cells, scan, shared, shared_score
from skyband.problems.subscriptions.algorithms.boxes.state import ROWS as BOX_ROWS
from skyband.problems.subscriptions.algorithms.boxes.state import SPLIT as BOX_SPLIT
from skyband.problems.subscriptions.algorithms.cells.state import SPLIT as CELL_SPLIT
from skyband.problems.subscriptions.algorithms.cells.state import resolution_of
from skyband.problems.subscriptions.costs import known_subscription_costs
from skyband.problems.subscriptions.drivers.kernels.lists import listed
from skyband.problems.subscriptions.drivers.scoring import Scoring
from skyband.problems.subscriptions.operator import Spec
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import Ticks

ASSUMED_WINDOW_ROWS: Final = 10_000  # the rows of a window by value, if the user does not say how many it holds
ASSUMED_K: Final = 10  # the k of a query, if a column says it
ASSUMED_QUERIES: Final = 1_000  # the number of queries, if they are a stream

BLOCK_ROWS: Final = 5_000  # so many rows are put into boxes together
LOOKED_UP: Final = 3  # to look up who sees a row takes so many times as long as to compare it with a threshold
SHARING: Final = 4  # a skyband is shared if at least so many queries, on average, have the same score


def specify(query: TopKForEach, schema: pa.Schema, scoring: Scoring, *, external_clock: bool = False) -> Spec:
    """The spec of `query` over rows of `schema`."""
    ticks = query.window.ticks(schema, query.lateness)
    return in_numbers(query, ticks.with_outside_watermark() if external_clock else ticks, scoring)


def in_numbers(query: TopKForEach, ticks: Ticks, scoring: Scoring) -> Spec:
    """The spec of `query`, given its window in ticks and its compiled score."""
    k = None if isinstance(query.k, str) else query.k
    return Spec(ticks, scoring, code_of(query.emit), k, query.backfill, query.every is not None)


def plan(
    spec: Spec,
    queries: int,
    named: str | None = None,
    *,
    window_rows: float | None = None,
    score_groups: int = 0,
) -> Plan:
    """Plan the named algorithm or, without a name, the one whose rows cost least.

    `score_groups` says how many different scores the queries ask for; 0: unknown, so each query has its own.
    """
    window = WindowRows.of(spec.window, window_rows, ASSUMED_WINDOW_ROWS)
    queries, k = queries or ASSUMED_QUERIES, spec.k or ASSUMED_K
    chooser = Chooser(
        spec=spec,
        window=window,
        candidates=candidates_of("subscriptions"),
        reason=lambda chosen, able: _reason(chosen.algorithm, spec, score_groups),
        measured_ns=lambda name: _cost(name, spec, queries, score_groups or queries, k, window.rows),
        why_not=lambda algorithm: algorithm.refuses(spec) or _own_scores(algorithm.name, spec, queries, score_groups),
        shows_rows=False,
    )
    found = chooser.cheapest() if named is None else chooser.named(find(named, "subscriptions"))
    return replace(found, rows=_held(k, score_groups, window.rows) if found.base == shared.NAME else math.nan)


def _reason(name: str, spec: Spec, score_groups: int) -> str:
    return _shared(spec, score_groups) if name == shared.NAME else _REASONS.get(name, "lowest cost per row")


_REASONS: Final = {
    shared_score.NAME: "a row has the same score for all queries that see it, so it scores the row once",
    scan.NAME: "scoring each row for each query costs least",
    cells.NAME: "most rows meet only the few queries of their cell",
    boxes.NAME: "the box of a row shows that the row cannot answer most queries",
}


def _shared(spec: Spec, score_groups: int) -> str:
    """Say which queries are answered from one skyband."""
    score = spec.scoring.score
    if score.seen_by:
        names = dict.fromkeys(score.columns[column] for column, _ in score.seen_by)
        return f"one skyband for each {', '.join(names)} that queries see answers for every k and every size"
    if score.parameters:
        skybands = f"{score_groups:,} different scores, and one skyband of each"
        return f"queries have {skybands} answers for every k and every size"
    return "a row has the same score for all queries, so one skyband answers for every k and every size"


def _held(k: int, score_groups: int, rows: float) -> float:
    """How many rows of a window the skybands hold, one for each of so many equal score groups; 0: unknown, so one."""
    score_groups = max(1, score_groups)
    return min(rows, score_groups * k * (1 + math.log(max(1.0, rows / score_groups / k))))


def _own_scores(name: str, spec: Spec, queries: int, score_groups: int) -> str | None:
    """Say why queries do not share a skyband, although they could."""
    if name != shared.NAME or spec.scoring.score.is_common or 0 < SHARING * score_groups <= queries:
        return None
    return "each query has its own score"


def score_groups_of(queries: pa.Table, score: QueryScore) -> int:
    """How many different scores the queries ask for."""
    names = list(dict.fromkeys(score.parameters))
    return len(queries.select(names).group_by(names).aggregate([])) if names else 1


def _cost(name: str, spec: Spec, queries: int, score_groups: int, k: int, rows: float) -> float:
    """What a row costs. A list's share of all rows says how far a query sees, if rows are spread evenly."""
    costs = known_subscription_costs()
    score = spec.scoring.score
    columns = max(1, len(score.columns))
    share, ns = listed_share(k, rows), costs.ns
    if name == scan.NAME:
        return queries * (costs.score(columns) + ns["listed"] * share)
    if name == shared_score.NAME:
        looked_up = LOOKED_UP * costs.score(1) if score.seen_by else 0.0
        kept = costs.lay(columns) / 2  # keeping rows in order of arrival costs about half of laying them into boxes
        return costs.score(columns) + looked_up + kept + queries * (ns["bound"] + ns["listed"] * share)
    if name == shared.NAME:
        if score.seen_by:
            return costs.score(columns) + ns["shared"] + ns["score_group"]
        return score_groups * costs.score(columns) + ns["shared"]
    if name == boxes.NAME:
        found = ns["bound"] + 1.3 * seen_in_boxes(share, columns) * costs.score(columns)
        return costs.lay(columns) + queries * (found + ns["listed"] * share)
    if name == cells.NAME:
        found = ns["drawn"] + ns["met"] * met_in_cells(share, columns)
        return costs.lay(columns) + queries * (found + ns["listed"] * share)
    return math.nan


def listed_share(k: int, rows: float) -> float:
    """The share of all rows that enter a query's list."""
    return min(1.0, float(listed(np.array(k))) / rows)


def seen_in_boxes(share: float, columns: int) -> float:
    """The share of rows that lie in boxes in which a query finds something."""
    split = min(columns, BOX_SPLIT)
    return _seen((BOX_ROWS / BLOCK_ROWS) ** (1 / split), share, columns, split)


def met_in_cells(share: float, columns: int) -> float:
    """The share of queries that a row meets in its cell."""
    return _seen(1 / resolution_of(columns), share, columns, min(columns, CELL_SPLIT))


def _seen(side: float, share: float, columns: int, split: int) -> float:
    """The share of boxes with this side in which a query finds something, if its list has this share of all rows."""
    ball = math.pi ** (columns / 2) / math.gamma(columns / 2 + 1)
    return min(1.0, side + 2 * (share / ball) ** (1 / columns)) ** split
