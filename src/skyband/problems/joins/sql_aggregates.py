"""Aggregates of a statement in the words that a query has for them: FILTER, and what reads no column, become CASE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.clauses import RANKS
from skyband.dialect.statement import Statement
from skyband.expressions.grammar import rewritten


def without_filters(statement: Statement) -> Statement:
    """Rewrite SUM(x) FILTER (WHERE c) as SUM(CASE WHEN c THEN x END)."""

    def write(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Filter):
            return node
        aggregate, condition = node.this.copy(), node.expression.this.copy()
        inner = aggregate.this
        is_distinct = isinstance(inner, exp.Distinct)
        if inner is None or (is_distinct and len(inner.expressions) != 1):
            statement.refuse("FILTER is for COUNT, SUM, AVG, MIN and MAX", node)
        value = exp.Literal.number(1) if inner.is_star else inner.expressions[0] if is_distinct else inner
        case = exp.Case(ifs=[exp.If(this=condition, true=value.copy())])
        aggregate.set("this", exp.Distinct(expressions=[case]) if is_distinct else case)
        return aggregate

    items = tuple(replace(item, tree=rewritten(item.tree, write)) for item in statement.items)
    return replace(statement, select=cast(exp.Select, rewritten(statement.select, write)), items=items)


def of_columns(statement: Statement, schemas: Mapping[str, pa.Schema]) -> Statement:
    """Let an aggregate of what is the same for all rows, such as SUM(1), read a column: aggregates are of an input."""
    first = statement.inputs[0]
    column = exp.column(first.on or schemas[first.alias].names[0], first.alias, quoted=True)

    def write(node: exp.Expr) -> exp.Expr:
        inner = node.this if isinstance(node, exp.AggFunc) and not isinstance(node, RANKS) else None
        is_distinct = isinstance(inner, exp.Distinct)
        value = inner.expressions[0] if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1 else inner
        is_counted = isinstance(node, exp.Count) and isinstance(inner, (exp.Literal, exp.Boolean))
        if is_counted or not isinstance(value, exp.Expr):
            return node
        if value.find(exp.Column, exp.Star, exp.AggFunc, exp.Distinct):
            return node
        is_null = exp.Is(this=column.copy(), expression=exp.Null())
        case = exp.Case(ifs=[exp.If(this=is_null, true=value.copy())], default=value.copy())
        changed = node.copy()
        changed.set("this", exp.Distinct(expressions=[case]) if is_distinct else case)
        return changed

    items = tuple(replace(item, tree=rewritten(item.tree, write)) for item in statement.items)
    kept = tuple(rewritten(condition, write) for condition in statement.kept)
    return replace(statement, select=cast(exp.Select, rewritten(statement.select, write)), items=items, kept=kept)
