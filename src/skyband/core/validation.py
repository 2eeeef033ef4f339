"""What saved arrays promise, checked before a loop without bounds sees them.

Every operator states its promises once, in `validate`: which arrays have as many entries as which others, in which
range numbers are, what ascends, what is never NaN. `restore` of a snapshot checks them, since whoever can write a file
can write one whose checksum fits; the conformance suite checks them of every state that an operator gives away. Each
promise is one line, and one pass of numpy over an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays
from skyband.errors import SnapshotCorrupt

Array = npt.NDArray[Any]

FARTHEST = 2**62  # no time, position or count is beyond it


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
                f"The snapshot's checksum fits, but no Skyband wrote what it says: {self._prefix}{words}. It was "
                "changed after it was written. Use an earlier one."
            )

    # -- lengths -----------------------------------------------------------------------------------------------------

    def length(self, count: int, *names: str) -> None:
        """These arrays have so many entries."""
        for name in names:
            found = len(self[name])
            self.promise(found == count, f"{name!r} has {found} entries, not {count}")

    def shape(self, name: str, *shape: int) -> None:
        found = self[name].shape
        self.promise(found == shape, f"{name!r} has the shape {found}, not {shape}")

    def lists(self, lengths: str, rows: str) -> None:
        """Lists one after the other: how long each is, and what is in them."""
        self.parts(self[lengths], len(self[rows]), lengths, rows)

    def parts(self, lengths: Array, total: int, name: str, of: str) -> None:
        """So many entries of `of` are cut into pieces of these lengths."""
        self.within(name, lengths, 0, total)
        self.promise(int(lengths.sum()) == total, f"{name!r} does not add up to the {total} entries of {of!r}")

    # -- numbers -----------------------------------------------------------------------------------------------------

    def within(self, name: str, values: Array, low: float, high: float) -> None:
        """Each of these is from `low` to `high`, both included; NaN is not."""
        if values.size:
            inside = bool(((values >= low) & (values <= high)).all())
            self.promise(inside, f"{name!r} has a value that is not from {low} to {high}")

    def indices(self, name: str, values: Array, count: int) -> None:
        """Each of these is the number of one of `count` things."""
        self.within(name, values, 0, count - 1)

    def counts(self, name: str, values: Array) -> None:
        self.within(name, values, 0, FARTHEST)

    def moments(self, name: str, values: Array) -> None:
        """Times, and what is computed from them: twice as far at most as a row's."""
        self.within(name, values, -2 * FARTHEST, 2 * FARTHEST - 1)

    def numbers(self, name: str, values: Array) -> None:
        """None of these is NaN."""
        self.promise(not bool(np.isnan(values).any()), f"{name!r} has a value that is no number")

    def ascends(self, name: str, values: Array, *, strictly: bool = False) -> None:
        in_order = values[1:] > values[:-1] if strictly else values[1:] >= values[:-1]
        self.promise(bool(in_order.all()), f"{name!r} is not in order")

    # -- rows --------------------------------------------------------------------------------------------------------

    def rows(self, *names: str) -> None:
        """Rows that are ranked: each has a score, a time and an arrival."""
        for name in names:
            rows = self[name]
            self.numbers(name, rows["score"])
            self.within(name, rows["time"], -FARTHEST, FARTHEST)
            self.counts(name, rows["position"])

    def best_first(self, lengths: str, name: str) -> None:
        """Rows in lists of these lengths, each of them ranked, and none of them twice in a list."""
        rows, begins = self[name], np.zeros(len(self[name]), np.bool_)
        ends = np.cumsum(self[lengths])
        begins[ends[ends < len(rows)]] = True
        a, b = rows[:-1], rows[1:]
        later = (a["time"] > b["time"]) | ((a["time"] == b["time"]) & (a["position"] > b["position"]))
        ranked = (a["score"] > b["score"]) | ((a["score"] == b["score"]) & later)
        self.promise(bool((ranked | begins[1:]).all()), f"{name!r} is not ranked, best first")

    def owners(self, lengths: str) -> Array:
        """Of each entry, which of the lists of these lengths it is in."""
        return np.repeat(np.arange(len(self[lengths])), self[lengths])

    def ranks(self, lengths: str) -> Array:
        """Of each entry, how many of its list are before it."""
        ends = np.cumsum(self[lengths])
        return np.arange(int(self[lengths].sum())) - np.repeat(ends - self[lengths], self[lengths])

    def same_rows(self, lengths: str, name: str, other_lengths: str, other: str) -> None:
        """Each list has the rows of another one, in whatever order."""
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
        """Each row of a list, said by its arrival, is in another list of the same owner."""
        pair = np.dtype([("owner", np.int64), ("position", np.int64)])
        rows, others = np.empty(len(owners), pair), np.empty(len(of_owners), pair)
        rows["owner"], rows["position"] = owners, positions
        others["owner"], others["position"] = of_owners, of_positions
        self.promise(bool(np.isin(rows, others).all()), f"{name!r} has a row that is not held")


def check_kinds(saved: Arrays, own: Arrays) -> None:
    """Raise unless arrays have the names and types of those that would be saved here. Loops would not take others."""
    for name, array in own.items():
        found = saved[name]
        # A list of rows that is empty does not say how many columns each has.
        same_shape = found.ndim == array.ndim or (not array.size and not array.dtype.names and found.ndim <= 2)
        if found.dtype != array.dtype or not same_shape:
            raise ValueError(f"{name} is {found.dtype} in {found.ndim} dimensions, not {array.dtype} in {array.ndim}")
