"""Finds the problem that a resolved statement belongs to, and builds its query."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from skyband.core.registry import problems
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement


def asked(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The query that the statement asks; `schemas` by alias."""
    problem = next((each for each in problems().values() if each.matches(statement)), None)
    if problem is None:
        statement.refuse(
            "A join of windows sets columns equal; without that, pairs of one input with itself can be ranked, or rows "
            "for each subscription; this statement does none of these",
            statement.inputs[1].node,
            "Possible: WHERE a.id = b.id; FROM t AS a, t AS b; streams with FULL JOIN … USING (id); FROM s [WINDOW …], "
            "queries AS q … LIMIT k BY q.id.",
        )
    if statement.bounds is not None and not problem.takes_bounds:
        statement.refuse("WITH BOUNDS is for scores that come from several streams", None, "Here, leave it out.")
    if not problem.takes_part_of_answer and (statement.kept or statement.shows_only_what_is_named):
        statement.refuse(
            "Only rows of one input and groups can be ranked and then chosen from, or shown without the rest of the "
            "answer",
            statement.kept[0] if statement.kept else statement.function,
            "Leave out the outer query, and window_start and window_end, which the answer has anyway.",
        )
    return problem.ask(statement, schemas)
