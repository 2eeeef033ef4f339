"""SELECT … FROM one input WHERE …, without a window: each row is answered by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from skyband.core.encoding.inputs import in_batches
from skyband.dialect.resolving import plain_rows
from skyband.dialect.statement import Statement
from skyband.engines.embedded.running import give
from skyband.sql.rows import prepared, prepared_in_spark, rereadable


def plain_answer(
    statement: Statement, data: Mapping[str, Any], schemas: Mapping[str, pa.Schema], *, on_spark: bool
) -> Any:
    """The rows, in the kind of the input; of a stream, a stream."""
    rows = plain_rows(statement, schemas)
    statement.check_taken()
    if on_spark:
        return prepared_in_spark(data, rows, schemas)
    source = prepared(rereadable(data, [rows]), rows)
    batches = in_batches(source.batches)
    if not source.is_whole:
        return pa.RecordBatchReader.from_batches(source.schema, batches)
    return give(pa.Table.from_batches(batches, source.schema), source.like)
