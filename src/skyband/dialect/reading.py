"""What the problems read from a statement alike: windows, the ranking, expressions over the rows of one input."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.columns import check_name
from skyband.dialect.grammar import SkybandSql
from skyband.dialect.nodes import Span, StreamWindow
from skyband.dialect.query_spec import Shown
from skyband.dialect.spans import ROWS as _ROWS
from skyband.dialect.spans import check_forget, check_spans, check_units
from skyband.dialect.statement import Input, Statement, in_sql
from skyband.errors import InvalidSql, SkybandError
from skyband.expressions.grammar import rewritten
from skyband.windows import Window, landmark, sliding


def window_of(
    statement: Statement, one: Input, schema: pa.Schema, *, sizes: bool = False, forgets: bool = False
) -> tuple[Window, str | int | None]:
    """The window of an input, and how long it waits for late rows. `sizes`: a column may say how long each one is.
    `forgets`: it may say when groups are forgotten; see `forget_after`."""
    said = one.window or statement.window
    if said is not None and (forget := said.args.get("forget")) is not None and not forgets:
        statement.refuse("FORGET AFTER is for rows that are ranked in groups", forget, "Leave FORGET AFTER out.")
    if said is not None and (column := said.args.get("column") or said.args.get("often")) and not sizes:
        statement.refuse(
            "A column can set the size or slide of a window only in a ranking for each query",
            column,
            "Write FROM taxis [WINDOW q.last UP TO 100 ROWS], people AS q … LIMIT 1 BY q.id.",
        )
    if said is None:
        statement.refuse(
            f"{one.name!r} has no window, so an answer would need every row since the start",
            one.node,
            "Give it a window: [WINDOW 1 HOUR EVERY 1 MINUTE], [WINDOW 1000 ROWS] or [WINDOW UNTIL NOW].",
        )
    if said.args.get("forget") is None or one.on is None:  # else `forget_after` complains
        check_spans(statement, said, schema, one.on)
    size, every, lateness = (_span(said.args.get(name)) for name in ("this", "every", "lateness"))
    try:
        if size is None:
            window = landmark(every=every, on=one.on, order=one.order)
        else:
            window = sliding(size, every=every, on=one.on, order=one.order)
        window.ticks(schema)
        if window.by_count and window.order is None and one.name in {union.name for union in statement.unions}:
            statement.refuse(
                "This window counts arrivals, but the rows of a UNION ALL have no order of arrival",
                said.args.get("this") or one.node,
                "Name the column that defines it: [WINDOW 10 ROWS ORDER BY seq].",
            )
        _check_multiple(statement, one, window)
    except InvalidSql:
        raise
    except SkybandError as error:
        guilty = "every" if str(error).startswith("every") else "this"
        statement.refuse(in_sql(str(error)), said.args.get(guilty) or said.args.get("on") or one.node)
    return window, lateness


def forget_after(
    statement: Statement, one: Input, window: Window, per: tuple[exp.Expr, ...], schema: pa.Schema
) -> str | int | None:
    """How long a group of a window of rows may be silent, if that is said."""
    said = one.window or statement.window
    span = None if said is None else said.args.get("forget")
    if span is not None:
        check_forget(statement, span, window, per, schema)
    return _span(span)


def _check_multiple(statement: Statement, one: Input, window: Window) -> None:
    """Raise where other engines have other windows: theirs begin on multiples of the slide, ours end there."""
    if one.source.function is not None and window.size % window.every:  # type: ignore[operator]
        statement.refuse(
            f"The size of a window must be a multiple of its slide, but {window.size} is none of {window.every}",
            one.source.function,
        )


def _span(span: Span | None) -> str | int | None:
    if span is None:
        return None
    unit = span.args.get("unit")
    if unit is None or unit.name in _ROWS:
        return int(span.this.name) if span.this.name.isdigit() else span.this.name
    return f"{span.this.name} {unit.name.lower()}"


def measured_column(statement: Statement, one: Input, said: StreamWindow, schema: pa.Schema) -> str | None:
    """The column that a window measures, among these; None: it counts rows."""
    check_units(statement, said)
    spans = [said.args[name] for name in ("this", "every") if said.args.get(name)]
    units = {span.args["unit"].name if span.args.get("unit") else None for span in spans}
    if units & set(_ROWS):
        if said.args.get("on") or units - set(_ROWS):
            statement.refuse("A window counts rows or measures a column, not both", said.args.get("on") or spans[-1])
        return None
    if said.args.get("on"):
        return check_name(statement, said.args["on"], schema)
    if units == {None}:
        statement.refuse(
            "A window of plain numbers must say what it counts",
            spans[0],
            "Write ROWS: [WINDOW 1000 ROWS]; or name a column of whole numbers: [WINDOW 600 EVERY 60 ON t].",
        )
    moments = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    if len(moments) != 1:
        what = f"{', '.join(moments)} are timestamps" if moments else "it has no timestamp column"
        statement.refuse(
            f"Which column of {one.name!r} the window measures is unclear: {what}", one.node, "Write ON column."
        )
    return moments[0]


def quoted(name: str) -> str:
    """A name as a statement writes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


_PLAIN = re.compile(r"[A-Za-z_]\w*")


def written(name: str) -> exp.Identifier:
    """A name in an expression: in quotes where it could be taken for something else."""
    is_plain = _PLAIN.fullmatch(name) is not None and name.upper() not in SkybandSql.Tokenizer.KEYWORDS
    return exp.to_identifier(name, quoted=not is_plain)


def row_text(tree: exp.Expr) -> str:
    """An expression over the rows of one input as text; a column alone is its name."""
    tree = tree.unnest()
    return tree.name if isinstance(tree, exp.Column) else _row_text(tree)


def _row_text(tree: exp.Expr) -> str:
    def plain(node: exp.Expr) -> exp.Expr:
        return exp.column(written(node.name)) if isinstance(node, exp.Column) else node

    return rewritten(tree, plain).sql(dialect="spark", copy=False)


def key_text(tree: exp.Expr) -> str:
    """A sort key as text: of a column alone, its name as a statement writes it."""
    return _row_text(tree.unnest())


def all_of(conditions: list[exp.Expr]) -> str | None:
    """Conditions on the rows of one input as one text; None: there are none."""
    return " AND ".join(f"({_row_text(condition)})" for condition in conditions) or None


def check_conditions(statement: Statement, conditions: list[exp.Expr], schema: pa.Schema) -> None:
    """Raise at the first condition on the rows of one input that is none."""
    whole = all_of(conditions)
    if whole is None:
        return
    try:
        expressions.bind_condition(whole, schema, used_as="WHERE")
    except SkybandError:
        for condition in conditions:
            check = partial(expressions.bind_condition, row_text(condition), schema, used_as="WHERE")
            statement.attempt(check, condition)
        raise


def check_value(statement: Statement, tree: exp.Expr, schema: pa.Schema, where: exp.Expr) -> None:
    """Raise if an expression over these columns has no value; `where` is what the statement says."""
    statement.attempt(lambda: expressions.bind_value(row_text(tree), schema), where)


def owners_of(tree: exp.Expr) -> set[str]:
    """The inputs whose columns an expression reads."""
    return {column.table for column in tree.find_all(exp.Column)}


def columns_read(trees: Iterable[exp.Expr], alias: str, schema: pa.Schema, window: Window | None) -> tuple[str, ...]:
    """The columns of an input that these expressions and its window read, as they stand in it."""
    read = {column.name for tree in trees for column in tree.find_all(exp.Column) if column.table == alias}
    if window is not None:
        read |= {name for name in (window.on, window.order) if name is not None}
    return tuple(name for name in schema.names if name in read)


def only(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """These columns of an input."""
    return pa.schema([schema.field(name) for name in names])


def shown_columns(lead: Iterable[str], items: Iterable[tuple[str, exp.Expr]]) -> tuple[Shown, ...]:
    """First what every answer has, then the SELECT list: a name, which gets underscores if it is taken, and an
    expression over the columns of the answer."""
    shown = [Shown(name, name, is_plain=True) for name in lead]
    taken = {one.name for one in shown}
    for name, tree in items:
        shown.append(Shown(free_name(name, taken), row_text(tree), is_plain=isinstance(tree.unnest(), exp.Column)))
        taken.add(shown[-1].name)
    return tuple(shown)
