"""Queries about the lines that another query shows of a window: they are asked anew of every window's lines.

    SELECT category, AVG(high) FROM (
        SELECT category, MAX(price) AS high FROM bid [WINDOW 1 HOUR EVERY 1 MINUTE] GROUP BY auction, category
    ) GROUP BY category

All lines of a window come together, so nothing is kept from one window to the next. Each window's lines are the rows of
a window of their own, which ends where the other does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import pyarrow as pa
from sqlglot import exp

from skyband.core.emit import WHOLE, gives_windows
from skyband.core.registry import problem_of
from skyband.dialect import text as texts
from skyband.dialect.asking import asked
from skyband.dialect.nodes import BOUNDS, Span, StreamWindow
from skyband.dialect.query_spec import LINES, QuerySpec, Shown, shown_schema
from skyband.dialect.reading import row_text
from skyband.dialect.sources import Source
from skyband.dialect.statement import Input, Statement
from skyband.dialect.window_bounds import bound_in, carried_by, length_of, start_of, with_bounds

WINDOW: Final = "the window of a line"  # the column of the lines that says of which window they are: where it slid from

_START, _END = BOUNDS


@dataclass(frozen=True)
class Lines:
    """The lines of a query as an input of another."""

    spec: QuerySpec  # shows them
    schema: pa.Schema
    source: Source
    every: int | timedelta
    start: exp.Expr | None  # window_start, by window_end; None: there is no one


def lines_of(statement: Statement, spec: QuerySpec, answer: pa.Schema) -> Lines:
    """The lines that `spec` shows, for a statement about them; `answer`: the columns of what is asked last."""
    problem, window = problem_of(spec.query), spec.query.window
    if not problem.takes_part_of_answer:
        statement.refuse(
            "An outer query can read only rankings of one input, rows of a join, and groups", _place(statement)
        )
    if window.on is None and problem.groups(spec.query):
        statement.refuse(
            "Each group counts its own arrivals here, so their windows do not close together",
            _place(statement),
            "Measure a column instead: [WINDOW 1 HOUR EVERY 1 MINUTE ON ts].",
        )
    every = window.every
    if every is None or not gives_windows(spec.query.emit):
        statement.refuse(
            "An outer query needs whole answers, of closed windows",
            _place(statement),
            "Say how often: [WINDOW 1 HOUR EVERY 1 MINUTE].",
        )
    own = carried_by(statement.function)  # of each line, and no bounds of all
    size = None if own else problem.size(spec.query)
    start = None if size is None else start_of(exp.var(_END), size, by_count=window.on is None)
    # A window that holds one of these values and ends an `every` later ends where that of the lines ended.
    slid_from = exp.Sub(this=exp.column(_END), expression=length_of(every))
    bounds = {_END, None if start is None else row_text(with_bounds(start, {_END: exp.column(_END)})), _START}
    others = (one for one in spec.last.shown if one.name in own or one.name not in BOUNDS or one.text not in bounds)
    last = replace(spec.last, shown=(Shown(WINDOW, row_text(slid_from), is_plain=False), *others))
    window_of_lines = StreamWindow(this=_span(every), every=_span(every), on=exp.to_identifier(WINDOW, quoted=True))
    source = Source(LINES, window=window_of_lines, function=statement.function, is_whole=statement.is_about_tables)
    return Lines(spec.with_last(last), shown_schema(last.shown, answer), source, every, start)


def asked_of_lines(lines: Lines, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """The statement, whose only input these are, as what comes after the query that shows them."""
    statement.check_exact("This kind of query is always exact")
    if statement.emit not in (None, WHOLE):
        statement.refuse("An outer query runs when a window closes", "EMIT", "Leave EMIT out.")
    trees = [*(item.tree for item in statement.items), *statement.kept]
    own = carried_by(lines.source.function)
    asked_for = next((bound for tree in trees if own and (bound := bound_in(tree, *own)) is not None), None)
    if asked_for is not None:
        statement.refuse(f"The query in FROM does not show {asked_for.name}", asked_for)
    asked_for = next((bound for tree in trees if (bound := bound_in(tree, _START)) is not None), None)
    if lines.start is None and asked_for is not None:
        statement.refuse(
            "The answer has no single window_start: its windows have different sizes, or begin with the stream",
            asked_for,
        )
    end = exp.var(_END)
    bounds = {_START: end if lines.start is None else lines.start, _END: end}
    outer = asked(
        replace(
            statement,
            items=tuple(replace(item, tree=with_bounds(item.tree, bounds)) for item in statement.items),
            kept=tuple(with_bounds(condition, bounds) for condition in statement.kept),
        ),
        schemas,
    )
    outer = outer.with_last(replace(outer.last, shown=_with_start(outer.last.shown, lines)))
    return lines.spec.with_last(replace(lines.spec.last, then=outer))


def in_lines(name: str, node: exp.Expr) -> exp.Column:
    """A column of the lines, in place of a part of the statement."""
    return placed_column(name, LINES, node)


def placed_column(name: str, alias: str, node: exp.Expr) -> exp.Column:
    """A column of an input, at the place of a part of the statement."""
    column = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
    if (place := texts.place_of(node)) is not None:
        column.meta["start"] = place
    return column


def asked_of_own_lines(statement: Statement, spec: QuerySpec, answer: pa.Schema) -> QuerySpec:
    """A part of a statement that is about the lines of the rest of it, as what comes after that."""
    lines = lines_of(statement, spec, answer)
    one = Input(lines.source, LINES, _place(statement), on=WINDOW)
    return asked_of_lines(lines, replace(statement, inputs=(one,), window=None), {LINES: lines.schema})


def _with_start(shown: tuple[Shown, ...], lines: Lines) -> tuple[Shown, ...]:
    """What is shown, with the start of the lines' window in place of where it slid from."""
    if carried_by(lines.source.function):
        return shown
    slid_from = (_START, row_text(start_of(exp.column(_END), lines.every, by_count=False)))
    start = None if lines.start is None else row_text(with_bounds(lines.start, {_END: exp.column(_END)}))
    made = []
    for one in shown:
        if one.name != _START or one.text not in slid_from:
            made.append(one)
        elif start is not None:
            made.append(Shown(one.name, start, is_plain=False))
    return tuple(made)


def _place(statement: Statement) -> exp.Expr:
    return statement.inputs[0].node


def _span(every: int | timedelta) -> Span:
    if isinstance(every, timedelta):
        return Span(this=exp.Literal.number(every // timedelta(microseconds=1)), unit=exp.var("MICROSECONDS"))
    return Span(this=exp.Literal.number(every))
