"""The columns of one SELECT: sqlglot finds of which input each is, and what a name of the SELECT list stands for."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.schema import MappingSchema

from skyband.dialect import text as texts
from skyband.dialect.window_bounds import mark_bounds

if TYPE_CHECKING:
    from skyband.dialect.statement import Statement

Schemas = Mapping[str, pa.Schema]

_WRITTEN = "written"  # how a name was written
_NAMED = "named"  # the name that AS gave


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list, with the name it has there."""

    name: str
    tree: exp.Expr
    is_named: bool  # by AS
    is_starred: bool = False  # a star stands for it

    @property
    def is_star(self) -> bool:
        return bool(self.tree.is_star)


def qualified(
    statement: Statement,
    select: exp.Select,
    schemas: Schemas,
    *,
    expand: bool = True,
    windows: Collection[str] = (),
) -> tuple[exp.Select, tuple[Item, ...]]:
    """A SELECT with each column as input.column, and its list with stars written out. `schemas` by alias, in the order
    of FROM; those of `windows` have a window, whose bounds can be named."""
    select = select.copy()
    select.set("with_", None)
    for holder, alias in zip([select.args["from_"], *(select.args.get("joins") or ())], schemas, strict=True):
        holder.set("this", exp.Table(this=exp.to_identifier(alias)))
    _check_stars(statement, select, schemas)
    _name_items(select)
    mark_bounds(
        select, {alias.lower() for alias in windows}, {name.lower() for each in schemas.values() for name in each.names}
    )
    for identifier in select.find_all(exp.Identifier):
        identifier.meta[_WRITTEN] = identifier.name
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", True)
    joined = _without_using(statement, select, schemas)
    star = next((texts.place_of(item) for item in select.expressions if item.is_star), None)
    columns: dict[str, object] = {
        alias.lower(): {name.lower(): "INT" for name in schema.names} for alias, schema in schemas.items()
    }
    known = MappingSchema(columns, dialect="spark", normalize=False)
    _check_ordinals(statement, select)
    try:
        qualify_columns(select, known, expand_stars=expand, allow_partial_qualification=True)
    except SqlglotError as error:
        statement.refuse(f"The names in this statement cannot be resolved: {error}")
    for join, using in joined:
        join.set("using", using)
    items = _settled(statement, select, schemas)
    for item in items:
        if item.is_starred and star is not None:  # what is wrong with it is wrong there
            item.tree.meta["start"] = star
    return select, items


def renamed(
    statement: Statement, items: tuple[Item, ...], names: tuple[str, ...], called: str, *, by_place: bool = False
) -> tuple[Item, ...]:
    """The columns of a query that is called so, by the names it was given: WITH c(x, y) AS … No two may be alike, but
    where columns are known `by_place`."""
    if names:
        if len(names) != len(items):
            where = items[0].tree if items else None
            statement.refuse(f"{called!r} names {len(names)} columns and has {len(items)}", where)
        items = tuple(replace(item, name=name) for item, name in zip(items, names, strict=True))
    if by_place:
        return tuple(replace(item, name=str(place)) for place, item in enumerate(items, start=1))
    taken: set[str] = set()
    for item in items:
        if item.name.lower() in taken:
            statement.refuse(f"Two columns of {called!r} are called {item.name!r}", item.tree, "Write x AS name.")
        taken.add(item.name.lower())
    return items


def _check_stars(statement: Statement, select: exp.Select, schemas: Schemas) -> None:
    """Raise if a star leaves out or replaces what is not there, which sqlglot would pass over, or if it stands for two
    columns of one name."""
    for item in select.expressions:
        of = item.args.get("table") if isinstance(item, exp.Column) else None
        for alias, schema in schemas.items() if item.is_star else ():
            if of is None or of.name.lower() == alias.lower():
                _check_told_apart(statement, item, schema)
    there = {name.lower() for schema in schemas.values() for name in schema.names}
    for star in select.find_all(exp.Star):
        for part in ("except_", "replace"):
            for one in star.args.get(part) or ():
                name = one.alias if part == "replace" else one.name
                if name.lower() not in there:
                    refuse_name(statement, name, one, [name for one in schemas.values() for name in one.names])


def _check_told_apart(statement: Statement, star: exp.Expr, schema: pa.Schema) -> None:
    by_lower: dict[str, str] = {}
    for name in schema.names:
        other = by_lower.setdefault(name.lower(), name)
        if other != name:
            statement.refuse(
                f"The star stands for {other!r} and {name!r}, which differ only in case",
                star,
                f"Name the columns: SELECT {other} AS a, {name} AS b.",
            )


def _name_items(select: exp.Select) -> None:
    """Give each item of the SELECT list the name that its column has: as it was written."""
    listed = []
    for item in select.expressions:
        if not item.is_star:
            tree, named = item.unalias(), isinstance(item, exp.Alias)
            plain = named or isinstance(item, exp.Column)
            name = item.alias_or_name if plain else item.sql(dialect="spark")
            item = exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))
            item.meta[_NAMED] = named
        listed.append(item)
    select.set("expressions", listed)


def _without_using(
    statement: Statement, select: exp.Select, schemas: Schemas
) -> list[tuple[exp.Join, list[exp.Identifier]]]:
    """Write USING as ON; of a FULL JOIN, where it is more than that, only take it out for now. The column itself is
    that of the first input that has it."""
    aliases, kept = list(schemas), []
    first: dict[str, str] = {}
    for place, join in enumerate(select.args.get("joins") or (), start=1):
        using = list(join.args.get("using") or ())
        join.set("using", None)
        join.meta["using"] = [column.name for column in using]
        for column in using:
            owners = [alias for alias in aliases[:place] if _has(schemas[alias], column.name)]
            if not owners or not _has(schemas[aliases[place]], column.name):
                statement.refuse(
                    f"USING names {column.meta.get(_WRITTEN, column.name)!r}, which no other input has", column
                )
            first.setdefault(column.name, owners[0])
            if join.side != "FULL":
                pair = (exp.column(column.copy(), alias.lower(), quoted=True) for alias in (owners[0], aliases[place]))
                join.set(
                    "on", exp.and_(join.args.get("on"), exp.EQ(this=next(pair), expression=next(pair)), copy=False)
                )
        if join.side == "FULL" and using:
            kept.append((join, using))
    for column in select.find_all(exp.Column):
        if not column.table and column.name in first and not column.is_star:
            column.set("table", exp.to_identifier(first[column.name].lower(), quoted=True))
    return kept


def _has(schema: pa.Schema, name: str) -> bool:
    return any(column.lower() == name for column in schema.names)


def _check_ordinals(statement: Statement, select: exp.Select) -> None:
    """Raise at ORDER BY 9 and GROUP BY 0, where there are fewer columns."""
    if any(item.is_star for item in select.expressions):
        return  # how many they are is known later
    lists = [select.args[name].expressions for name in ("group", "order") if select.args.get(name)]
    for one in (one.this if isinstance(one, exp.Ordered) else one for each in lists for one in each):
        _check_ordinal(statement, one, len(select.expressions))


def _check_ordinal(statement: Statement, one: exp.Expr, columns: int) -> None:
    if isinstance(one, exp.Literal) and one.is_int and not 1 <= int(one.name) <= columns:
        statement.refuse(f"There is no column {one.name}: the SELECT list has {columns}", one)


def _settled(statement: Statement, select: exp.Select, schemas: Schemas) -> tuple[Item, ...]:
    """Give columns the names they have in the inputs, and put what a name of the SELECT list means in its place."""
    for column in select.find_all(exp.Column):
        if column.table:
            _settle(statement, column, schemas)
    items = _items(select)
    for clause in ("having", "qualify", "order", "limit"):
        if part := select.args.get(clause):
            for column in [*part.find_all(exp.Column)]:
                if not column.table and not column.is_star:
                    meant = exp.Paren(this=_meant(statement, column, items, schemas).copy())
                    if (place := texts.place_of(column)) is not None:  # where it is used, not where it is defined
                        meant.meta["start"] = place
                    column.replace(meant)
    order = select.args.get("order")
    for ordered in order.expressions if order else ():
        if isinstance(ordered.this, exp.Literal) and ordered.this.is_int:
            _check_ordinal(statement, ordered.this, len(items))
            ordered.set("this", items[int(ordered.this.name) - 1].tree.copy())
    for column in select.find_all(exp.Column):
        if not column.table and not column.is_star:
            refuse_column(statement, column, schemas)
    return items


def _items(select: exp.Select) -> tuple[Item, ...]:
    found = []
    for item in select.expressions:
        if item.is_star:
            found.append(Item("*", item, is_named=False))
            continue
        # Of what a star stands for, sqlglot knows no name but the one that is looked for.
        tree, written = item.unalias(), item.args["alias"].meta.get(_WRITTEN)
        name = written or (tree.name if isinstance(tree, exp.Column) else item.alias)
        found.append(Item(name, tree, bool(item.meta.get(_NAMED)), is_starred=_NAMED not in item.meta))
    return tuple(found)


def _meant(statement: Statement, column: exp.Column, items: tuple[Item, ...], schemas: Schemas) -> exp.Expr:
    """What a name in ORDER BY or the like stands for."""
    trees = {item.tree for item in items if item.name.lower() == column.name}
    if not trees:
        refuse_column(statement, column, schemas)
    if len(trees) > 1:
        name = column.this.meta.get(_WRITTEN, column.name)
        statement.refuse(f"Several columns of the SELECT list are called {name!r}", column, "Write x AS name.")
    return trees.pop()


def _settle(statement: Statement, column: exp.Column, schemas: Schemas) -> None:
    alias = next((alias for alias in schemas if alias.lower() == column.table.lower()), None)
    if alias is None:
        written = column.args["table"].meta.get(_WRITTEN, column.table)
        statement.refuse(f"There is no input {written!r}", column, f"Inputs: {', '.join(schemas)}.")
    _rename(column.args["table"], alias)
    if not column.is_star:
        _rename(column.this, check_name(statement, column.this, schemas[alias]))


def _rename(identifier: exp.Expr, name: str) -> None:
    identifier.set("this", name)
    identifier.set("quoted", True)


def settled(statement: Statement, column: exp.Column, schemas: Schemas) -> exp.Column:
    """A column of one of these inputs by the names that they have."""
    column = column.copy()
    _settle(statement, column, schemas)
    return column


def check_name(statement: Statement, said: exp.Expr, schema: pa.Schema) -> str:
    """The column of that name, in whatever case it was written; raises if there is none, or more than one."""
    written = str(said.meta.get(_WRITTEN, said.name))
    if written in schema.names:
        return written
    found = [name for name in schema.names if name.lower() == written.lower()]
    if len(found) > 1:
        statement.refuse(f"{written!r} may be {' or '.join(found)}", said, "Use the upper and lower case of the input.")
    if not found:
        refuse_name(statement, written, said, schema.names)
    return found[0]


def refuse_column(statement: Statement, column: exp.Column, schemas: Schemas) -> Any:
    """Raise what is wrong with a column of which no input was found."""
    name = column.this.meta.get(_WRITTEN, column.name)
    owners = [alias for alias, schema in schemas.items() if _has(schema, column.name)]
    if len(owners) > 1:
        statement.refuse(f"{name!r} is a column of {' and of '.join(owners)}", column, f"Write {owners[0]}.{name}.")
    refuse_name(statement, name, column, [name for schema in schemas.values() for name in schema.names])


def refuse_name(statement: Statement, name: str, where: exp.Expr, columns: Iterable[str]) -> Any:
    known = list(columns)
    by_lower = {column.lower(): column for column in reversed(known)}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f"Did you mean {by_lower[near[0]]!r}? " if near else ""
    if not near and isinstance(where.parent, (exp.EQ, exp.NEQ, exp.In, exp.Like)):
        hint = f"Put strings in quotes: '{name.strip('‘’“”')}'. "
    texts.refuse(statement.text, f"There is no column {name!r}", where, f"{hint}Columns: {', '.join(known)}.")
