"""Rule: find the problem of the query."""

from __future__ import annotations

from skyband.core.draft import Draft, Step
from skyband.core.registry import problem_of


def problem(draft: Draft) -> Draft:
    """Said by the kind of the query; sb.sql finds the kind by how a statement is built."""
    return draft.with_step(Step("problem", problem_of(draft.query).summary(draft.query)))
