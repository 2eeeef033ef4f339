"""Reads rows of a join's inputs into numbers: times, cells and the arguments of aggregates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.operator import Ints
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.operator import UNMATCHED, Rows


class Read(NamedTuple):
    """Rows of an input whose cells have no codes yet."""

    rows: Rows  # the cell of each is 0 or UNMATCHED
    keys: pa.RecordBatch  # the rows that are not UNMATCHED, with their key columns; it has at least one column

    @property
    def time(self) -> Ints:
        return self.rows.time

    @property
    def unmatched(self) -> int:
        return int(np.count_nonzero(self.rows.cell == UNMATCHED))

    def part(self, which: slice) -> Read:
        """These rows, which follow one another."""
        begin, end, _ = which.indices(len(self.time))
        matched = self.rows.cell != UNMATCHED
        before, inside = int(matched[:begin].sum()), int(matched[begin:end].sum())
        return Read(self.rows.part(which), self.keys.slice(before, inside))


class RowReader:
    """Reads batches: it filters rows and evaluates the arguments of aggregates."""

    def __init__(self, bound: BoundJoin, codes: JoinCodes) -> None:
        self._bound, self._codes = bound, codes

    def read(self, i: int, batch: pa.RecordBatch, time: Ints) -> Read:
        """Read a batch of an input. Raises if the batch is invalid; changes nothing."""
        source, n = self._bound.inputs[i], batch.num_rows
        kept = None if source.keep is None else source.keep.evaluate(batch)
        matchable = self._codes.inputs[i].matchable(batch)
        if matchable is not None:
            kept = matchable if kept is None else kept & matchable
        used = batch if kept is None or kept.all() else batch.filter(pa.array(kept))
        values = [argument.evaluate(used) for argument in source.arguments]
        where: Any = slice(None) if kept is None or used is batch else np.flatnonzero(kept)
        arguments, valid = np.zeros((n, len(values)), np.int64), np.zeros(n, np.int64)
        for a, (numbers, there) in enumerate(values):
            arguments[where, a] = numbers
            valid[where] |= there.astype(np.int64) << a
        cell = np.full(n, UNMATCHED, np.int32)
        cell[where] = 0
        return Read(Rows(time if source.on is not None else np.zeros(n, np.int64), cell, arguments, valid), used)

    def encode(self, i: int, read: Read) -> Rows:
        """Encode the cells of rows; new cells get codes."""
        rows, keys = read
        rows.cell[rows.cell != UNMATCHED] = self._codes.inputs[i].encode(keys)
        return rows
