"""Queries around a query that ranks or groups: they choose from its answer, and may say how many are first.

    SELECT g, n FROM (SELECT g, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rn FROM … GROUP BY g)
    WHERE rn <= 3 AND n > 1

The innermost query is the statement; what is around it is put in its terms, once, when all names are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.columns import qualified, renamed
from skyband.dialect.nodes import Stream
from skyband.dialect.sources import NOT_ROW_WISE
from skyband.dialect.window_bounds import bound_in
from skyband.expressions.grammar import parts_of, rewritten

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement

_AROUND = ("expressions", "from_", "where", "with_", "kind", "hint")  # what a query around another may have


@dataclass(frozen=True)
class Level:
    """A query around another, which it calls by a name."""

    select: exp.Select
    alias: str
    names: tuple[str, ...]  # of the columns of the other, where it gives them any


def unstacked(select: exp.Select) -> tuple[exp.Select, tuple[Level, ...]]:
    """The innermost query that does more than compute columns and filter rows, and those around it, from within."""
    levels: list[Level] = []
    while (found := _inner(select)) is not None:
        inner, level = found
        levels.insert(0, level)
        select = inner
    return select, tuple(levels)


def _inner(select: exp.Select) -> tuple[exp.Select, Level] | None:
    """The query that this one is around, if it does no more than choose from it."""
    around = [name for name, value in select.args.items() if value and name not in _AROUND]
    if around or any(item.find(exp.AggFunc) for item in select.expressions if not _is_ranked(item)):
        return None
    found = _query_in_from(select)
    if found is None or _is_row_wise(found[0]):
        return None
    ranks_again = any(map(_is_ranked, select.expressions)) and found[0].find(exp.Window, exp.Limit, exp.Fetch)
    return None if ranks_again else found


def nested(select: exp.Select) -> tuple[exp.Select, Level] | None:
    """The query in FROM that ranks or groups, where the one around it does so again; and the latter. What that one asks
    of the lines by WHERE is part of the query: it may say how many are first."""
    found = _query_in_from(select)
    if found is None or not _does_more(found[0]):
        return None
    if not select.args.get("where"):
        return found
    chosen = exp.Select(
        expressions=[exp.Star()], **{name: select.args.get(name) for name in ("from_", "where", "with_")}
    )
    around = select.copy()
    around.set("where", None)
    return chosen.copy(), Level(around, found[1].alias, ())


def _query_in_from(select: exp.Select) -> tuple[exp.Select, Level] | None:
    """The query that all rows of this one come from, with what WITH defines before it."""
    start = select.args.get("from_")
    if start is None or select.args.get("joins"):
        return None
    tables = list(select.args["with_"].expressions) if select.args.get("with_") else []
    if isinstance(start.this, exp.Subquery):
        inner, alias, before = start.this.this, start.this.args.get("alias"), tables
        called = start.this.alias or "_"
    elif isinstance(start.this, exp.Table):
        place = next((i for i, one in enumerate(tables) if one.alias.lower() == start.this.name.lower()), None)
        if place is None:
            return None
        inner, alias, before = tables[place].this, tables[place].args.get("alias"), tables[:place]
        called = start.this.alias_or_name
        if len(before) + 1 < len(tables):
            return None  # what comes behind it is read by nobody, or by another
    else:
        return None
    if not isinstance(inner, exp.Select):
        return None
    inner = inner.copy()
    if before:
        own = inner.args["with_"].expressions if inner.args.get("with_") else []
        inner.set("with_", exp.With(expressions=[*(one.copy() for one in before), *own]))
    names = tuple(column.name for column in alias.columns) if alias is not None else ()
    return inner, Level(select, called, names)


def _is_ranked(item: exp.Expr) -> bool:
    return isinstance(item.unalias().unnest(), exp.Window)


def _is_row_wise(select: exp.Select) -> bool:
    """Does it compute columns and filter rows, and no more? Behind TUMBLE and the like window_start and window_end are
    columns, which are known when a window has closed."""
    inside = [one.args["from_"].this for one in _stacked(select) if one.args.get("from_")]
    return not _does_more(select) and not any(isinstance(one, Stream) and one.args.get("function") for one in inside)


def _does_more(select: exp.Select) -> bool:
    """Does it rank, group or join, or a query in its FROM?"""
    return any(
        any(one.args.get(name) for name in NOT_ROW_WISE)
        or any(item.find(exp.AggFunc, exp.Window) for item in one.expressions)
        for one in _stacked(select)
    )


def _stacked(select: exp.Select) -> Iterator[exp.Select]:
    """The query, the one in its FROM, the one in that one's, and so on."""
    yield select
    source = select.args["from_"].this if select.args.get("from_") else None
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        yield from _stacked(source.this)


def put_together(statement: Statement) -> Statement:
    """The statement, resolved, with what the queries around it ask for in its own terms."""
    for level in statement.levels:
        statement = _with_level(statement, level)
    return statement


def _with_level(statement: Statement, level: Level) -> Statement:
    items = renamed(statement, statement.items, level.names, level.alias)
    schema = pa.schema([pa.field(item.name, pa.null()) for item in items])
    select, shown = qualified(statement, level.select, {level.alias: schema})
    trees = {item.name: item.tree for item in items}

    def put(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=trees[node.name].copy()) if isinstance(node, exp.Column) else node

    was_ranked = any(item.tree.find(exp.Window) for item in items) or _has_ranking(statement.select)
    own, kept = statement.select.copy(), list(statement.kept)
    where = select.args.get("where")
    for condition in parts_of([where.this] if where else []):
        meant = rewritten(condition, put)
        if meant.find(exp.Window):
            _add(own, "qualify", exp.Qualify, meant)
        elif was_ranked or bound_in(meant) is not None:  # whole windows may go at any time
            kept.append(meant)
        else:
            clause, kind = ("having", exp.Having) if statement.is_grouped else ("where", exp.Where)
            _add(own, clause, kind, meant)
    starred = {item.name for item in items if item.is_starred}  # a star over what was named shows it by its name
    made = tuple(
        replace(item, tree=_plain(rewritten(item.tree, put)), is_starred=item.is_starred and item.name in starred)
        for item in shown
    )
    return replace(statement, select=own, items=made, kept=tuple(kept))


def _plain(tree: exp.Expr) -> exp.Expr:
    return tree.unnest() if isinstance(tree.unnest(), (exp.Column, exp.Window, exp.AggFunc, exp.Var)) else tree


def _has_ranking(select: exp.Select) -> bool:
    return any(select.args.get(name) for name in ("qualify", "limit"))


def _add(select: exp.Select, clause: str, kind: type[exp.Expr], condition: exp.Expr) -> None:
    there = select.args.get(clause)
    condition = exp.Paren(this=condition)
    select.set(clause, kind(this=condition if there is None else exp.and_(there.this, condition, copy=False)))
