"""SELECT … FROM one input ORDER BY … LIMIT k: the k best rows of a window."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.dialect.columns import Item
from skyband.dialect.computing import with_columns
from skyband.dialect.query_spec import ONLY, QuerySpec, Shown
from skyband.dialect.ranking import Ranking, ranking_of
from skyband.dialect.reading import (
    all_of,
    check_conditions,
    columns_read,
    forget_after,
    key_text,
    only,
    row_text,
    shown_columns,
    window_of,
    written,
)
from skyband.dialect.statement import Statement
from skyband.dialect.window_bounds import bound_in, check_whole, is_bound
from skyband.expressions.grammar import rewritten
from skyband.expressions.sort_keys import SortKeys, bind_ranking
from skyband.problems.rows.codec import output_of, shown_names
from skyband.problems.rows.query import TopK


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """Turn the statement into a `TopK`. `schemas` are those of its inputs, by alias."""
    if statement.recall is not None:
        statement.refuse(
            "WITH RECALL is for scores that come from several streams", "RECALL", "Here: WITH ERROR 0.001."
        )
    read = partial(ranking_of, several=True, ties=True)
    said = "PARTITION BY" if statement.select.args.get("qualify") else "LIMIT … BY"
    statement, schemas = with_columns(statement, schemas, list(read(statement).per), said)
    (one,) = statement.inputs
    schema = schemas[one.alias]
    ranking = read(statement)
    per = tuple(column.unnest() for column in ranking.per)
    conditions = statement.conditions
    by = _by(statement, ranking, schema)
    check_conditions(statement, conditions, schema)
    window, lateness = window_of(statement, one, schema, forgets=True)
    forget = forget_after(statement, one, window, per, schema)
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
            ties=ranking.ties,  # type: ignore[arg-type]
            forget_after=forget,
        )
    )
    check_whole(statement, str(query.emit), is_cut=ranking.first > 1)
    trees = [item.tree for item in statement.items if item.tree.unnest() != ranking.number]
    for tree in trees:
        if bound_in(tree) is None:
            statement.attempt(partial(expressions.bind_value, row_text(tree), schema), tree)
    needed = columns_read(
        [*(key.tree for key in ranking.keys), *per, *trees, *statement.kept], one.alias, schema, window
    )
    answer = _Answer(query, only(schema, needed), ranking.number)
    shown = answer.shown(statement)
    return QuerySpec(query, {ONLY: one.rows(all_of(conditions), needed)}, shown, kept=answer.kept(statement, ranking))


def _by(statement: Statement, ranking: Ranking, schema: pa.Schema) -> str | tuple[str, ...]:
    """The query's `by`: a single number as an expression, or else all sort keys."""
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


class _Answer:
    """The columns of a query's answer, and the part of it that a statement shows."""

    def __init__(self, query: TopK, schema: pa.Schema, number: exp.Expr | None) -> None:
        self._query, self._number = query, number
        self._output = output_of(query, schema, str(query.emit), bind_ranking(query.by, schema).type)
        self._given = shown_names(query, schema, self._output)

    def shown(self, statement: Statement) -> tuple[Shown, ...]:
        """The columns that the statement shows: those that every answer begins with, then those of the SELECT list; or
        only the latter, if the statement says so."""
        is_whole = not statement.shows_only_what_is_named
        items = []
        for item in statement.items:
            tree = item.tree.unnest()
            if is_whole and isinstance(tree, exp.Column) and self._is_there(tree, item):
                continue
            made = self._over_answer(tree)
            statement.attempt(partial(expressions.bind_value, row_text(made), self._output.schema), item.tree)
            items.append((item.name, made))
        return shown_columns(self._output.lead if is_whole else (), items)

    def _is_there(self, column: exp.Column, item: Item) -> bool:
        """Does every answer show this column already, under this name?"""
        if column.name in self._query.per:
            return item.name.casefold() == column.name.casefold()
        return item.is_starred and column.name == self._query.by

    def kept(self, statement: Statement, ranking: Ranking) -> str | None:
        """The condition for the rows that the statement shows: from outer queries, and from a rank on (OFFSET)."""
        conditions = [self._over_answer(tree) for tree in statement.kept]
        if ranking.first > 1:
            conditions.append(exp.GTE(this=exp.column("rank"), expression=exp.Literal.number(ranking.first)))
        check_conditions(statement, conditions, self._output.schema)
        return all_of(conditions)

    def _over_answer(self, tree: exp.Expr) -> exp.Expr:
        """Rewrite an expression over input columns to one over the columns of the answer."""

        def write(node: exp.Expr) -> exp.Expr:
            if node.unnest() == self._number:
                return exp.column("rank")
            if is_bound(node):
                return exp.column(node.unnest().name)
            return exp.column(written(self._given[node.name])) if isinstance(node, exp.Column) else node

        return rewritten(tree, write)
