"""SELECT … FROM one input WHERE … [LIMIT n], without a window: each row is answered by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import in_batches
from skyband.dialect.ranking import count_of, offset_of
from skyband.dialect.resolving import plain_rows
from skyband.dialect.statement import Statement
from skyband.sql.rows import prepared, prepared_in_spark, rereadable


def plain_answer(
    statement: Statement, data: Mapping[str, Any], schemas: Mapping[str, pa.Schema], *, on_spark: bool
) -> Any:
    """The rows, in the kind of the input; of a stream, a stream."""
    rows = plain_rows(statement, schemas)
    limit, skipped = statement.take("limit"), offset_of(statement)
    most = None if limit is None else count_of(statement, limit.expression)
    statement.check_taken()
    if on_spark:
        df = prepared_in_spark(data, rows, schemas)
        return df if most is None else df.offset(skipped).limit(most)
    source = prepared(rereadable(data, [rows]), rows)
    batches = in_batches(source.batches)
    if most is not None:
        batches = _some(batches, skipped, most)
    if not source.is_whole:
        return pa.RecordBatchReader.from_batches(source.schema, batches)
    return source.like.give(pa.Table.from_batches(batches, source.schema))


def _some(batches: Iterator[pa.RecordBatch], skipped: int, most: int) -> Iterator[pa.RecordBatch]:
    """The first rows behind some that are skipped. No more batches are read than that takes."""
    for batch in batches:
        rows = batch.slice(min(skipped, len(batch)), most)
        skipped, most = max(0, skipped - len(batch)), most - len(rows)
        yield rows
        if not most:
            return
