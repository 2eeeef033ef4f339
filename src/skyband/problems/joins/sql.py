"""SELECT … FROM inputs GROUP BY …: aggregates by group over a join of windows, or over one window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.dialect.clauses import RANKS
from skyband.dialect.columns import Item
from skyband.dialect.computing import with_columns
from skyband.dialect.functions import refuse_function, unknown_function
from skyband.dialect.lines import asked_of_own_lines, in_lines
from skyband.dialect.nodes import BOUNDS
from skyband.dialect.query_spec import QuerySpec, Rows, Shown
from skyband.dialect.ranking import Key, Ranking, count_of, has_ties, keys_of, offset_of, ranking_of
from skyband.dialect.reading import (
    all_of,
    check_conditions,
    check_value,
    columns_read,
    only,
    owners_of,
    quoted,
    row_text,
    shown_columns,
    window_of,
    written,
)
from skyband.dialect.statement import Statement, is_over
from skyband.dialect.text import word_at
from skyband.dialect.window_bounds import bound_in, check_whole, start_of, with_bounds
from skyband.expressions.aggregates import COUNT_DISTINCT, bind_argument, read_aggregate
from skyband.expressions.extremes import labelled_column
from skyband.expressions.grammar import rewritten
from skyband.problems.joins.columns import LEAD, group_names
from skyband.problems.joins.output import answer_schema
from skyband.problems.joins.query import JoinAggregate, Relation, StreamInput
from skyband.problems.joins.sql_aggregates import counted, labelled, of_columns, without_filters

Schemas = Mapping[str, pa.Schema]

RANKING: Final = ("order", "limit", "qualify", "offset")  # the clauses that rank


def ask(statement: Statement, schemas: Schemas) -> QuerySpec:
    """Turn the statement into a `JoinAggregate`. `schemas` are those of its inputs, by alias."""
    statement.check_exact("Aggregates are exact")
    for item in statement.items:
        if (call := unknown_function(item.tree)) is not None:
            refuse_function(statement, call)
    statement = of_columns(without_filters(statement), schemas)
    statement, schemas = with_columns(statement, schemas, _groups(statement), "GROUP BY")
    statement, schemas = with_columns(statement, schemas, counted(statement), "COUNT(DISTINCT …)")
    statement, schemas = with_columns(statement, schemas, labelled(statement, schemas), "MIN and MAX of strings")
    return _ranked_as_lines(statement, schemas) if _ranks_as_lines(statement) else _groups_of(statement, schemas)[0]


def _groups_of(statement: Statement, schemas: Schemas) -> tuple[QuerySpec, pa.Schema]:
    """The query for all groups or the best of them, and the columns of its own answer."""
    aggregates = Aggregates(statement, schemas, [column.unnest() for column in _groups(statement)])
    having, ranking = statement.take("having"), _ranking(statement)
    if having is not None and isinstance(having.this.unnest(), exp.AggFunc):
        statement.refuse("HAVING must be true or false for each group", having.this, "Compare it: HAVING COUNT(*) > 3.")
    aggregates.number = ranking.number
    shown = [(item.name, aggregates.over_answer(item.tree)) for item in statement.items]
    having_tree = None if having is None else aggregates.over_answer(having.this)
    ordered = [_ordered(statement, one, aggregates) for one in ranking.keys]
    filters, on, _ = conditions_of(statement)
    inputs, lateness = inputs_of(statement, schemas)
    query = statement.attempt(
        lambda: JoinAggregate(
            inputs=inputs,
            aggregates=aggregates.texts or {"count": "COUNT(*)"},
            on=on,
            group_by=[f"{column.table}.{quoted(column.name)}" for column in aggregates.groups],
            having=None if having_tree is None else row_text(having_tree),
            order_by=ordered,
            k=ranking.k or None,
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
            how=how_of(statement),
        )
    )
    rows = rows_of(statement, query, schemas, filters)
    output = output_of(statement, query, schemas, rows)
    check_whole(statement, str(query.emit), is_cut=ranking.first > 1)
    bounds = bounds_of(statement, inputs)
    kept = [with_bounds(aggregates.over_answer(tree), bounds) for tree in statement.kept]
    if ranking.first > 1:
        kept.append(exp.GTE(this=exp.column("rank"), expression=exp.Literal.number(ranking.first)))
    check_conditions(statement, kept, output)
    shown = [(name, with_bounds(tree, bounds)) for name, tree in shown]
    return QuerySpec(query, rows, shown_of(statement, output, query, shown), kept=all_of(kept)), output


def _ranks_as_lines(statement: Statement) -> bool:
    """Does the statement rank groups for each value of a column, let equal ones share a rank, or have OVER?"""
    qualify, limit = statement.select.args.get("qualify"), statement.select.args.get("limit")
    windows = [] if qualify is None else list(qualify.find_all(exp.Window))
    apart = any(one.args.get("partition_by") or not isinstance(one.this, exp.RowNumber) for one in windows)
    return bool(statement.over or apart or (limit is not None and (limit.expressions or has_ties(limit))))


def _ranked_as_lines(statement: Statement, schemas: Schemas) -> QuerySpec:
    """A query for all groups, whose lines another query ranks as rows. A group without a value comes last."""
    found: dict[exp.Expr, str] = {}
    taken = {*LEAD, *BOUNDS}

    def put(node: exp.Expr) -> exp.Expr:
        is_aggregate = isinstance(node, exp.AggFunc) and not isinstance(node, RANKS) and not is_over(node)
        if not is_aggregate and not isinstance(node, exp.Column):
            return node
        if node not in found:
            found[node] = free_name(node.name or node.key, taken)
            taken.add(found[node])
        return in_lines(found[node], node)

    select = statement.select.copy()
    for name in ("where", "joins", "group", "having"):
        select.set(name, None)
    select.set("expressions", [item.tree.copy() for item in statement.items])
    outer = replace(
        statement,
        select=cast(exp.Select, rewritten(_nulls_last(select), put)),
        items=tuple(replace(item, tree=rewritten(_nulls_last(item.tree), put)) for item in statement.items),
        kept=tuple(rewritten(condition, put) for condition in statement.kept),
    )
    inner = statement.select.copy()
    for name in RANKING:
        inner.set(name, None)
    inner.set("expressions", [node.copy() for node in found])
    shown = tuple(Item(name, node.copy(), is_named=True) for node, name in found.items())
    spec, answer = _groups_of(replace(statement, select=inner, items=shown, kept=()), schemas)
    return asked_of_own_lines(outer, spec, answer)


def _nulls_last(tree: exp.Expr) -> exp.Expr:
    """Add NULLS LAST wherever the statement does not place nulls."""
    tree = tree.copy()
    for one in tree.find_all(exp.Ordered):
        one.set("nulls", one.args.get("nulls") or exp.var("LAST"))
    return tree


def _ranking(statement: Statement) -> Ranking:
    """How the statement ranks groups; k is 0 if it shows all of them."""
    if statement.take("qualify") is not None:
        return ranking_of(statement, several=True)
    order, limit = statement.take("order"), statement.take("limit")
    if limit is not None and order is None:
        statement.refuse("LIMIT needs an ORDER BY that ranks the groups", limit.expression)
    if limit is None:
        return Ranking(keys_of(order) if order else (), 0)
    skipped = offset_of(statement)
    return Ranking(keys_of(order), skipped + count_of(statement, limit.expression), first=skipped + 1)


def bounds_of(statement: Statement, inputs: Mapping[str, Any]) -> dict[str, exp.Expr]:
    """Expressions for `window_start` and `window_end` over the columns of the answer."""
    end: exp.Expr = exp.column("window_end")
    windows = [given.window for given in inputs.values() if isinstance(given, StreamInput)]
    asked = next((one for item in statement.items if (one := bound_in(item.tree, BOUNDS[0])) is not None), None)
    if asked is not None and (len({window.size for window in windows}) > 1 or windows[0].size is None):
        statement.refuse(
            "The answer has no single window_start: its windows have different sizes, or begin with the stream", asked
        )
    if asked is not None and len(windows) > 1 and windows[0].by_count:
        statement.refuse("The answer has no single window_start: each window counts the rows of its own input", asked)
    return {BOUNDS[0]: start_of(end, windows[0].size or 0, by_count=windows[0].on is None), BOUNDS[1]: end}


def rows_of(
    statement: Statement, query: JoinAggregate, schemas: Schemas, filters: Mapping[str, list[exp.Expr]]
) -> dict[str, Rows]:
    """The rows of each input that enter its window: those that meet the conditions."""
    rows = {}
    for one in statement.read:
        check_conditions(statement, filters[one.alias], schemas[one.alias])
        rows[one.alias] = one.rows(all_of(filters[one.alias]), _needed_of(statement, query, one.alias, schemas))
    return rows


def output_of(statement: Statement, query: JoinAggregate, schemas: Schemas, rows: Mapping[str, Rows]) -> pa.Schema:
    """The columns of the query's answer over these rows."""
    narrow = {alias: only(schemas[alias], each.columns or ()) for alias, each in rows.items()}
    return statement.attempt(lambda: answer_schema(query, narrow))


def _needed_of(statement: Statement, query: JoinAggregate, alias: str, schemas: Schemas) -> tuple[str, ...]:
    """The columns of an input that the query reads; all of them if it only counts rows."""
    parts = [part for name in ("group", "having", "order", "qualify") if (part := statement.take(name))]
    trees = [*(item.tree for item in statement.items), *parts, *statement.conditions, *statement.kept]
    trees += [tree for partner in statement.partners for tree in partner.trees]
    given = dict(query.inputs)[alias]
    window = given.window if isinstance(given, StreamInput) else None
    return columns_read(trees, alias, schemas[alias], window) or tuple(schemas[alias].names)


def _groups(statement: Statement) -> list[exp.Expr]:
    group = statement.take("group")
    return [] if group is None else list(group.expressions)


class Aggregates:
    """The aggregates and grouping columns of a statement, each once, with their names in the answer."""

    def __init__(self, statement: Statement, schemas: Schemas, groups: Iterable[exp.Expr]) -> None:
        self._statement, self._schemas = statement, schemas
        self.groups: list[exp.Column] = [one for one in dict.fromkeys(groups) if isinstance(one, exp.Column)]
        keys = [(column.table, column.name) for column in self.groups]
        names = group_names(keys, set())
        self._names = dict(zip(keys, names, strict=True))
        self.texts: dict[str, str] = {}  # the aggregates by name
        self._known: dict[exp.Expr, str] = {}
        self.number: exp.Expr | None = None  # ROW_NUMBER() OVER (…), if the statement ranks by it
        taken = {*LEAD, *names, *(column for _, column in keys)}
        for item in statement.items:
            # An item that is just an aggregate has the name that the statement gives it.
            if isinstance(item.tree, exp.AggFunc) and item.tree not in self._known:
                self._add(item.tree, item.name, taken)
        elsewhere = [part for name in ("having", "order", "qualify") if (part := statement.take(name))]
        elsewhere += statement.kept
        for tree in (*(item.tree for item in statement.items), *elsewhere):
            for aggregate in tree.find_all(exp.AggFunc):
                if aggregate not in self._known and not isinstance(aggregate, RANKS):
                    self._add(aggregate, self._text(aggregate), taken)

    def _add(self, aggregate: exp.Expr, name: str, taken: set[str]) -> None:
        name = free_name(name, taken)
        taken.add(name)
        self._known[aggregate] = name
        self.texts[name] = self._text(aggregate)
        inner = aggregate.this
        if isinstance(inner, exp.Expr) and (nested := inner.find(exp.AggFunc)) is not None:
            self._statement.refuse("An aggregate takes rows, not other aggregates", nested)
        called = word_at(self._statement.text, aggregate)
        read = self._statement.attempt(lambda: read_aggregate(self.texts[name], called), aggregate)
        columns = list(aggregate.find_all(exp.Column, bfs=False))
        is_one = read.argument is not None and len({column.table for column in columns}) == 1
        schema = self._schemas[columns[0].table] if is_one else pa.schema([])
        if is_one and read.function != COUNT_DISTINCT and labelled_column(read, schema) is None:
            self._statement.attempt(lambda: bind_argument(read, schema), columns[0])

    def _text(self, aggregate: exp.Expr) -> str:
        """An aggregate as text for the query: with the inputs of its columns, if there are several inputs."""
        several = len(self._statement.read) > 1

        def write(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            return exp.column(node.this if node.is_star else written(node.name), node.table if several else None)

        return rewritten(aggregate, write).sql(dialect="spark")

    def over_answer(self, tree: exp.Expr) -> exp.Expr:
        """Rewrite an expression over the columns of the answer: aggregates and groups get their names there."""

        def expand(node: exp.Expr) -> exp.Expr:
            if self.number is not None and node.unnest() == self.number:
                return exp.column("rank")
            if node in self._known:
                return exp.column(exp.to_identifier(self._known[node], quoted=True))
            if not isinstance(node, exp.Column):
                return node
            if node.is_star:
                self._statement.refuse("With GROUP BY, name each column instead of *", node)
            if (node.table, node.name) not in self._names:
                self._statement.refuse(
                    f"{written(node.name).sql(dialect='spark')} is neither grouped by nor aggregated",
                    node,
                    "Add it to GROUP BY, or take MIN, MAX, SUM, AVG or COUNT of it.",
                )
            return exp.column(exp.to_identifier(self._names[node.table, node.name], quoted=True))

        return rewritten(tree, expand)


def _ordered(statement: Statement, key: Key, aggregates: Aggregates) -> str:
    """A sort key as text for the query."""
    if key.nulls is not None and key.nulls.name == "FIRST":
        statement.refuse("Groups without a value always come last, so NULLS FIRST is not possible", key.nulls)
    tree = aggregates.over_answer(key.tree).unnest()
    return f"{row_text(tree)}{' ASC' if key.ascending else ''}"


def conditions_of(statement: Statement) -> tuple[dict[str, list[exp.Expr]], list[str], list[exp.Expr]]:
    """Split the conditions: those on one input by its alias, join conditions, and others, on rows of the join."""
    filters: dict[str, list[exp.Expr]] = {one.alias: [] for one in statement.read}
    for join, one in zip(statement.joins, statement.inputs[1:], strict=True):
        if join.side:
            statement.refuse(f"{join.side} JOIN is not supported with GROUP BY", one.node)
    on, of_several = [], []
    joined: list[set[str]] = []
    kept = next(one.alias for one in statement.inputs if one.alias not in statement.nullable)
    for condition in statement.conditions:
        statement.check_rows(condition)
        owners = owners_of(condition)
        if len(owners) < 2 and not owners & statement.nullable:  # without columns, it holds for all rows or for none
            filters[owners.pop() if owners else kept].append(condition)
            continue
        if owners & statement.nullable or not sets_equal(condition):
            of_several.append(condition)
            continue
        on.append(_equal(condition.find_all(exp.Column)))
        joined.append(owners)
    for partner in statement.partners:
        on += [each for key in partner.keys if (each := _equal(key)) not in on]
        joined += [{column.table for column in key} for key in partner.keys]
    _check_joined(statement, joined)
    return filters, on, of_several


def _equal(columns: Iterable[exp.Column]) -> str:
    return " = ".join(f"{side.table}.{quoted(side.name)}" for side in columns)


def how_of(statement: Statement) -> dict[str, str]:
    """How windows are joined that are not joined by inner joins."""
    return {partner.alias: partner.how for partner in statement.partners}


def sets_equal(condition: exp.Expr) -> bool:
    """Does the condition set two columns equal?"""
    sides = condition.iter_expressions()
    return isinstance(condition, exp.EQ) and all(isinstance(side.unnest(), exp.Column) for side in sides)


def _check_joined(statement: Statement, joined: list[set[str]]) -> None:
    """Refuse an input that no condition connects with the first."""
    first, *others = statement.inputs
    reached = {first.alias}
    for _ in others:
        reached |= {alias for pair in joined if pair & reached for alias in pair}
    for one in others:
        if one.alias not in reached:
            statement.refuse(
                f"No condition joins {one.alias!r}, so each of its rows would match every other",
                one.node,
                f"Add one such as {first.alias}.id = {one.alias}.id.",
            )


def inputs_of(statement: Statement, schemas: Schemas) -> tuple[dict[str, Any], str | int | None]:
    inputs: dict[str, Any] = {}
    waits: list[str | int] = []
    # What ON says of a partner drops no row from its window, where windows may count rows.
    own = {partner.alias: [*partner.own] for partner in statement.partners}
    for one in statement.read:
        if one.window is None and statement.window is None:
            inputs[one.alias] = Relation()
            continue
        window, lateness = window_of(statement, one, schemas[one.alias])
        inputs[one.alias] = StreamInput(window, all_of(own.get(one.alias, [])))
        waits += [] if lateness is None else [lateness]
    if not any(isinstance(one, StreamInput) for one in inputs.values()):
        statement.refuse(
            "No input has a window, so nothing ever changes",
            statement.inputs[0].node,
            "Give a stream a window: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    _check_arrivals(statement, inputs)
    if len(set(waits)) > 1:
        statement.refuse(f"All inputs share one LATENESS, but this statement asks for {' and '.join(map(str, waits))}")
    return inputs, waits[0] if waits else None


def _check_arrivals(statement: Statement, inputs: Mapping[str, Any]) -> None:
    """Refuse windows of several streams that count rows, if no column orders these rows."""
    streams = [one for one in statement.read if isinstance(inputs[one.alias], StreamInput)]
    for one in streams:
        window = inputs[one.alias].window
        if len(streams) > 1 and window.by_count and window.order is None:
            statement.refuse(
                "The windows of several streams count rows, but the order between the streams is unknown",
                one.node,
                "Name the column that defines it for each: [WINDOW 1000 ROWS ORDER BY seq].",
            )


def shown_of(
    statement: Statement, output: pa.Schema, query: JoinAggregate, shown: list[tuple[str, exp.Expr]]
) -> tuple[Shown, ...]:
    """The columns shown: time and rank, unless the statement shows only named columns; then the SELECT list."""
    for item, (_, tree) in zip(statement.items, shown, strict=True):
        check_value(statement, tree, output, item.tree)
    before = len(output.names) - len(query.group_by) - len(query.aggregates)
    lead = [] if statement.shows_only_what_is_named else output.names[:before]
    return shown_columns(lead, shown)
