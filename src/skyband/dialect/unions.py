"""UNION ALL in FROM and WITH: the rows of several queries, each of one input, become an input of their own.

    SELECT … FROM (SELECT id, price FROM a UNION ALL SELECT id, cost FROM b) AS u [WINDOW 1 HOUR ON ts] …

The tree then reads `SELECT * FROM` an input that is called after those behind it, and no later stage knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.sources import stands_in_from

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement

_ONE_AT_A_TIME = (
    "Each part may compute columns and filter rows: SELECT id, price FROM a WHERE price > 0 UNION ALL SELECT …"
)


@dataclass(frozen=True)
class Union:
    """Rows of several queries one after the other, as an input of this name."""

    name: str
    parts: tuple[Statement, ...]


def whole_select(query: exp.Expr) -> exp.Expr:
    """A statement that is a UNION ALL as a SELECT of all its rows."""
    if not isinstance(query, exp.Union):
        return query
    around, tables = exp.select("*"), query.args.pop("with_", None)
    parent = query.parent
    around.set("from_", exp.From(this=exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("_")))))
    around.set("with_", tables)
    if parent is not None:
        parent.set("this", around)
    return around


def taken_unions(text: str, select: exp.Select, understood: Callable[[exp.Select], Statement]) -> tuple[Union, ...]:
    """The unions of a statement, each with the parts that `understood` makes of its queries; in the tree, an input
    stands for each of them."""
    found: list[Union] = []
    for union in list(_outermost(select)):
        parts = tuple(_part(text, query, union, understood) for query in _queries(union))
        name = " + ".join(one.name for part in parts for one in part.leaves)
        while name.lower() in {other.name.lower() for other in found}:
            name += " again"
        found.append(Union(name, parts))
        rows = exp.select("*")
        rows.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(name, quoted=True))))
        if (place := texts.place_of(union)) is not None:
            rows.args["from_"].this.meta["start"] = place
        union.replace(rows)
    return tuple(found)


def _outermost(select: exp.Select) -> Iterator[exp.Union]:
    for union in select.find_all(exp.Union):
        if union.find_ancestor(exp.Union) is None and stands_in_from(union):
            yield union


def _queries(union: exp.Expr) -> Iterator[exp.Expr]:
    for query in (union.this, union.expression):
        query = query.unnest()
        yield from _queries(query) if isinstance(query, exp.Union) else (query,)


def _part(text: str, query: exp.Expr, union: exp.Union, understood: Callable[[exp.Select], Statement]) -> Statement:
    if not isinstance(query, exp.Select):
        texts.refuse(text, "UNION ALL combines queries", query, _ONE_AT_A_TIME)
    tables = _needed(query, list(_known(union)))
    query = query.copy()
    if tables:
        own = query.args["with_"].expressions if query.args.get("with_") else []
        query.set("with_", exp.With(expressions=[*(table.copy() for table in tables), *own]))
    part = understood(query)
    if not part.is_plain:
        window = next((one.node for one in part.inputs if one.window is not None), None)
        why = (
            "Write the window after the whole union"
            if window is not None
            else "Each part may only compute columns and filter rows"
        )
        texts.refuse(text, f"UNION ALL appends rows. {why}", window or query, _ONE_AT_A_TIME)
    return part


def _known(union: exp.Expr) -> Iterator[exp.CTE]:
    """What WITH defines around a union and before it, the outermost first."""
    levels: list[list[exp.CTE]] = []
    node: exp.Expr | None = union
    while node is not None:
        around = node.parent
        if isinstance(around, exp.With):
            levels.append(around.expressions[: around.expressions.index(node)])
            around = around.parent.parent if around.parent is not None else None  # past the query whose WITH this is
        elif node.args.get("with_"):
            levels.append(node.args["with_"].expressions)
        node = around
    for level in reversed(levels):
        yield from level


def _needed(query: exp.Expr, tables: list[exp.CTE]) -> list[exp.CTE]:
    """Those of the definitions that a query reads, itself or by way of others."""
    needed: list[exp.CTE] = []
    names = {table.name.lower() for table in query.find_all(exp.Table)}
    for table in reversed(tables):
        if table.alias.lower() in names:
            needed.insert(0, table)
            names |= {one.name.lower() for one in table.this.find_all(exp.Table)}
    return needed
