"""The inputs that UNION ALL makes of others: their columns, and their rows, here and on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import HeldRows, Source, in_batches
from skyband.core.encoding.schemas import cast_batch, common_type
from skyband.dialect.query_spec import Rows
from skyband.dialect.resolving import plain_rows
from skyband.dialect.statement import Statement
from skyband.dialect.unions import Union
from skyband.errors import InvalidInput
from skyband.sql.rows import prepared, prepared_in_spark, rereadable

Schemas = Mapping[str, pa.Schema]
MOST_DIGITS = 38  # of a decimal, on Spark too


def with_unions(statement: Statement, schemas: Schemas) -> Schemas:
    """The columns of all inputs of a statement; `schemas`: of those that are given, by their names in any case."""
    made = {name.lower(): schema for name, schema in schemas.items()}
    for union in statement.unions:
        if union.name.lower() in made:
            continue  # it was made before
        made[union.name.lower()] = _schema(union, [_columns(union, part, schemas) for part in union.parts])
    return made


def united(
    statement: Statement, data: Mapping[str, Any], schemas: Schemas, *, on_spark: bool
) -> tuple[dict[str, Any], dict[str, pa.Schema]]:
    """The data of all inputs of a statement, and their columns, by the names that it reads them under."""
    known, rows = with_unions(statement, schemas), dict(data)
    for union in statement.unions:
        schema = known[union.name.lower()]
        rows[union.name] = (_in_spark if on_spark else _here)(union, data, schemas, schema)
    return {one.name: rows[one.name] for one in statement.inputs}, {
        one.name: known[one.name.lower()] for one in statement.inputs
    }


def _rows(union: Union, part: Statement, schemas: Schemas) -> tuple[Rows, dict[str, pa.Schema]]:
    """What a part takes of its inputs, and the columns of those. The first part names the columns of all."""
    known = with_unions(part, schemas)
    given = {one.name: known[one.name.lower()] for one in part.inputs}
    return plain_rows(part, given, by_place=part is not union.parts[0]), given


def _columns(union: Union, part: Statement, schemas: Schemas) -> pa.Schema:
    rows, given = _rows(union, part, schemas)
    return rows.schema(given[rows.name])


def _schema(union: Union, parts: list[pa.Schema]) -> pa.Schema:
    """The names of the first part, and types that hold what all parts have."""
    fields = list(parts[0])
    for part, schema in zip(union.parts[1:], parts[1:], strict=True):
        if len(schema) != len(fields):
            part.refuse(f"A part of UNION ALL has {len(schema)} columns, and the first has {len(fields)}", part.select)
        for place, field in enumerate(schema):
            kind = _common(fields[place].type, field.type)
            if kind is None:
                items = part.select.expressions
                part.refuse(
                    f"Column {place + 1} of UNION ALL, {fields[place].name!r}, is {field.type} here and "
                    f"{fields[place].type} in the first part",
                    items[place] if len(items) == len(schema) else part.select,
                    "Write CAST(x AS …) so that both have one type.",
                )
            fields[place] = pa.field(fields[place].name, kind)
    return pa.schema(fields)


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both; of whole numbers and floats float64, as Spark has it. None: there is
    none."""
    found = common_type((a, b))
    if found is not None:
        return found
    if pa.types.is_decimal(a) and pa.types.is_decimal(b):
        scale = max(a.scale, b.scale)
        digits = max(a.precision - a.scale, b.precision - b.scale) + scale
        return pa.decimal128(digits, scale) if digits <= MOST_DIGITS else None
    if all(pa.types.is_integer(kind) for kind in (a, b)):
        return pa.decimal128(20, 0)  # of uint64 and a signed type: no whole number of 64 bits holds both
    is_number = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in (a, b)]
    return pa.float64() if all(is_number) else None


def _converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the names and types of the union. A whole number beyond 2**53 becomes the nearest float64."""
    columns = [
        column.cast(pa.float64(), safe=False)
        if pa.types.is_floating(field.type) and pa.types.is_integer(column.type)
        else column
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return cast_batch(pa.record_batch(columns, names=schema.names), schema)


def _here(union: Union, data: Mapping[str, Any], schemas: Schemas, schema: pa.Schema) -> Source:
    sources = []
    for part in union.parts:
        given, _ = united(part, data, schemas, on_spark=False)
        if not all(source.is_whole for source in given.values()):
            raise InvalidInput(
                f"Without Spark, UNION ALL takes only tables: the order of the rows of {union.name!r} is unknown in "
                "streams. Pass tables, or run the statement on Spark."
            )
        rows, _ = _rows(union, part, schemas)
        sources.append(prepared(rereadable(given, [rows]), rows))

    def batches() -> Any:
        for source in sources:
            for batch in in_batches(source.batches):
                yield _converted(batch, schema)

    return Source(schema, HeldRows(batches()), is_whole=True, like=sources[0].like)


def _in_spark(union: Union, data: Mapping[str, Any], schemas: Schemas, schema: pa.Schema) -> Any:
    whole = None
    for part in union.parts:
        given, _ = united(part, data, schemas, on_spark=True)
        rows, known = _rows(union, part, schemas)
        df = prepared_in_spark(given, rows, known).toDF(*schema.names)
        whole = df if whole is None else whole.union(df)
    return whole
