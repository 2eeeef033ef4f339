"""SELECT … FROM inputs GROUP BY …: aggregates by group over a join of windows, or over one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.dialect.computing import with_columns
from skyband.dialect.query_spec import QuerySpec, Shown
from skyband.dialect.reading import all_of, columns_read, count_of, quoted, row_text, window_of, written
from skyband.dialect.statement import Statement
from skyband.expressions.aggregates import read_aggregate
from skyband.expressions.grammar import rewritten
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.columns import LEAD, group_names
from skyband.problems.joins.query import JoinAggregate, Relation, StreamInput

_POSSIBLE = "Possible: conditions on one input, and equal columns of two, as in a.id = b.id; all joined by AND."

Schemas = Mapping[str, pa.Schema]


def ask(statement: Statement, schemas: Schemas) -> QuerySpec:
    """The statement as a `JoinAggregate`. `schemas` by alias."""
    if statement.error is not None or statement.recall is not None:
        statement.refuse("Aggregates are exact: there is no error to allow")
    statement = _without_filters(statement)
    statement, schemas = with_columns(statement, schemas, _groups(statement), "GROUP BY")
    aggregates = _Aggregates(statement, [column.unnest() for column in _groups(statement)])
    shown = [(item.name, aggregates.over_answer(item.tree)) for item in statement.items]
    having, order, limit = (statement.take(clause) for clause in ("having", "order", "limit"))
    if limit is not None and order is None:
        statement.refuse("LIMIT needs an ORDER BY: which groups are best", limit.expression)
    if limit is not None and limit.expressions:
        statement.refuse("Groups are ranked once, not for each value of a column", limit.expressions[0])
    having_tree = None if having is None else aggregates.over_answer(having.this)
    ordered = [_ordered(statement, one, aggregates) for one in (order.expressions if order else ())]
    filters, on = _conditions(statement)
    inputs, lateness = _inputs(statement, schemas, filters)
    query = statement.attempt(
        lambda: JoinAggregate(
            inputs=inputs,
            aggregates=aggregates.texts or {"count": "COUNT(*)"},
            on=on,
            group_by=[f"{column.table}.{quoted(column.name)}" for column in aggregates.groups],
            having=None if having_tree is None else row_text(having_tree),
            order_by=ordered,
            k=None if limit is None else count_of(statement, limit.expression),
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        )
    )
    rows = {one.alias: one.rows(None, _needed(statement, query, one.alias, schemas)) for one in statement.inputs}
    narrow = {
        alias: pa.schema([schemas[alias].field(name) for name in each.columns or ()]) for alias, each in rows.items()
    }
    output = statement.attempt(lambda: JoinsCodec(query, narrow).output_schema)
    return QuerySpec(query, rows, _shown(output, query, shown))


def _without_filters(statement: Statement) -> Statement:
    """The same with SUM(CASE WHEN c THEN x END) for SUM(x) FILTER (WHERE c)."""

    def write(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Filter):
            return node
        aggregate, condition = node.this.copy(), node.expression.this.copy()
        inner = aggregate.this
        if inner is None or isinstance(inner, exp.Distinct):
            statement.refuse("FILTER is for COUNT, SUM, AVG, MIN and MAX", node)
        value = exp.Literal.number(1) if inner.is_star else inner.copy()
        aggregate.set("this", exp.Case(ifs=[exp.If(this=condition, true=value)]))
        return aggregate

    items = tuple(replace(item, tree=rewritten(item.tree, write)) for item in statement.items)
    return replace(statement, select=cast(exp.Select, rewritten(statement.select, write)), items=items)


def _needed(statement: Statement, query: JoinAggregate, alias: str, schemas: Schemas) -> tuple[str, ...]:
    """The columns of an input that the query reads; of one that is only counted, all."""
    parts = [part for name in ("group", "having", "order") if (part := statement.take(name))]
    trees = [*(item.tree for item in statement.items), *parts, *statement.conditions]
    given = dict(query.inputs)[alias]
    window = given.window if isinstance(given, StreamInput) else None
    return columns_read(trees, alias, schemas[alias], window) or tuple(schemas[alias].names)


def _groups(statement: Statement) -> list[exp.Expr]:
    group = statement.take("group")
    return [] if group is None else list(group.expressions)


class _Aggregates:
    """The aggregates of a statement and what it groups by, each once, with the name it has in the answer."""

    def __init__(self, statement: Statement, groups: list[exp.Expr]) -> None:
        self._statement = statement
        self.groups: list[exp.Column] = [one for one in dict.fromkeys(groups) if isinstance(one, exp.Column)]
        keys = [(column.table, column.name) for column in self.groups]
        names = group_names(keys, set())
        self._names = dict(zip(keys, names, strict=True))
        self.texts: dict[str, str] = {}  # of the aggregates, by name
        self._known: dict[exp.Expr, str] = {}
        taken = {*LEAD, *names, *(column for _, column in keys)}
        for item in statement.items:
            # An aggregate by itself is called what the statement calls it.
            if isinstance(item.tree, exp.AggFunc) and item.tree not in self._known:
                self._add(item.tree, item.name, taken)
        elsewhere = [part for name in ("having", "order") if (part := statement.take(name))]
        for tree in (*(item.tree for item in statement.items), *elsewhere):
            for aggregate in tree.find_all(exp.AggFunc):
                if aggregate not in self._known:
                    self._add(aggregate, self._text(aggregate), taken)

    def _add(self, aggregate: exp.Expr, name: str, taken: set[str]) -> None:
        name = free_name(name, taken)
        taken.add(name)
        self._known[aggregate] = name
        self.texts[name] = self._text(aggregate)
        self._statement.attempt(lambda: read_aggregate(self.texts[name]), aggregate)

    def _text(self, aggregate: exp.Expr) -> str:
        """An aggregate as the query writes it: with the inputs of its columns, if there is more than one."""
        several = len(self._statement.inputs) > 1

        def write(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            return exp.column(node.this if node.is_star else written(node.name), node.table if several else None)

        return rewritten(aggregate, write).sql(dialect="spark")

    def over_answer(self, tree: exp.Expr) -> exp.Expr:
        """`tree` over the columns of the answer: aggregates and groups by their names there."""

        def expand(node: exp.Expr) -> exp.Expr:
            if node in self._known:
                return exp.column(exp.to_identifier(self._known[node], quoted=True))
            if not isinstance(node, exp.Column):
                return node
            if node.is_star:
                self._statement.refuse("With GROUP BY, each column that is shown must be named", node)
            if (node.table, node.name) not in self._names:
                self._statement.refuse(
                    f"{written(node.name).sql(dialect='spark')} is neither grouped by nor aggregated",
                    node,
                    "Add it to GROUP BY, or take MIN, MAX, SUM, AVG or COUNT of it.",
                )
            return exp.column(exp.to_identifier(self._names[node.table, node.name], quoted=True))

        return rewritten(tree, expand)


def _ordered(statement: Statement, one: exp.Expr, aggregates: _Aggregates) -> str:
    """A part of ORDER BY as the query writes it."""
    nulls = one.args.get("nulls")
    if nulls is not None and nulls.name == "FIRST":
        statement.refuse("Groups without a value come last, so NULLS FIRST cannot be asked for", nulls)
    tree = aggregates.over_answer(one.this).unnest()
    return f"{row_text(tree)}{'' if one.args.get('desc') else ' ASC'}"


def _conditions(statement: Statement) -> tuple[dict[str, list[exp.Expr]], list[str]]:
    """Those on one input, by its alias, and those that join two."""
    filters: dict[str, list[exp.Expr]] = {one.alias: [] for one in statement.inputs}
    for join, one in zip(statement.joins, statement.inputs[1:], strict=True):
        if join.side:
            statement.refuse(f"{join.side} JOIN is not supported with GROUP BY", one.node)
    on = []
    for condition in statement.conditions:
        owners = {column.table for column in condition.find_all(exp.Column)}
        if len(owners) < 2:  # of none: it is true of all rows, or of none
            filters[owners.pop() if owners else statement.inputs[0].alias].append(condition)
            continue
        if len(owners) > 2 or not isinstance(condition, exp.EQ):
            statement.refuse("This condition is about more than one input", condition, _POSSIBLE)
        sides = [side.unnest() for side in condition.iter_expressions()]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        if len(columns) < 2:
            statement.refuse("A join sets two columns equal", condition, _POSSIBLE)
        on.append(" = ".join(f"{side.table}.{quoted(side.name)}" for side in columns))
    return filters, on


def _inputs(
    statement: Statement, schemas: Schemas, filters: Mapping[str, list[exp.Expr]]
) -> tuple[dict[str, Any], str | int | None]:
    inputs: dict[str, Any] = {}
    waits: list[str | int] = []
    for one in statement.inputs:
        where = all_of(filters[one.alias])
        if one.window is None and statement.window is None:
            inputs[one.alias] = Relation(where)
            continue
        window, lateness = window_of(statement, one, schemas[one.alias])
        inputs[one.alias] = StreamInput(window, where)
        waits += [] if lateness is None else [lateness]
    if not any(isinstance(one, StreamInput) for one in inputs.values()):
        statement.refuse(
            "No input has a window, so nothing ever changes",
            statement.inputs[0].node,
            "Say how much of a stream counts: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    if len(set(waits)) > 1:
        statement.refuse(f"LATENESS is one for all inputs, but here {' and '.join(map(str, waits))} are asked for")
    return inputs, waits[0] if waits else None


def _shown(output: pa.Schema, query: JoinAggregate, shown: list[tuple[str, exp.Expr]]) -> tuple[Shown, ...]:
    """First when, and the rank; then what the SELECT list asks for, in its order."""
    lead = output.names[: len(output.names) - len(query.group_by) - len(query.aggregates)]
    columns = [Shown(name, name, is_plain=True) for name in lead]
    taken = set(lead)
    for name, tree in shown:
        tree = tree.unnest()
        called = free_name(name, taken)
        taken.add(called)
        columns.append(Shown(called, row_text(tree), is_plain=isinstance(tree, exp.Column)))
    return tuple(columns)
