"""Spark's types as Arrow's and back: times with a zone are instants, and times without one stay so.

The versions of Spark differ in what they do unasked.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructType

# Until Spark 4.1 instants are in UTC, and there is nothing to ask for.
_IN_UTC: Final[dict[str, Any]] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}


def as_arrow(schema: StructType) -> pa.Schema:
    """Instants are in UTC, whatever the session's time zone."""
    return to_arrow_schema(schema, **_IN_UTC)


def as_spark(schema: pa.Schema) -> StructType:
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def type_as_spark(type_: pa.DataType) -> DataType:
    return from_arrow_type(type_, prefer_timestamp_ntz=True)
