"""Which engine data belongs to."""

from __future__ import annotations


def is_spark(data: object) -> bool:
    """Is it a Spark DataFrame, classic or Connect? Asked by name, so that pyspark is not imported for others."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(data).__mro__
    )
