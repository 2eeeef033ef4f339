"""Which queries a row is worth the same to: those of one topic, which have all parameters of the score in common.

Where a condition says which rows a query sees, by values that both must have (`symbol = q.symbol`), and nothing else of
the query matters, a row is of one topic at most, and is looked up: in a list if the values are whole numbers that are
close together, as codes of texts are, or else in a hash table in one flat array, open addressing, at most half full.
"""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.expressions.many import QueryScore
from skyband.kernels.codes import SHORT, SPREAD
from skyband.kernels.compiling import inlined, kernel

NONE = -1  # as a topic: no query sees the row


class Topics:
    """The topics of queries, numbered from 0."""

    def __init__(self, score: QueryScore) -> None:
        self.looked_up = bool(score.seen_by)
        self._columns, self._parameters = np.array(score.seen_by, np.int64).reshape(-1, 2).T.copy()
        # Of the parameters, by topic; where there are none, there is one topic, whatever queries there are.
        self.values = np.empty((len(score.parameters), 0 if score.parameters else 1))
        self._index()

    def __len__(self) -> int:
        return self.values.shape[1]

    def of_queries(self, parameters: Floats) -> Ints:
        """The topics of queries; what is new among them is given a number."""
        # Of what is compared, 0 and -0 are equal.
        parameters = np.ascontiguousarray((parameters + 0.0 if self.looked_up else parameters).T)
        known = {values.tobytes(): number for number, values in enumerate(np.ascontiguousarray(self.values.T))}
        numbers = [known.setdefault(values.tobytes(), len(known)) for values in parameters]
        _, first = np.unique(numbers, return_index=True)
        new = [int(at) for at in first if numbers[at] >= len(self)]
        self.values = np.ascontiguousarray(np.concatenate([self.values, parameters[new].T], axis=1))
        self._index()
        return np.array(numbers, np.int64)

    def keep(self, kept: Ints) -> None:
        """Topic kept[i] becomes topic i; the others are forgotten."""
        self.values = np.ascontiguousarray(self.values[:, kept])
        self._index()

    def restore(self, values: Floats) -> None:
        self.values = values
        self._index()

    def _index(self) -> None:
        self._keys = np.ascontiguousarray(self.values[self._parameters])  # by column that is compared
        self._near = np.empty(0, np.int64)
        self._slots = np.full(4 << len(self).bit_length(), NONE)
        if len(self._keys) == 1 and is_near(self._keys[0]):
            self._near = np.full(int(self._keys.max(initial=-1)) + 1, NONE)
            self._near[self._keys[0].astype(np.int64)] = np.arange(len(self))
        elif self.looked_up:
            put_topics(self._keys, self._keys.view(np.int64), self._slots)

    def of_rows(self, columns: Floats, first: int, end: int) -> Ints:
        """The topics of the rows [first, end), or NONE."""
        topic = np.empty(end - first, np.int64)
        if len(self._near):
            find_near(columns[self._columns[0], first:end], self._near, topic)
        else:
            find_topics(columns, columns.view(np.int64), self._columns, first, end, self._keys, self._slots, topic)
        return topic


def is_near(keys: Floats) -> bool:
    """Are these whole numbers from 0 on, and close together, as codes are?"""
    return bool(((keys >= 0) & (keys < SHORT + SPREAD * len(keys)) & (keys == np.floor(keys))).all())


@inlined
def mixed(hashed, bits):  # type: ignore[no-untyped-def]
    """A hash of one value more. Its sign is left out: of 0 it does not matter."""
    folded = hashed ^ (np.uint64(bits) << np.uint64(1))
    folded ^= folded >> np.uint64(32)  # of whole numbers only the upper bits differ
    folded *= np.uint64(0x9E3779B97F4A7C15)
    return folded ^ (folded >> np.uint64(32))


@kernel
def put_topics(keys, bits, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    for t in range(keys.shape[1]):
        hashed = np.uint64(0)
        for c in range(len(keys)):
            hashed = mixed(hashed, bits[c, t])
        slot = hashed & mask
        while slots[slot] != NONE:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = t


@kernel
def find_near(values, near, topic):  # type: ignore[no-untyped-def]
    """Find the topics of whole numbers in a list of them."""
    for i in range(len(values)):
        value = values[i]
        inside = (value >= 0.0) & (value < len(near))
        place = np.uint64(value) if inside else np.uint64(0)
        topic[i] = near[place] if inside & (np.float64(place) == value) else NONE


@kernel
def find_topics(columns, bits, compared, first, end, keys, slots, topic):  # type: ignore[no-untyped-def]
    """Find the topic whose keys a row has in the columns that are compared. NaN is equal to nothing."""
    mask = np.uint64(len(slots) - 1)
    for i in range(first, end):
        hashed = np.uint64(0)
        for c in range(len(compared)):
            hashed = mixed(hashed, bits[compared[c], i])
        slot = hashed & mask
        found = slots[slot]
        while found != NONE:
            differ = 0
            for c in range(len(compared)):
                differ += columns[compared[c], i] != keys[c, found]
            if differ == 0:
                break
            slot = (slot + np.uint64(1)) & mask
            found = slots[slot]
        topic[i - first] = found
