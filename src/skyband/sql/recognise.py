"""Which of the problems a statement is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from skyband.problems.across import sql as across
from skyband.problems.joins import sql as joins
from skyband.problems.pairs import sql as pairs
from skyband.problems.rows import sql as objects
from skyband.problems.subscriptions import sql as many
from skyband.sql.asked import Asked
from skyband.sql.statement import Statement


def recognise(statement: Statement, schemas: Mapping[str, pa.Schema]) -> Asked:
    """The query that the statement asks; `schemas` of its inputs, by alias."""
    problem = _problem(statement)
    if statement.bounds is not None and problem is not across:
        statement.refuse("WITH BOUNDS is for scores that come from several streams", None, "Here, leave it out.")
    asked: Asked = problem.ask(statement, schemas)
    return asked


def _problem(statement: Statement) -> Any:
    """The module that knows what the statement asks."""
    select = statement.select
    if select.args.get("group") or any(item.find(exp.AggFunc) for item in select.expressions):
        return joins
    if len(statement.inputs) == 1:
        return objects
    if any(join.side == "FULL" for join in select.args["joins"]):
        return across
    if len(statement.inputs) == 2 and len({one.name for one in statement.inputs}) == 1:
        return pairs
    if many.is_asked(statement):
        return many
    return statement.refuse(
        "Rows of a join can be counted and added up, or ranked: as pairs of one input with itself, or for each of many "
        "queries; this is none of it",
        statement.inputs[1].node,
        "Possible: GROUP BY with aggregates; FROM t AS a, t AS b; streams with FULL JOIN … USING (id); "
        "FROM s [WINDOW …], queries AS q … LIMIT k BY q.id.",
    )
