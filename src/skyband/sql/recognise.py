"""Finds what a statement asks: its query, and what is asked of the lines of that one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from skyband.core.registry import problem_of
from skyband.dialect.asking import asked
from skyband.dialect.lines import WINDOW, asked_of_lines, lines_of
from skyband.dialect.query_spec import LINES, ONLY, QuerySpec, shown_schema
from skyband.dialect.resolving import resolved
from skyband.dialect.statement import Statement
from skyband.sql.unions import with_unions

Schemas = Mapping[str, pa.Schema]


def recognise(statement: Statement, schemas: Schemas) -> QuerySpec:
    """The query that the statement asks; `schemas` of its inputs, by the names they were given under, in any case."""
    if statement.is_plain or (statement.takes_any and statement.explain is not None):
        statement.refuse(
            "This statement neither ranks nor groups, so there is no continuous query",
            statement.inputs[0].node,
            "sb.sql answers it row by row. For a continuous query, add a window: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    by_name = with_unions(statement.innermost, schemas)
    if statement.inner is not None:
        return _around(statement, recognise(statement.inner, schemas), by_name)
    statement, by_alias = resolved(statement, {one.name: by_name[one.name.lower()] for one in statement.inputs})
    spec = asked(statement, by_alias)
    statement.check_taken()
    return spec


def _around(statement: Statement, inner: QuerySpec, schemas: Schemas) -> QuerySpec:
    """What a statement asks of the lines that another one shows."""
    lines = lines_of(statement, inner, _answer(inner, schemas))
    (one,) = statement.inputs
    (step,) = one.source.steps
    columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in lines.schema.names if name != WINDOW]
    shown = exp.Select(expressions=columns, from_=exp.From(this=exp.Table(this=exp.to_identifier(LINES))))
    source = lines.source.then(replace(step, select=shown))
    statement = replace(statement, inputs=(replace(one, source=source),))
    statement, by_alias = resolved(statement, {LINES: lines.schema})
    spec = asked_of_lines(lines, statement, by_alias)
    statement.check_taken()
    return spec


def _answer(spec: QuerySpec, schemas: Schemas) -> pa.Schema:
    """The columns of the answer to what is asked last."""
    taken = {called: rows.taken(rows.schema(schemas[rows.name.lower()]))[1] for called, rows in spec.rows.items()}
    answer: pa.Schema = problem_of(spec.query).codec(spec.query, taken.get(ONLY, taken)).output_schema
    return answer if spec.then is None else _answer(spec.then, {LINES: shown_schema(spec.shown, answer)})
