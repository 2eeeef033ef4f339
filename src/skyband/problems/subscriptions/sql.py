"""Turns SELECT … FROM a stream, queries q ORDER BY … LIMIT k BY q.id into the query that it asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.columns import settled
from skyband.dialect.computing import with_row_values
from skyband.dialect.query_spec import ONLY, QuerySpec, Shown
from skyband.dialect.ranking import ranking_of
from skyband.dialect.reading import all_of, check_value, owners_of, shown_columns, window_of, written
from skyband.dialect.statement import Input, Statement
from skyband.dialect.window_bounds import check_whole, is_bound
from skyband.expressions import subscriptions
from skyband.expressions.grammar import rewritten
from skyband.problems.subscriptions.codec import kept_schema, output_of
from skyband.problems.subscriptions.query import TopKForEach

_POSSIBLE = "Write for example FROM taxis [WINDOW 100 ROWS], people AS q … LIMIT 1 BY q.id."


def matches(statement: Statement) -> bool:
    """Does the statement rank the rows of one stream for each row of a table?"""
    if statement.is_grouped or statement.has_full_join or statement.window is not None:
        return False
    windows = [one.window is not None for one in statement.inputs]
    return sorted(windows) == [False, True] and len({one.name for one in statement.inputs}) == 2


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """Turn the statement into a `TopKForEach`. `schemas` are those of its inputs, by alias.

    The query has no queries yet: they are the rows of the input without a window.
    """
    stream, _ = _in_order(statement)
    statement, schemas = with_row_values(statement, schemas, filtered=stream.alias)
    stream, asking = _in_order(statement)
    rows, queries = schemas[stream.alias], schemas[asking.alias]
    statement.check_exact("Skyband always answers subscriptions exactly")
    numbered, counting = _with_a_number(statement)
    ranking = ranking_of(numbered)
    by = ranking.by.unnest()
    key = _key(statement, ranking.per, asking)
    window, lateness = window_of(statement, stream, rows, sizes=True)
    said = stream.window.args if stream.window else {}
    sizes, slides = said.get("column"), said.get("often")
    of_rows = [one for one in statement.conditions if not _reads(one, asking)]
    others = [one for one in statement.conditions if _reads(one, asking)]
    text = _over(by, asking)
    for one in others:  # each by itself, so that an error is about it
        whole = subscriptions.filtered("0", _over(one, asking))
        statement.attempt(lambda whole=whole: subscriptions.bind(whole, False, rows, queries), one)  # type: ignore[misc]
    if counting is not None:
        _check_counts(statement, counting, asking, queries)
    query = statement.attempt(
        lambda: TopKForEach(
            queries=queries.empty_table(),
            k=ranking.k if counting is None else _column(statement, counting, asking, queries),
            by=text,
            window=window,
            key=key,
            size=None if sizes is None else _column(statement, sizes, asking, queries),
            every=None if slides is None else _column(statement, slides, asking, queries),
            where=" AND ".join(f"({_over(one, asking)})" for one in others) or None,
            ascending=ranking.ascending,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        ),
        ranking.by,
    )
    statement.attempt(lambda: subscriptions.bind(query.score, ranking.ascending, rows, queries), ranking.by)
    check_whole(statement, str(query.emit), is_cut=False)
    shown = _shown(statement, query, rows, asking)
    return QuerySpec(query, {ONLY: stream.rows(all_of(of_rows), None)}, shown, queries=asking.rows(None, None))


def _in_order(statement: Statement) -> list[Input]:
    """The stream, and the queries about it."""
    return sorted(statement.inputs, key=lambda one: one.window is None)


def _with_a_number(statement: Statement) -> tuple[Statement, exp.Column | None]:
    """If a column says how many rows are shown (LIMIT q.k, ROW_NUMBER() … <= q.k), put a number in its place.

    Returns the statement, and that column.
    """
    select = statement.select.copy()
    limit, qualify = (select.args.get(name) for name in ("limit", "qualify"))
    holder = qualify.this if qualify else limit
    if not isinstance(holder, (exp.Limit, exp.LTE)) or not isinstance(holder.expression, exp.Column):
        return statement, None
    column = holder.expression
    holder.set("expression", exp.Literal.number(1))
    return replace(statement, select=select), column


def _check_counts(statement: Statement, column: exp.Column, asking: Input, queries: pa.Schema) -> None:
    """Raise unless the column has whole numbers."""
    name = settled(statement, column, {asking.alias: queries}).name
    if not pa.types.is_integer(queries.field(name).type):
        statement.refuse(f"LIMIT takes whole numbers, but {asking.alias}.{name} is {queries.field(name).type}", column)


def _column(statement: Statement, column: exp.Column, asking: Input, queries: pa.Schema) -> str:
    """A column of the queries, written as `TopKForEach` writes it: q.name."""
    return f"{subscriptions.PREFIX}{settled(statement, column, {asking.alias: queries}).name}"


def _key(statement: Statement, per: tuple[exp.Expr, ...], asking: Input) -> list[str]:
    columns = [one.unnest() for one in per]
    if not columns:
        statement.refuse("The statement does not ask for a ranking for each query", asking.node, _POSSIBLE)
    for column in columns:
        if not isinstance(column, exp.Column) or column.table != asking.alias:
            statement.refuse(
                f"A ranking for each query must be BY columns of {asking.name}",
                column,
                f"{_POSSIBLE} {_as_join(statement, asking)}".rstrip(),
            )
    return [str(column.name) for column in columns]


def _as_join(statement: Statement, asking: Input) -> str:
    """Say how to write the statement as a join, if it equates columns of both inputs."""
    equal = [one for one in statement.conditions if isinstance(one, exp.EQ) and len(owners_of(one)) == 2]
    return f"For rows of a join, write JOIN {asking.node.sql(dialect='spark')} ON …." if equal else ""


def _reads(tree: exp.Expr, asking: Input) -> bool:
    """Does the expression read a column of the query?"""
    return any(column.table == asking.alias for column in tree.find_all(exp.Column))


def _over(tree: exp.Expr, asking: Input) -> str:
    """The expression as `TopKForEach` writes it: the query's own columns are q.name."""

    def rename(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(written(node.name), "q" if node.table == asking.alias else None)

    return rewritten(tree.unnest(), rename).sql(dialect="spark")


def _shown(statement: Statement, query: TopKForEach, rows: pa.Schema, asking: Input) -> tuple[Shown, ...]:
    """The output columns: those that every answer has, if the statement does not name the window itself, then the row
    columns that the SELECT list names."""
    output = output_of(query, rows, str(query.emit))
    given = dict(zip(kept_schema(query, rows).names, output.row_names, strict=True))
    is_whole = not statement.shows_only_what_is_named

    def rename(node: exp.Expr) -> exp.Expr:
        if is_bound(node):
            return exp.column(node.unnest().name)
        if not isinstance(node, exp.Column):
            return node
        is_key = node.table == asking.alias
        called = output.lead[query.key.index(node.name)] if is_key else given.get(node.name, "score")
        return exp.column(str(called), quoted=True)

    items = []
    for item in statement.items:
        tree = item.tree.unnest()
        read = {column.name for column in tree.find_all(exp.Column) if column.table == asking.alias}
        is_there = is_whole and isinstance(tree, exp.Column) and item.name.casefold() == tree.name.casefold()
        if read and (item.is_starred or (is_there and tree.name in query.key)):
            continue  # the key of a query is shown already, and a star stands for the row's columns
        if not read <= set(query.key):
            statement.refuse(
                f"Here each row of {asking.name} asks for a ranking, and only {', '.join(query.key)} is shown",
                tree,
                _as_join(statement, asking),
            )
        items.append((item.name, rewritten(tree, rename)))
        check_value(statement, items[-1][1], output.schema, item.tree)
    return shown_columns(output.lead if is_whole else (), items)
