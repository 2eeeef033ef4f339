"""The hash function of groups and tallies."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined


@inlined
def mix(mixed, part):
    mixed = (mixed ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))
