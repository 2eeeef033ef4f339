"""Numbers that order as values do, for MIN and MAX of values that are no numbers of 64 bits: strings and binary.

Each different value gets a *label*, an int64. A value that comes later gets a label between those of its neighbours.
Where there is no room between two, all values get new labels, far apart; the codec tells the operator (`moved`).

Values often come in order: names with a counter, times as text. So a value that continues such a run takes a small part
of the room, near the value before it, and leaves the rest to those that follow. Other values take the middle.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.schemas import whole_batch
from skyband.core.encoding.value_types import as_values
from skyband.core.operator import Codes, Ints
from skyband.problems.joins.operator import Moved

Bools = npt.NDArray[np.bool_]

ROOM: Final = 62  # labels lie between -2**ROOM and 2**ROOM
_SMALLEST_PART: Final = 20  # a long run takes 2**-20 of the room with each value
_BOUND: Final = -1  # in place of the code of a neighbour: there is none


class OrderLabels:
    """The labels of a column's values. Values have codes, too, in order of first appearance."""

    def __init__(self, kind: pa.DataType, *, room: int = ROOM) -> None:
        self._room = room
        self._codes = GroupCodes(pa.schema([("value", kind)]))
        self._clear()

    def _clear(self) -> None:
        self._values = np.zeros(0, object)  # all of them but null, in order
        self._order = np.zeros(0, np.int64)  # their codes
        self._label = np.zeros(0, np.int64)  # [code]
        self._is_null = np.zeros(0, bool)  # [code]
        self._born = np.zeros(0, np.int64)  # [code]: how many batches with new values had come then
        self._run = np.zeros(0, np.int64)  # [code]: the length of the run that it ends; < 0: it descends
        self._batches = 0
        self._before: Ints | None = None  # [code]: the labels that the operator knows, if they have changed since

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, column: pa.Array) -> Codes:
        """The codes of values. New values get labels."""
        codes = self._codes.encode(pa.record_batch([column], names=["value"]))
        known = len(self._label)
        if len(self) > known:
            new = np.arange(known, len(self), dtype=np.int32)
            values = as_values(self._codes.take(new).column("value"))
            self._add(np.asarray(pc.is_null(values)), values.to_pylist(), new)
        return codes

    def labels(self, codes: Codes) -> tuple[Ints, Bools]:
        """The labels of these codes, and whether they stand for a value rather than for null."""
        return self._label[codes], ~self._is_null[codes]

    def values(self, labels: Ints, there: Bools) -> pa.Array:
        """The values that have these labels; null where there is none."""
        places = np.searchsorted(self._label[self._order], labels[there])
        found = np.zeros(len(labels), np.int32)
        found[there] = self._order[places]
        if not len(self):
            return pa.nulls(len(labels), self._codes.keys.schema.field("value").type)
        values = self._codes.take(found).column("value")
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        values = as_values(values).cast(kind)
        return values if there.all() else pc.if_else(pa.array(there), values, pa.scalar(None, kind))

    def moved(self) -> Moved | None:
        """What labels have become of those that the operator knows, since the last call; None: they are the same."""
        before, self._before = self._before, None
        if before is None:
            return None
        known = self._order[self._order < len(before)]
        return Moved(before[known], self._label[known])

    def keep(self, kept: Ints) -> None:
        """Forget all values but those of these codes: kept[i] becomes code i. Labels stay as they are."""
        number = np.full(len(self), -1, np.int64)
        number[kept] = np.arange(len(kept))
        self._codes.keep(kept)
        order = number[self._order]
        self._values, self._order = self._values[order >= 0], order[order >= 0]
        for name in ("_label", "_is_null", "_born", "_run"):
            setattr(self, name, getattr(self, name)[kept])

    # -- labels for new values -------------------------------------------------------------------------------------

    def _add(self, is_null: Bools, values: list[Any], codes: Codes) -> None:
        more = len(codes)
        for name in ("_label", "_born", "_run"):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more, np.int64)]))
        self._is_null = np.concatenate([self._is_null, is_null])
        self._batches += 1
        self._born[codes] = self._batches
        new = sorted(np.flatnonzero(~is_null).tolist(), key=values.__getitem__)
        some = np.empty(len(new), object)
        some[:] = [values[i] for i in new]
        codes_in_order = codes[new].astype(np.int64)
        places = np.searchsorted(self._values, some)
        starts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(new)] if new else []
        fits = [self._label_between(int(places[start]), codes_in_order[start:end]) for start, end in pairwise(starts)]
        self._values = np.insert(self._values, places, some)
        self._order = np.insert(self._order, places, codes_in_order)
        if not all(fits):
            self._label_anew(more)

    def _label_between(self, place: int, new: Ints) -> bool:
        """Give labels to new values, in order, that lie between two neighbours. Returns whether there was room."""
        low = int(self._order[place - 1]) if place else _BOUND
        high = int(self._order[place]) if place < len(self._order) else _BOUND
        first = -(1 << self._room) if low == _BOUND else int(self._label[low])
        last = 1 << self._room if high == _BOUND else int(self._label[high])
        born = [-1 if each == _BOUND else int(self._born[each]) for each in (low, high)]
        run = 0
        if born[0] > born[1]:
            run = max(int(self._run[low]), 0) + 1
        elif born[1] > born[0]:
            run = min(int(self._run[high]), 0) - 1
        n, room = len(new), last - first
        step = room // (n + 1)
        if step <= 0:
            return False
        if abs(run) > 1:
            step = max(1, room >> (min(abs(run), _SMALLEST_PART) + n.bit_length()))
        begin = first if run >= 0 else last - step * (n + 1)
        self._label[new] = begin + step * np.arange(1, n + 1)
        self._run[new] = run
        return True

    def _label_anew(self, more: int) -> None:
        """Give all values labels that are as far apart as can be."""
        n = len(self._order)
        if self._before is None:
            self._before = self._label[: len(self._label) - more].copy()
        limit = max(1 << self._room, n + 1)
        self._label[self._order] = (2 * limit // (n + 1)) * np.arange(1, n + 1) - limit

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> pa.Table:
        return self._codes.keys.append_column("label", pa.array(self._label))

    def restore(self, saved: pa.Table) -> None:
        """Raises ValueError if the labels are not in the order of their values."""
        self._clear()
        self._codes.load(saved.select(["value"]))
        values = as_values(whole_batch(saved).column("value")) if saved.num_rows else saved.column("value")
        known = values.to_pylist()
        self._label = saved.column("label").to_numpy().astype(np.int64)
        self._is_null = np.array([value is None for value in known], bool)
        self._born, self._run = np.zeros((2, len(known)), np.int64)
        order = sorted(np.flatnonzero(~self._is_null).tolist(), key=known.__getitem__)
        self._order = np.array(order, np.int64)
        self._values = np.empty(len(order), object)
        self._values[:] = [known[i] for i in order]
        if (np.diff(self._label[self._order]) <= 0).any():
            raise ValueError("its labels do not order as its values")
