"""Rows of a join's inputs in numbers: times, cells and the arguments of aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.encoding.schemas import plain_batch, plain_schema
from skyband.core.session import with_times
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import BoundJoin
from skyband.problems.joins.operator import UNMATCHED, Rows


class Counts(NamedTuple):
    rows_in: int
    null_time: int
    unmatched: int


class RowReader:
    """Reads batches of the inputs; filters rows and evaluates arguments."""

    def __init__(self, bound: BoundJoin, schemas: Mapping[str, pa.Schema], codes: JoinCodes) -> None:
        self._bound, self._schemas, self._codes = bound, schemas, codes
        self._plain = {name: plain_schema(schema) for name, schema in schemas.items()}

    def read(self, i: int, batch: pa.RecordBatch, position: int = 0) -> tuple[Rows, Counts]:
        """A batch of an input in numbers; `position` is that of its first row among all arrivals.

        What can fail fails before anything is remembered.
        """
        source = self._bound.inputs[i]
        rows_in = batch.num_rows
        plain = self._plain[source.name]
        batch = batch if plain is self._schemas[source.name] else plain_batch(batch, plain)
        batch, time = with_times(batch, source.on)
        n = batch.num_rows
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
        cell[where] = self._codes.inputs[i].encode(used)
        if source.on is None:
            time = np.zeros(n, np.int64) if source.is_relation else np.arange(position, position + n)
        return Rows(time, cell, arguments, valid), Counts(rows_in, rows_in - n, n - used.num_rows)
