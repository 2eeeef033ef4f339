"""Tables as a reader sees them: columns of words, `-` for null. For example tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa


def table(text: str, **types: pa.DataType) -> pa.Table:
    """The table that `text` shows: a line of names, then a line a row. Types are guessed where none is given."""
    names, *rows = [line.split() for line in text.strip().splitlines()]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    return pa.table({name: _column(words, types.get(name)) for name, words in columns.items()})


def batch(text: str, **types: pa.DataType) -> pa.RecordBatch:
    return table(text, **types).to_batches()[0]


def words(result: pa.Table) -> list[list[str]]:
    """What `text` of the same table would be split into."""
    return [result.column_names, *([_word(value) for value in row.values()] for row in result.to_pylist())]


def shows(result: pa.Table, text: str) -> bool:
    """Is this the table that `text` shows, names and order included? Written for `assert shows(…)`."""
    expected = [line.split() for line in text.strip().splitlines()]
    assert words(result) == expected
    return True


def _column(column: list[str], data_type: pa.DataType | None) -> pa.Array:
    readers: list[Callable[[str], Any]] = [int, float, str]
    for read in readers:
        try:
            values = [None if word == "-" else read(word) for word in column]
        except ValueError:
            continue
        if data_type is not None and pa.types.is_timestamp(data_type):
            values = [None if word == "-" else datetime.fromisoformat(word) for word in column]
        return pa.array(values, data_type)
    raise AssertionError(column)


def _word(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    return value.isoformat() if isinstance(value, datetime) else str(value)


# The oracle, and the exact algorithms the planner chooses among: what engines are tested with; conformance tests all.
ALGORITHMS = ("recompute", "mintopk", "relaxed", "partitioned", "staircase", "relaxed+probabilistic")
