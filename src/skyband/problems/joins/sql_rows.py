"""SELECT … FROM a [WINDOW …] JOIN b [WINDOW …] ON …, without GROUP BY: the rows of a join of windows.

Rows that agree in all columns that are read are one group, and are shown as often as they are counted. So any plan of
the joins gives them, and they come and go as windows slide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from skyband.core.emit import gives_windows
from skyband.core.encoding.output import free_name
from skyband.dialect.columns import Item
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.reading import check_conditions, quoted, row_text
from skyband.dialect.statement import Statement
from skyband.dialect.window_bounds import check_whole, with_bounds
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.columns import LEAD
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.sql import Aggregates, bounds_of, conditions_of, inputs_of, rows_of, shown_of

_CLAUSES = ("order", "limit", "qualify", "having")


def matches(statement: Statement) -> bool:
    """Does it ask for the rows of a join of windows, as they are?"""
    streams = [one for one in statement.inputs if one.window is not None or statement.window is not None]
    if statement.is_grouped or statement.has_full_join or len(streams) < 2:
        return False
    if any(statement.select.args.get(clause) for clause in _CLAUSES) or statement.kept:
        return False
    return any(isinstance(each, exp.EQ) and len(_owners(each)) == 2 for each in statement.conditions)


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `JoinAggregate` whose groups are its different rows. `schemas` by alias."""
    if statement.error is not None or statement.recall is not None:
        statement.refuse("Joins are exact: there is no error to allow")
    statement = replace(
        statement, items=tuple(item for item in statement.items if not _is_shown_before(statement, item))
    )
    of_several: list[exp.Expr] = []
    filters, on = conditions_of(statement, of_several=of_several)
    trees = [*(item.tree for item in statement.items), *of_several]
    read = [column for tree in trees for column in tree.find_all(exp.Column) if not column.is_star]
    groups = Aggregates(statement, schemas, [exp.column(one.this.copy(), one.args["table"].copy()) for one in read])
    count = free_name("count", {*LEAD, *(column.name for column in groups.groups)})
    inputs, lateness = inputs_of(statement, schemas, filters)
    having = [groups.over_answer(condition) for condition in of_several]
    query = statement.attempt(
        lambda: JoinAggregate(
            inputs=inputs,
            aggregates={count: "COUNT(*)"},
            on=on,
            group_by=[f"{column.table}.{quoted(column.name)}" for column in groups.groups],
            having=" AND ".join(f"({row_text(each)})" for each in having) or None,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        )
    )
    if not gives_windows(query.emit):
        statement.refuse(
            "Rows of a join are shown as windows close, all of each",
            statement.inputs[1].node,
            "Say how often: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    rows = rows_of(statement, query, schemas, filters)
    narrow = {
        alias: pa.schema([schemas[alias].field(name) for name in each.columns or ()]) for alias, each in rows.items()
    }
    output = statement.attempt(lambda: JoinsCodec(query, narrow).output_schema)
    check_conditions(statement, having, output)
    check_whole(statement, str(query.emit), is_cut=False)
    bounds = bounds_of(statement, inputs)
    shown = [(item.name, with_bounds(groups.over_answer(item.tree), bounds)) for item in statement.items]
    return QuerySpec(query, rows, shown_of(statement, output, query, shown), repeated=count)


def _is_shown_before(statement: Statement, item: Item) -> bool:
    """Is it a column that two inputs have by USING, which a star shows once?"""
    column = item.tree.unnest()
    for join, one in zip(statement.joins, statement.inputs[1:], strict=True):
        if item.is_starred and isinstance(column, exp.Column) and column.table == one.alias:
            return column.name.lower() in (join.meta.get("using") or ())
    return False


def _owners(tree: exp.Expr) -> set[str]:
    return {column.table for column in tree.find_all(exp.Column)}
