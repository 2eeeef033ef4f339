"""Expressions where a query takes columns: they become columns of their input before it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.columns import Item
from skyband.dialect.query_spec import View
from skyband.dialect.reading import owners_of, row_text
from skyband.dialect.statement import Input, Statement
from skyband.expressions.grammar import rewritten

Schemas = Mapping[str, pa.Schema]


def with_columns(statement: Statement, schemas: Schemas, trees: list[exp.Expr], what: str) -> tuple[Statement, Schemas]:
    """The statement with a column in place of each of these expressions that is none yet, wherever it stands; `what`
    asks for them."""
    for tree in dict.fromkeys(tree.unnest() for tree in trees):
        if not isinstance(tree, exp.Column):
            statement, schemas = _with_column(statement, schemas, tree, what)
    return statement, schemas


def _with_column(statement: Statement, schemas: Schemas, tree: exp.Expr, what: str) -> tuple[Statement, Schemas]:
    owners = owners_of(tree)
    if len(owners) != 1:
        statement.refuse(f"{what} takes columns, and expressions over the columns of one input", tree)
    (alias,) = owners
    schema = schemas[alias]
    value = statement.attempt(lambda: expressions.bind_value(row_text(tree), schema), tree)
    name = free_name(row_text(tree), set(schema.names))
    whole = schema.append(pa.field(name, value.type))
    view = View(None, (*((column, column) for column in schema.names), (name, row_text(tree))), whole, is_plain=False)
    column = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))

    def put(node: exp.Expr) -> exp.Expr:
        return column.copy() if node.unnest() == tree else node

    items = [Item(item.name, rewritten(item.tree, put), item.is_named, item.is_starred) for item in statement.items]
    inputs = [_seen_through(one, view) if one.alias == alias else one for one in statement.inputs]
    select = cast(exp.Select, rewritten(statement.select, put))
    kept = tuple(rewritten(condition, put) for condition in statement.kept)
    changed = replace(statement, select=select, items=tuple(items), inputs=tuple(inputs), kept=kept)
    return changed, {**schemas, alias: whole}


def _seen_through(one: Input, view: View) -> Input:
    return replace(one, views=(*one.views, view))
