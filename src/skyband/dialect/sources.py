"""The FROM clause: inputs, and the row-wise steps of WITH and subqueries before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from skyband.dialect import text as texts
from skyband.dialect.nodes import Stream, StreamWindow

ROW_WISE = "A common table expression (WITH name AS …) may compute columns and filter rows of one input."


@dataclass(frozen=True)
class Step:
    """A SELECT of one input that computes columns and filters rows."""

    select: exp.Select
    alias: str  # what it calls its input
    names: tuple[str, ...]  # of its columns, where it was given any: WITH c(x, y) AS …
    called: str = field(compare=False)  # what it is called itself
    by_place: bool = False  # are its columns known by their place?


@dataclass(frozen=True)
class Source:
    """The input behind a name in FROM."""

    name: str  # that it was given under
    steps: tuple[Step, ...] = ()  # what becomes of its rows, in this order
    window: StreamWindow | None = None
    level: int = 0  # how many of the steps come before the window
    function: exp.Expr | None = None  # TUMBLE, HOP or window(), where that is how it was written
    is_whole: bool = False  # is its window the whole table? See `whole_tables`

    def then(self, step: Step) -> Source:
        return replace(self, steps=(*self.steps, step))


Known = Mapping[str, Source]


def sources_of(text: str, select: exp.Select) -> list[tuple[str, Source, exp.Expr]]:
    """The inputs of a statement, as alias, source and the place in the tree."""
    found = _from(text, select, _with(text, select, {}))
    check_queries(text, select)
    return found


def check_queries(text: str, select: exp.Select) -> None:
    """Raise at a query that stands elsewhere than in FROM and WITH."""
    for part in select.find_all(exp.Subquery, exp.Union, exp.Exists, exp.Select):
        if part is not select and not stands_in_from(part):
            texts.refuse(text, "Skyband does not support a subquery here", part, ROW_WISE)


def stands_in_from(part: exp.Expr) -> bool:
    """Is it a query in FROM, in a JOIN or in WITH?"""
    parent = part.parent
    while isinstance(parent, (exp.Subquery, Stream)):
        parent = parent.parent
    return isinstance(parent, (exp.From, exp.Join, exp.CTE))


def _with(text: str, select: exp.Select, known: Known) -> Known:
    """What is known by name inside a SELECT."""
    known = dict(known)
    tables = select.args["with_"].expressions if select.args.get("with_") else []
    for place, table in enumerate(tables):
        if table.alias.lower() in {one.alias.lower() for one in tables[:place]}:
            texts.refuse(text, f"WITH has two tables that are called {table.alias!r}", table, "Rename one of them.")
        known[table.alias.lower()] = _read(text, table.this, table, known)
    return known


def _from(text: str, select: exp.Select, known: Known) -> list[tuple[str, Source, exp.Expr]]:
    start = select.args.get("from_")
    if start is None:
        texts.refuse(
            text,
            "There is no FROM",
            texts.place_of_last(text, "SELECT"),
            "Name the inputs: SELECT … FROM trades [WINDOW 1 HOUR].",
        )
    found: list[tuple[str, Source, exp.Expr]] = []
    for holder in (start, *(select.args.get("joins") or ())):
        node = holder.this.this if isinstance(holder.this, Stream) else holder.this
        source = _source(text, holder.this, node, known)
        alias = node.alias_or_name or "_" * (len(found) + 1)  # a query in FROM need not have a name
        if alias.lower() in {other.lower() for other, _, _ in found}:
            possible = "Give each its own name: FROM t AS a, t AS b."
            texts.refuse(text, f"Two inputs are called {alias!r}", node, possible)
        found.append((alias, source, node))
    return found


def _source(text: str, holder: exp.Expr, node: exp.Expr, known: Known) -> Source:
    if isinstance(node, exp.Subquery):
        source = _read(text, node.this, node, known)
    elif not isinstance(node, exp.Table) or not node.name:
        texts.refuse(text, "FROM takes the name of an input; pass its rows to sb.sql under that name", node)
    elif node.args.get("db"):
        texts.refuse(text, f"{node.sql()!r} has a name in two parts", node, "Inputs have plain names.")
    else:
        source = known.get(node.name.lower(), Source(node.name))
        if node.args.get("alias") and node.args["alias"].columns:
            texts.refuse(text, "The columns of an input keep their names", node.args["alias"].columns[0], ROW_WISE)
    if not isinstance(holder, Stream):
        return source
    if source.window is not None:
        texts.refuse(text, f"{node.alias_or_name!r} has a window already, where it is defined", node)
    return replace(source, window=holder.args["window"], level=len(source.steps), function=holder.args.get("function"))


def _named(called: str) -> str:
    return repr(called) if called else "A query in FROM"


NOT_ROW_WISE: Final = ("group", "having", "joins", "order", "limit", "qualify")


def _read(text: str, body: exp.Expr, table: exp.Expr, known: Known) -> Source:
    """What a query in WITH or in FROM reads."""
    called = table.alias
    if not isinstance(body, exp.Select) or any(body.args.get(clause) for clause in NOT_ROW_WISE):
        texts.refuse(
            text, f"{_named(called)} does more than compute columns and filter rows of one input", table, ROW_WISE
        )
    where = body.args.get("where")
    for part in (*body.expressions, *([where] if where else [])):
        if part.find(exp.AggFunc, exp.Window, exp.Subquery, exp.Exists):
            texts.refuse(text, f"{_named(called)} needs more than one row at a time", table, ROW_WISE)
    ((alias, source, _),) = _from(text, body, _with(text, body, known))
    names = tuple(column.name for column in table.args["alias"].columns) if table.args.get("alias") else ()
    return source.then(Step(body, alias, names, called))
