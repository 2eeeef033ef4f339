"""SELECT … FROM one input ORDER BY … LIMIT k: the k best rows of a window."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.query_spec import ONLY, QuerySpec, Rows, Shown
from skyband.dialect.reading import (
    all_of,
    check_columns,
    columns_read,
    ranking_of,
    row_text,
    window_of,
    with_aliases_resolved,
)
from skyband.dialect.statement import Statement
from skyband.problems.rows.codec import output_of, shown_names
from skyband.problems.rows.query import TopK


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `TopK`. `schemas` by alias."""
    (one,) = statement.inputs
    schema = schemas[one.alias]
    if statement.recall is not None:
        statement.refuse("WITH RECALL is for scores that come from several streams", None, "Here: WITH ERROR 0.001.")
    ranking = ranking_of(statement)
    by = with_aliases_resolved(statement, ranking.by)
    per = tuple(with_aliases_resolved(statement, column).unnest() for column in ranking.per)
    conditions = statement.conditions
    for tree in (by, *per, *conditions, *statement.select.expressions):
        check_columns(statement, tree, {one.alias: schema})
    for column in per:
        if not isinstance(column, exp.Column):
            statement.refuse("Rows are ranked for each value of columns, not of expressions", column)
    statement.attempt(lambda: expressions.bind(row_text(by), schema), ranking.by)
    for condition in conditions:
        check = partial(expressions.bind_condition, row_text(condition), schema, used_as="WHERE")
        statement.attempt(check, condition)
    window, lateness = window_of(statement, one, schema)
    query = statement.attempt(
        lambda: TopK(
            k=ranking.k,
            by=row_text(by),
            window=window,
            per=[column.name for column in per],
            ascending=ranking.ascending,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
            error=statement.error,
        )
    )
    needed = _needed(statement, query, by, schema)
    shown = _shown(statement, query, pa.schema([schema.field(name) for name in needed]))
    return QuerySpec(query, {ONLY: Rows(one.name, all_of(conditions), needed)}, shown)


def _needed(statement: Statement, query: TopK, by: exp.Expr, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that the query and the SELECT list read, as they stand in the input."""
    if any(item.is_star for item in statement.select.expressions):
        return tuple(schema.names)
    per = [exp.column(name) for name in query.per]
    trees = [tree.unalias() for tree in (by, *per, *statement.select.expressions)]
    return columns_read(trees, statement.inputs[0].alias, schema, query.window)


def _shown(statement: Statement, query: TopK, schema: pa.Schema) -> tuple[Shown, ...]:
    """First what every answer has, then what the SELECT list asks for."""
    output = output_of(query, schema, str(query.emit), expressions.bind(query.by, schema).type)
    given = shown_names(query, schema, output)
    shown = [Shown(name, name, is_plain=True) for name in output.lead]
    taken = set(output.lead)
    for item in statement.select.expressions:
        named = [exp.column(name) for name in schema.names] if item.is_star else [item]
        for one in named:
            tree = one.unalias().unnest()
            plain = isinstance(tree, exp.Column)
            if plain and (tree.name in query.per or (one is tree and tree.name == query.by)):
                continue  # shown already
            name = free_name(one.alias_or_name or tree.sql(dialect="spark"), taken)
            taken.add(name)
            renamed = tree.transform(lambda node: _renamed(node, given))
            shown.append(Shown(name, given[tree.name] if plain else row_text(renamed), is_plain=plain))
    return tuple(shown)


def _renamed(node: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return exp.column(names[node.name]) if isinstance(node, exp.Column) else node
