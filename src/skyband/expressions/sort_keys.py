"""Several sort keys, or one that is not a number: `("price", "symbol ASC", "seen NULLS FIRST")`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.value_types import as_values, value_type
from skyband.errors import InvalidExpression, InvalidQuery
from skyband.expressions.scores import Score, bind, bind_value, is_number

By = str | tuple[str, ...] | Callable[..., Any]

_KEY: Final = re.compile(r"(?is)(.*?)(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?\s*")


@dataclass(frozen=True, slots=True)
class SortKey:
    """One of several keys: those before it decide first."""

    text: str
    ascending: bool
    nulls: str | None  # "FIRST" or "LAST", if it was said

    @property
    def nulls_first(self) -> bool:
        """As Spark has it: before all others where the smallest comes first."""
        return self.ascending if self.nulls is None else self.nulls == "FIRST"


def read_key(text: object) -> SortKey:
    if not isinstance(text, str) or not text.strip():
        raise InvalidQuery(f"A sort key is a text such as 'price', 'price ASC' or 'price NULLS FIRST', got {text!r}.")
    found = _KEY.fullmatch(text.strip())
    assert found is not None, "everything but the first part may be left out"
    expression, way, nulls = found.groups()
    return SortKey(expression, (way or "").upper() == "ASC", nulls.upper() if nulls else None)


class SortKeys:
    """Sort keys bound to a schema."""

    def __init__(self, by: tuple[str, ...], schema: pa.Schema) -> None:
        self.keys = tuple(read_key(text) for text in by)
        self._values = [bind_value(_plain(key.text, schema), schema) for key in self.keys]
        for value in self._values:
            if not _has_order(value.type):
                raise InvalidExpression(
                    f"Rows cannot be ordered by {value.text!r}, which is {value.type}. Possible: numbers, decimals, "
                    "strings, booleans, dates and timestamps."
                )
        self.text = ", ".join(by)
        self.types = tuple(value_type(value.type) for value in self._values)  # in which they are sorted

    @property
    def type(self) -> pa.DataType:
        """That of the first key, which is shown as the score: of a dictionary, that of its values."""
        kind = self._values[0].type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Each key of each row; what is not a number is null."""
        return [_without_nan(as_values(value.values(batch), value.text)) for value in self._values]

    def scores(self, rows: pa.RecordBatch) -> pa.Array:
        """The first key of each of these rows, as it is: NaN, and a zero with its sign."""
        values = self._values[0].values(rows)
        return values if values.type == self.type else as_values(values).cast(self.type)


def bind_ranking(by: By, schema: pa.Schema) -> Score | SortKeys:
    """What ranks rows of `schema`: a score, or several keys."""
    return SortKeys(by, schema) if isinstance(by, tuple) else bind(by, schema)


def _plain(text: str, schema: pa.Schema) -> str:
    """The name of a column that is written in backticks."""
    name = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
    return name if name in schema.names else text


def _has_order(column_type: pa.DataType) -> bool:
    kind = value_type(column_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return (
        is_number(kind) or is_text or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    )


def _without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
