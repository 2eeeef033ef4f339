"""The compiled loops of COUNT(DISTINCT x).

A tally counts the joined rows of a group that have a value. It is found by its owner and value, in a hash table that is
at most half full; a tally of 0 stays until the table is rebuilt. So values can be subtracted in any order, and a group
shows how many of its tallies are not 0.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.joins.algorithms.plans.arrays import (
    CHOSEN,
    D_COLUMN,
    D_INPUT,
    DISTINCT_ROWS,
    DISTINCTS,
    ENTRY_DISTINCT,
    GROUP_DISTINCT,
    NONE,
    TALLIED,
    Y_OWNER,
    Y_ROWS,
    Y_VALUE,
)


@inlined
def mix(mixed, part):
    """The hash function of groups and tallies."""
    mixed = (mixed ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@part
def room_to_tally(config, tallies, counters):
    """Is there room for all tallies of one more match?"""
    return 2 * (counters[TALLIED] + config[DISTINCTS]) <= len(tallies)


@part
def tally(config, program, entries, groups, tallies, scratch, counters, group, source, entry, rows):
    """Count the joined rows of a combination of entries, or subtract them. `entry` is the one of `source`."""
    for d in range(config[DISTINCTS]):
        column = program[config[DISTINCT_ROWS] + d]
        chosen = entry if column[D_INPUT] == source else scratch[config[CHOSEN] + column[D_INPUT]]
        value = entries[chosen, config[ENTRY_DISTINCT] + column[D_COLUMN]]
        if value == NONE:
            continue
        owner = group * config[DISTINCTS] + d
        at = place_of(tallies, owner, value)
        if tallies[at, Y_OWNER] == NONE:
            tallies[at, Y_OWNER], tallies[at, Y_VALUE], tallies[at, Y_ROWS] = owner, value, 0
            counters[TALLIED] += 1
        before = tallies[at, Y_ROWS]
        tallies[at, Y_ROWS] = before + rows
        groups[group, config[GROUP_DISTINCT] + d] += np.int64(before + rows != 0) - np.int64(before != 0)


@part
def place_of(tallies, owner, value):
    """The place of a tally, or the free place where it belongs."""
    mask = len(tallies) - 1
    at = np.int64(mix(mix(np.uint64(0), owner), value) & np.uint64(mask))
    while tallies[at, Y_OWNER] != NONE and (tallies[at, Y_OWNER] != owner or tallies[at, Y_VALUE] != value):
        at = (at + 1) & mask
    return at


@kernel
def enter(tallies, lines):
    """Enter these lines, which are all different, into an empty table."""
    for i in range(len(lines)):
        at = place_of(tallies, lines[i, Y_OWNER], lines[i, Y_VALUE])
        for column in range(lines.shape[1]):
            tallies[at, column] = lines[i, column]
