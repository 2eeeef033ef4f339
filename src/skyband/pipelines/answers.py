"""The answers of a query in one micro-batch: in this process if they are few, as they mostly are, else on Spark."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

GONE: Final = ("leave", "delete")  # changes that take a row away


class Answers:
    """Rows that sinks take as a table or as a DataFrame, whichever suits them."""

    def __init__(self, spark: SparkSession, rows: pa.Table | DataFrame) -> None:
        self._spark, self._rows = spark, rows

    @property
    def in_hand(self) -> bool:
        """Are they in this process already?"""
        return isinstance(self._rows, pa.Table)

    @property
    def columns(self) -> list[str]:
        return list(self._rows.column_names if isinstance(self._rows, pa.Table) else self._rows.columns)

    @cached_property
    def table(self) -> pa.Table:
        return self._rows if isinstance(self._rows, pa.Table) else self._rows.toArrow()

    @cached_property
    def frame(self) -> DataFrame:
        return self._spark.createDataFrame(self._rows) if isinstance(self._rows, pa.Table) else self._rows

    def by_change(self) -> dict[str, int]:
        """How many rows there are of each kind of change; all are "shown" where windows are."""
        if "change" not in self.columns:
            return {"shown": self.table.num_rows if self.in_hand else self.frame.count()}
        if self.in_hand:
            counted = self.table.group_by("change").aggregate([([], "count_all")]).to_pylist()
            return {row["change"]: row["count_all"] for row in counted}
        return {str(change): int(rows) for change, rows in self.frame.groupBy("change").count().collect()}
