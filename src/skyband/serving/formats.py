"""Answers in the formats that readers ask for: JSON, CSV, Arrow."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

JSON: Final = "application/json"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "json": JSON,
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}


def value(given: Any) -> Any:
    """A value as JSON has it: times as ISO 8601, decimals and what is no number as text, bytes as base64."""
    match given:
        case None | bool() | int() | str():
            return given
        case float():
            return given if math.isfinite(given) else "NaN" if math.isnan(given) else f"{given:+f}".upper()
        case datetime() | date() | time():
            return given.isoformat()
        case timedelta():
            return given.total_seconds()
        case Decimal():
            return str(given)
        case bytes():
            return base64.b64encode(given).decode()
        case Mapping():
            return {str(name): value(each) for name, each in given.items()}
        case list() | tuple():
            return [value(each) for each in given]
    return str(given)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as JSON has them."""
    return [{name: value(each) for name, each in row.items()} for row in in_micros(table).to_pylist()]


def encode(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def as_csv(table: pa.Table, *, header: bool = True) -> bytes:
    out = io.BytesIO()
    plain = [field if _fits_csv(field.type) else field.with_type(pa.string()) for field in table.schema]
    columns = [
        column if _fits_csv(column.type) else pa.array([_text(each) for each in column.to_pylist()], pa.string())
        for column in table.columns
    ]
    written = pa.table(columns, schema=pa.schema(plain))
    if written.num_columns == 1 and written.column(0).null_count:
        return _one_column_as_csv(written, header=header)
    pyarrow.csv.write_csv(written, out, pyarrow.csv.WriteOptions(include_header=header))
    return out.getvalue()


def _one_column_as_csv(table: pa.Table, *, header: bool) -> bytes:
    """With nulls as "": readers pass over an empty line, and the row would be lost."""
    (name,), column = table.column_names, table.column(0)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([each] for each in [*([name] if header else []), *column.cast(pa.string()).to_pylist()])
    return out.getvalue().encode()


def as_arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def in_micros(table: pa.Table) -> pa.Table:
    """Times of nanoseconds as microseconds: Python's times have no more."""
    for place, each in enumerate(table.schema):
        if pa.types.is_timestamp(each.type) and each.type.unit == "ns":
            column = table.column(place).cast(pa.timestamp("us", each.type.tz), safe=False)
            table = table.set_column(place, each.name, column)
    return table


def _fits_csv(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _text(given: Any) -> str | None:
    return None if given is None else json.dumps(value(given), ensure_ascii=False)
