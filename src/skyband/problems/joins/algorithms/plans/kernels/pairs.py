"""The compiled loop that joins two inputs whose numbers have one limb each: `join` as one short loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.intrinsics import prefetch_in
from skyband.problems.joins.algorithms.plans.arrays import (
    CANDIDATE,
    DELTA,
    FOLLOWING,
    G_INPUT,
    GROUP_PARTS,
    GROUP_SUMS,
    I_SIMPLE,
    I_TO,
    INPUT_ROWS,
    IS_LISTED,
    IS_TOUCHED,
    ITEM,
    JOIN,
    KEYS,
    L_TOUCHED,
    LISTED,
    MATCHES,
    NONE,
    P_DOMAIN,
    P_INDEX,
    P_LINK,
    PART,
    PART_ROWS,
    PARTS,
    SOURCE,
    STAGE,
    STEP_ROWS,
    SUMS,
    TOUCHED,
    UPDATE,
)
from skyband.problems.joins.algorithms.plans.kernels.matching import DONE, MORE_GROUPS, group_of_pair
from skyband.problems.joins.algorithms.plans.kernels.updating import relink

AHEAD = 4  # how many entries ahead are prefetched

BOTH = 2  # in place of an input: both inputs determine the group


class Way(NamedTuple):
    """How to join entries of one input of a pair with those of the other, read from the program once."""

    source: int
    grouped: int  # the input that determines the group, or BOTH, or NONE
    links: int  # the index by which entries of the other input are found
    key: int  # columns of an entry
    following: int
    sums: int
    out: int  # columns of a group
    parts: int
    to: int  # where its terms begin there,
    width: int  # and how many columns they have
    other_to: int
    other_width: int


@part
def way_of(config, program, source):
    step, out = config[STEP_ROWS] + source, config[GROUP_SUMS]
    mine, other = config[INPUT_ROWS] + source, config[INPUT_ROWS] + 1 - source
    grouped = program[config[PART_ROWS], G_INPUT] if config[PARTS] == 1 else BOTH if config[PARTS] == 2 else NONE
    key, following = config[KEYS] + program[step, P_DOMAIN], config[FOLLOWING] + program[step, P_LINK]
    own, others = out + program[mine, I_TO], out + program[other, I_TO]
    return Way(
        *(source, grouped, program[step, P_INDEX], key, following, config[SUMS], out, config[GROUP_PARTS]),
        *(own, program[mine, I_SIMPLE], others, program[other, I_SIMPLE]),
    )


@inlined
def join_pair(way, entries, first, groups, lists, table, counters, entry, row, at, sign, again):
    """Join a part of `entry`, the numbers of `row` from column `at` on, with the entries of the other input.

    `again`: continue after groups ran out.
    """
    candidate = counters[CANDIDATE] if again else first[way.links, entries[entry, way.key]]
    change, rows = entries[row, at:], entries[row, at] * sign
    own_part = entries[entry, PART]
    group = own_part if way.grouped == way.source else 0
    touched, matches = counters[TOUCHED], 0
    while candidate != NONE:
        other = entries[candidate]
        if way.grouped == BOTH:
            one, two = (own_part, other[PART]) if way.source == 0 else (other[PART], own_part)
            group = group_of_pair(groups, table, counters, way.parts, one, two)
            if group == NONE:
                break
        elif way.grouped == 1 - way.source:
            group = other[PART]
        total, times = groups[group], other[way.sums]
        total[way.out] += rows * times
        for c in range(way.width):
            total[way.to + c] += change[1 + c] * (sign * times)
        for c in range(way.other_width):
            total[way.other_to + c] += other[way.sums + 1 + c] * rows
        # Without a branch: the next group overwrites this one unless it is new.
        lists[L_TOUCHED, touched] = group
        touched += total[IS_TOUCHED] == 0
        total[IS_TOUCHED] = 1
        matches += 1
        candidate = other[way.following]
    counters[TOUCHED], counters[CANDIDATE] = touched, candidate
    counters[MATCHES] += matches
    return DONE if candidate == NONE else MORE_GROUPS


@part
def join_changes(config, program, entries, first, listed, groups, lists, table, counters):
    """Apply the gathered change of each entry, and join the change with the entries of the other input."""
    sums, delta, item = config[SUMS], config[DELTA], counters[ITEM]
    way, again = way_of(config, program, entries[listed[item], SOURCE]), counters[STAGE] == JOIN
    while item < counters[LISTED]:
        if item + 2 * AHEAD < counters[LISTED]:
            # Prefetch an entry and, a little later, the first entry that it will be joined with.
            prefetch_in(entries, listed[item + 2 * AHEAD], way.key)
            prefetch_in(entries, listed[item + 2 * AHEAD], delta)
            prefetch_in(entries, first[way.links, entries[listed[item + AHEAD], way.key]], sums)
        entry = listed[item]
        if entries[entry, SOURCE] != way.source:  # rare, because events come input by input
            way = way_of(config, program, entries[entry, SOURCE])
        if again or take_over(config, program, entries, first, entry):
            counters[STAGE], counters[ITEM] = JOIN, item
            status = join_pair(
                way, entries, first, groups, lists, table, counters, entry, entry, delta, np.int64(1), again
            )
            if status != DONE:
                return status
        for c in range(delta - sums):
            entries[entry, delta + c] = 0
        entries[entry, IS_LISTED], again = 0, False
        item += 1
    counters[STAGE], counters[ITEM] = UPDATE, item
    return DONE


@inlined
def take_over(config, program, entries, first, entry):
    """Apply the gathered change of an entry. Returns False if the change is 0."""
    sums, delta = config[SUMS], config[DELTA]
    was, changed = entries[entry, sums], 0
    for c in range(delta - sums):
        change = entries[entry, delta + c]
        changed |= change
        entries[entry, sums + c] += change
    if (was > 0) != (entries[entry, sums] > 0):
        relink(config, program, entries, first, entry)
    return changed != 0
