"""SELECT … FROM inputs GROUP BY …: aggregates by group over a join of windows, or over one window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.dialect.query_spec import QuerySpec, Rows, Shown
from skyband.dialect.reading import (
    all_of,
    check_columns,
    columns_read,
    count_of,
    quoted,
    row_text,
    window_of,
    with_aliases_resolved,
)
from skyband.dialect.statement import Statement
from skyband.problems.joins.codec import JoinsCodec
from skyband.problems.joins.query import JoinAggregate, Relation, StreamInput

_POSSIBLE = "Possible: conditions on one input, and equal columns of two, as in a.id = b.id; all joined by AND."


def ask(statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement as a `JoinAggregate`. `schemas` by alias."""
    select = statement.select
    if statement.error is not None or statement.recall is not None:
        statement.refuse("Aggregates are exact: there is no error to allow")
    conditions = statement.conditions
    groups = [with_aliases_resolved(statement, column).unnest() for column in _groups(statement)]
    aggregates = _Aggregates(statement, groups)
    for tree in (*groups, *conditions, *(item for item in select.expressions if not item.is_star)):
        check_columns(statement, tree, dict(schemas))
    for column in groups:
        if not isinstance(column, exp.Column):
            statement.refuse("GROUP BY takes columns", column, "A common table expression can compute one.")
    shown = [(_called(item), aggregates.over_answer(item.unalias())) for item in select.expressions]
    having = select.args.get("having")
    order = select.args.get("order")
    limit = select.args.get("limit")
    if limit is not None and order is None:
        statement.refuse("LIMIT needs an ORDER BY: which groups are best", limit.expression)
    if limit is not None and limit.expressions:
        statement.refuse("Groups are ranked once, not for each value of a column", limit.expressions[0])
    if select.args.get("qualify"):
        statement.refuse("QUALIFY ranks rows; groups are ranked by ORDER BY … LIMIT k", select.args["qualify"].this)
    having_tree = None if having is None else aggregates.over_answer(with_aliases_resolved(statement, having.this))
    ordered = [
        (aggregates.over_answer(with_aliases_resolved(statement, one.this)), bool(one.args.get("desc")))
        for one in (order.expressions if order else ())
    ]
    filters, on = _conditions(statement, conditions, dict(schemas))
    inputs, lateness = _inputs(statement, schemas, filters)
    names = aggregates.names
    query = statement.attempt(
        lambda: JoinAggregate(
            inputs=inputs,
            aggregates=names or {"count": "COUNT(*)"},
            on=on,
            group_by=[f"{_owner(column, schemas)}.{quoted(column.name)}" for column in groups],
            having=None if having_tree is None else row_text(having_tree),
            order_by=[f"{_order_text(tree)}{'' if desc else ' ASC'}" for tree, desc in ordered],
            k=None if limit is None else count_of(statement, limit.expression),
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        )
    )
    rows = {one.alias: Rows(one.name, None, _needed(statement, query, one.alias, schemas)) for one in statement.inputs}
    narrow = {
        alias: pa.schema([schemas[alias].field(name) for name in each.columns or ()]) for alias, each in rows.items()
    }
    output = statement.attempt(lambda: JoinsCodec(query, narrow).output_schema)
    return QuerySpec(query, rows, _shown(output, query, shown))


def _needed(
    statement: Statement, query: JoinAggregate, alias: str, schemas: Mapping[str, pa.Schema]
) -> tuple[str, ...]:
    """The columns of an input that the query reads; of one that is only counted, all."""
    select, schema = statement.select, schemas[alias]
    parts = [select.args[name] for name in ("group", "having", "order") if select.args.get(name)]
    trees = [*select.expressions, *parts, *statement.conditions]
    trees += [exp.column(one.name) for join in select.args.get("joins") or () for one in join.args.get("using") or ()]
    given = dict(query.inputs)[alias]
    return columns_read(trees, alias, schema, given.window if isinstance(given, StreamInput) else None) or tuple(
        schema.names
    )


def _called(item: exp.Expr) -> str:
    """What the SELECT list calls a column: a name given to it, its own, or else its text."""
    plain = isinstance(item, (exp.Alias, exp.Column))
    return item.alias_or_name if plain else item.sql(dialect="spark")


def _groups(statement: Statement) -> list[exp.Expr]:
    group = statement.select.args.get("group")
    if group is None:
        return []
    extra = [name for name in ("grouping_sets", "cube", "rollup", "totals", "all") if group.args.get(name)]
    if extra:
        statement.refuse(f"GROUP BY … {extra[0].upper().replace('_', ' ')} is not supported", group)
    listed = statement.select.expressions
    return [
        listed[int(one.name) - 1].unalias()
        if isinstance(one, exp.Literal) and one.is_int and 1 <= int(one.name) <= len(listed)
        else one
        for one in group.expressions
    ]


class _Aggregates:
    """The aggregates of a statement, each once, with the name it has in the answer."""

    def __init__(self, statement: Statement, groups: list[exp.Expr]) -> None:
        self._statement, self._groups = statement, groups
        self.names: dict[str, str] = {}  # the texts, by name
        self._known: dict[exp.Expr, str] = {}
        taken = {column.name for column in groups}
        for item in statement.select.expressions:
            if item.is_star:
                statement.refuse("With GROUP BY, each column that is shown must be named", item)
            # An aggregate by itself is called what the statement calls it.
            if isinstance(item.unalias(), exp.AggFunc) and item.unalias() not in self._known:
                self._add(item.unalias(), _called(item), taken)
        for tree in (*statement.select.expressions, *self._elsewhere()):
            for aggregate in tree.find_all(exp.AggFunc):
                if aggregate not in self._known:
                    self._add(aggregate, aggregate.sql(dialect="spark"), taken)

    def _elsewhere(self) -> list[exp.Expr]:
        return [part for name in ("having", "order") if (part := self._statement.select.args.get(name))]

    def _add(self, aggregate: exp.Expr, name: str, taken: set[str]) -> None:
        name = free_name(name, taken)
        taken.add(name)
        self._known[aggregate] = name
        self.names[name] = aggregate.sql(dialect="spark")

    def over_answer(self, tree: exp.Expr) -> exp.Expr:
        """`tree` over the columns of the answer: aggregates and groups by their names there."""
        groups = {(column.text("table"), column.name) for column in self._groups}
        plain = {column.name for column in self._groups}

        def expand(node: exp.Expr) -> exp.Expr:
            if node in self._known:
                return exp.column(exp.to_identifier(self._known[node], quoted=True))
            if isinstance(node, exp.Column):
                if (node.table, node.name) not in groups and not (node.name in plain and not node.table):
                    self._statement.refuse(
                        f"{node.sql(dialect='spark')} is neither grouped by nor aggregated",
                        node,
                        "Add it to GROUP BY, or take MIN, MAX, SUM, AVG or COUNT of it.",
                    )
                return exp.column(exp.to_identifier(node.name, quoted=True))
            return node

        return tree.transform(expand)


def _owner(column: exp.Expr, schemas: Mapping[str, pa.Schema]) -> str:
    assert isinstance(column, exp.Column)
    return column.table or next(alias for alias, schema in schemas.items() if column.name in schema.names)


def _order_text(tree: exp.Expr) -> str:
    tree = tree.unnest()
    if isinstance(tree, exp.Column):
        return tree.name if tree.name.isidentifier() else quoted(tree.name)
    return row_text(tree)


def _conditions(
    statement: Statement, conditions: list[exp.Expr], schemas: dict[str, pa.Schema]
) -> tuple[dict[str, list[exp.Expr]], list[str]]:
    """Those on one input, by its alias, and those that join two."""
    filters: dict[str, list[exp.Expr]] = {alias: [] for alias in schemas}
    on = []
    for condition in conditions:
        columns = list(condition.find_all(exp.Column))
        owners = {_owner(column, schemas) for column in columns}
        if len(owners) == 1:
            filters[owners.pop()].append(condition)
        elif isinstance(condition, exp.EQ) and len(columns) == 2 and len(owners) == 2:
            sides = [side.unnest() for side in (condition.this, condition.expression)]
            if not all(isinstance(side, exp.Column) for side in sides):
                statement.refuse("A join sets two columns equal", condition, _POSSIBLE)
            on.append(" = ".join(f"{_owner(side, schemas)}.{quoted(side.name)}" for side in sides))
        else:
            statement.refuse("This condition is about more than one input", condition, _POSSIBLE)
    for join in statement.select.args.get("joins") or ():
        if join.side or join.args.get("method"):
            statement.refuse(f"{join.side or join.args['method']} JOIN is not supported with GROUP BY", join.this)
        right = join.this.alias_or_name or join.this.this.alias_or_name
        for column in join.args.get("using") or ():
            left = next(
                (alias for alias, schema in schemas.items() if alias != right and column.name in schema.names), None
            )
            if left is None:
                statement.refuse(f"USING names {column.name!r}, which no other input has", column)
            on.append(f"{left}.{quoted(column.name)} = {right}.{quoted(column.name)}")
    return filters, on


def _inputs(
    statement: Statement, schemas: Mapping[str, pa.Schema], filters: Mapping[str, list[exp.Expr]]
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
        plain = isinstance(tree.unnest(), exp.Column)
        text = tree.unnest().name if plain else row_text(tree)
        called = free_name(name, taken)
        taken.add(called)
        columns.append(Shown(called, text, is_plain=plain))
    return tuple(columns)
