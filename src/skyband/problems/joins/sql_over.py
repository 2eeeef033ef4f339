"""Aggregates OVER the rows, or the groups, of a window, beside each of them.

    SELECT symbol, price / AVG(price) OVER (PARTITION BY symbol) AS relative FROM trades [WINDOW …]
    SELECT symbol, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM trades [WINDOW …] GROUP BY symbol

The rows or groups of a window become lines (see `dialect.lines`), and each aggregate becomes a column of the lines
before anything else is asked of them: they are grouped once more, and each line gets what is said of its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.dialect.asking import asked
from skyband.dialect.computing import with_columns
from skyband.dialect.lines import WINDOW, placed_column
from skyband.dialect.query_spec import LINES, OverLines, QuerySpec, View
from skyband.dialect.reading import all_of, check_conditions, quoted
from skyband.dialect.statement import Statement
from skyband.expressions.grammar import parts_of, rewritten
from skyband.problems.joins import sql, sql_rows
from skyband.problems.joins.output import answer_schema
from skyband.problems.joins.query import JoinAggregate, StreamInput
from skyband.problems.joins.sql_aggregates import counted, labelled, of_columns, without_filters
from skyband.windows import tumbling

Schemas = Mapping[str, pa.Schema]

_CLOCK: Final = "clock"  # the same for all lines, which are in one window


def ask(statement: Statement, schemas: Schemas) -> QuerySpec:
    """The statement with aggregates OVER what a window shows. `schemas` by alias."""
    if statement.is_grouped:
        return sql.ask(statement, schemas)
    statement = without_filters(statement)
    if statement.inputs[0].name != LINES:
        return sql_rows.asked_of_rows(statement, schemas)
    statement = of_columns(statement, schemas)
    statement, schemas = with_columns(statement, schemas, _partitions(statement), "PARTITION BY")
    statement, schemas = with_columns(statement, schemas, counted(statement), "COUNT(DISTINCT …)")
    statement, schemas = with_columns(statement, schemas, labelled(statement, schemas), "MIN and MAX of strings")
    statement, schemas = _filtered(statement, schemas)
    for partition in dict.fromkeys(_partition_of(window) for window in statement.over):
        statement, schemas = _with_aggregates(statement, schemas, partition)
    statement = _without_qualify(statement)
    if any(statement.select.args.get(name) for name in sql.RANKING):
        return asked(statement, schemas)
    return sql_rows.rows(statement, schemas)[0]


def _partitions(statement: Statement) -> list[exp.Expr]:
    return [part for window in statement.over for part in window.args.get("partition_by") or ()]


def _partition_of(window: exp.Window) -> tuple[str, ...]:
    """The columns that tell the groups of an aggregate apart; lines of two windows are never in one."""
    return (WINDOW, *sorted({column.unnest().name for column in window.args.get("partition_by") or ()}))


def _filtered(statement: Statement, schemas: Schemas) -> tuple[Statement, Schemas]:
    """The statement over the lines that meet its conditions, which come before aggregates."""
    conditions, schema = statement.conditions, schemas[_alias(statement)]
    if not conditions:
        return statement, schemas
    check_conditions(statement, conditions, schema)
    columns = tuple((name, name) for name in schema.names)
    select = statement.select.copy()
    select.set("where", None)
    view = View(all_of(conditions), columns, schema, is_plain=False)
    return _seen_through(replace(statement, select=select), view), schemas


def _with_aggregates(statement: Statement, schemas: Schemas, partition: tuple[str, ...]) -> tuple[Statement, Schemas]:
    """The statement with a column of the lines in place of each aggregate over these groups."""
    schema = schemas[_alias(statement)]
    names: dict[exp.Expr, str] = {}
    taken = {*schema.names, _CLOCK}
    texts: dict[str, str] = {}
    for window in statement.over:
        if _partition_of(window) == partition and window not in names:
            aggregates = sql.Aggregates(_only(statement, window.this), schemas, [])
            ((_, text),) = aggregates.texts.items()
            names[window] = free_name(text, taken)
            taken.add(names[window])
            texts[names[window]] = text
    query = JoinAggregate(
        inputs={LINES: StreamInput(tumbling(1, on=_CLOCK))},
        aggregates=texts,
        group_by=[quoted(name) for name in partition],
    )
    given = schema.append(pa.field(_CLOCK, pa.int64()))
    answer = statement.attempt(lambda: answer_schema(query, {LINES: given}))
    whole = pa.schema([*schema, *(answer.field(name) for name in texts)])

    def put(node: exp.Expr) -> exp.Expr:
        return placed_column(names[node], _alias(statement), node) if node in names else node

    made = replace(
        statement,
        select=cast(exp.Select, rewritten(statement.select, put)),
        items=tuple(replace(item, tree=rewritten(item.tree, put)) for item in statement.items),
        kept=tuple(rewritten(condition, put) for condition in statement.kept),
    )
    return _seen_through(made, OverLines(partition, _CLOCK, query, whole)), {**schemas, _alias(statement): whole}


def _only(statement: Statement, aggregate: exp.Expr) -> Statement:
    """The statement as if nothing but this aggregate were asked for."""
    (item, *_) = statement.items
    select = exp.Select(expressions=[aggregate.copy()])
    return replace(statement, select=select, items=(replace(item, name=aggregate.sql(), tree=aggregate),), kept=())


def _without_qualify(statement: Statement) -> Statement:
    """QUALIFY without conditions on the aggregates: they choose lines, if there is a rank after that has been given."""
    qualify = statement.select.args.get("qualify")
    if qualify is None:
        return statement
    parts = parts_of([qualify.this])
    ranks = [part for part in parts if part.find(exp.Window) is not None]
    others = [part for part in parts if part.find(exp.Window) is None]
    select = statement.select.copy()
    select.set("qualify", exp.Qualify(this=exp.and_(*ranks)) if ranks else None)
    return replace(statement, select=select, kept=(*statement.kept, *others)) if ranks else _where(statement, others)


def _where(statement: Statement, conditions: list[exp.Expr]) -> Statement:
    select = statement.select.copy()
    select.set("qualify", None)
    select.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
    return replace(statement, select=select)


def _alias(statement: Statement) -> str:
    (one,) = statement.inputs
    return one.alias


def _seen_through(statement: Statement, view: View | OverLines) -> Statement:
    (one,) = statement.inputs
    return replace(statement, inputs=(replace(one, views=(*one.views, view)),))
