"""`window_start` and `window_end` in a statement: columns of the answer, which no input has.

They can be selected, and what tells windows apart may stand in GROUP BY and PARTITION BY, where it says what is so
without it. Behind TUMBLE, HOP and window() it has to stand there: without it other engines mean all windows together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from skyband.core.emit import gives_windows
from skyband.dialect.nodes import BOUNDS, CARRIED
from skyband.expressions.grammar import parts_of, rewritten

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement


_TABLE: Final = "table"  # of a bound, in its meta: of which input it was written


def mark_bounds(select: exp.Select, aliases: Collection[str], columns: Collection[str]) -> None:
    """Put what no resolver looks up in place of the bounds of these inputs' windows; `columns` are those there are."""
    if not aliases:
        return
    named = {item.alias.lower() for item in select.expressions if not isinstance(item.unalias(), exp.Column)}
    for column in list(select.find_all(exp.Column)):
        name = column.name.lower()
        if name not in BOUNDS or name in columns or column.table.lower() not in ("", *aliases):
            continue
        if name not in named or column.find_ancestor(exp.Order, exp.Having, exp.Qualify) is None:
            bound = exp.var(name)
            bound.meta[_TABLE] = column.table.lower()
            if "start" in column.this.meta:
                bound.meta["start"] = column.this.meta["start"]
            column.replace(bound)


def is_bound(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Var) and node.name in BOUNDS


def bound_in(tree: exp.Expr, *names: str) -> exp.Expr | None:
    """The first bound of a window in it, if there is one; one of these names, if any are given."""
    return next((part for part in tree.find_all(exp.Var) if is_bound(part) and part.name in (names or BOUNDS)), None)


def carried_by(function: exp.Expr | None) -> tuple[str, ...]:
    """The bounds of windows that are columns of the rows, where windows were written so."""
    return CARRIED.get(function.name, ()) if function is not None else ()


def with_bounds(tree: exp.Expr, texts: dict[str, exp.Expr]) -> exp.Expr:
    """The tree with these in place of bounds."""
    return rewritten(tree, lambda node: texts[node.name].copy() if is_bound(node) else node)


def length_of(size: int | timedelta) -> exp.Expr:
    """How long a window is, or its slide, in an expression."""
    if not isinstance(size, timedelta):
        return exp.Literal.number(size)
    microseconds = exp.Literal.string(str(size // timedelta(microseconds=1)))
    return exp.Interval(this=microseconds, unit=exp.var("MICROSECOND"))


def start_of(end: exp.Expr, size: int | timedelta, *, by_count: bool) -> exp.Expr:
    """Where a window starts that ends there."""
    start = exp.Paren(this=exp.Sub(this=end, expression=length_of(size)))
    return exp.Greatest(this=start, expressions=[exp.Literal.number(0)]) if by_count else start


def check_whole(statement: Statement, emit: str, *, is_cut: bool) -> None:
    """Raise if it is asked for a part of the answer, or for the bounds of its window, where changes are given."""
    if gives_windows(emit):
        return
    bound = next((found for item in statement.items if (found := bound_in(item.tree)) is not None), None)
    if bound is not None or statement.kept or is_cut or statement.function is not None:
        statement.refuse(
            f"{bound.name if bound else 'A part of the answer'} exists only in whole answers, not with EMIT "
            f"{emit.upper()}",
            bound or (statement.kept[0] if statement.kept else statement.function),
            "EMIT WINDOWS gives whole answers; a window without EVERY has none.",
        )


def settle_bounds(statement: Statement) -> Statement:
    """The statement without bounds where they say what is so anyway; raises where they can mean nothing, and where
    windows are not told apart though they were written as a table function."""
    select = statement.select.copy()
    _join_windows(statement, select)
    group, order, limit = (select.args.get(name) for name in ("group", "order", "limit"))
    rankings = [one for tree in (select, *(item.tree for item in statement.items)) for one in tree.find_all(exp.Window)]
    if group is not None:
        _take_out(statement, group, "expressions", "GROUP BY")
    for ranking in rankings:
        _take_out(statement, ranking, "partition_by", "PARTITION BY")
    leading, keys = 0, order.expressions if order is not None else []
    while leading < len(keys) and _is_of_window(statement, keys[leading]):
        leading += 1  # windows come one after the other
    if limit is not None:
        listed = limit.expressions or ()
        limit.set("expressions", [one for one in listed if not is_bound(one)])
        if statement.function is not None and not any(_tells_apart(statement, one) for one in listed):
            statement.refuse(
                "LIMIT counts the rows of all windows together here",
                limit.expression,
                "For each window, write QUALIFY ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY …) <= 10.",
            )
    elif statement.function is not None and order is not None and not leading:
        statement.refuse("Answers come window by window", order.expressions[0], "Write ORDER BY window_end, ….")
    if order is not None:
        order.set("expressions", order.expressions[leading:])
        if not order.expressions:
            select.set("order", None)
    if statement.function is not None and statement.is_grouped and group is None:
        statement.refuse(
            f"Nothing separates the windows of {statement.function.name}",
            statement.function,
            "Write GROUP BY window_start, window_end, ….",
        )
    for name in ("where", "having", "order", "qualify"):
        part = select.args.get(name)
        if part is not None and (bound := bound_in(part)) is not None:
            statement.refuse(f"{bound.name} is known when a window has closed, and is the same for all its rows", bound)
    return replace(statement, select=select)


def _join_windows(statement: Statement, select: exp.Select) -> None:
    """Take out a.window_end = b.window_end, which is so in a join of windows; raise if it is not said of windows that
    were written as functions: other engines would join rows of all windows."""
    holders = [(select, "where"), *((join, "on") for join in select.args.get("joins") or ())]
    met: set[str] = set()
    for holder, name in holders:
        part = holder.args.get(name)
        if part is None:
            continue
        parts = parts_of([part.this if name == "where" else part])
        others = [one for one in parts if not _joins_windows(one)]
        met |= {side.unnest().meta[_TABLE] for one in parts if _joins_windows(one) for side in one.iter_expressions()}
        if len(others) < len(parts):
            whole = exp.and_(*others, copy=False) if others else None
            holder.set(name, None if whole is None else exp.Where(this=whole) if name == "where" else whole)
    named = [one for one in statement.inputs if one.source.function is not None]
    apart = next((one for one in named if len(named) > 1 and one.alias.lower() not in met), None)
    if apart is not None:
        statement.refuse(
            "No condition says that the rows of a join are in the same window",
            apart.source.function,
            f"Write AND {named[0].alias}.window_end = {named[1].alias}.window_end.",
        )


def _joins_windows(condition: exp.Expr) -> bool:
    if not isinstance(condition, exp.EQ) or not (is_bound(condition.this) and is_bound(condition.expression)):
        return False
    one, other = condition.this.unnest(), condition.expression.unnest()
    return one.name == other.name and one.meta.get(_TABLE) != other.meta.get(_TABLE)


def _take_out(statement: Statement, part: exp.Expr, name: str, clause: str) -> None:
    listed: Iterable[exp.Expr] = part.args.get(name) or ()
    kept = [one for one in listed if not is_bound(one)]
    if statement.function is not None and not any(_tells_apart(statement, one) for one in listed):
        statement.refuse(
            f"{clause} does not separate the windows of {statement.function.name}",
            _place(part, statement),
            f"Write {clause} window_start, window_end, ….",
        )
    part.set(name, kept)


def _is_of_window(statement: Statement, node: exp.Expr) -> bool:
    """Is it a bound of a window, or a column that has one?"""
    node = node.this if isinstance(node, exp.Ordered) else node
    is_column = isinstance(node.unnest(), exp.Column) and node.unnest().name in carried_by(statement.function)
    return is_column or is_bound(node)


def _tells_apart(statement: Statement, node: exp.Expr) -> bool:
    """Does it tell windows apart by itself? Where the end is a column, several may begin at one moment."""
    is_end = isinstance(node.unnest(), exp.Column) and node.unnest().name == BOUNDS[1]
    return is_bound(node) or (is_end and carried_by(statement.function) == BOUNDS)


def _place(part: exp.Expr, statement: Statement) -> exp.Expr | None:
    return part if next((one for one in part.walk() if "start" in one.meta), None) is not None else statement.function
