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
from skyband.dialect.reading import (
    Ranking,
    all_of,
    check_conditions,
    columns_read,
    key_text,
    ranking_of,
    row_text,
    window_of,
    written,
)
from skyband.dialect.statement import Statement
from skyband.expressions.grammar import rewritten
from skyband.expressions.sort_keys import SortKeys, bind_ranking
from skyband.problems.rows.codec import output_of, shown_names
from skyband.problems.rows.query import TopK


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `TopK`. `schemas` by alias."""
    if statement.recall is not None:
        statement.refuse("WITH RECALL is for scores that come from several streams", None, "Here: WITH ERROR 0.001.")
    statement, schemas = with_columns(statement, schemas, list(ranking_of(statement, several=True).per), "LIMIT … BY")
    (one,) = statement.inputs
    schema = schemas[one.alias]
    ranking = ranking_of(statement, several=True)
    per = tuple(column.unnest() for column in ranking.per)
    conditions = statement.conditions
    by = _by(statement, ranking, schema)
    check_conditions(statement, conditions, schema)
    window, lateness = window_of(statement, one, schema)
    query = statement.attempt(
        lambda: TopK(
            k=ranking.k,
            by=by,
            window=window,
            per=[column.name for column in per],
            ascending=isinstance(by, str) and ranking.ascending,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
            error=statement.error,
        )
    )
    items = [item for item in statement.items if item.tree.unnest() != ranking.number]
    for item in items:
        statement.attempt(partial(expressions.bind_value, row_text(item.tree), schema), item.tree)
    needed = columns_read(
        [*(key.tree for key in ranking.keys), *per, *(item.tree for item in items)], one.alias, schema, window
    )
    shown = _shown(statement, query, pa.schema([schema.field(name) for name in needed]), ranking.number)
    return QuerySpec(query, {ONLY: one.rows(all_of(conditions), needed)}, shown)


def _by(statement: Statement, ranking: Ranking, schema: pa.Schema) -> str | tuple[str, ...]:
    """What ranks: a number by itself, or all that stands in ORDER BY."""
    for key in ranking.keys:
        statement.attempt(partial(SortKeys, (key_text(key.tree),), schema), key.tree)
    only = ranking.keys[0]
    if len(ranking.keys) == 1 and only.nulls is None:
        text = row_text(only.tree)
        if expressions.is_number(expressions.bind_value(text, schema).type):
            return text
    return tuple(
        f"{key_text(key.tree)} {'ASC' if key.ascending else 'DESC'}{f' NULLS {key.nulls.name}' if key.nulls else ''}"
        for key in ranking.keys
    )


def _shown(statement: Statement, query: TopK, schema: pa.Schema, number: exp.Expr | None) -> tuple[Shown, ...]:
    """First what every answer has, then what the SELECT list asks for."""
    output = output_of(query, schema, str(query.emit), bind_ranking(query.by, schema).type)
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
        if plain and (tree.name in query.per or (item.is_starred and tree.name == query.by)):
            continue  # shown already
        name = free_name(item.name, taken)
        taken.add(name)
        renamed = rewritten(tree, lambda node: _renamed(node, given))
        shown.append(Shown(name, given[tree.name] if plain else row_text(renamed), is_plain=plain))
    return tuple(shown)


def _renamed(node: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    return exp.column(written(names[node.name])) if isinstance(node, exp.Column) else node
