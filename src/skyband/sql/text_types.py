"""The types of columns in files of text. Arrow guesses a type from the first megabyte; this module corrects the guess
where it would lose something: a column that is empty there, and whole numbers that need more than an int64."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

TIMES: Final = (
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    *(pa.timestamp("ns"), pa.timestamp("ns", "UTC")),
)
_KINDS: Final = (pa.int64(), pa.uint64(), pa.decimal128(38), pa.float64(), pa.bool_(), *TIMES)
_WIDE: Final = r"^[+-]?\d{19,}$"  # only whole numbers of 19 digits and more can exceed an int64
_NULLS: Final = pa.array(["", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"])  # as Arrow reads numbers


def later_type(kind: pa.DataType) -> pa.DataType:
    """The type for a column whose first rows have type `kind`: later rows may have fractions of a second."""
    if pa.types.is_null(kind):
        return pa.string()
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "s" else kind


def csv_schema(found: Any, guessed: pa.Schema, of_text: Any) -> pa.Schema:
    """The schema of a CSV dataset. `of_text(names)` is the same dataset with these columns as text."""
    floats = [each.name for each in guessed if pa.types.is_float64(each.type)]
    unsure = [each.name for each in guessed if pa.types.is_null(each.type) and each.name in found.schema.names]
    if floats:
        head = of_text(floats).head(10_000, columns=floats)
        unsure += [name for name in floats if pc.any(pc.match_substring_regex(head[name], _WIDE)).as_py()]
    kinds = {name: later_type(guessed.field(name).type) for name in guessed.names}
    if unsure:
        kinds |= _kinds_of(of_text(unsure).to_batches(columns=unsure), unsure)
    return pa.schema([each.with_type(kinds[each.name]) for each in guessed])


def _kinds_of(batches: Iterable[pa.RecordBatch], names: list[str]) -> dict[str, pa.DataType]:
    """The first type of `_KINDS` that all texts of a column have; text if none does, or if there is no text."""
    possible = {name: list(_KINDS) for name in names}
    seen = set[str]()
    for batch in batches:
        for name in names:
            column = batch.column(name)
            texts = column.filter(pc.invert(pc.is_in(column, value_set=_NULLS)))
            if len(texts) > texts.null_count:
                seen.add(name)
                possible[name] = [kind for kind in possible[name] if _fits(texts, kind)]
    return {name: next(iter(possible[name]), pa.string()) if name in seen else pa.string() for name in names}


def _fits(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def wide_numbers(table: pa.Table) -> pa.Schema:
    """The columns of a JSON table, read as float64, that hold whole numbers between 2**63 and 2**64."""
    return pa.schema([pa.field(each.name, pa.uint64()) for each in table.schema if _is_wide(table, each)])


def _is_wide(table: pa.Table, field: pa.Field) -> bool:
    if not pa.types.is_float64(field.type):
        return False
    numbers = table[field.name]
    least, most = pc.min_max(numbers).as_py().values()
    if most is None or least < 0 or not 2.0**63 <= most <= 2.0**64:
        return False
    return bool(pc.all(pc.equal(numbers, pc.floor(numbers))).as_py())
