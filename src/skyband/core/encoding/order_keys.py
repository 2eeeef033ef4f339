"""Float64 keys in the order of several sort keys of any type. Operators compare these keys, exactly, across batches.

A sorted table has the distinct values of the rows held and of the last batch. A row's key is the place of its values in
this table, the best last. If a batch brings values between the known ones, all places change: the operator gets new
keys for the scores it holds, and the table drops values that the operator no longer holds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.scores import TakesOtherScores
from skyband.core.operator import Arrays, Floats
from skyband.expressions.sort_keys import SortKeys

Ints = npt.NDArray[np.int64]

FEWEST: Final = 1_024  # values that are known at least before some are forgotten


class OrderKeys:
    """The keys of one query; `known` is what a snapshot keeps."""

    def __init__(self, sort: SortKeys, *, fewest: int | None = None) -> None:
        self._sort = sort
        self._room = self._fewest = FEWEST if fewest is None else fewest
        self._names = [(f"flag{number}", f"key{number}") for number in range(len(sort.keys))]
        fields = [
            field
            for (flag, key), kind in zip(self._names, sort.types, strict=True)
            for field in (pa.field(flag, pa.int8()), pa.field(key, kind))
        ]
        self.known = pa.table([pa.array([], field.type) for field in fields], schema=pa.schema(fields))

    def read(self, values: list[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """The values of a batch, and which rows are not ranked: those whose first key is null, unless it says where
        nulls come."""
        columns = []
        for key, column in zip(self._sort.keys, values, strict=True):
            missing = pc.is_null(column)
            # The best come last, so a flag is larger where it is better to be null, or not to be.
            better = missing if key.nulls_first else pc.invert(missing)
            columns += [better.cast(pa.int8()), column]
        first = self._sort.keys[0]
        unranked = np.zeros(len(values[0]), np.bool_)
        if first.nulls is None and values[0].null_count:
            unranked = pc.is_null(values[0]).to_numpy(zero_copy_only=False)
        return pa.table(columns, schema=self.known.schema), unranked

    def keys(self, read: tuple[pa.Table, npt.NDArray[np.bool_]], operator: TakesOtherScores) -> Floats:
        """What an operator ranks by, the highest first. It may get other keys for the scores it holds."""
        batch, unranked = read
        count = len(self.known)
        distinct, places = self._merged(self.known, batch)
        if len(distinct) > self._room or (places[:count] != np.arange(count)).any():
            places = self._anew(batch, operator)
        else:
            self.known, places = distinct, places[count:]
        keys = places.astype(np.float64)
        keys[unranked] = np.nan
        return keys

    def column(self, keys: Floats) -> pa.Array:
        """The first sort key behind what an operator ranked by."""
        return self.known.column(1).take(pa.array(keys.astype(np.int64))).combine_chunks()

    def state(self) -> Arrays:
        return {}

    def restore(self, arrays: Arrays) -> None:
        """What it keeps is a table: see `known`."""

    def _anew(self, batch: pa.Table, operator: TakesOtherScores) -> Ints:
        """Forget the values that no row held has, and give new keys to the others; returns the places of the batch."""
        given: list[Ints] = []

        def change(held: Floats) -> Floats:
            changed, there = held.copy(), np.isfinite(held)
            # Where nothing is held an operator may have any number; it has no meaning, but has to stay in order.
            places = np.clip(np.floor(held[there]), 0, max(0, len(self.known) - 1)).astype(np.int64)
            used = np.unique(places) if len(self.known) else np.empty(0, np.int64)
            self.known, merged = self._merged(self.known.take(pa.array(used)), batch)
            if len(used):
                changed[there] = merged[: len(used)][np.searchsorted(used, places)]
            given.append(merged[len(used) :])
            return changed

        operator.rescore(change)
        self._room = max(self._fewest, 2 * len(self.known))
        return given[-1]

    def _merged(self, known: pa.Table, batch: pa.Table) -> tuple[pa.Table, Ints]:
        """The distinct values of both, the best last, and the place of each row there."""
        both = pa.concat_tables([known, batch]).combine_chunks()
        if not len(both):
            return both, np.empty(0, np.int64)
        order = []
        for key, (flag, value) in zip(self._sort.keys, self._names, strict=True):
            order += [(flag, "ascending"), (value, "descending" if key.ascending else "ascending")]
        rows = pc.sort_indices(both, sort_keys=order)
        ordered = both.take(rows)
        differs = np.zeros(len(both), np.bool_)
        for column in ordered.columns:
            unequal = pc.not_equal(column.slice(1), column.slice(0, len(both) - 1))
            differs[1:] |= pc.fill_null(unequal, False).to_numpy(zero_copy_only=False)  # which the flags tell apart
        places = np.empty(len(both), np.int64)
        places[rows.to_numpy()] = np.cumsum(differs)
        differs[0] = True
        return ordered.filter(pa.array(differs)), places
