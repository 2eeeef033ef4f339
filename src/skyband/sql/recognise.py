"""Which of the problems a statement is."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from skyband.sql import across, joins, many, objects, pairs
from skyband.sql.asked import Asked
from skyband.sql.statement import Statement


def recognise(statement: Statement, schemas: Mapping[str, pa.Schema]) -> Asked:
    """The query that the statement asks; `schemas` of its inputs, by alias."""
    select = statement.select
    if select.args.get("group") or any(item.find(exp.AggFunc) for item in select.expressions):
        return joins.ask(statement, schemas)
    if len(statement.inputs) == 1:
        return objects.ask(statement, schemas)
    if any(join.side == "FULL" for join in select.args["joins"]):
        return across.ask(statement, schemas)
    if len(statement.inputs) == 2 and len({one.name for one in statement.inputs}) == 1:
        return pairs.ask(statement, schemas)
    if many.is_asked(statement):
        return many.ask(statement, schemas)
    return statement.refuse(
        "Rows of a join can be counted and added up, or ranked: as pairs of one input with itself, or for each of many "
        "queries; this is none of it",
        statement.inputs[1].node,
        "Possible: GROUP BY with aggregates; FROM t AS a, t AS b; streams with FULL JOIN … USING (id); "
        "FROM s [WINDOW …], queries AS q … LIMIT k BY q.id.",
    )
