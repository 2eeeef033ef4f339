"""Whole numbers at which something ends: what float64 holds exactly, what has a key, what fits in 64 bits."""

from __future__ import annotations

from skyband.kernels.whole_keys import NEAR

_EDGES = (0, 2**53, 2**62, NEAR, 2**63 - 2**53, 2**63)

# A few on each side of every edge, of either sign.
EDGES_OF_64_BITS = sorted(
    {
        sign * edge + step
        for edge in _EDGES
        for sign in (1, -1)
        for step in range(-3, 4)
        if -(2**63) <= sign * edge + step < 2**63
    }
)
EDGES_WITHOUT_SIGN = sorted({*(x for x in EDGES_OF_64_BITS if x >= 0), *(x + 2**63 for x in EDGES_OF_64_BITS)})
