"""Which of the problems a statement is."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from skyband.sql import objects
from skyband.sql.asked import Asked
from skyband.sql.statement import Statement


def recognise(statement: Statement, schemas: Mapping[str, pa.Schema]) -> Asked:
    """The query that the statement asks; `schemas` of its inputs, by alias."""
    select = statement.select
    if select.args.get("group") or any(
        item.find(exp.AggFunc) for item in select.expressions if not item.find(exp.Window)
    ):
        statement.refuse("GROUP BY cannot be answered yet", select.args.get("group"))
    if len(statement.inputs) == 1:
        return objects.ask(statement, schemas)
    return statement.refuse("Joins cannot be answered yet", statement.inputs[1].node)
