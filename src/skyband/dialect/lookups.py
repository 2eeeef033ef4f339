"""Tables that say something of each row of a stream: a join with one is a step before the row's window.

    SELECT … FROM bid [WINDOW …] JOIN person p ON bid.bidder = p.id …

A table has no window: it is there from the start. Its columns become columns of the stream; of a SEMI and an ANTI JOIN
only whether there is a row of it matters. An inner join of groups stays a join, which can be aggregated early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.core.encoding.schemas import is_key
from skyband.core.encoding.value_types import common_key_type
from skyband.dialect import text as texts
from skyband.dialect.columns import Item, qualified
from skyband.dialect.partners import refuse_join
from skyband.dialect.query_spec import Lookup
from skyband.dialect.reading import all_of, check_conditions, owners_of
from skyband.dialect.semi_joins import ANTI, KINDS, OUTSIDE, SEMI, SUBQUERY
from skyband.dialect.statement import Input, Statement
from skyband.expressions.grammar import parts_of, rewritten

Schemas = Mapping[str, pa.Schema]

INNER, LEFT = "inner", "left"
_LEFT = "Put the stream first: FROM stream [WINDOW …] LEFT JOIN {0} ON …."
_ON = "Possible: equal columns of both, as in ON t.id = p.id, and conditions on columns of {0}; all joined by AND."


class Asked(NamedTuple):
    """An input of which only matters whether it has a row like that of a stream."""

    one: Input
    kind: str  # "semi" or "anti"
    conditions: list[exp.Expr]  # resolved


def split(statement: Statement, visible: Schemas) -> tuple[Statement, list[Asked], list[Asked]]:
    """The statement without its SEMI and ANTI joins, and these, resolved: with tables, and with windows. `visible`: the
    columns by alias."""
    apart = [place for place, join in enumerate(statement.joins) if join.kind in KINDS]
    if not apart:
        return statement, [], []
    others = [one for place, one in enumerate(statement.inputs) if place - 1 not in apart]
    tables: list[Asked] = []
    windows: list[Asked] = []
    for place in apart:
        join, one = statement.joins[place], statement.inputs[place + 1]
        is_table = one.window is None and (statement.window is None or join.meta.get(SUBQUERY))
        if statement.has_full_join:
            refuse_join(statement, join.side or join.kind, one, f"{join.kind} JOIN is not supported beside FULL JOIN")
        on = _resolved_on(statement, join, one, others, visible)
        (tables if is_table else windows).append(Asked(one, join.kind.lower(), on))
    select = statement.select.copy()
    select.set("joins", [join for place, join in enumerate(select.args["joins"]) if place not in apart])
    return replace(statement, select=select, inputs=tuple(others)), tables, windows


def _resolved_on(
    statement: Statement, join: exp.Join, one: Input, others: Sequence[Input], visible: Schemas
) -> list[exp.Expr]:
    """The conditions of a join by itself, whose table nothing else sees."""
    alone = join.copy()
    alone.set("side", None)
    alone.set("kind", None)
    if join.meta.get(SUBQUERY) and alone.args.get("on"):
        for column in alone.args["on"].find_all(exp.Column):
            nearest = [other.alias for other in others] if column.meta.get(OUTSIDE) else [one.alias]
            owners = [alias for alias in nearest if _has(visible[alias], column.name)]
            if not column.table and len(owners) == 1:
                column.set("table", exp.to_identifier(owners[0]))
    first, *rest = (exp.Table(this=exp.to_identifier(other.alias)) for other in others)
    select = exp.Select(
        expressions=[exp.Literal.number(1)],
        from_=exp.From(this=first),
        joins=[*(exp.Join(this=table) for table in rest), alone],
    )
    schemas = {each.alias: visible[each.alias] for each in (*others, one)}
    made, _ = qualified(statement, select, schemas)
    on = made.args["joins"][-1].args.get("on")
    return parts_of([on]) if on is not None else []


def with_lookups(
    statement: Statement, schemas: Schemas, asked: Sequence[Asked]
) -> tuple[Statement, dict[str, pa.Schema]]:
    """The statement with a step of a stream in place of each table that it is joined with, row by row."""
    found = dict(schemas)
    for each in asked:
        statement, found = _Fold(statement, found, *each).made()
    while (place := _next_left(statement)) is not None:
        join, one = statement.joins[place], statement.inputs[place + 1]
        on = parts_of([join.args["on"]]) if join.args.get("on") else []
        needed = _table_of(statement, one, on)
        fold = _Fold(statement, found, one, LEFT, on) if needed is None else _inner(statement, found, needed)
        statement, found = fold.made()
    if not statement.is_grouped:
        while (table := _next_table(statement)) is not None:
            statement, found = _inner(statement, found, table).made()
    return statement, found


def _next_left(statement: Statement) -> int | None:
    """The place of a LEFT JOIN with a table; raises if one keeps the rows of a table."""
    for place, join in enumerate(statement.joins):
        one, first = statement.inputs[place + 1], statement.inputs[0]
        if join.side == "LEFT" and _is_table(statement, one):
            return place
        if _is_outer(join) and not any(each.window for each in statement.inputs) and statement.window is None:
            refuse_join(
                statement, join.side, one, f"{join.side} JOIN is not supported with a table", _LEFT.format(first.alias)
            )
        if join.side == "LEFT" and _is_table(statement, first):
            refuse_join(
                statement,
                "LEFT",
                one,
                f"LEFT JOIN keeps the rows on its left, where {first.alias!r} is a table",
                f"Put the stream first: FROM {one.name} [WINDOW …] LEFT JOIN {first.name} ON ….",
            )
        if join.side == "RIGHT" and (_is_table(statement, first) or _is_table(statement, one)):
            refuse_join(statement, "RIGHT", one, "RIGHT JOIN is not supported with a table", _LEFT.format(first.alias))
    return None


def _inner(statement: Statement, schemas: Schemas, table: Input) -> _Fold:
    """An inner join with a table, by all conditions that read it, but for those of another's LEFT JOIN."""
    read = [each for each in _where(statement) if table.alias in owners_of(each)]
    return _Fold(statement, schemas, table, INNER, read)


def _where(statement: Statement) -> list[exp.Expr]:
    """What WHERE and inner joins ask for. The same in a LEFT JOIN means something else."""
    where = statement.take("where")
    inner = [join.args["on"] for join in statement.joins if not join.side and join.args.get("on")]
    return parts_of([*([where.this] if where else []), *inner])


def _table_of(statement: Statement, one: Input, on: list[exp.Expr]) -> Input | None:
    """Another table, which `one` says something of: it has to be joined with the stream first."""
    others = {key[0].table for condition in on if (key := _key(condition, one.alias)) is not None}
    tables = [each for each in statement.inputs if each.alias in others and _is_table(statement, each)]
    return tables[0] if tables else None


def _is_table(statement: Statement, one: Input) -> bool:
    """Is it there from the start? Where nothing has a window, the first input is what is answered row by row."""
    if statement.window is not None or one.window is not None:
        return False
    if any(other.name == one.name and other.window is not None for other in statement.inputs):
        return False  # the stream itself, whose rows are paired
    return any(other.window is not None for other in statement.inputs) or one is not statement.inputs[0]


def _next_table(statement: Statement) -> Input | None:
    """A table whose columns are set equal to those of the only stream; None: there is none, or it has the queries."""
    streams = [one.alias for one in statement.inputs if not _is_table(statement, one)]
    if len(streams) != 1 or len(statement.inputs) == 1:
        return None
    tables = [one for one in statement.inputs if one.alias != streams[0]]
    if len(tables) == 1 and _has_queries(statement, tables[0]):
        return None
    for one in tables:
        if any(_key(condition, one.alias, streams[0]) for condition in _where(statement)):
            return one
    if not any(one.window is not None for one in statement.inputs):
        statement.refuse(f"No condition joins {tables[0].alias!r} with {streams[0]!r}", tables[0].node, _ON.format("p"))
    return None


def _has_queries(statement: Statement, table: Input) -> bool:
    """Is there a ranking for each of its rows? Then it is a table of subscriptions."""
    if any(join.args.get("on") for join in statement.joins):
        return False
    limit, window = statement.select.args.get("limit"), [one.window for one in statement.inputs if one.window]
    trees = [limit] if limit is not None else []
    trees += [
        each for ranking in statement.select.find_all(exp.Window) for each in ranking.args.get("partition_by") or ()
    ]
    trees += [each for item in statement.items for each in item.tree.find_all(exp.Window)]
    sizes = any(one.args.get("column") or one.args.get("often") for one in window)
    return sizes or any(table.alias in owners_of(tree) for tree in trees)


def _nullable(statement: Statement) -> set[str]:
    """The inputs whose columns are null in rows without a partner."""
    pairs = zip(statement.joins, statement.inputs[1:], strict=True)
    return {(statement.inputs[0] if join.side == "RIGHT" else one).alias for join, one in pairs if _is_outer(join)}


def _is_outer(join: exp.Join) -> bool:
    return join.side in ("LEFT", "RIGHT")


def _has(schema: pa.Schema, name: str) -> bool:
    return any(column.lower() == name.lower() for column in schema.names)


def _key(condition: exp.Expr, mine: str, other: str | None = None) -> tuple[exp.Column, exp.Column] | None:
    """The columns that a condition sets equal: that of another input, and one of `mine`."""
    if not isinstance(condition, exp.EQ):
        return None
    sides = [condition.this.unnest(), condition.expression.unnest()]
    if not all(isinstance(side, exp.Column) for side in sides):
        return None
    sides.sort(key=lambda side: side.table == mine)
    first, last = sides
    is_key = first.table != mine and last.table == mine and other in (None, first.table)
    return (first, last) if is_key else None


class _Fold:
    """One table, on its way to become a step of the stream that it says something of."""

    def __init__(self, statement: Statement, schemas: Schemas, one: Input, how: str, on: list[exp.Expr]) -> None:
        self._statement, self._schemas, self._one, self._how, self._on = statement, schemas, one, how, on

    def made(self) -> tuple[Statement, dict[str, pa.Schema]]:
        mine, statement = self._one.alias, self._statement
        keys = [key for condition in self._on if (key := self._key(condition)) is not None]
        own = [condition for condition in self._on if owners_of(condition) == {mine}]
        rest = [each for each in self._on if each not in own and self._key(each) is None]
        self._check_rest(rest)
        stream = self._stream(keys)
        check_conditions(statement, own, self._schemas[mine])
        seen = self._schemas[stream.alias]
        taken = set(seen.names)
        added: dict[str, str] = {}
        for name in self._wanted([condition for condition in self._on if condition not in rest]):
            added[name] = free_name(name, taken)
            taken.add(added[name])
        fields = [
            self._schemas[mine].field(name).with_name(called).with_nullable(True) for name, called in added.items()
        ]
        whole = pa.schema([*seen, *fields])
        needed = tuple(dict.fromkeys([*(its.name for _, its in keys), *added]))
        lookup = Lookup(
            self._how,
            self._one.rows(all_of(own), needed),
            tuple((other.name, its.name) for other, its in keys),
            tuple((called, name) for name, called in added.items()),
            whole,
        )
        changed = replace(stream, views=(*stream.views, lookup))
        inputs = [changed if each.alias == stream.alias else each for each in statement.inputs if each.alias != mine]
        schemas = {alias: schema for alias, schema in self._schemas.items() if alias != mine}
        made = self._put(added, stream.alias, rest)
        return replace(made, inputs=tuple(inputs)), {**schemas, stream.alias: whole}

    def _key(self, condition: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
        """As `_key`; what an inner join says of another table waits for that one."""
        key = _key(condition, self._one.alias)
        tables = [one.alias for one in self._statement.inputs if _is_table(self._statement, one)]
        return None if key is None or (self._how == INNER and key[0].table in tables) else key

    def _check_rest(self, rest: list[exp.Expr]) -> None:
        for condition in rest:
            is_about_stream = self._one.alias not in owners_of(condition)
            if self._how != INNER and not (self._how == SEMI.lower() and is_about_stream):
                self._statement.refuse(
                    f"This condition must read columns of {self._one.alias} alone",
                    condition,
                    _ON.format(self._one.alias),
                )

    def _stream(self, keys: list[tuple[exp.Column, exp.Column]]) -> Input:
        """The input that the table says something of."""
        statement, one = self._statement, self._one
        if not keys:
            statement.refuse(
                f"No condition joins {one.alias!r}, so each of its rows would match every other",
                one.node,
                _ON.format(one.alias),
            )
        for other, its in keys:
            kinds = {
                f"{column.table}.{column.name}": self._schemas[column.table].field(column.name).type
                for column in (other, its)
            }
            statement.attempt(lambda kinds=kinds: common_key_type(kinds), other)  # type: ignore[misc]
            if not all(map(is_key, kinds.values())):
                statement.refuse(f"A {next(iter(kinds.values()))} cannot be a join column", other)
        first = keys[0][0].table
        for other, _ in keys:
            if other.table != first:
                statement.refuse(f"{one.alias!r} is joined with {first!r} and {other.table!r}", other)
        stream = next(each for each in statement.inputs if each.alias == first)
        others = [each for each in statement.inputs if each.alias != one.alias and not _is_table(statement, each)]
        is_ranked = any(statement.select.args.get(clause) for clause in ("order", "limit", "qualify"))
        if is_ranked and not statement.is_grouped and len(others) == 2 and others[0].is_same_as(others[1]):
            statement.refuse(f"{one.alias!r} can be joined with one stream, or without ORDER BY", one.node)
        if _is_table(statement, stream):
            statement.refuse(f"{one.alias!r} is joined with {first!r}, which is no stream", one.node)
        if self._how != LEFT and first in _nullable(statement):
            statement.refuse(
                f"{first!r} may be without a row here, so only LEFT JOIN can join {one.alias!r} with it", one.node
            )
        return stream

    def _wanted(self, used: list[exp.Expr]) -> list[str]:
        """The columns of the table that something else reads, in their order there."""
        statement, mine = self._statement, self._one.alias
        if self._how in (SEMI.lower(), ANTI.lower()):
            return []
        select = statement.select.copy()
        for clause in ("expressions", "joins", "where"):  # items stand for the list; conditions are told apart below
            select.set(clause, None)
        others = [
            join.args["on"] for join in statement.joins if join.side and join.args.get("on") and not self._is(join)
        ]
        trees = [select, *(item.tree for item in self._items()), *statement.kept, *self._conditions(used), *others]
        read = {column.name for tree in trees for column in tree.find_all(exp.Column) if column.table == mine}
        return [name for name in self._schemas[mine].names if name in read]

    def _conditions(self, used: list[exp.Expr]) -> list[exp.Expr]:
        """What WHERE still asks for."""
        return [each for each in _where(self._statement) if self._how != INNER or each not in used]

    def _is(self, join: exp.Join) -> bool:
        """Is it the join of this table?"""
        aliases = [one.alias for one in self._statement.inputs[1:]]
        return aliases[self._statement.joins.index(join)] == self._one.alias

    def _items(self) -> tuple[Item, ...]:
        """The SELECT list; a column that both have by USING is shown once by a star."""
        both = {its.name for condition in self._on if (key := self._key(condition)) for its in key[1:]}
        using = {name for name in both if self._is_using(name)}
        return tuple(
            item
            for item in self._statement.items
            if not (
                item.is_starred
                and item.tree.unnest() in [exp.column(name, self._one.alias, quoted=True) for name in using]
            )
        )

    def _is_using(self, name: str) -> bool:
        return any(name.lower() in (join.meta.get("using") or ()) for join in self._statement.joins)

    def _put(self, added: Mapping[str, str], stream: str, rest: list[exp.Expr]) -> Statement:
        """The statement over the columns of the stream, without the table."""
        statement, mine = self._statement, self._one.alias

        def put(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.table != mine or node.name not in added:
                return node
            column = exp.column(
                exp.to_identifier(added[node.name], quoted=True), exp.to_identifier(stream, quoted=True)
            )
            if (place := texts.place_of(node)) is not None:
                column.meta["start"] = place
            return column

        used = [condition for condition in self._on if condition not in rest]
        is_seen = mine in {one.alias for one in statement.inputs}
        conditions = list(dict.fromkeys([*self._conditions(used), *rest]))
        select = statement.select.copy()
        joins = list(select.args.get("joins") or ())
        if is_seen:
            place = [one.alias for one in statement.inputs].index(mine)
            del joins[max(0, place - 1)]
            if place == 0:
                select.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(statement.inputs[1].alias))))
        for join in joins:
            if not join.side:
                join.set("on", None)
        select.set("joins", joins)
        select.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
        return replace(
            statement,
            select=cast(exp.Select, rewritten(select, put)),
            items=tuple(replace(item, tree=rewritten(item.tree, put)) for item in self._items()),
            kept=tuple(rewritten(condition, put) for condition in statement.kept),
        )
