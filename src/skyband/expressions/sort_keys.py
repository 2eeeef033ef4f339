"""Several sort keys, or one that is not a number: `("price", "symbol ASC", "seen NULLS FIRST")`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

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
        self.types = tuple(value.type for value in self._values)

    @property
    def type(self) -> pa.DataType:
        """That of the first key, which is shown as the score."""
        return self.types[0]

    def values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Each key of each row; what is not a number is null."""
        return [_without_nan(value.values(batch)) for value in self._values]


def bind_ranking(by: By, schema: pa.Schema) -> Score | SortKeys:
    """What ranks rows of `schema`: a score, or several keys."""
    return SortKeys(by, schema) if isinstance(by, tuple) else bind(by, schema)


def _plain(text: str, schema: pa.Schema) -> str:
    """The name of a column that is written in backticks."""
    name = text[1:-1].replace("``", "`") if text.startswith("`") and text.endswith("`") else text
    return name if name in schema.names else text


def _has_order(kind: pa.DataType) -> bool:
    if is_number(kind):
        return not pa.types.is_decimal256(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_text or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)


def _without_nan(values: pa.Array) -> pa.Array:
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
