"""Float64 keys in the order of 64-bit whole numbers: kernels compare floats, and no number is rounded.

A whole number up to 2**53 is its own key. Beyond that the next number gets the next float, as far as there are floats:
up to 4.3e18, on both sides of zero. That serves counts, ids and times in nanoseconds, and keys of numbers that lie
close together are about as far apart as the numbers are.

When a number comes that is farther out (a hash, say), all keys are given anew: from then on the n-th whole number has
the n-th float, whatever its size. There are fewer finite floats than 64-bit numbers, so 2**54 numbers have no key. They
lie in holes between the numbers that are in use: at both ends of the range at first, and elsewhere as soon as a number
comes that lies in one.

Subnormal floats are no keys: some libraries make the processor take them for zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import kernel, read_only

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT: Final = 2**53  # whole numbers up to here are floats
_EXACT_BITS: Final = int(np.float64(EXACT).view(np.int64))
_LAST_BITS: Final = int(np.finfo(np.float64).max.view(np.int64))
NEAR: Final = EXACT + _LAST_BITS - _EXACT_BITS  # the largest number that has a key before keys are given anew

_SIGN: Final = np.int64(-(2**63))
_NORMAL: Final = 2**52  # the bits of the smallest float that is not subnormal
_EDGE: Final = 2**53  # numbers without a key at each end, at first
_REST: Final = 52  # bits of a number behind those by which its run is looked up


class WholeKeys:
    """Gives keys to numbers, and numbers back for keys, under one rule at a time.

    Numbers are int64, or uint64 with `unsigned`. Inside, those of a uint64 column are int64 too: less 2**63, unless all
    are near zero.
    """

    def __init__(self, *, unsigned: bool = False, near: bool = True) -> None:
        """Not `near`: the n-th whole number has the n-th float from the start."""
        self._unsigned = unsigned
        self._room = np.empty(0)  # for keys: what is used again need not be cleared by the system first
        self._are_large = False  # have numbers come that are beyond EXACT?
        # The numbers that have keys, where they do not count from zero: runs of them, from the smallest, and what is
        # added to each of a run.
        self._runs: Ints | None = None
        if not near:
            self._runs, self._start = _FIRST_RUNS, _starts(_FIRST_RUNS)

    def _room_for(self, count: int) -> Floats:
        if count > len(self._room):
            self._room = np.empty(count)
        return self._room[:count]

    def _use(self, runs: Ints) -> None:
        self._runs, self._start = runs, _starts(runs)

    # -- keys and numbers ------------------------------------------------------------------------------------------

    def keys(self, numbers: npt.NDArray[np.integer]) -> Floats | None:
        """The key of each number, until others are asked for; None: one of them has none under the present rule."""
        whole = read_only(numbers.view(np.int64))
        keys = self._room_for(len(whole))
        if self._runs is None:
            if self._are_large:  # so were those before: as a rule times in nanoseconds are
                smallest, largest = shifted(whole, keys.view(np.int64))
                if smallest > EXACT and largest <= NEAR:
                    return keys
            magnitude = as_floats(whole, np.int64(0 if self._unsigned else -1), keys)
            if 0 <= magnitude < EXACT:
                return keys
            self._are_large = True
            return keys if near_keys(whole, self._unsigned, keys.view(np.int64)) else None
        whole = read_only(whole ^ _SIGN) if self._unsigned else whole
        return keys if far_keys(whole, *self._runs, self._start, keys.view(np.int64)) else None

    def some_keys(self, numbers: npt.NDArray[np.integer]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The key of each number that has one under this rule, and which numbers have none: NaN stands for these."""
        keys = self.keys(numbers)
        if keys is not None:
            return keys, np.zeros(len(keys), np.bool_)
        assert self._runs is not None, "the n-th number has the n-th float"
        (first, last, _), whole = self._runs, self._signed(numbers)
        run = np.searchsorted(first, whole, side="right") - 1
        without = (run < 0) | (whole > last[run])
        keys = np.full(len(numbers), np.nan)
        keys[~without] = self.keys(numbers[~without])
        return keys, without

    def numbers(self, keys: Floats) -> npt.NDArray[np.integer]:
        """The number of each key. Of what is no key, one of those next to it."""
        whole = self._whole(keys)
        if not self._unsigned:
            return whole
        return (whole if self._runs is None else whole ^ _SIGN).view(np.uint64)

    def _whole(self, keys: Floats) -> Ints:
        bits = keys.view(np.int64)
        magnitude = bits & ~_SIGN
        if self._runs is None:
            if not len(keys) or np.abs(keys).max() <= EXACT:
                return np.floor(keys).astype(np.int64)
            beyond = np.minimum(magnitude - _EXACT_BITS, _LAST_BITS - _EXACT_BITS) + EXACT
            close = np.floor(np.clip(keys, -EXACT, EXACT)).astype(np.int64)
            return np.where(np.abs(keys) <= EXACT, close, np.where(bits < 0, -beyond, beyond))
        place = np.clip(magnitude, _NORMAL, _LAST_BITS) - _NORMAL
        place = np.where(bits < 0, ~place, place)
        first, _, added = self._runs
        run = np.searchsorted(first + added, place, side="right") - 1
        return place - added[run]

    # -- another rule ----------------------------------------------------------------------------------------------

    def rekey(self, kept: Floats, numbers: npt.NDArray[np.integer], *, factor: int = 1) -> Floats:
        """Take a rule by which the numbers have keys, and those of the keys that are `kept`, times `factor`; return the
        new keys of these. Infinities stay what they are. Raises OverflowError if a product does not fit in 64 bits."""
        changed, finite = kept.copy(), np.isfinite(kept)
        held = self.numbers(kept[finite])
        if factor > 1:
            if len(held) and max(-int(held.min()), int(held.max())) * factor >= 2**63:
                raise OverflowError
            held = held * factor
        together = np.concatenate([held, numbers])
        if self._runs is not None or self.keys(together) is None:
            self._use(_runs_between(self._signed(together)))
        keys = self.keys(held)
        assert keys is not None, "every number that is kept has a key"
        changed[finite] = keys
        return changed

    def _signed(self, numbers: npt.NDArray[np.integer]) -> Ints:
        whole = numbers.view(np.int64)
        return whole ^ _SIGN if self._unsigned else whole

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> Ints:
        return np.empty((0, 0), np.int64) if self._runs is None else self._runs.copy()

    def restore(self, state: Ints) -> None:
        self._runs = None
        if len(state):
            self._use(state.copy())


def _runs_between(used: Ints) -> Ints:
    """Runs of numbers that have keys, with these among them: the first and the last of each, and what is added.

    The range is cut into more than twice as many pieces as there are numbers, so half of it is free, and more.
    """
    bits = max(12, (2 * len(used)).bit_length())
    pieces, width = 2**bits, 64 - bits
    edge, needed = _EDGE >> width, 2 * _EDGE >> width
    taken = np.zeros(pieces, np.bool_)
    taken[(used >> width) + pieces // 2] = True
    if not (taken[:edge].any() or taken[-edge:].any()):
        start, size = np.array([0, pieces - edge]), np.array([edge, edge])
    else:
        marks = np.flatnonzero(taken)
        start = np.concatenate([[0], marks + 1])
        size = np.concatenate([marks, [pieces]]) - start
        count = np.bincount(size)
        # The largest free stretches that are enough together, and of the smallest of them what is needed: its middle.
        least = np.flatnonzero(np.cumsum((count * np.arange(len(count)))[::-1])[::-1] >= needed)[-1]
        chosen = np.flatnonzero(size >= least)
        chosen = chosen[np.argsort(-size[chosen], kind="stable")]
        chosen = chosen[: np.searchsorted(np.cumsum(size[chosen]), needed) + 1]
        start, size = start[chosen], size[chosen]
        start[-1] += (size.sum() - needed) // 2
        size[-1] -= size.sum() - needed
        order = np.argsort(start)
        start, size = start[order], size[order]
    first, last = np.concatenate([[0], start + size]), np.concatenate([start, [pieces]]) - 1
    added = _EDGE - (np.concatenate([[0], np.cumsum(size)]) << width)
    runs = np.stack([(first - pieces // 2) << width, ((last - pieces // 2) << width) + (1 << width) - 1, added])
    return runs[:, first <= last]


def _starts(runs: Ints) -> Ints:
    """By the first bits of a number: the last run that begins where numbers with these bits do, or before."""
    begin = np.arange(-(2 ** (63 - _REST)), 2 ** (63 - _REST)) << _REST
    return np.maximum(np.searchsorted(runs[0], begin, side="right") - 1, 0)


_FIRST_RUNS: Final = _runs_between(np.empty(0, np.int64))


@kernel
def as_floats(whole, signed, keys):
    """Each number as a float, and a number at least as large as all of them: below EXACT, they are their own keys."""
    together = np.int64(0)
    for i in range(len(whole)):
        x = whole[i]
        keys[i] = x
        together |= x ^ ((x >> 63) & signed)
    return together


@kernel
def shifted(whole, bits):
    """The keys, as bits, of numbers beyond EXACT and up to NEAR; and the smallest and the largest number, which tell
    whether these are such."""
    smallest, largest = np.int64(NEAR), np.int64(EXACT)
    for i in range(len(whole)):
        x = whole[i]
        bits[i] = x + (_EXACT_BITS - EXACT)
        smallest, largest = min(smallest, x), max(largest, x)
    return smallest, largest


@kernel
def near_keys(whole, unsigned, bits):
    """The keys, as bits, of numbers up to NEAR. False: one is beyond."""
    beyond = 0
    for i in range(len(whole)):
        x = whole[i]
        magnitude = abs(x)
        beyond += (magnitude > NEAR) | (magnitude < 0) | (unsigned & (x < 0))
        if magnitude > EXACT:
            bits[i] = (magnitude + (_EXACT_BITS - EXACT)) | (x & _SIGN)
    return beyond == 0


@kernel
def far_keys(whole, first, last, added, start, bits):
    """The keys, as bits, of numbers in these runs. False: one is in none.

    `start`: see `_starts`.
    """
    for i in range(len(whole)):
        x = whole[i]
        run = start[(x >> _REST) + len(start) // 2]
        while run + 1 < len(first) and first[run + 1] <= x:
            run += 1
        if x < first[run] or x > last[run]:
            return False
        place = x + added[run]
        bits[i] = (_NORMAL + (place ^ (place >> 63))) | (place & _SIGN)
    return True
