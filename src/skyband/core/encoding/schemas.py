"""The column types that Skyband supports, and the plain types in which it keeps rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from skyband.errors import InvalidInput, InvalidQuery


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The types in which rows are kept: no string views and no run-end encoding, of which Arrow cannot gather rows, and
    dictionaries with wide indices, which have room for the values of many batches.

    Returns the same object if batches can be kept as they are, without `plain_batch`.
    """
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InvalidInput(f"Two columns are called {name!r}. Columns: {', '.join(schema.names)}.")
    for field in schema:
        _check_kept(field)
    fields = [field.with_type(_plain_type(field.type)) for field in schema]
    is_plain = all(a.type == b.type and not pa.types.is_dictionary(a.type) for a, b in zip(fields, schema, strict=True))
    return schema if is_plain else pa.schema(fields)


def _check_kept(field: pa.Field) -> None:
    """Raise unless rows can be kept with this column."""
    for inner in _parts(field.type):
        if pa.types.is_union(inner):
            raise InvalidInput(
                f"Column {field.name!r} is {field.type}, and Arrow cannot select rows of that type. Leave the column "
                "out, or make it a struct or one column for each of its types."
            )
        if pa.types.is_run_end_encoded(inner) and inner != field.type:
            raise InvalidInput(
                f"Column {field.name!r} is {field.type}: Skyband cannot decode run-end encoding inside another type. "
                "Decode it first."
            )


def _parts(column_type: pa.DataType) -> Iterator[pa.DataType]:
    """The type and all types inside it."""
    yield column_type
    if _is_extension(column_type):
        yield from _parts(column_type.storage_type)
    elif pa.types.is_dictionary(column_type) or pa.types.is_run_end_encoded(column_type):
        yield from _parts(column_type.value_type)
    elif pa.types.is_nested(column_type):
        for i in range(column_type.num_fields):
            yield from _parts(column_type.field(i).type)


def _plain_type(column_type: pa.DataType) -> pa.DataType:
    if pa.types.is_run_end_encoded(column_type):
        return _plain_type(column_type.value_type)
    if pa.types.is_dictionary(column_type):
        value = column_type.value_type
        if _plain_type(value) != value or _is_extension(value):
            return _plain_type(value)
        wide = column_type.index_type.bit_width >= 32
        return column_type if wide else pa.dictionary(pa.int32(), value, column_type.ordered)
    if pa.types.is_struct(column_type):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in column_type])
    for is_list, make in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_list(column_type):
            return make(column_type.value_field.with_type(_plain_type(column_type.value_type)))
    if pa.types.is_string_view(column_type):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(column_type) else column_type


def plain_batch(batch: pa.RecordBatch, plain: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to its plain schema, without nulls among the values of a dictionary."""
    columns = [_plain_column(column, field.type) for column, field in zip(batch.columns, plain, strict=True)]
    return pa.record_batch(columns, schema=plain)


def _plain_column(column: pa.Array, plain: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(column.type):
        run = np.searchsorted(column.run_ends, np.arange(column.offset, column.offset + len(column)), side="right")
        return _plain_column(column.values, plain).take(pa.array(run))
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(plain):
        return column.dictionary.cast(plain).take(column.indices)
    if not pa.types.is_dictionary(plain):
        return column.cast(plain)
    if column.dictionary.null_count:  # Arrow cannot merge such dictionaries
        return encoded(column.dictionary.take(column.indices), plain)
    if column.type == plain:
        return column
    indices = column.indices.cast(plain.index_type)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=plain.ordered)


def encoded(values: pa.Array, wanted: pa.DataType) -> pa.DictionaryArray:
    """Encode values as a column of this dictionary type. The dictionary has no other values."""
    found = values.dictionary_encode()
    indices = found.indices.cast(wanted.index_type)
    return pa.DictionaryArray.from_arrays(indices, found.dictionary, ordered=wanted.ordered)


def _is_extension(column_type: pa.DataType) -> bool:
    return isinstance(column_type, pa.BaseExtensionType)


def check_same(given: pa.Schema, schema: pa.Schema) -> None:
    """Raise unless the given schema has the columns of `schema`, in types that fit without loss."""
    if given.names == schema.names and all(map(_fits, given.types, schema.types)):
        return
    differences = [
        f"{name}: {_type_of(name, schema)} before, {_type_of(name, given)} now"
        for name in dict.fromkeys([*schema.names, *given.names])
        if name not in schema.names
        or name not in given.names
        or not _fits(given.field(name).type, schema.field(name).type)
    ]
    raise InvalidInput(
        "The schema of this batch differs from that of the first batch. "
        + ("; ".join(differences) or f"Column order before: {', '.join(schema.names)}")
        + ". Skyband rejected the batch."
    )


def fitted(rows: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    """Return rows that have the columns of `schema`. If their types differ, convert them to its plain types."""
    if rows.schema.types == schema.types and rows.schema.names == schema.names:
        return rows
    check_same(rows.schema, schema)
    plain = plain_schema(schema)
    if isinstance(rows, pa.RecordBatch):
        return cast_batch(rows, plain)
    return pa.Table.from_batches([cast_batch(batch, plain) for batch in rows.to_batches()], plain)


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch, whose columns have the names of `schema`, to its types: see `common_type`."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        try:
            columns.append(_cast(column, field.type))
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"Column {field.name!r} is {column.type}, and some of its values do not fit {field.type}: {error}"
            ) from error
    return pa.record_batch(columns, schema=schema)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    column = _plain_column(column, _value_type(column.type))
    if pa.types.is_dictionary(wanted):
        return encoded(column.cast(_value_type(wanted)), wanted)
    return column.cast(wanted)


def common_type(types: Iterable[pa.DataType]) -> pa.DataType | None:
    """The narrowest type that holds all values of these types without loss; None if no type does."""
    given = list(types)
    found = given[0]
    for other in given[1:]:
        if found is not None and other != found:
            found = _wider(_value_type(found), _value_type(other))
    return found


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    for kinds in _TEXT, _BYTES:
        if {a, b} <= kinds:
            return pa.large_string() if kinds is _TEXT else pa.large_binary()
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
        return pa.timestamp(max(a.unit, b.unit, key=_UNITS.index), a.tz) if a.tz == b.tz else None
    if _is_number(a) and _is_number(b):
        # The smallest that holds both. A float holds whole numbers of as many bits as its mantissa has.
        wider = (kind for kind in (*_WHOLE, *_FLOATS) if _holds(kind, a) and _holds(kind, b))
        return next(wider, None)
    return None


_TEXT, _BYTES = {pa.string(), pa.large_string()}, {pa.binary(), pa.large_binary()}
_UNITS = ("s", "ms", "us", "ns")
_WHOLE = (pa.uint8(), pa.int8(), pa.uint16(), pa.int16(), pa.uint32(), pa.int32(), pa.uint64(), pa.int64())
_FLOATS = (pa.float16(), pa.float32(), pa.float64())
_MANTISSA_BITS = {pa.float16(): 11, pa.float32(): 24, pa.float64(): 53}


def _is_number(kind: pa.DataType) -> bool:
    return kind in _WHOLE or kind in _FLOATS


def _holds(kind: pa.DataType, other: pa.DataType) -> bool:
    """Does this type hold every number of the other type?"""
    if kind in _FLOATS and other in _FLOATS:
        return bool(kind.bit_width >= other.bit_width)
    if other in _FLOATS:
        return False
    signed, bits = pa.types.is_signed_integer(other), other.bit_width
    if kind in _FLOATS:
        return bits - signed <= _MANTISSA_BITS[kind]
    if pa.types.is_signed_integer(kind):
        return bool(kind.bit_width >= bits + (not signed))
    return not signed and bool(kind.bit_width >= bits)


def _value_type(column_type: pa.DataType) -> pa.DataType:
    """The type of a column's values, without dictionary, runs and views."""
    plain = _plain_type(column_type)
    return _value_type(plain.value_type) if pa.types.is_dictionary(plain) else plain


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Does the wanted type hold all values of the given one?"""
    if given == wanted:
        return True
    given, wanted = _value_type(given), _value_type(wanted)
    return _wider(given, wanted) == wanted or {given, wanted} <= _TEXT or {given, wanted} <= _BYTES


def _type_of(name: str, schema: pa.Schema) -> str:
    return str(schema.field(name).type) if name in schema.names else "missing"


def check_keys(names: tuple[str, ...], schema: pa.Schema, what: str = "per") -> None:
    """Raise unless each of these columns has a type that can be a key."""
    for name in names:
        if not is_key(column_type := schema.field(name).type):
            raise InvalidQuery(
                f"{what}={name!r} is {column_type}, which cannot be a key. Possible: integers, float32, float64, "
                "decimals, strings, binary, booleans, dates, times."
            )


def is_key(column_type: pa.DataType) -> bool:
    """Can rows be grouped and joined by a column of this type?"""
    inner = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
    inner = inner.storage_type if _is_extension(inner) else inner
    return is_value(inner) and not pa.types.is_float16(inner) and not pa.types.is_null(inner)


def stored(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert a column of an extension type, such as UUIDs, to its storage type, which Arrow can compare."""
    return column.cast(column.type.storage_type) if _is_extension(column.type) else column


def is_value(column_type: pa.DataType) -> bool:
    """Can values of this type be compared and sorted?"""
    return not pa.types.is_nested(column_type) and not pa.types.is_interval(column_type)


def in_one_batch(table: pa.Table) -> list[pa.RecordBatch]:
    """Make one batch of a table, or none if it has no rows."""
    if any(map(pa.types.is_dictionary, table.schema.types)):  # merged dictionaries may need wider indices
        plain = plain_schema(table.schema)
        table = pa.Table.from_batches([plain_batch(batch, plain) for batch in table.to_batches()], plain)
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    return batches


def whole_batch(table: pa.Table) -> pa.RecordBatch:
    """Make one batch of a table, even if it has no rows."""
    columns = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type) for column in table.columns
    ]
    return pa.record_batch(columns, schema=table.schema)


def check_schema(schema: object) -> None:
    """Raise unless this is a pyarrow schema."""
    if not isinstance(schema, pa.Schema):
        raise InvalidInput(f"The schema must be a pyarrow.Schema, got {type(schema).__name__}.")
