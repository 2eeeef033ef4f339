"""Finds the problem that a resolved statement belongs to, and builds its query."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from skyband.core.registry import problems
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement


def asked(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The query that the statement asks; `schemas` by alias."""
    able = [each for each in problems().values() if each.takes_partners or not statement.partners]
    problem = next((each for each in able if each.matches(statement)), None)
    if problem is None:
        statement.refuse(
            "This statement joins windows without an equality of columns, and it ranks neither pairs of one input nor "
            "rows for each subscription",
            statement.inputs[1].node,
            "Possible: WHERE a.id = b.id; FROM t AS a, t AS b; streams with FULL JOIN … USING (id); FROM s [WINDOW …], "
            "queries AS q … LIMIT k BY q.id.",
        )
    if statement.bounds is not None and not problem.takes_bounds:
        statement.refuse("WITH BOUNDS is for scores that come from several streams", None, "Here, leave it out.")
    if not problem.takes_part_of_answer and (over := statement.over):
        statement.refuse(
            "Aggregates with OVER work on rows of one input, rows of a join, and groups", over[0], "Leave it out here."
        )
    if not problem.takes_part_of_answer and statement.kept:
        statement.refuse(
            "An outer query can choose from rankings of one input and of groups only",
            statement.kept[0],
            "Leave out the outer query.",
        )
    if not problem.takes_part_of_answer and statement.function is not None:
        statement.refuse(
            f"{statement.function.name} is for rows and groups of one input, and for joins",
            statement.function,
            "Write FROM bid [WINDOW 10 SECONDS EVERY 10 SECONDS].",
        )
    return problem.ask(statement, schemas)
