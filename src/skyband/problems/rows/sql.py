"""SELECT … FROM one input ORDER BY … LIMIT k: the k best rows of a window."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.computing import with_columns
from skyband.dialect.query_spec import ONLY, QuerySpec, Shown
from skyband.dialect.reading import all_of, check_conditions, columns_read, ranking_of, row_text, window_of, written
from skyband.dialect.statement import Statement
from skyband.expressions.grammar import rewritten
from skyband.problems.rows.codec import output_of, shown_names
from skyband.problems.rows.query import TopK


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `TopK`. `schemas` by alias."""
    if statement.recall is not None:
        statement.refuse("WITH RECALL is for scores that come from several streams", None, "Here: WITH ERROR 0.001.")
    statement, schemas = with_columns(statement, schemas, list(ranking_of(statement).per), "LIMIT … BY")
    (one,) = statement.inputs
    schema = schemas[one.alias]
    ranking = ranking_of(statement)
    by, per = ranking.by.unnest(), tuple(column.unnest() for column in ranking.per)
    conditions = statement.conditions
    statement.attempt(lambda: expressions.bind(row_text(by), schema), ranking.by)
    check_conditions(statement, conditions, schema)
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
    items = [item for item in statement.items if item.tree.unnest() != ranking.number]
    for item in items:
        statement.attempt(partial(expressions.bind_value, row_text(item.tree), schema), item.tree)
    needed = columns_read([by, *per, *(item.tree for item in items)], one.alias, schema, window)
    shown = _shown(statement, query, pa.schema([schema.field(name) for name in needed]), ranking.number)
    return QuerySpec(query, {ONLY: one.rows(all_of(conditions), needed)}, shown)


def _shown(statement: Statement, query: TopK, schema: pa.Schema, number: exp.Expr | None) -> tuple[Shown, ...]:
    """First what every answer has, then what the SELECT list asks for."""
    output = output_of(query, schema, str(query.emit), expressions.bind(query.by, schema).type)
    given = shown_names(query, schema, output)
    shown = [Shown(name, name, is_plain=True) for name in output.lead]
    taken = set(output.lead)
    for item in statement.items:
        tree = item.tree.unnest()
        plain = isinstance(tree, exp.Column)
        if tree == number:
            shown.append(Shown(free_name(item.name, taken), "rank", is_plain=True))
            taken.add(shown[-1].name)
            continue
        if plain and (tree.name in query.per or (not item.is_named and tree.name == query.by)):
            continue  # shown already
        name = free_name(item.name, taken)
        taken.add(name)
        renamed = rewritten(tree, lambda node: _renamed(node, given))
        shown.append(Shown(name, given[tree.name] if plain else row_text(renamed), is_plain=plain))
    return tuple(shown)


def _renamed(node: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return exp.column(written(names[node.name])) if isinstance(node, exp.Column) else node
