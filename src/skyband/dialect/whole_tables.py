"""Statements without a window. Over tables they mean what SQL says: one answer, about all rows.

    SELECT symbol, price FROM trades ORDER BY price DESC LIMIT 10

A table ends, so all its rows are one window, which closes at the end. Such a window measures a column that is 0 in each
row, and that nobody sees. A stream never ends: there, a statement has to say which window it means.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from skyband.dialect.nodes import WHOLE_TABLE, Span, StreamWindow
from skyband.dialect.query_spec import Rows, View
from skyband.dialect.statement import Input, Statement


def names_no_window(statement: Statement) -> bool:
    """Is there no word about windows in the statement, though it asks for more than single rows?"""
    said = (statement.emit, statement.error, statement.recall, statement.bounds)
    innermost = statement.innermost
    windows = (innermost.window, *(one.window for one in innermost.inputs))
    is_asked_of_rows = statement.is_plain or statement.takes_any
    return not is_asked_of_rows and all(part is None for part in (*said, *windows))


def over_all_rows(statement: Statement) -> Statement:
    """The statement with one window for all rows of its first input. Other inputs are tables beside it, unless they
    are the same rows again, or share a FULL JOIN."""
    if statement.inner is not None:
        return replace(statement, inner=over_all_rows(statement.inner))
    first = statement.inputs[0]
    return replace(
        statement,
        inputs=tuple(
            _with_window(one) if statement.has_full_join or one.is_same_as(first) else one for one in statement.inputs
        ),
    )


def windowed(statement: Statement) -> set[str]:
    """The names of the inputs that have such a window."""
    return {one.name for one in statement.innermost.inputs if one.source.is_whole}


def numbered(name: str, schema: pa.Schema) -> Rows:
    """The rows of an input with the column that its window measures."""
    columns = (*((column, column) for column in schema.names), (WHOLE_TABLE, "CAST(0 AS BIGINT)"))
    return Rows(name, views=(View(None, columns, schema.append(pa.field(WHOLE_TABLE, pa.int64())), is_plain=False),))


def _with_window(one: Input) -> Input:
    length = Span(this=exp.Literal.number(1))
    window = StreamWindow(this=length, every=length.copy(), on=exp.to_identifier(WHOLE_TABLE, quoted=True))
    return replace(one, source=replace(one.source, window=window, is_whole=True))
