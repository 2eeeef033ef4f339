"""Aggregates of a statement in the words that a query has for them: FILTER, and what reads no column, become CASE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.clauses import RANKS
from skyband.dialect.reading import owners_of, row_text
from skyband.dialect.statement import Statement
from skyband.errors import SkybandError
from skyband.expressions import bind_value
from skyband.expressions.extremes import is_labelled
from skyband.expressions.grammar import rewritten

Schemas = Mapping[str, pa.Schema]


def without_filters(statement: Statement) -> Statement:
    """Rewrite SUM(x) FILTER (WHERE c) as SUM(CASE WHEN c THEN x END), and COUNT_IF(c) as COUNT of such a CASE."""

    def write(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CountIf):
            return exp.Count(this=exp.Case(ifs=[exp.If(this=node.this.copy(), true=exp.Literal.number(1))]))
        if not isinstance(node, exp.Filter):
            return node
        aggregate, condition = rewritten(node.this, write), node.expression.this.copy()
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


def of_columns(statement: Statement, schemas: Schemas) -> Statement:
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


def counted(statement: Statement) -> list[exp.Expr]:
    """The expressions over columns in COUNT(DISTINCT …)."""
    trees = [*(item.tree for item in statement.items), statement.select, *statement.kept]
    counts = [count for tree in trees for count in tree.find_all(exp.Count) if isinstance(count.this, exp.Distinct)]
    found = [count.this.expressions[0] for count in counts if len(count.this.expressions) == 1]
    return [tree for tree in found if tree.find(exp.Column) and not tree.find(exp.AggFunc, exp.Star)]


def labelled(statement: Statement, schemas: Schemas) -> list[exp.Expr]:
    """The expressions that give strings in MIN and MAX, each over the columns of one input."""
    trees = [*(item.tree for item in statement.items), statement.select, *statement.kept]
    extremes = [extreme for tree in trees for extreme in tree.find_all(exp.Min, exp.Max)]
    found = []
    for extreme in extremes:
        inner = extreme.this
        tree = inner.expressions[0] if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1 else inner
        owners = set() if not isinstance(tree, exp.Expr) or tree.find(exp.AggFunc, exp.Star) else owners_of(tree)
        if len(owners) == 1 and _gives_strings(tree, schemas[owners.pop()]):
            found.append(tree)
    return found


def _gives_strings(tree: exp.Expr, schema: pa.Schema) -> bool:
    try:
        return is_labelled(bind_value(row_text(tree), schema).type)
    except SkybandError:  # which is raised where the aggregate is read
        return False
