"""Pages: many rows as one binary value, so that a shuffle moves a few large rows and not many small ones.

On the way in, a page holds rows of one bucket from one partition, with the counts of the input rows they stand for. On
the way out, an answer holds rows of the output, with counts for `observe` to add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skyband.engines.spark.workers import spare_the_collector

Ints = npt.NDArray[np.int64]
BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PAGE_COLUMNS: Final = (
    "bucket int, page binary, ends binary, rows binary, rows_in long, rows_null_time long, rows_unranked long"
)
# Of input rows; of those that went to the buckets; by how much what is held there grew or shrank; of rows of answers;
# of changes of queries that could not be taken; of rows that an `error` left out of answers.
COUNTS: Final = (
    *("rows_in", "rows_late", "rows_null_time", "rows_unranked"),
    *("rows_gathered", "rows_held_change", "bytes_held_change", "rows_answered", "queries_refused"),
    "rows_missed",
)
ANSWER_COLUMNS: Final = ", ".join(["answer binary", *(f"{name} long" for name in COUNTS)])

_PAGE_SCHEMA: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("page", pa.binary()),
        ("ends", pa.binary()),
        ("rows", pa.binary()),
        ("rows_in", pa.int64()),
        ("rows_null_time", pa.int64()),
        ("rows_unranked", pa.int64()),
    ]
)
_ANSWER_SCHEMA: Final = pa.schema([("answer", pa.binary()), *((name, pa.int64()) for name in COUNTS)])
_ANSWER_ROWS: Final = 1 << 16  # in one binary value

_NONE: Final = np.empty(0, np.int64)


@dataclass(slots=True)
class Tally:
    """Counts of input rows. Which of them are late is known only where the watermark is: after the shuffle."""

    rows_in: int = 0
    rows_null_time: int = 0
    rows_unranked: int = 0
    ends: Ints = field(default_factory=lambda: _NONE)  # of panes: the end of the last window that holds them
    rows: Ints = field(default_factory=lambda: _NONE)  # how many rows those panes have

    def late(self, watermark: int) -> int:
        return int(self.rows[self.ends <= watermark].sum())

    def counts(self) -> dict[str, int]:
        return {"rows_in": self.rows_in, "rows_null_time": self.rows_null_time, "rows_unranked": self.rows_unranked}


def write_table(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_table(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()


def page_batch(pages: Iterable[tuple[int, pa.Table]], tally: Tally) -> pa.RecordBatch:
    """One row a page, of PAGE_COLUMNS; the first one carries the tally."""
    rows = [
        {"bucket": bucket, "page": write_table(table), "rows_in": 0, "rows_null_time": 0, "rows_unranked": 0}
        for bucket, table in pages
    ]
    rows[0] |= {
        "ends": tally.ends.tobytes(),
        "rows": tally.rows.tobytes(),
        "rows_in": tally.rows_in,
        "rows_null_time": tally.rows_null_time,
        "rows_unranked": tally.rows_unranked,
    }
    return pa.RecordBatch.from_pylist(rows, _PAGE_SCHEMA)


def read_page(row: Any) -> tuple[pa.Table, Tally]:
    """A Spark row of PAGE_COLUMNS."""
    ends, rows = (_NONE if data is None else np.frombuffer(data, np.int64) for data in (row.ends, row.rows))
    return read_table(row.page), Tally(row.rows_in, row.rows_null_time, row.rows_unranked, ends, rows)


def answers(table: pa.Table, counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Rows of ANSWER_COLUMNS for what became known; the first carries the counts. None when there is nothing to say."""
    for start in range(0, table.num_rows, _ANSWER_ROWS):
        # Spark sends all answers of a task together, 2 GB at most. Windows overlap, so answers compress well.
        part = table.slice(start, _ANSWER_ROWS)
        answer = write_table(part, compression="zstd")
        yield {"answer": answer, **dict.fromkeys(COUNTS, 0), **counts, "rows_answered": part.num_rows}
        counts = {}
    if any(counts.values()):
        yield {"answer": None, **dict.fromkeys(COUNTS, 0), **counts}


def answer_batches(table: pa.Table, counts: dict[str, int]) -> Iterator[pa.RecordBatch]:
    """The same, for mapInArrow."""
    return (pa.RecordBatch.from_pylist([answer], _ANSWER_SCHEMA) for answer in answers(table, counts))


def unpacker(columns: list[str]) -> BatchFunction:
    """For mapInArrow: the rows inside rows of ANSWER_COLUMNS."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_the_collector()
        for batch in batches:
            for answer in batch.column("answer"):
                if answer.is_valid:
                    yield from read_table(answer.as_py()).select(columns).to_batches()

    return unpack
