"""The demo's question on the embedded engine: the files are pushed one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from skyband.demo.job import QUERY, Job, Step
from skyband.streams.trades import SCHEMA


def steps(job: Job) -> Iterator[Step]:
    """Answer from the job's trades, write the answers as Parquet, and tell after each batch how far it is."""
    session = QUERY.open(SCHEMA)
    job.answers.mkdir()
    rows_read = 0
    with pq.ParquetWriter(job.answers / "part-00000.parquet", session.output_schema) as writer:
        for path in job.trade_files():
            for batch in pq.ParquetFile(path).iter_batches(batch_size=10_000):
                answers = session.push(batch)
                if answers.num_rows:
                    writer.write_table(answers)
                rows_read += batch.num_rows
                yield Step(rows_read, answers)
