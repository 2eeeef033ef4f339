"""Float64 keys in the order of 64-bit whole numbers, so that kernels compare floats and no number is rounded.

A whole number up to 2**53 is its own key. Beyond that, the next number gets the next float, up to 4.3e18 on both sides
of zero. This serves counts, ids and times in nanoseconds; keys of close numbers are about as far apart as the numbers.

When a larger number comes, such as a hash, all keys are assigned anew: from then on the n-th whole number has the n-th
float, whatever its size. There are fewer finite floats than 64-bit numbers, so 2**54 numbers have no key. These lie in
holes between the numbers in use: at first at both ends of the range, and elsewhere when a number comes that lies in a
hole.

Subnormal floats are no keys, because some libraries make the processor treat them as zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import kernel, read_only

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT: Final = 2**53  # every whole number up to here is a float64
_EXACT_BITS: Final = int(np.float64(EXACT).view(np.int64))
_LAST_BITS: Final = int(np.finfo(np.float64).max.view(np.int64))
NEAR: Final = EXACT + _LAST_BITS - _EXACT_BITS  # the largest number with a key before keys are assigned anew

_SIGN: Final = np.int64(-(2**63))
_NORMAL: Final = 2**52  # the bits of the smallest float that is not subnormal
_EDGE: Final = 2**53  # how many numbers have no key at each end, at first
_REST: Final = 52  # the number of low bits that the lookup of a number's run ignores


class WholeKeys:
    """Converts numbers to keys and back, under one rule at a time.

    Numbers are int64, or uint64 with `unsigned`. Internally a uint64 becomes an int64 too: 2**63 less, unless all
    numbers are near zero.
    """

    def __init__(self, *, unsigned: bool = False, near: bool = True) -> None:
        """`near=False`: the n-th whole number has the n-th float from the start."""
        self._unsigned = unsigned
        self._room = np.empty(0)  # for keys, reused: new memory would have to be cleared by the system first
        self._are_large = False  # have numbers come that are beyond EXACT?
        # Under the rule for far numbers: the runs of numbers that have keys, ascending, and what is added to a number
        # of each run. None: the rule for near numbers.
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
        """The key of each number, in an array that the next call overwrites; None if one number has no key under the
        present rule."""
        whole = read_only(numbers.view(np.int64))
        keys = self._room_for(len(whole))
        if self._runs is None:
            if self._are_large:  # earlier numbers were, so these probably are, too: times in nanoseconds, for example
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
        """The key of each number, and which numbers have no key under this rule; their keys are NaN."""
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
        """The number of each key. A float that is no key gives a neighbouring number."""
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
        """Change the rule so that `numbers` have keys, and the numbers behind the keys `kept`, multiplied by `factor`.

        Returns the new keys of the latter. Infinities stay. Raises OverflowError if a product exceeds 64 bits.
        """
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
    """Choose runs of numbers that get keys, so that the used numbers do: first, last and what is added, for each run.

    The range is cut into more than twice as many pieces as there are used numbers, so more than half of it is free for
    holes.
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
        # Take the largest free stretches until they suffice. From the smallest of them, only its middle is needed.
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
    """For each value of a number's first bits: the last run that begins at or before the first number with them."""
    begin = np.arange(-(2 ** (63 - _REST)), 2 ** (63 - _REST)) << _REST
    return np.maximum(np.searchsorted(runs[0], begin, side="right") - 1, 0)


_FIRST_RUNS: Final = _runs_between(np.empty(0, np.int64))


@kernel
def as_floats(whole, signed, keys):
    """Convert numbers to floats, and return an upper bound of their size: if it is below EXACT, these are the keys."""
    together = np.int64(0)
    for i in range(len(whole)):
        x = whole[i]
        keys[i] = x
        together |= x ^ ((x >> 63) & signed)
    return together


@kernel
def shifted(whole, bits):
    """Write the keys, as bits, of numbers from EXACT to NEAR. Returns the smallest and the largest number, with which
    the caller checks that all are in this range."""
    smallest, largest = np.int64(NEAR), np.int64(EXACT)
    for i in range(len(whole)):
        x = whole[i]
        bits[i] = x + (_EXACT_BITS - EXACT)
        smallest, largest = min(smallest, x), max(largest, x)
    return smallest, largest


@kernel
def near_keys(whole, unsigned, bits):
    """Write the keys, as bits, of numbers up to NEAR. Returns False if one is larger."""
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
    """Write the keys, as bits, of numbers in these runs. Returns False if one is in no run.

    `start` comes from `_starts`.
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
