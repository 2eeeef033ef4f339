"""Rule: where it runs, and on Spark over which buckets."""

from __future__ import annotations

from skyband.core.planned_windows import ticks_of
from skyband.problems.distribution import spread, spread_join
from skyband.problems.joins.columns import bind
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.rules.drafting import Draft, Step


def distribution(draft: Draft) -> Draft:
    """In this process, or on Spark; where nobody has said which, on Spark how."""
    if draft.on_spark is False:
        return draft.with_step(Step("runs", "in this process"))
    return draft.with_step(Step("runs" if draft.on_spark else "on Spark", _on_spark(draft)))


def _on_spark(draft: Draft) -> str:
    where = "on Spark, " if draft.on_spark else ""
    query = draft.query
    if not isinstance(query, JoinAggregate):
        if draft.on_spark is None and query.window.by_count and query.window.order is None:
            return "cannot: a window of arrivals needs order=, the column that says which row came first"
        return where + spread(query, ticks_of(query.window)).why
    if not draft.reads:
        return "over buckets by a join column that all streams have, if it tells groups apart; else in one place"
    return where + spread_join(query, bind(query, {read.name: read.schema for read in draft.reads})).why
