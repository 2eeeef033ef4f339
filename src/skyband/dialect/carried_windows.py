"""Windows that rows carry with them, as columns: those of CUMULATE, and of SESSION.

CUMULATE(bid, ts, step, size) has windows that begin on multiples of `size` and grow by `step`. A sliding window of that
size holds all rows of the growing one, and rows of the one before: so each row says where its own begins, groups are
told apart by that, and of each window only the groups that begin within it are shown.

SESSION(bid, ts, gap) has windows that end with a pause. Rows wait until their session has ended; then they come with
both of its bounds, all that ended at one moment in a window of that moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

import pyarrow as pa
from sqlglot import exp

from skyband.core.encoding.output import free_name
from skyband.dialect.columns import check_name
from skyband.dialect.nodes import BOUNDS, Span, StreamWindow
from skyband.dialect.query_spec import LINES, Sessions, View
from skyband.dialect.reading import quoted, window_of
from skyband.dialect.statement import Input, Statement
from skyband.dialect.window_bounds import carried_by, length_of
from skyband.windows import sliding

_CLOCK: Final = "the end of its session"


def with_windows_of_rows(statement: Statement, one: Input, schema: pa.Schema) -> tuple[Input, pa.Schema]:
    """The input, the column of whose window is known, with columns for the bounds that its rows carry."""
    function = one.source.function
    assert function is not None
    taken = next((name for name in schema.names if name.lower() in carried_by(function)), None)
    if taken is not None:
        statement.refuse(
            f"{one.name!r} has a column {taken!r} already, as {function.name} gives it",
            function,
            f"Give it another name: FROM {function.name}((SELECT {taken} AS other, … FROM {one.name}), …).",
        )
    return (_cumulating if function.name == "CUMULATE" else _in_sessions)(statement, one, schema)


def _cumulating(statement: Statement, one: Input, schema: pa.Schema) -> tuple[Input, pa.Schema]:
    window, _ = window_of(statement, one, schema)
    on, ticks = quoted(str(one.on)), window.ticks(schema)
    if pa.types.is_timestamp(schema.field(one.on).type):
        micros = cast("exp.Interval", length_of(window.size or 0)).name
        start = f"DATE_BIN(INTERVAL '{micros}' MICROSECONDS, {on})"
    else:
        start = f"{on} - ({on} % {ticks.size} + {ticks.size}) % {ticks.size}"
    whole = schema.append(pa.field(BOUNDS[0], schema.field(one.on).type))
    columns = (*((name, name) for name in schema.names), (BOUNDS[0], start))
    return replace(one, views=(*one.views, View(None, columns, whole, is_plain=False))), whole


def _in_sessions(statement: Statement, one: Input, schema: pa.Schema) -> tuple[Input, pa.Schema]:
    said = cast("StreamWindow", one.window)
    window, _ = window_of(statement, one, schema)
    gap = sliding(window.size or 0, on=one.on).ticks(schema).size
    by = tuple(check_name(statement, name, schema) for name in said.args.get("per") or ())
    clock, kind = free_name(_CLOCK, set(schema.names)), schema.field(one.on).type
    bounds = (pa.field(name, kind) for name in BOUNDS)
    whole = pa.schema([*schema, *bounds, pa.field(clock, pa.int64())])
    moment = Span(this=exp.Literal.number(1))
    own = StreamWindow(this=moment, every=moment.copy(), on=exp.to_identifier(clock, quoted=True))
    step = Sessions(str(one.on), gap, by, clock, whole)
    source = replace(one.source, window=own)
    return replace(one, source=source, views=(*one.views, step), on=clock), whole


def told_apart(statement: Statement, schemas: Mapping[str, pa.Schema]) -> Statement:
    """The statement, resolved, with the start of windows that grow wherever windows are told apart."""
    function = statement.function
    if not (names := carried_by(function)) or statement.inputs[0].name == LINES:
        return statement
    (one, *others) = statement.inputs
    if others:
        statement.refuse(
            f"{cast('exp.Expr', function).name} takes one input, but this statement joins it with another",
            function,
            "A join takes TUMBLE and HOP, or windows such as FROM bid [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    for name in names:
        if name not in schemas[one.alias].names:
            statement.refuse(f"The query in FROM does not show {name}", function, f"Write SELECT {name}, ….")
    if cast("exp.Expr", function).name == "SESSION":  # whose bounds are columns, and nothing else
        return statement
    start = exp.column(exp.to_identifier(names[0], quoted=True), exp.to_identifier(one.alias, quoted=True))
    select, items = statement.select.copy(), [item.tree.copy() for item in statement.items]
    for tree in (select, *items):
        for ranking in tree.find_all(exp.Window):
            _add(ranking, "partition_by", start)
    for clause in ("group", "limit"):
        if (listed := select.args.get(clause)) is not None:
            _add(listed, "expressions", start)
    # A sliding window also holds what began before.
    window, _ = window_of(statement, one, schemas[one.alias])
    latest = exp.Paren(this=exp.Add(this=start.copy(), expression=length_of(window.size or 0)))
    kept = (*statement.kept, exp.LTE(this=exp.var(BOUNDS[1]), expression=latest))
    made = tuple(replace(item, tree=tree) for item, tree in zip(statement.items, items, strict=True))
    return replace(statement, select=select, items=made, kept=kept)


def _add(holder: exp.Expr, name: str, column: exp.Column) -> None:
    there = holder.args.get(name) or []
    holder.set(name, there if column in there else [*there, column.copy()])
