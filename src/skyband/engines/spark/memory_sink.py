"""What a streaming query has written to a memory sink: its latest window, and how it is doing."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from skyband.errors import InvalidInput

MOST_ROWS: Final = 1_000  # of a window, that are brought to this process


class MemorySink:
    """The table that a running query fills."""

    def __init__(self, query: Any) -> None:
        """Raises unless `query` is a streaming query whose windows can be read."""
        if not all(hasattr(query, name) for name in ("lastProgress", "isActive", "runId")):
            raise InvalidInput(
                "live takes a session, such as query.open(schema), or a running streaming query, such as "
                f'df.writeStream.format("memory").queryName("best").start(); got {type(query).__name__}.'
            )
        from pyspark.sql import SparkSession

        spark = SparkSession.active()
        self.name, self._query = query.name, query
        if not query.name or not spark.catalog.tableExists(query.name):
            raise InvalidInput(
                "live reads what a streaming query has written to a memory sink: start it with "
                '.writeStream.format("memory").queryName("best").'
            )
        self._table = spark.table(query.name)
        if "window_end" not in self._table.columns:
            raise InvalidInput(
                f"live shows the windows of a query (emit='windows'); {query.name!r} has the columns "
                f"{', '.join(self._table.columns)}."
            )

    @property
    def is_active(self) -> bool:
        return bool(self._query.isActive)

    @property
    def batch(self) -> int | None:
        """The micro-batch that is done."""
        progress = self._query.lastProgress
        return None if progress is None else int(progress["batchId"])

    def latest(self) -> pa.Table:
        """The rows of the window that ends last, best first."""
        from pyspark.sql import functions as sf

        end = self._table.agg(sf.max("window_end")).collect()[0][0]
        rows = self._table.where(sf.col("window_end") == sf.lit(end)).limit(MOST_ROWS).toArrow()
        return rows.sort_by("rank") if "rank" in rows.column_names else rows

    def note(self) -> str:
        """How it is doing, in words."""
        progress = self._query.lastProgress
        if progress is None:
            return "No micro-batch is done yet."
        held = sum(int(each["numRowsTotal"]) for each in progress["stateOperators"])
        said = f"batch {progress['batchId']:,}, {progress['processedRowsPerSecond'] or 0:,.0f} rows a second"
        return f"{said}, {held:,} entries of state" if held else said
