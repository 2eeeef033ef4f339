"""What the demo asks, where it puts things, and the stream it asks about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.errors import InvalidInput
from skyband.problems.rows.query import TopK
from skyband.streams.trades import MAX_DELAY, trades
from skyband.windows import sliding

QUERY: Final = TopK(
    k=10,
    by="price * volume",
    window=sliding("10 minutes", every="1 minute", on="ts"),
    lateness=MAX_DELAY,  # no trade is reported later than that, so none is lost
)

_FILES: Final = 20  # at most; one a micro-batch
_SMALLEST_FILE_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """How far an engine has come."""

    rows_read: int  # since the start
    answers: pa.Table  # what became known since the last step


@dataclass(frozen=True, slots=True)
class Job:
    """One run of the demo: so many trades, in this folder."""

    rows: int
    seed: int
    folder: Path

    @property
    def trades(self) -> Path:
        return self.folder / "trades"

    @property
    def answers(self) -> Path:
        return self.folder / "top10"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def log(self) -> Path:
        return self.folder / "spark.log"

    def prepare(self) -> None:
        """Make the folders; refuse to mix this run with what is there already."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise InvalidInput(
                f"{self.folder} is there already and is not an empty folder. Name another one with --output."
            )
        self.trades.mkdir(parents=True)

    def generate(self) -> Iterator[int]:
        """Write the trades as Parquet files, in order; give the rows written so far."""
        written = 0
        file_rows = max(_SMALLEST_FILE_ROWS, -(-self.rows // _FILES))
        for number, batch in enumerate(trades(self.rows, seed=self.seed, batch_rows=file_rows)):
            path = self.trades / f"{number:05}.parquet"
            pq.write_table(pa.Table.from_batches([batch]), path)
            # Spark reads files in the order of their times, which the clock might give twice.
            os.utime(path, (number, number))
            written += batch.num_rows
            yield written

    def trade_files(self) -> list[Path]:
        return sorted(self.trades.glob("*.parquet"))
