"""Expressions where a query takes columns: they become columns of their input before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.clauses import RANKS
from skyband.dialect.query_spec import View
from skyband.dialect.reading import owners_of, row_text
from skyband.dialect.statement import Input, Statement
from skyband.expressions.days import in_days
from skyband.expressions.grammar import READ_IN_ROWS, rewritten
from skyband.expressions.row_functions import READ as ROW_FUNCTIONS

Schemas = Mapping[str, pa.Schema]


def with_columns(statement: Statement, schemas: Schemas, trees: list[exp.Expr], what: str) -> tuple[Statement, Schemas]:
    """The statement with a column in place of each of these expressions that is none yet, wherever it stands; `what`
    asks for them."""
    for tree in dict.fromkeys(tree.unnest() for tree in trees):
        if not isinstance(tree, exp.Column):
            statement, schemas = _with_column(statement, schemas, tree, what)
    return statement, schemas


def with_row_values(statement: Statement, schemas: Schemas, *, filtered: str = "") -> tuple[Statement, Schemas]:
    """The statement with a column in place of what its clauses compute of one row by a function of rows alone, where an
    expression is over two rows: UPPER(a.symbol), a.ts + INTERVAL 5 MINUTES, a.symbol LIKE 'O%'. `filtered`: an input
    whose own conditions are not over two rows."""
    statement = _with_days_apart(statement)
    while (tree := _row_value(statement, filtered)) is not None:
        statement, schemas = _with_column(statement, schemas, tree, "An expression over two rows", listed=False)
    return statement, schemas


def _with_days_apart(statement: Statement) -> Statement:
    """The statement with DATEDIFF(b.d, a.d) as the difference of two numbers, each of one row."""

    def put(node: exp.Expr) -> exp.Expr:
        return in_days(node) if isinstance(node, exp.DateDiff) and len(owners_of(node)) > 1 else node

    if statement.select.find(exp.DateDiff) is None:
        return statement
    kept = tuple(rewritten(condition, put) for condition in statement.kept)
    return replace(statement, select=cast(exp.Select, rewritten(statement.select, put)), kept=kept)


def _row_value(statement: Statement, filtered: str) -> exp.Expr | None:
    """The first part of the clauses that is one, and as much as there is of it."""
    clauses = (statement.select.args.get(name) for name in ("qualify", "order", "limit"))
    waiting = [one for one in statement.conditions if owners_of(one) != {filtered}]
    waiting += [one for one in clauses if one is not None]
    while waiting:
        node = waiting.pop()
        is_value = isinstance(node, exp.Condition) and len(owners_of(node)) == 1 and not node.find(exp.Window, *RANKS)
        if is_value and any(map(_is_of_a_row, node.walk())):
            return node
        waiting += node.iter_expressions()
    return None


def _is_of_a_row(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast) and isinstance(node.this.unnest(), exp.Literal):
        return False  # TIMESTAMP '2024-01-31 12:00:00'
    return type(node) in ROW_FUNCTIONS or (type(node) in READ_IN_ROWS and not isinstance(node, _OF_TYPES))


_OF_TYPES: Final = (exp.Var, exp.DataType, exp.DataTypeParam)


def _with_column(
    statement: Statement, schemas: Schemas, tree: exp.Expr, what: str, *, listed: bool = True
) -> tuple[Statement, Schemas]:
    """`listed`: in the SELECT list, too."""
    owners = owners_of(tree)
    if len(owners) != 1:
        statement.refuse(f"{what} takes columns, and expressions over the columns of one input", tree)
    (alias,) = owners
    mine, schema = next(one for one in statement.inputs if one.alias == alias), schemas[alias]
    value = statement.attempt(lambda: expressions.bind_value(row_text(tree), schema), tree)
    name = free_name(row_text(tree), set(schema.names))
    whole = schema.append(pa.field(name, value.type))
    view = View(None, (*((column, column) for column in schema.names), (name, row_text(tree))), whole, is_plain=False)
    # Of the same rows by another name, it is the same column.
    alike = [one.alias for one in statement.inputs if one.is_same_as(mine) and one.views == mine.views]
    columns = [(_of(tree, other), exp.column(name, other, quoted=True)) for other in alike]

    def put(node: exp.Expr) -> exp.Expr:
        return next((column.copy() for computed, column in columns if node.unnest() == computed), node)

    items = statement.items
    if listed:
        items = tuple(replace(item, tree=rewritten(item.tree, put)) for item in items)
    inputs = [_seen_through(one, view) if one.alias in alike else one for one in statement.inputs]
    select = cast(exp.Select, rewritten(statement.select, put))
    kept = tuple(rewritten(condition, put) for condition in statement.kept)
    changed = replace(statement, select=select, items=items, inputs=tuple(inputs), kept=kept)
    return changed, {**schemas, **dict.fromkeys(alike, whole)}


def _of(tree: exp.Expr, alias: str) -> exp.Expr:
    """The same of another input."""

    def write(node: exp.Expr) -> exp.Expr:
        return exp.column(node.name, alias, quoted=True) if isinstance(node, exp.Column) else node

    return rewritten(tree.unnest(), write)


def _seen_through(one: Input, view: View) -> Input:
    return replace(one, views=(*one.views, view))
