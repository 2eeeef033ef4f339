"""What the problems read from a statement alike: windows, the ranking, expressions over the rows of one input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.grammar import Span, StreamWindow
from skyband.dialect.statement import Input, Statement
from skyband.errors import SkybandError
from skyband.windows import Window, landmark, sliding

_ROWS = ("ROW", "ROWS")


@dataclass(frozen=True)
class Ranking:
    """ORDER BY one thing, LIMIT k, perhaps for each value of some columns."""

    by: exp.Expr
    ascending: bool
    k: int
    per: tuple[exp.Expr, ...] = ()


def window_of(
    statement: Statement, one: Input, schema: pa.Schema, *, sizes: bool = False
) -> tuple[Window, str | int | None]:
    """The window of an input, and how long it waits for late rows. `sizes`: a column may say how long each one is."""
    said = one.window or statement.window
    if said is not None and (column := said.args.get("column") or said.args.get("often")) and not sizes:
        statement.refuse(
            "Only where there is a ranking for each query can a column say how long its window is, or its slide",
            column,
            "Write FROM taxis [WINDOW q.last UP TO 100 ROWS], people AS q … LIMIT 1 BY q.id.",
        )
    if said is None:
        statement.refuse(
            f"{one.name!r} has no window, so its answer would need every row there ever was",
            one.node,
            "Say how much of it counts: [WINDOW 1 HOUR EVERY 1 MINUTE], [WINDOW 1000 ROWS] or [WINDOW UNTIL NOW].",
        )
    size, every, lateness = (_span(said.args.get(name)) for name in ("this", "every", "lateness"))
    on = _on_column(statement, one, said, schema)
    order = said.args["order"].name if said.args.get("order") else None
    for name, node in ((on, said.args.get("on")), (order, said.args.get("order"))):
        if name is not None and name not in schema.names:
            statement.refuse(f"There is no column {name!r}", node, _near(name, schema.names))
    try:
        if size is None:
            window = landmark(every=every, on=on, order=order)
        else:
            window = sliding(size, every=every, on=on, order=order)
        window.ticks(schema)
    except SkybandError as error:
        statement.refuse(str(error), one.node)
    return window, lateness


def _span(span: Span | None) -> str | int | None:
    if span is None:
        return None
    unit = span.args.get("unit")
    if unit is None or unit.name in _ROWS:
        return int(span.this.name) if span.this.name.isdigit() else span.this.name
    return f"{span.this.name} {unit.name.lower()}"


def _on_column(statement: Statement, one: Input, said: StreamWindow, schema: pa.Schema) -> str | None:
    spans = [said.args[name] for name in ("this", "every") if said.args.get(name)]
    units = {span.args["unit"].name if span.args.get("unit") else None for span in spans}
    if units & set(_ROWS):
        if said.args.get("on") or units - set(_ROWS):
            statement.refuse("A window counts rows or measures a column, not both", one.node)
        return None
    if said.args.get("on"):
        return str(said.args["on"].name)
    if units == {None}:
        statement.refuse(
            "A window of plain numbers must say what it counts",
            one.node,
            "ROWS: [WINDOW 1000 ROWS]; or a column of whole numbers: [WINDOW 600 EVERY 60 ON t].",
        )
    moments = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    if len(moments) != 1:
        what = f"{', '.join(moments)} are timestamps" if moments else "it has no timestamp column"
        statement.refuse(
            f"Which column of {one.name!r} the window measures must be said: {what}", one.node, "Write ON column."
        )
    return moments[0]


def ranking_of(statement: Statement) -> Ranking:
    """ORDER BY … LIMIT k, LIMIT k BY …, or QUALIFY ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) <= k."""
    select = statement.select
    if qualify := select.args.get("qualify"):
        return _qualified(statement, qualify)
    order, limit = select.args.get("order"), select.args.get("limit")
    if order is None or limit is None:
        missing = "ORDER BY" if order is None else "LIMIT"
        statement.refuse(
            f"There is no {missing}, so all rows of every window would have to be shown",
            None,
            "Possible: ORDER BY … DESC LIMIT 10; LIMIT 10 BY column; GROUP BY with aggregates.",
        )
    by, ascending = _order(statement, order)
    per = tuple(limit.expressions or ())
    return Ranking(by, ascending, count_of(statement, limit.expression), per)


def _qualified(statement: Statement, qualify: exp.Expr) -> Ranking:
    possible = "Possible: QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) <= 10."
    condition = qualify.this
    window = condition.this if isinstance(condition, (exp.LTE, exp.LT, exp.EQ)) else None
    if not isinstance(window, exp.Window) or not isinstance(window.this, exp.RowNumber):
        statement.refuse("QUALIFY can only ask for the first rows", condition, possible)
    if statement.select.args.get("order") or statement.select.args.get("limit"):
        statement.refuse("QUALIFY ranks already, so ORDER BY and LIMIT have nothing left to say", condition)
    if window.args.get("order") is None:
        statement.refuse("ROW_NUMBER() needs an ORDER BY", condition, possible)
    k = count_of(statement, condition.expression)
    if isinstance(condition, exp.LT):
        k -= 1
    if isinstance(condition, exp.EQ) and k != 1:
        statement.refuse("Only the first rows can be asked for: ROW_NUMBER() = 1, or <= k", condition, possible)
    if k < 1:
        statement.refuse("No row has a number below 1", condition, possible)
    by, ascending = _order(statement, window.args["order"])
    return Ranking(by, ascending, k, tuple(window.args.get("partition_by") or ()))


def _order(statement: Statement, order: exp.Expr) -> tuple[exp.Expr, bool]:
    if len(order.expressions) != 1:
        statement.refuse(
            "Rows are ranked by one score",
            order.expressions[1],
            "Write one expression; of rows with equal scores the more recent comes first.",
        )
    ordered = order.expressions[0]
    # Spark's own order of nulls is not said by the user. Rows without a score are never ranked, first or last.
    return ordered.this, not ordered.args.get("desc")


def count_of(statement: Statement, node: exp.Expr | None) -> int:
    if not isinstance(node, exp.Literal) or not node.is_int or int(node.name) < 1:
        statement.refuse("How many rows must be a whole number, at least 1", node)
    return int(node.name)


def with_aliases_resolved(statement: Statement, tree: exp.Expr) -> exp.Expr:
    """`tree` with what the SELECT list calls a name in place of that name, where no input has such a column itself."""
    named = {one.alias: one.this for one in statement.select.expressions if isinstance(one, exp.Alias)}

    def expand(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in named:
            return exp.Paren(this=named[node.name].copy()) if named[node.name] != node else node
        return node

    return tree.transform(expand)


def quoted(name: str) -> str:
    """A name as a statement writes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def row_text(tree: exp.Expr) -> str:
    """An expression over the rows of one input as text, its columns by their plain names."""

    def plain(node: exp.Expr) -> exp.Expr:
        return exp.column(exp.to_identifier(node.name, quoted=True)) if isinstance(node, exp.Column) else node

    tree = tree.unnest()
    return tree.name if isinstance(tree, exp.Column) else tree.transform(plain).sql(dialect="spark")


def all_of(conditions: list[exp.Expr]) -> str | None:
    """Conditions on the rows of one input as one text; None: there are none."""
    return " AND ".join(f"({row_text(condition)})" for condition in conditions) or None


def columns_read(trees: Iterable[exp.Expr], alias: str, schema: pa.Schema, window: Window | None) -> tuple[str, ...]:
    """The columns of an input that these expressions and its window read, as they stand in it."""
    read = {column.name for tree in trees for column in tree.find_all(exp.Column) if column.table in ("", alias)}
    if window is not None:
        read |= {name for name in (window.on, window.order) if name is not None}
    return tuple(name for name in schema.names if name in read)


def check_columns(statement: Statement, tree: exp.Expr, schemas: dict[str, pa.Schema]) -> None:
    """Raise unless every column that `tree` names is there; `schemas` by alias."""
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        if column.table and column.table not in schemas:
            statement.refuse(f"There is no input {column.table!r}", column, f"Inputs: {', '.join(schemas)}.")
        owners = [
            alias for alias, schema in schemas.items() if column.table in ("", alias) and column.name in schema.names
        ]
        if not owners:
            columns = [
                name for alias, schema in schemas.items() if column.table in ("", alias) for name in schema.names
            ]
            statement.refuse(f"There is no column {column.name!r}", column, _near(column.name, columns))
        if len(owners) > 1:
            statement.refuse(
                f"{column.name!r} is a column of {' and of '.join(owners)}", column, f"Write {owners[0]}.{column.name}."
            )


def _near(name: str, columns: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, columns, n=1)
    return (f"Did you mean {near[0]!r}? " if near else "") + f"Columns: {', '.join(columns)}."
