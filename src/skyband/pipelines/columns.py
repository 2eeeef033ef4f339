"""The columns of a source, known before Spark runs: from its schema as Spark SQL writes it, or from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from skyband.errors import InvalidInput
from skyband.pipelines.model import Pipeline, Source

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_TYPES: Final = {
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: _INSTANT,
    exp.DataType.Type.TIMESTAMPTZ: _INSTANT,  # what Spark calls TIMESTAMP
    exp.DataType.Type.TIMESTAMPLTZ: _INSTANT,
    exp.DataType.Type.TIMESTAMPNTZ: pa.timestamp("us"),
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.VARCHAR: pa.string(),
    exp.DataType.Type.CHAR: pa.string(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.VARBINARY: pa.binary(),
}
_KNOWN: Final = (
    "Known: STRING, DOUBLE, FLOAT, BIGINT, INT, SMALLINT, TINYINT, BOOLEAN, TIMESTAMP, TIMESTAMP_NTZ, DATE, "
    "DECIMAL(p, s), BINARY, ARRAY<…>, STRUCT<…>, MAP<…>"
)


def parse_schema(text: str) -> pa.Schema:
    """Columns as Spark SQL writes them.

    >>> parse_schema("ts TIMESTAMP, price DOUBLE").names
    ['ts', 'price']
    """
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t ({text})", dialect="spark")
    except SqlglotError as error:
        raise InvalidInput(f'Cannot read the schema {text!r}. A schema: "ts TIMESTAMP, price DOUBLE".') from error
    columns = [*table.find_all(exp.ColumnDef)]
    top = [column for column in columns if column.find_ancestor(exp.ColumnDef) is None]
    if not top or any(column.kind is None for column in top):
        raise InvalidInput(f'Cannot read the schema {text!r}. A schema: "ts TIMESTAMP, price DOUBLE".')
    return pa.schema([(column.name, _type(column.kind)) for column in top])


def _type(kind: exp.Expr | None) -> pa.DataType:
    assert isinstance(kind, exp.DataType)
    inner = kind.expressions
    match kind.this:
        case exp.DataType.Type.DECIMAL:
            precision, scale = ([int(part.name) for part in inner] + [10, 0][len(inner) :])[:2]
            return pa.decimal128(precision, scale)
        case exp.DataType.Type.ARRAY | exp.DataType.Type.LIST:
            return pa.list_(_type(inner[0]))
        case exp.DataType.Type.MAP:
            return pa.map_(_type(inner[0]), _type(inner[1]))
        case exp.DataType.Type.STRUCT:
            return pa.struct([(field.name, _type(field.kind)) for field in inner])
        case name if name in _TYPES:
            return _TYPES[name]
    raise InvalidInput(f"The schema has an unknown type: {kind.sql(dialect='spark')}. {_KNOWN}.")


def columns_of(source: Source, pipeline: Pipeline) -> pa.Schema | None:
    """The columns of `source` without running anything; None: only Spark can tell."""
    if source.schema is not None:
        return parse_schema(source.schema)
    if source.format == "rate":
        return pa.schema([("timestamp", _INSTANT), ("value", pa.int64())])
    if source.format == "parquet" and source.path is not None:
        path = pipeline.on_this_machine(source.path)
        return None if path is None else _of_parquet(path)
    return None


def _of_parquet(path: Path) -> pa.Schema | None:
    file = path if path.is_file() else next(iter(sorted(path.rglob("*.parquet"))), None)
    return None if file is None else _as_spark_reads(pq.read_schema(file))


def _as_spark_reads(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [
            pa.field(field.name, _INSTANT if pa.types.is_timestamp(field.type) and field.type.tz else field.type)
            for field in schema
        ]
    )
