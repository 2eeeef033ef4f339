"""The compiled loops of all plans: Tran and Lee's Algorithm 1.

`run` takes events, moment by moment: rows that come or leave. Each event updates its entry (the row itself or, with
early aggregation, the aggregation set), is joined with the entries of the other inputs, and adds the matches to the
groups of the output. The paper's coalescing property lets a join multiply: n rows that agree count n times. At the end
of a moment, the groups that it touched are shown.

No loop allocates. When an array is full, `run` returns what it needs; when it is called again, it continues with the
match that it could not add. (Adding the same step to a staircase twice does no harm.)
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.intrinsics import prefetch, prefetch_in
from skyband.problems.joins.algorithms.plans.arrays import (
    COALESCE,
    DELTA,
    DISTINCTS,
    E_SIGN,
    E_SLOT,
    EVENT,
    GATHER,
    GROUP_SUMS,
    INPUTS,
    IS_LISTED,
    IS_TOUCHED,
    ITEM,
    JOIN,
    L_TOUCHED,
    LISTED,
    M_END,
    MATCHES,
    PAIR,
    R_ARGUMENTS,
    R_ENTRY,
    R_LAST,
    R_VALID,
    R_WEIGHT,
    SILENT,
    SOURCE,
    STAGE,
    SUMS,
    TOUCHED,
    TURN,
    UPDATE,
)
from skyband.problems.joins.algorithms.plans.kernels.emit import emit, room_to_emit, settle
from skyband.problems.joins.algorithms.plans.kernels.matching import DONE, MORE_ENTRY_STEPS, MORE_RECORDS, join
from skyband.problems.joins.algorithms.plans.kernels.pairs import join_changes, join_pair, way_of
from skyband.problems.joins.algorithms.plans.kernels.updating import (
    add_entry,
    add_plain_row,
    add_row,
    only_plain,
    read_row,
    relink,
    update,
)

AHEAD = 8  # how many events ahead are prefetched


@kernel
def write_rows(table, slots, entry, valid, last, weight, arguments):
    """Write new rows to their slots."""
    for i in range(len(slots)):
        slot = slots[i]
        table[slot, R_ENTRY] = entry[i]
        table[slot, R_VALID] = valid[i]
        table[slot, R_LAST] = last[i]
        table[slot, R_WEIGHT] = weight[i]
        for a in range(arguments.shape[1]):
            table[slot, R_ARGUMENTS + a] = arguments[i, a]


@kernel
def line_up(events, at, slots, moment, sign):
    """Write rows that come or leave as events. `at` has the place of the next event of each moment."""
    for i in range(len(slots)):
        place = at[moment[i]]
        at[moment[i]] = place + 1
        events[place, E_SLOT], events[place, E_SIGN] = slots[i], sign


@kernel
def run(
    config, program, entries, first, listed, slots, groups, lists, table, tallies, entry_stairs, group_stairs,
    events, moments, records, scratch, floats, counters,
):  # fmt: skip
    """Take all events, or stop when an array is full: the status tells which."""
    while counters[TURN] < len(moments):
        turn = counters[TURN]
        end = moments[turn, M_END]
        if config[COALESCE] and config[INPUTS] == 1 and config[DISTINCTS] == 0:
            take_alone(config, program, entries, slots, groups, lists, events, end, counters)
            status = DONE
        elif config[COALESCE]:
            if counters[STAGE] == GATHER:
                gather(config, program, entries, listed, slots, events, end, counters)
                counters[STAGE], counters[ITEM] = UPDATE, 0
            if counters[PAIR]:
                status = join_changes(config, program, entries, first, listed, groups, lists, table, counters)
            else:
                status = take_listed(
                    *(config, program, entries, first, listed, groups, lists, table, tallies, entry_stairs),
                    *(group_stairs, scratch, counters, moments, turn),
                )
        else:
            status = take_events(
                *(config, program, entries, first, slots, groups, lists, table, tallies, entry_stairs, group_stairs),
                *(scratch, counters, events, end, moments, turn),
            )
        if status != DONE:
            return status
        if not room_to_emit(counters, records):
            return MORE_RECORDS
        settle(config, program, groups, lists, group_stairs, moments, turn, records, scratch, floats, counters)
        if not counters[SILENT]:
            emit(config, groups, lists, moments, turn, records, scratch, counters)
        counters[TURN] += 1
        counters[STAGE], counters[LISTED] = GATHER, 0
    return DONE


@part
def take_events(
    config, program, entries, first, slots, groups, lists, table, tallies, entry_stairs, group_stairs, scratch,
    counters, events, end, moments, turn,
):  # fmt: skip
    """Take the events of a moment one by one."""
    sums, changes = config[SUMS], np.int64(0)  # entry 0 has the change of an event
    while counters[EVENT] < end:
        slot, sign = events[counters[EVENT], E_SLOT], events[counters[EVENT], E_SIGN]
        entry, last = slots[slot, R_ENTRY], slots[slot, R_LAST]
        read_row(config, program, entries, slots, slot, scratch)
        again = counters[STAGE] == JOIN
        if not again:
            if not update(config, program, entries, first, entry_stairs, scratch, entry, sign, last, moments, turn):
                return MORE_ENTRY_STEPS
            counters[STAGE] = JOIN
        if counters[PAIR]:
            way = way_of(config, program, entries[entry, SOURCE])
            status = join_pair(way, entries, first, groups, lists, table, counters, entry, changes, sums, sign, again)
        else:
            status = join(
                *(config, program, entries, first, groups, lists, table, tallies, entry_stairs, group_stairs, scratch),
                *(counters, entry, last, moments, turn, sign, sign > 0, again),
            )
        if status != DONE:
            return status
        counters[STAGE] = UPDATE
        counters[EVENT] += 1
    return DONE


@part
def take_listed(
    config, program, entries, first, listed, groups, lists, table, tallies, entry_stairs, group_stairs, scratch,
    counters, moments, turn,
):  # fmt: skip
    """Join the gathered change of each entry with the entries of the other inputs."""
    sums, delta = config[SUMS], config[DELTA]
    while counters[ITEM] < counters[LISTED]:
        entry, again, changed = listed[counters[ITEM]], counters[STAGE] == JOIN, 0
        for c in range(delta - sums):
            changed |= entries[entry, delta + c]
            entries[0, sums + c] = entries[entry, delta + c]
        if changed:
            if not again:
                was = entries[entry, sums]
                add_entry(config, program, entries, entry, sums, 1)
                if (was > 0) != (entries[entry, sums] > 0):
                    relink(config, program, entries, first, entry)
                counters[STAGE] = JOIN
            status = join(
                *(config, program, entries, first, groups, lists, table, tallies, entry_stairs, group_stairs, scratch),
                *(counters, entry, np.int64(0), moments, turn, 1, False, again),
            )
            if status != DONE:
                return status
        entries[entry, IS_LISTED] = 0
        for c in range(delta - sums):
            entries[entry, delta + c] = 0
        counters[ITEM] += 1
        counters[STAGE] = UPDATE
    return DONE


@part
def gather(config, program, entries, listed, slots, events, end, counters):
    """Add up the changes of each entry in a moment."""
    delta, waiting, plain = config[DELTA], counters[LISTED], only_plain(config, program)
    for i in range(counters[EVENT], end):
        ask_early(events, i, end, slots, entries, delta)
        slot, sign = events[i, E_SLOT], events[i, E_SIGN]
        entry = slots[slot, R_ENTRY]
        # Without a branch: the next entry overwrites this one unless it is new.
        listed[waiting] = entry
        waiting += entries[entry, IS_LISTED] == 0
        entries[entry, IS_LISTED] = 1
        if plain:
            add_plain_row(config, program, entries, entry, delta, entries[entry, SOURCE], slots, slot, sign)
        else:
            add_row(config, program, entries, entries, entry, delta, entries[entry, SOURCE], slots, slot, sign)
    counters[EVENT], counters[LISTED] = end, waiting


@inlined
def ask_early(events, i, end, slots, target, column):
    """Prefetch for later events, because entries and groups are scattered over memory: the slot of a far event, and for
    a nearer one the row of `target`, its first numbers and those from `column` on."""
    if i + 2 * AHEAD < end:
        prefetch(slots, events[i + 2 * AHEAD, E_SLOT])
        row = slots[events[i + AHEAD, E_SLOT], R_ENTRY]
        prefetch(target, row)
        prefetch_in(target, row, column)


@part
def take_alone(config, program, entries, slots, groups, lists, events, end, counters):
    """Take the events of a moment without a join. In place of its entry, a row has its group, and is added to it."""
    out, touched, plain = config[GROUP_SUMS], counters[TOUCHED], only_plain(config, program)
    for i in range(counters[EVENT], end):
        ask_early(events, i, end, slots, groups, out)
        slot, sign = events[i, E_SLOT], events[i, E_SIGN]
        group = slots[slot, R_ENTRY]
        if plain:
            add_plain_row(config, program, groups, group, out, 0, slots, slot, sign)
        else:
            add_row(config, program, entries, groups, group, out, 0, slots, slot, sign)
        # Without a branch: the next group overwrites this one unless it is new.
        lists[L_TOUCHED, touched] = group
        touched += groups[group, IS_TOUCHED] == 0
        groups[group, IS_TOUCHED] = 1
    counters[MATCHES] += end - counters[EVENT]
    counters[EVENT], counters[TOUCHED] = end, touched
