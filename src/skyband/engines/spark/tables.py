"""Tables and views that a session knows by name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession


def find_table(name: str, spark: SparkSession | None, others: Sequence[DataFrame]) -> DataFrame | None:
    """The table or view of this name in a session: the one given, that of other DataFrames, or the one that runs."""
    session = spark or (others[0].sparkSession if others else SparkSession.getActiveSession())
    return session.table(name) if session is not None and session.catalog.tableExists(name) else None
