"""A statement, understood: which inputs, which windows, what is asked. What it means is for the problems to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar, cast

from sqlglot import exp

from skyband.core.emit import MODES
from skyband.dialect import text as texts
from skyband.dialect.grammar import Stream, StreamWindow
from skyband.errors import InvalidSql, SkybandError

T = TypeVar("T")


@dataclass(frozen=True)
class Input:
    """An input, by the name it was given under and the name the statement calls it by."""

    name: str
    alias: str
    window: StreamWindow | None
    node: exp.Expr


@dataclass(frozen=True)
class Statement:
    """What a text says."""

    text: str
    select: exp.Select  # its common table expressions are written into it
    inputs: tuple[Input, ...]
    window: StreamWindow | None  # for all inputs
    emit: str | None
    error: float | None
    recall: float | None
    bounds: tuple[float, float] | None
    explain: str | None  # "PLAN" or "ANALYZE"

    def refuse(self, why: str, where: exp.Expr | None = None, possible: str = "") -> NoReturn:
        texts.refuse(self.text, why, where, possible)

    def attempt(self, make: Callable[[], T], where: exp.Expr | None = None) -> T:
        """What `make` makes; what it complains of is shown in the text."""
        try:
            return make()
        except InvalidSql:
            raise
        except SkybandError as error:
            self.refuse(str(error), where)

    @property
    def is_grouped(self) -> bool:
        """Does it ask for aggregates?"""
        grouped = self.select.args.get("group") is not None
        return grouped or any(item.find(exp.AggFunc) for item in self.select.expressions)

    @property
    def has_full_join(self) -> bool:
        return any(join.side == "FULL" for join in self.select.args.get("joins") or ())

    @property
    def conditions(self) -> list[exp.Expr]:
        """What WHERE and ON ask for, each by itself."""
        where = self.select.args.get("where")
        found = [*where.this.flatten()] if where and isinstance(where.this, exp.And) else [where.this] if where else []
        for join in self.select.args.get("joins") or ():
            if on := join.args.get("on"):
                found += [*on.flatten()] if isinstance(on, exp.And) else [on]
        return [condition.unnest() for condition in found]


def understand(text: str) -> Statement:
    """The statement in `text`; raises `InvalidSql` where it cannot be one."""
    tree = texts.read(text)
    select = tree.this
    if not isinstance(select, exp.Select):
        texts.refuse(text, f"{select.key.upper()} cannot be answered as a stream goes by", select, _ONE_SELECT)
    select = _without_tables_of_its_own(text, select)
    for clause, why in _REFUSED.items():
        if found := select.args.get(clause):
            texts.refuse(text, why, found if isinstance(found, exp.Expr) else None)
    if inner := next((part for part in select.find_all(exp.Subquery, exp.Union, exp.Exists)), None):
        texts.refuse(text, "A query inside a query cannot be answered as a stream goes by", inner, _ROW_WISE)
    number = {name: tree.args.get(name) for name in ("error", "recall")}
    bounds = tree.args.get("bounds")
    return Statement(
        text=text,
        select=select,
        inputs=_inputs(text, select),
        window=tree.args.get("window"),
        emit=_emit(text, tree.args.get("emit")),
        error=None if number["error"] is None else float(number["error"].name),
        recall=None if number["recall"] is None else float(number["recall"].name),
        bounds=None if bounds is None else (_number(bounds.expressions[0]), _number(bounds.expressions[1])),
        explain=tree.args["explain"].name if tree.args.get("explain") else None,
    )


_ONE_SELECT = "Possible: one SELECT."
_ROW_WISE = "A common table expression (WITH name AS …) may compute columns and filter rows of one input."
_REFUSED = {
    "distinct": "DISTINCT is not supported: equal rows are rows of their own",
    "offset": "OFFSET is not supported: the best k are asked for, from the first on",
    "laterals": "LATERAL VIEW is not supported",
    "windows": "WINDOW name AS (…) is not supported; a stream's window stands in brackets: [WINDOW 1 HOUR]",
    "cluster": "CLUSTER BY has no meaning here",
    "distribute": "DISTRIBUTE BY has no meaning here",
    "sort": "SORT BY has no meaning here; ORDER BY ranks",
    "sample": "TABLESAMPLE is not supported",
    "pivots": "PIVOT is not supported",
}


def _emit(text: str, said: exp.Expr | None) -> str | None:
    if said is None:
        return None
    word = said.name.lower()
    if word not in MODES:
        possible = ", ".join(f"EMIT {mode.upper()}" for mode in MODES)
        texts.refuse(
            text,
            f"EMIT {said.name} is unknown",
            None,
            f"Possible: {possible}.",
        )
    return word


def _number(node: exp.Expr) -> float:
    return -float(node.this.name) if isinstance(node, exp.Neg) else float(node.name)


def _inputs(text: str, select: exp.Select) -> tuple[Input, ...]:
    start = select.args.get("from_")
    if start is None:
        texts.refuse(text, "There is no FROM", None, "Name the inputs: SELECT … FROM trades [WINDOW 1 HOUR].")
    nodes = [start.this, *(join.this for join in select.args.get("joins") or ())]
    inputs = [_input(text, node) for node in nodes]
    seen: set[str] = set()
    for one in inputs:
        if one.alias.lower() in seen:
            texts.refuse(
                text, f"Two inputs are called {one.alias!r}", one.node, "Give one another name: FROM t AS a, t AS b."
            )
        seen.add(one.alias.lower())
    return tuple(inputs)


def _input(text: str, node: exp.Expr) -> Input:
    window = None
    if isinstance(node, Stream):
        window, node = node.args["window"], node.this
    if not isinstance(node, exp.Table) or not node.name:
        texts.refuse(text, "An input is named, and given to sb.sql by that name", node)
    if node.args.get("db"):
        texts.refuse(text, f"{node.sql()!r} has a name in two parts", node, "Inputs have plain names.")
    return Input(node.name, node.alias_or_name, window, node)


# -- common table expressions ------------------------------------------------------------------------------------------


def _without_tables_of_its_own(text: str, select: exp.Select) -> exp.Select:
    """The statement with every WITH name AS (SELECT … FROM one input WHERE …) written out where it is used."""
    defined = select.args.pop("with_", None)
    known: dict[str, exp.Select] = {}
    for table in defined.expressions if defined else ():
        body = table.this
        if not isinstance(body, exp.Select) or any(body.args.get(clause) for clause in _NOT_ROW_WISE):
            texts.refuse(
                text, f"{table.alias!r} does more than compute columns and filter rows of one input", table, _ROW_WISE
            )
        if body.find(exp.AggFunc, exp.Window, exp.Subquery):
            texts.refuse(text, f"{table.alias!r} needs more than one row at a time", table, _ROW_WISE)
        known[table.alias] = _written_out(text, body, known)
    return _written_out(text, select, known)


_NOT_ROW_WISE = ("group", "having", "joins", "order", "limit", "qualify", "distinct", "with_")


def _written_out(text: str, select: exp.Select, known: dict[str, exp.Select]) -> exp.Select:
    start = select.args.get("from_")
    nodes = [start.this, *(join.this for join in select.args.get("joins") or ())] if start else []
    for node in nodes:
        table = node.this if isinstance(node, Stream) else node
        if isinstance(table, exp.Table) and table.name in known:
            select = _inlined(text, select, table, known[table.name])
    return select


def _inlined(text: str, select: exp.Select, table: exp.Table, body: exp.Select) -> exp.Select:
    """`select` with the input of `body` in place of `table`, and its expressions in place of its columns."""
    alias = table.alias_or_name
    source = body.args["from_"].this
    if isinstance(source, Stream):
        if isinstance(table.parent, Stream):
            texts.refuse(text, f"{table.name!r} has a window already, where it is defined", table)
        source_table = source.this
    else:
        source_table = source
    computed = {one.alias_or_name: one.unalias() for one in body.expressions if not one.is_star}
    passes_all = any(one.is_star for one in body.expressions)
    shared = len([*select.find_all(exp.Table)]) > 1

    def expand(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.table not in ("", alias):
            return node
        if node.name in computed:
            tree = _called(computed[node.name].copy(), alias if shared or node.table else "")
            return tree if isinstance(tree, exp.Column) else exp.Paren(this=tree)
        if not passes_all and node.table == alias:
            texts.refuse(text, f"{table.name!r} has no column {node.name!r}", node, f"It has: {', '.join(computed)}.")
        return node

    named = [
        exp.alias_(one, one.name) if isinstance(one, exp.Column) and one.name in computed else one
        for one in select.expressions
    ]
    stars = [] if passes_all else [exp.alias_(exp.column(name, alias), name) for name in computed]
    listed = [part for one in named for part in (stars if one.is_star and not passes_all else [one])]
    select = select.copy()
    select.set("expressions", [one.copy() for one in listed])
    select = cast(exp.Select, select.transform(expand))
    for found in select.find_all(exp.Table):
        if found.name == table.name and found.alias_or_name == alias:
            replacement = exp.alias_(exp.to_table(source_table.name), alias, table=True)
            if isinstance(source, Stream):
                replacement = Stream(this=replacement, window=source.args["window"].copy())
            found.replace(replacement)
    if where := body.args.get("where"):
        select = select.where(_called(where.this.copy(), alias), copy=False)
    return select


def _called(tree: exp.Expr, alias: str) -> exp.Expr:
    """The expression with its columns said to be of `alias`."""
    for column in tree.find_all(exp.Column):
        column.set("table", exp.to_identifier(alias) if alias else None)
    return tree
