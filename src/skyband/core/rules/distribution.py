"""Rule: where it runs, and on Spark over which buckets."""

from __future__ import annotations

from skyband.core.draft import Draft, Step
from skyband.core.registry import problem_of


def distribution(draft: Draft) -> Draft:
    """In this process, or on Spark; where nobody has said which, on Spark how."""
    if draft.on_spark is False:
        return draft.with_step(Step("runs", "in this process"))
    problem = problem_of(draft.query)
    if draft.on_spark is None and (refused := problem.refuses_spark(draft.query)):
        return draft.with_step(Step("on Spark", f"cannot: {refused}"))
    why = problem.distribution(draft.query, draft.schemas).why
    parts = () if draft.sieve is None else (Step("sieve", draft.sieve),)
    return draft.with_step(Step("runs", f"on Spark, {why}", parts) if draft.on_spark else Step("on Spark", why))
