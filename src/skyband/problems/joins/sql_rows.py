"""SELECT … FROM a [WINDOW …] JOIN b [WINDOW …] ON …, without GROUP BY: the rows of a join of windows.

Rows that agree in all columns that the statement reads form one group, which is shown as often as it has rows. So any
plan of a join can answer. If the statement ranks the rows, or groups rows that meet a condition on columns of several
inputs, another query does that with the rows that each closed window shows: see `dialect.lines`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.emit import gives_windows
from skyband.core.encoding.output import free_name
from skyband.dialect.columns import Item
from skyband.dialect.lines import asked_of_own_lines, in_lines
from skyband.dialect.query_spec import LINES, QuerySpec
from skyband.dialect.reading import all_of, check_conditions, check_value, owners_of, quoted, row_text
from skyband.dialect.statement import Statement
from skyband.dialect.window_bounds import bound_in, check_whole, with_bounds
from skyband.expressions.grammar import rewritten
from skyband.problems.joins.columns import LEAD, group_names
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.sql import (
    RANKING,
    Aggregates,
    bounds_of,
    conditions_of,
    how_of,
    inputs_of,
    output_of,
    rows_of,
    sets_equal,
    shown_of,
)
from skyband.problems.joins.sql_aggregates import counted

Schemas = Mapping[str, pa.Schema]

_ASKED: Final = ("group", "having", *RANKING)


def matches(statement: Statement) -> bool:
    """Does the statement ask for rows of a join of windows, all of them or the best?"""
    if statement.over and len(statement.inputs) == 1:
        return True
    streams = [one for one in statement.inputs if one.window is not None or statement.window is not None]
    if statement.is_grouped or statement.has_full_join or len(streams) < 2 or statement.select.args.get("having"):
        return False
    if _is_asked(statement, RANKING) and len(streams) == 2 and streams[0].is_same_as(streams[1]):
        return False  # the best pairs of one input
    return any(isinstance(each, exp.EQ) and len(owners_of(each)) == 2 for each in statement.conditions)


def needs_rows(statement: Statement) -> bool:
    """Must groups be made of the rows of the join, because something is asked of these that is no join condition?"""
    several = [each for each in statement.conditions if len(owners_of(each)) > 1 and not sets_equal(each)]
    return bool(several) or _reads_nulls(statement)


def _reads_nulls(statement: Statement) -> bool:
    """Is something asked of rows without a partner that only they can tell? Aggregates know what is null there."""
    if all(partner.how == "inner" for partner in statement.partners):
        return False
    group, having = statement.select.args.get("group"), statement.select.args.get("having")
    trees = [*(item.tree for item in statement.items), *statement.kept, *([having] if having else [])]
    trees += [part for name in RANKING if (part := statement.select.args.get(name))]
    if any(tree.find(exp.Min, exp.Max) for tree in trees):
        return True  # no smallest value can be subtracted when its row gets a partner
    computed = [*(group.expressions if group is not None else ()), *counted(statement)]
    keys = [tree for tree in computed if not isinstance(tree.unnest(), exp.Column)]
    return any(owners_of(tree) & statement.nullable for tree in [*keys, *statement.conditions])


def _is_asked(statement: Statement, clauses: tuple[str, ...]) -> bool:
    return any(statement.select.args.get(clause) for clause in clauses)


def ask(statement: Statement, schemas: Schemas) -> QuerySpec:
    """Turn the statement into a `JoinAggregate` whose groups are the different rows, followed by a query about these
    rows if need be. `schemas` are those of its inputs, by alias."""
    items = tuple(item for item in statement.items if not _is_shown_before(statement, item))
    statement = replace(statement, items=items)
    if statement.is_grouped or _is_asked(statement, _ASKED):
        return asked_of_rows(statement, schemas)
    return rows(statement, schemas)[0]


def rows(statement: Statement, schemas: Schemas) -> tuple[QuerySpec, pa.Schema]:
    """The query for all rows, and the columns of its own answer."""
    statement.check_exact("Joins are exact")
    filters, on, of_several = conditions_of(statement)
    _check_written(statement, schemas, [*of_several, *(item.tree for item in statement.items)])
    trees = [*(item.tree for item in statement.items), *of_several, *statement.kept]
    columns = [exp.column(one.this.copy(), one.args["table"].copy()) for one in _columns(trees)]
    groups = Aggregates(statement, schemas, columns)
    count = free_name("count", {*LEAD, *(column.name for column in groups.groups)})
    inputs, lateness = inputs_of(statement, schemas)
    having = [groups.over_answer(condition) for condition in of_several]
    query = statement.attempt(
        lambda: JoinAggregate(
            inputs=inputs,
            aggregates={count: "COUNT(*)"},
            on=on,
            group_by=[f"{column.table}.{quoted(column.name)}" for column in groups.groups],
            having=" AND ".join(f"({row_text(each)})" for each in having) or None,
            how=how_of(statement),
            emit=statement.emit,  # type: ignore[arg-type]
            lateness=lateness,
        )
    )
    if not gives_windows(query.emit):
        statement.refuse(
            f"Skyband emits all rows {'of a join' if len(statement.read) > 1 else 'beside an aggregate'} when a "
            "window closes",
            statement.inputs[-1].node if statement.emit is None else "EMIT",
            "Say how often: [WINDOW 1 HOUR EVERY 1 MINUTE]." if statement.emit is None else "Leave EMIT out.",
        )
    read = rows_of(statement, query, schemas, filters)
    output = output_of(statement, query, schemas, read)
    check_conditions(statement, having, output)
    check_whole(statement, str(query.emit), is_cut=False)
    bounds = bounds_of(statement, inputs)
    shown = [(item.name, with_bounds(groups.over_answer(item.tree), bounds)) for item in statement.items]
    kept = [with_bounds(groups.over_answer(tree), bounds) for tree in statement.kept]
    check_conditions(statement, kept, output)
    spec = QuerySpec(query, read, shown_of(statement, output, query, shown), kept=all_of(kept), repeated=count)
    return spec, output


def _check_written(statement: Statement, schemas: Schemas, trees: list[exp.Expr]) -> None:
    """Raise if one of these is wrong as it is written: later its columns have the names of the answer."""
    fields = ((alias, field) for alias, schema in schemas.items() for field in schema)
    columns = pa.schema([field.with_name(f"{alias}.{field.name}") for alias, field in fields])

    def put(node: exp.Expr) -> exp.Expr:
        return exp.column(f"{node.table}.{node.name}", quoted=True) if isinstance(node, exp.Column) else node

    for tree in trees:
        if bound_in(tree) is None and not tree.find(exp.AggFunc, exp.Star):
            check_value(statement, rewritten(tree, put), columns, tree)


def asked_of_rows(statement: Statement, schemas: Schemas) -> QuerySpec:
    """A query for all rows, followed by a query that ranks or groups the rows of each window."""
    clauses = {name: statement.select.args[name] for name in _ASKED if statement.select.args.get(name)}
    trees = [*(item.tree for item in statement.items), *clauses.values(), *statement.kept]
    columns = list(dict.fromkeys((column.table, column.name) for column in _columns(trees)))
    names = dict(zip(columns, group_names(columns, set()), strict=True))

    def put(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.is_star:  # COUNT(b.*)
            return exp.column(exp.Star(), exp.to_identifier(LINES, quoted=True))
        return in_lines(names[node.table, node.name], node)

    shown = [(name, exp.column(column, alias, quoted=True)) for (alias, column), name in names.items()]
    bare = statement.select.copy()
    for name in clauses:
        bare.set(name, None)
    bare.set("expressions", [column.copy() for _, column in shown])
    items = tuple(Item(name, column, is_named=False) for name, column in shown)
    spec, answer = rows(replace(statement, select=bare, items=items, kept=()), schemas)
    select = statement.select.copy()
    for name, value in (
        ("where", None),
        ("joins", None),
        ("expressions", [item.tree.copy() for item in statement.items]),
    ):
        select.set(name, value)
    outer = replace(
        statement,
        partners=(),
        select=cast(exp.Select, rewritten(select, put)),
        items=tuple(replace(item, tree=rewritten(item.tree, put)) for item in statement.items),
        kept=tuple(rewritten(condition, put) for condition in statement.kept),
    )
    return asked_of_own_lines(outer, spec, answer)


def _columns(trees: list[exp.Expr]) -> list[exp.Column]:
    return [column for tree in trees for column in tree.find_all(exp.Column) if not column.is_star]


def _is_shown_before(statement: Statement, item: Item) -> bool:
    """Is the item a column of USING that a star has shown already, from an earlier input?"""
    column = item.tree.unnest()
    for join, one in zip(statement.joins, statement.inputs[1:], strict=True):
        if item.is_starred and isinstance(column, exp.Column) and column.table == one.alias:
            return column.name.lower() in (join.meta.get("using") or ())
    return False
