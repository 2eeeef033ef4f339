"""Checks of saved arrays, before compiled loops that check no bounds read them.

Every operator states in `validate` what its arrays promise: which have equal lengths, the range of their numbers, what
ascends, what is never NaN. A checksum is not enough, because whoever can change a snapshot can compute a new one. So
`restore` checks the promises, and the conformance suite checks them for every state that an operator returns. Each
promise is one line of code and one pass of numpy over an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays
from skyband.errors import SnapshotCorrupt

Array = npt.NDArray[Any]

FARTHEST = 2**62  # the limit of times, positions and counts


class Saved(Mapping[str, Array]):
    """The arrays of a snapshot, or those whose names start with `prefix`. Every method raises `SnapshotCorrupt`."""

    def __init__(self, arrays: Arrays, prefix: str = "") -> None:
        self._arrays = {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
        self._prefix = prefix

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def promise(self, holds: bool | np.bool_, words: str) -> None:
        """Refuse the snapshot unless this holds."""
        if not holds:
            raise SnapshotCorrupt(
                f"The snapshot's checksum fits, but Skyband did not write its contents: {self._prefix}{words}. "
                "Somebody changed it. Use an earlier one."
            )

    # -- lengths -----------------------------------------------------------------------------------------------------

    def length(self, count: int, *names: str) -> None:
        """Each of these arrays has `count` entries."""
        for name in names:
            found = len(self[name])
            self.promise(found == count, f"{name!r} has {found} entries, not {count}")

    def shape(self, name: str, *shape: int) -> None:
        found = self[name].shape
        self.promise(found == shape, f"{name!r} has the shape {found}, not {shape}")

    def lists(self, lengths: str, rows: str) -> None:
        """`rows` has lists one after the other, and `lengths` the length of each."""
        self.parts(self[lengths], len(self[rows]), lengths, rows)

    def parts(self, lengths: Array, total: int, name: str, of: str) -> None:
        """`lengths` are not negative and add up to `total`, the entries of `of`."""
        self.within(name, lengths, 0, total)
        self.promise(int(lengths.sum()) == total, f"{name!r} does not add up to the {total} entries of {of!r}")

    # -- numbers -----------------------------------------------------------------------------------------------------

    def within(self, name: str, values: Array, low: float, high: float) -> None:
        """Every value is from `low` to `high`, both included; none is NaN."""
        if values.size:
            inside = bool(((values >= low) & (values <= high)).all())
            self.promise(inside, f"{name!r} has a value that is not from {low} to {high}")

    def indices(self, name: str, values: Array, count: int) -> None:
        """Every value is an index into something with `count` entries."""
        self.within(name, values, 0, count - 1)

    def counts(self, name: str, values: Array) -> None:
        self.within(name, values, 0, FARTHEST)

    def moments(self, name: str, values: Array) -> None:
        """Every value is a time, or a sum of times: at most twice as far as a row's."""
        self.within(name, values, -2 * FARTHEST, 2 * FARTHEST - 1)

    def numbers(self, name: str, values: Array) -> None:
        """No value is NaN."""
        self.promise(not bool(np.isnan(values).any()), f"{name!r} has a value that is no number")

    def ascends(self, name: str, values: Array, *, strictly: bool = False) -> None:
        in_order = values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
        self.promise(bool(in_order.all()), f"{name!r} is not in order")

    # -- rows --------------------------------------------------------------------------------------------------------

    def rows(self, *names: str) -> None:
        """Each of these arrays has ranked rows: with a score, a time and an arrival."""
        for name in names:
            rows = self[name]
            self.numbers(name, rows["score"])
            self.within(name, rows["time"], -FARTHEST, FARTHEST)
            self.counts(name, rows["position"])

    def best_first(self, lengths: str, name: str) -> None:
        """`name` has rows in lists of these lengths. Each list is sorted, best first, and has no row twice."""
        rows, begins = self[name], np.zeros(len(self[name]), np.bool_)
        ends = np.cumsum(self[lengths])
        begins[ends[ends < len(rows)]] = True
        a, b = rows[:-1], rows[1:]
        later = (a["time"] > b["time"]) | ((a["time"] == b["time"]) & (a["position"] > b["position"]))
        ranked = (a["score"] > b["score"]) | ((a["score"] == b["score"]) & later)
        self.promise(bool((ranked | begins[1:]).all()), f"{name!r} is not ranked, best first")

    def owners(self, lengths: str) -> Array:
        """For each entry: the number of the list that it is in, if the lists have these lengths."""
        return np.repeat(np.arange(len(self[lengths])), self[lengths])

    def ranks(self, lengths: str) -> Array:
        """For each entry: its place in its list, from 0."""
        ends = np.cumsum(self[lengths])
        return np.arange(int(self[lengths].sum())) - np.repeat(ends - self[lengths], self[lengths])

    def same_rows(self, lengths: str, name: str, other_lengths: str, other: str) -> None:
        """The lists of `name` and those of `other` have the same rows, in any order."""
        found = []
        for of, rows in ((lengths, name), (other_lengths, other)):
            order = np.lexsort((self[rows]["position"], self.owners(of)))
            keys = [self.owners(of), *(self[rows][field] for field in ("score", "time", "position"))]
            found.append([key[order] for key in keys])
        same = all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
        self.promise(same, f"{name!r} and {other!r} do not hold the same rows")

    def distinct(self, name: str, *keys: Array) -> None:
        """No two entries have the same keys."""
        order = np.lexsort(keys)
        repeats = np.ones(max(0, len(order) - 1), np.bool_)
        for key in keys:
            repeats &= key[order][1:] == key[order][:-1]
        self.promise(not bool(repeats.any()), f"{name!r} holds something twice")

    def among(self, name: str, owners: Array, positions: Array, of_owners: Array, of_positions: Array) -> None:
        """Each row, given by its owner and its arrival, is also among the other rows."""
        pair = np.dtype([("owner", np.int64), ("position", np.int64)])
        rows, others = np.empty(len(owners), pair), np.empty(len(of_owners), pair)
        rows["owner"], rows["position"] = owners, positions
        others["owner"], others["position"] = of_owners, of_positions
        self.promise(bool(np.isin(rows, others).all()), f"{name!r} has a row that is not held")


def check_kinds(saved: Arrays, own: Arrays) -> None:
    """Raise unless saved arrays have the names and types of this operator's own; compiled loops take no others."""
    for name, array in own.items():
        found = saved[name]
        # An empty list of rows does not say how many columns a row has.
        same_shape = found.ndim == array.ndim or (not array.size and not array.dtype.names and found.ndim <= 2)
        if found.dtype != array.dtype or not same_shape:
            raise ValueError(f"{name} is {found.dtype} in {found.ndim} dimensions, not {array.dtype} in {array.ndim}")
