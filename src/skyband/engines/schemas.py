"""What columns an engine can work with, and in which form it keeps them."""

from __future__ import annotations

import pyarrow as pa

from skyband.errors import InvalidInput, InvalidQuery


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema without view types, of which Arrow cannot gather rows yet; the same object if there are none."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InvalidInput(f"Two columns are called {name!r}. Columns: {', '.join(schema.names)}.")
    fields = [field.with_type(_plain_type(field.type)) for field in schema]
    return schema if all(a.type == b.type for a, b in zip(fields, schema, strict=True)) else pa.schema(fields)


def _plain_type(column_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(column_type) and _plain_type(column_type.value_type) != column_type.value_type:
        return _plain_type(column_type.value_type)
    if pa.types.is_struct(column_type):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in column_type])
    for is_list, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(column_type):
            return make(column_type.value_field.with_type(_plain_type(column_type.value_type)))
    if pa.types.is_string_view(column_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(column_type) else column_type


def plain_batch(batch: pa.RecordBatch, plain: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of its plain schema."""
    columns = []
    for column, field in zip(batch.columns, plain, strict=True):
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(field.type):
            column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(field.type))
        columns.append(column.cast(field.type))
    return pa.record_batch(columns, schema=plain)


def check_keys(names: tuple[str, ...], schema: pa.Schema, what: str = "per") -> None:
    """Raise unless every one of these columns is of a type whose values can be told apart."""
    for name in names:
        column_type = schema.field(name).type
        inner = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
        if pa.types.is_nested(inner) or pa.types.is_float16(inner) or pa.types.is_null(inner):
            raise InvalidQuery(
                f"{what}={name!r} is {column_type}, which cannot be a key. Possible: numbers, strings, binary, "
                "booleans, dates, times."
            )


def whole_batch(table: pa.Table) -> pa.RecordBatch:
    """The rows of a table as one batch."""
    columns = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in table.columns
    ]
    return pa.record_batch(columns, schema=table.schema)
