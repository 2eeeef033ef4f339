"""Names, resolved by sqlglot: each column of a statement gets its input and the name that it has there.

Names are found in any case, as in Spark. Columns come before the names of the SELECT list, but in ORDER BY and HAVING.
A query in WITH or FROM becomes a view of its input: nothing is substituted, its columns are columns from then on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from skyband import expressions
from skyband.core.encoding.output import free_name
from skyband.dialect.carried_windows import told_apart, with_windows_of_rows
from skyband.dialect.columns import Item, check_name, qualified, renamed
from skyband.dialect.levels import put_together
from skyband.dialect.lookups import split, with_lookups
from skyband.dialect.nodes import BOUNDS, WHOLE_TABLE, StreamWindow
from skyband.dialect.partners import with_partners
from skyband.dialect.query_spec import LINES, Rows, View
from skyband.dialect.reading import all_of, check_conditions, measured_column, row_text
from skyband.dialect.semi_joins import SUBQUERY
from skyband.dialect.sources import Step
from skyband.dialect.statement import Input, Statement
from skyband.dialect.window_bounds import carried_by, settle_bounds


def resolved(statement: Statement, schemas: Mapping[str, pa.Schema]) -> tuple[Statement, dict[str, pa.Schema]]:
    """The statement with every name resolved, and the columns of its inputs by alias; `schemas` by the names that
    inputs were given under."""
    within = [False, *(bool(join.meta.get(SUBQUERY)) for join in statement.joins)]  # where no window is meant
    found = [
        _viewed(replace(statement, window=None) if is_within else statement, one, schemas[one.name])
        for one, is_within in zip(statement.inputs, within, strict=True)
    ]
    visible = {one.alias: seen for one, seen, _ in found}
    statement = replace(statement, inputs=tuple(one for one, _, _ in found))
    statement, tables, hidden = split(statement, visible)
    visible = {one.alias: visible[one.alias] for one in statement.inputs}
    windows = [
        one.alias
        for one in statement.inputs
        if (one.window or statement.window) and carried_by(one.source.function) != BOUNDS and not one.source.is_whole
    ]
    select, items = qualified(statement, statement.select, visible, expand=not statement.has_full_join, windows=windows)
    if statement.function is not None:
        items = _with_bounds(items)
    made = told_apart(settle_bounds(put_together(replace(statement, select=select, items=items))), visible)
    return with_partners(*with_lookups(made, {one.alias: whole for one, _, whole in found}, tables), hidden)


def plain_rows(statement: Statement, schemas: Mapping[str, pa.Schema], *, by_place: bool = False) -> Rows:
    """The rows that a statement asks for which does no more than compute columns and filter: see `is_plain`.
    `by_place`: its columns are known by their place, so that two may have the same name."""
    if len(statement.inputs) > 1:
        return _joined_rows(statement, schemas, by_place=by_place)
    (one,) = statement.inputs
    schema = schemas[one.name]
    step = Step(statement.select, one.alias, (), "the answer", by_place)
    viewed, _, _ = _viewed(statement, replace(one, source=one.source.then(step)), schema)
    return Rows(one.name, views=viewed.views)


def _joined_rows(statement: Statement, schemas: Mapping[str, pa.Schema], *, by_place: bool) -> Rows:
    """The same with what tables say of each row."""
    statement, by_alias = resolved(statement, schemas)
    (one,) = statement.inputs
    seen = by_alias[one.alias]
    items = renamed(statement, statement.items, (), "the answer", by_place=by_place)
    columns, fields = _computed(statement, items, seen)
    check_conditions(statement, statement.conditions, seen)
    view = View(all_of(statement.conditions), tuple(columns), pa.schema(fields), is_plain=False)
    return Rows(one.name, views=(*one.views, view))


def _computed(
    statement: Statement, items: tuple[Item, ...], seen: pa.Schema
) -> tuple[list[tuple[str, str]], list[pa.Field]]:
    """The columns of a SELECT list over these: name and text of each, and its field."""
    columns, fields = [], []
    for item in items:
        text = row_text(item.tree)
        value = statement.attempt(lambda text=text: expressions.bind_value(text, seen), item.tree)  # type: ignore[misc]
        is_column = isinstance(item.tree.unnest(), exp.Column)
        fields.append(seen.field(text).with_name(item.name) if is_column else pa.field(item.name, value.type))
        columns.append((item.name, text))
    return columns, fields


def _with_bounds(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """A star over a window that was written as a table function stands for its bounds, too."""
    last = max((place for place, item in enumerate(items) if item.is_starred), default=None)
    if last is None:
        return items
    there = {item.name for item in items}
    bounds = (Item(name, exp.var(name), is_named=False, is_starred=True) for name in BOUNDS if name not in there)
    return (*items[: last + 1], *bounds, *items[last + 1 :])


def _viewed(statement: Statement, one: Input, schema: pa.Schema) -> tuple[Input, pa.Schema, pa.Schema]:
    """The input with what WITH and FROM do to its rows; the columns that a statement sees, and all there are."""
    window = one.window or statement.window
    level = len(one.source.steps) if one.window is None else one.source.level
    is_numbered = statement.is_about_tables and schema.names[-1:] == [WHOLE_TABLE]  # nobody sees that column
    seen, whole = schema.remove(len(schema) - 1) if is_numbered else schema, schema
    carried: tuple[str | None, str | None] = (None, None)
    for number, step in enumerate((*one.source.steps, None)):
        if number == level:
            carried = _measured(statement, one, window, seen if number else whole)
            if one.name != LINES and (names := carried_by(one.source.function)):
                one, whole = with_windows_of_rows(statement, replace(one, on=carried[0]), whole)
                seen, carried = pa.schema([*seen, *map(whole.field, names)]), (one.on, None)
        if step is not None:
            view, seen, carried = _view(statement, step, seen, whole, carried)
            one, whole = replace(one, views=(*one.views, view)), view.schema
    return replace(one, on=carried[0], order=carried[1]), seen, whole


def _measured(
    statement: Statement, one: Input, window: StreamWindow | None, schema: pa.Schema
) -> tuple[str | None, str | None]:
    """The columns that a window reads: what it measures, and what orders its rows."""
    if window is None:
        return None, None
    order = window.args.get("order")
    return (
        measured_column(statement, one, window, schema),
        None if order is None else check_name(statement, order, schema),
    )


def _view(
    statement: Statement,
    step: Step,
    seen: pa.Schema,
    whole: pa.Schema,
    carried: tuple[str | None, str | None],
) -> tuple[View, pa.Schema, tuple[str | None, str | None]]:
    """A query in WITH or FROM as a view of its input. What its window reads goes along, shown or not."""
    select, items = qualified(statement, step.select, {step.alias: seen})
    items = renamed(statement, items, step.names, step.called, by_place=step.by_place)
    body = replace(statement, select=select)
    columns, fields = _computed(statement, items, seen)
    check_conditions(statement, body.conditions, seen)
    shown = pa.schema(fields)
    there = {text: name for name, text in columns if text in seen.names}
    along: list[str | None] = []
    for name in carried:
        if name is not None and name not in there:
            there[name] = free_name(name, {column for column, _ in columns})
            columns.append((there[name], name))
            fields.append(whole.field(name).with_name(there[name]))
        along.append(None if name is None else there[name])
    is_plain = all(name == text and text in whole.names for name, text in columns)
    view = View(all_of(body.conditions), tuple(columns), pa.schema(fields), is_plain)
    return view, shown, (along[0], along[1])
