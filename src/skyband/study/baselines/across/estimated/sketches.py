"""How many different objects a stream has in a window, how many several share, how often one comes: sketches.

Flajolet and Martin's sketches, many bitmaps of them; each bit remembers when it was last set, so that those of a window
can be told (after Datar and others). The sketch of a union is the latest of the clocks, bit by bit. How many objects
there are is read from how many bitmaps have each bit, not from the first gap alone: that is nearer for few objects.

How often objects come again is read from the self-join size of a stream, the sum of the squares of how often each came,
by the sketches of Alon, Matias and Szegedy. These are sums, so a window is put together from blocks. The paper does not
say how the largest number follows from it. Here it is the self-join size over the rows: how often the object of a row
comes, on average.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Codes, Ints
from skyband.study.baselines.across.estimated.kernels import BITS, BLOCKS, COPIES, GROUPS, MAPS, add, add_signs

Chances = npt.NDArray[np.float64]


class Sketches:
    """One sketch a stream."""

    def __init__(self, streams: int) -> None:
        self.clocks = np.full((streams, MAPS, BITS), -(2**63), np.int64)

    def add(self, stream: Codes, key: Ints, clock: Ints) -> None:
        """An object, known by a number that is always the same, comes in a stream."""
        add(self.clocks, stream, key, clock)

    def distinct(self, streams: list[int], since: int) -> float:
        """How many objects came in any of these streams, since then?"""
        union = self.clocks[streams].max(axis=0) >= since
        # Of n objects, n / 2**(b + 1) set bit b, of one map each: how many maps are left without it says what n is.
        unset = 1 - union.mean(axis=0)
        telling = (unset > 0.02) & (unset < 0.98)
        if not telling.any():
            return float(union.sum())
        unset, level = unset[telling], np.flatnonzero(telling)
        estimates = -np.log(unset) * MAPS * 2.0 ** (level + 1)
        trust = np.log(unset) ** 2 * unset / (1 - unset)  # one over the relative variance
        return float(np.sum(trust * estimates) / np.sum(trust))

    def chances(self, since: int) -> Chances:
        """By the set of streams in which an object has come, as bits, and by stream: how likely it also comes there."""
        streams = len(self.clocks)
        union = [0.0] * (1 << streams)
        for some in range(1, 1 << streams):
            union[some] = self.distinct([s for s in range(streams) if some >> s & 1], since)
        shared = [0.0] * (1 << streams)
        for some in range(1, 1 << streams):
            # |A and B and C| = |A| + |B| + |C| - |A or B| - … + |A or B or C|
            part = some
            while part:
                shared[some] += union[part] if bin(part).count("1") % 2 else -union[part]
                part = (part - 1) & some
        chance = np.ones((1 << streams, streams))
        for some in range(1, 1 << streams):
            for s in range(streams):
                if not some >> s & 1:
                    both = min(max(shared[some | 1 << s], 0.0), max(shared[some], 0.0))
                    chance[some, s] = both / shared[some] if shared[some] >= 1 else 0.0
        return chance


class SelfJoins:
    """One sketch a stream; `window` is how long rows live, in units of the clock."""

    def __init__(self, streams: int, window: int) -> None:
        self.width = max(1, -(-window // (BLOCKS - 1)))  # of a block
        self.counters = np.zeros((streams, BLOCKS, GROUPS * COPIES), np.int64)
        self.rows = np.zeros((streams, BLOCKS), np.int64)
        self.stamps = np.full(BLOCKS, -(2**62), np.int64)

    def add(self, stream: Codes, key: Ints, clock: Ints) -> None:
        add_signs(self.counters, self.rows, self.stamps, self.width, stream, key, clock)

    def size(self, stream: int, since: int) -> float:
        """The self-join size of the stream since then, up to a block."""
        live = self.stamps >= since // self.width
        totals = self.counters[stream, live].sum(axis=0).reshape(GROUPS, COPIES).astype(np.float64)
        return float(np.median((totals**2).mean(axis=1)))

    def often(self, since: int) -> npt.NDArray[np.float64]:
        """By stream: how often the object of a row comes in a window, at least once."""
        live = self.stamps >= since // self.width
        rows = self.rows[:, live].sum(axis=1)
        return np.array([max(1.0, self.size(s, since) / n) if n else 1.0 for s, n in enumerate(rows.tolist())])
