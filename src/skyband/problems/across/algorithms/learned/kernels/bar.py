"""Where the bar may be, compiled: how much answers would miss at each of its levels."""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import kernel
from skyband.problems.across.algorithms.learned.kernels.retention import LEVELS, LEVELS_AN_OCTAVE

TRUST = 1.0  # in what is expected: as if so many objects had been seen for a window, just as expected
LEAST_TIMES = 0.7  # as much as expected, at least: that little was seen of late says little where habits change
COMPARED = 0.25  # share of what is shown by which it is told how far what is expected is right
SELDOM = 0.1  # what is expected n times more seldom than what is compared is seen n**SELDOM times as often
TINY = 1e-9  # nothing is divided by less


@kernel
def expect_missed(bar, shown_mass, lost, looks, missed):
    """By level of the bar: which share of the objects that answers should show they would miss, as expected.

    That is, times how much more is seen than expected where both are known: above the bar, of as much as is enough to
    tell. What is expected more seldom than that happens somewhat oftener than expected.
    """
    held = int(-LEVELS_AN_OCTAVE * math.log2(bar)) - LEVELS_AN_OCTAVE // 2 if bar > 0.0 else LEVELS - 1
    held = max(held, 2)
    total, expected = np.sum(shown_mass), 0.0
    for level in range(LEVELS):
        expected += lost[level]
        missed[level] = max(expected, 0.0) * looks
    level, seen = 0, np.sum(shown_mass[1:held])  # objects that were shown, of levels above this one
    while seen > COMPARED * total and level < held - 1:
        level += 1
        seen -= shown_mass[level]
    compared, trust = missed[level], TRUST * looks
    times = (trust + seen) / (trust + max(compared - missed[held - 1], 0.0))
    for i in range(LEVELS):
        seldom = max(compared / max(missed[i], TINY), 1.0)
        missed[i] *= max(times, LEAST_TIMES) * seldom**SELDOM / max(total, 1.0)
