"""Finds the problem that a statement belongs to, and builds its query."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from skyband.core.registry import problems
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.resolving import resolved
from skyband.dialect.statement import Statement
from skyband.sql.unions import with_unions


def recognise(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The query that the statement asks; `schemas` of its inputs, by the names they were given under, in any case."""
    if statement.is_plain:
        statement.refuse(
            "This neither ranks nor groups, so there is no query to keep running",
            statement.inputs[0].node,
            "sb.sql answers it row by row; a window makes a query of it: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    by_name = with_unions(statement, schemas)
    statement, by_alias = resolved(statement, {one.name: by_name[one.name.lower()] for one in statement.inputs})
    problem = next((each for each in problems().values() if each.matches(statement)), None)
    if problem is None:
        statement.refuse(
            "A join can be shown as windows close, aggregated, or ranked as pairs of one input with itself, or for "
            "each subscription; this statement does none of these",
            statement.inputs[1].node,
            "Possible: no ORDER BY; GROUP BY with aggregates; FROM t AS a, t AS b; streams with FULL JOIN … USING "
            "(id); FROM s [WINDOW …], queries AS q … LIMIT k BY q.id.",
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
    spec = problem.ask(statement, by_alias)
    statement.check_taken()
    return spec
