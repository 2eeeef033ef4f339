"""The compiled loops that join: they find the matches of an entry, and add them to the groups of the output."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel, part
from skyband.problems.joins.algorithms.plans.arrays import (
    APART,
    BROKEN,
    C_INPUT,
    C_VARIABLE,
    CHECK_ROWS,
    CHOSEN,
    CURSOR,
    FOLLOWING,
    G_INPUT,
    GROUP_PARTS,
    GROUP_SUMS,
    GROUPS,
    I_SIMPLE,
    I_STAIR,
    I_STAIR_END,
    I_TERM,
    I_TERM_END,
    I_TO,
    INPUT_ROWS,
    INPUTS,
    IS_TOUCHED,
    KEYS,
    L_TOUCHED,
    LAST,
    LASTS,
    M_NOW,
    MATCHES,
    NONE,
    OWN,
    P_CHECK,
    P_CHECK_END,
    P_DOMAIN,
    P_INDEX,
    P_INPUT,
    P_LINK,
    P_PARENT,
    PART,
    PART_ROWS,
    PARTS,
    S_ARGUMENT,
    SOURCE,
    STAIR_ROWS,
    STAIRS,
    STAIRS_WIDE,
    STEP_ROWS,
    SUMS,
    T_FROM,
    T_LIMBS,
    T_PLAIN,
    T_TO,
    TERM_ROWS,
    TOUCHED,
    VARIABLES,
)
from skyband.problems.joins.algorithms.plans.kernels.distinct import mix, room_to_tally, tally
from skyband.problems.joins.algorithms.plans.kernels.stairs import (
    LENGTH,
    OFFSET,
    UNTIL,
    VALUE,
    expiring_before,
    insert,
    insert_apart,
)
from skyband.problems.joins.algorithms.plans.kernels.sums import add_scaled

DONE, MORE_GROUPS, MORE_ENTRY_STEPS, MORE_GROUP_STEPS, MORE_RECORDS, MORE_TALLIES = range(6)
MOST = 2.0**62


@part
def has_value(config, program, entries, source, s):
    """Has the row in entry 0 a value for this staircase? Its argument is also a term, which counts values."""
    term = program[config[INPUT_ROWS] + source, I_TERM] + program[config[STAIR_ROWS] + s, S_ARGUMENT]
    return entries[0, config[SUMS] + program[config[TERM_ROWS] + term, T_FROM]] > 0


@part
def join(
    config, program, entries, first, groups, lists, table, tallies, entry_stairs, group_stairs, scratch, counters,
    entry, last, moments, turn, sign, comes, again,
):  # fmt: skip
    """Join entry 0, a part of `entry`, with the other inputs, and add the matches to the output.

    `again`: continue after room ran short. The cursors are where they were, the last of them at the entry that could
    not be added.
    """
    source, steps = entries[entry, SOURCE], config[INPUTS] - 1
    chosen, cursor = config[CHOSEN], config[CURSOR]
    at, depth = config[STEP_ROWS] + source * steps, 0
    if again:
        depth = steps - 1
    else:
        scratch[chosen + source] = entry
        if steps > 0:
            scratch[cursor] = first[program[at, P_INDEX], entries[entry, config[KEYS] + program[at, P_DOMAIN]]]
    # Invariant: each step before `depth` has chosen an entry; the cursor at `depth` is the next entry to try.
    while True:
        if steps > 0:
            step, candidate = program[at + depth], scratch[cursor + depth]
            following = config[FOLLOWING] + step[P_LINK]
            if candidate == NONE:
                depth -= 1
                if depth < 0:
                    return DONE
                before = scratch[cursor + depth]
                scratch[cursor + depth] = entries[before, config[FOLLOWING] + program[at + depth, P_LINK]]
                continue
            if not agrees(config, program, entries, scratch, step, candidate):
                scratch[cursor + depth] = entries[candidate, following]
                continue
            scratch[chosen + step[P_INPUT]] = candidate
            if depth < steps - 1:
                depth += 1
                step = program[at + depth]
                key = entries[scratch[chosen + step[P_PARENT]], config[KEYS] + step[P_DOMAIN]]
                scratch[cursor + depth] = first[step[P_INDEX], key]
                continue
        group = group_of(config, program, entries, groups, table, scratch, counters)
        if group == NONE:
            return MORE_GROUPS
        if not room_to_tally(config, tallies, counters):
            return MORE_TALLIES
        if comes and not add_steps(
            config, program, entries, entry_stairs, group_stairs, scratch, group, source, last, moments, turn
        ):
            return MORE_GROUP_STEPS
        add_match(config, program, entries, groups, lists, tallies, scratch, counters, group, source, entry, sign)
        counters[MATCHES] += 1
        if steps == 0:
            return DONE
        scratch[cursor + depth] = entries[candidate, following]


@part
def agrees(config, program, entries, scratch, step, candidate):
    """Does an entry agree with the chosen ones in all variables, even those by which it was not found?"""
    for c in range(step[P_CHECK], step[P_CHECK_END]):
        check = program[config[CHECK_ROWS] + c]
        variable, other = config[VARIABLES] + check[C_VARIABLE], scratch[config[CHOSEN] + check[C_INPUT]]
        if entries[candidate, variable] != entries[other, variable]:
            return False
    return True


@part
def add_match(config, program, entries, groups, lists, tallies, scratch, counters, group, source, entry, sign):
    """Add one combination of entries to its group of the output."""
    chosen, inputs, rows_at = config[CHOSEN], config[INPUTS], config[SUMS]
    out = config[GROUP_SUMS]
    scratch[chosen + source] = 0
    rows, size = np.int64(sign), 1.0
    for i in range(inputs):
        rows *= entries[scratch[chosen + i], rows_at]
        size *= entries[scratch[chosen + i], rows_at]
    if abs(size) > MOST or abs(groups[group, out] + float(rows)) > MOST:
        counters[BROKEN] = 1
    groups[group, out] += rows
    tally(config, program, entries, groups, tallies, scratch, counters, group, source, entry, rows)
    for i in range(inputs):
        mine = config[INPUT_ROWS] + i
        if program[mine, I_TERM] == program[mine, I_TERM_END]:
            continue
        # The coalescing property: the values of an input count once for each combination of the others' rows.
        factor = np.int64(sign)
        for j in range(inputs):
            if j != i:
                factor *= entries[scratch[chosen + j], rows_at]
        added, simple = scratch[chosen + i], program[mine, I_SIMPLE]
        if simple != NONE:
            to = out + program[mine, I_TO]
            for c in range(simple):
                groups[group, to + c] += entries[added, rows_at + 1 + c] * factor
            continue
        for t in range(config[TERM_ROWS] + program[mine, I_TERM], config[TERM_ROWS] + program[mine, I_TERM_END]):
            start, to = rows_at + program[t, T_FROM], out + program[t, T_TO]
            plain, limbs = program[t, T_PLAIN], program[t, T_LIMBS]
            add_scaled(groups, group, to, entries, added, start, plain, limbs, factor)
    scratch[chosen + source] = entry
    if not groups[group, IS_TOUCHED]:
        groups[group, IS_TOUCHED] = 1
        lists[L_TOUCHED, counters[TOUCHED]] = group
        counters[TOUCHED] += 1


@part
def add_steps(config, program, entries, entry_stairs, group_stairs, scratch, group, source, last, moments, turn):
    """Add the values of a combination to the staircases of its group. It lives until the first of its rows leaves.

    If the entry of the row had other rows, the latest of which leaves at `known`, then the group has every step of the
    other entries until then. So only steps that live longer are new, and only if the row lives longer, too.
    """
    chosen, known = config[CHOSEN], entries[0, LAST]
    if config[STAIRS] == 0:
        return True
    if config[APART]:
        return add_steps_apart(
            config, program, entries, entry_stairs, group_stairs, scratch, group, source, last, moments, turn
        )
    for i in range(config[INPUTS]):
        mine = program[config[INPUT_ROWS] + i]
        others = last
        for j in range(config[INPUTS]):
            if j != i and j != source:
                others = min(others, entries[scratch[chosen + j], LAST])
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            owner = group * config[STAIRS] + s
            if i == source:
                value = scratch[config[OWN] + s]
                if has_value(config, program, entries, source, s) and not insert(group_stairs, owner, others, value):
                    return False
                continue
            if others <= known:
                continue
            header = entry_stairs.owners[scratch[chosen + i] * config[STAIRS_WIDE] + s - mine[I_STAIR]]
            start, n = header[OFFSET], header[LENGTH]
            for p in range(start + expiring_before(entry_stairs.steps, start, n, known + 1), start + n):
                until = entry_stairs.steps[p, UNTIL]
                if until >= moments[turn, M_NOW + i]:
                    if not insert(group_stairs, owner, min(others, until), entry_stairs.steps[p, VALUE]):
                        return False
                    if until >= others:
                        break  # later steps are larger, and count no longer here
    return True


@part
def add_steps_apart(config, program, entries, entry_stairs, group_stairs, scratch, group, source, last, moments, turn):
    """`add_steps` if each input has a clock of its own."""
    chosen, inputs = config[CHOSEN], config[INPUTS]
    lasts = scratch[config[LASTS] : config[LASTS] + inputs]  # for each entry of the combination: its LAST
    for j in range(inputs):
        lasts[j] = last if j == source else entries[scratch[chosen + j], LAST]
    for i in range(inputs):
        mine, latest = program[config[INPUT_ROWS] + i], lasts[i]
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            owner = group * config[STAIRS] + s
            if i == source:
                value = scratch[config[OWN] + s]
                if has_value(config, program, entries, source, s) and not insert_apart(
                    group_stairs, owner, lasts, value
                ):
                    return False
                continue
            header = entry_stairs.owners[scratch[chosen + i] * config[STAIRS_WIDE] + s - mine[I_STAIR]]
            for p in range(header[OFFSET], header[OFFSET] + header[LENGTH]):
                lasts[i] = entry_stairs.steps[p, UNTIL]
                if lasts[i] >= moments[turn, M_NOW + i] and not insert_apart(
                    group_stairs, owner, lasts, entry_stairs.steps[p, VALUE]
                ):
                    return False
        lasts[i] = latest
    return True


@part
def group_of(config, program, entries, groups, table, scratch, counters):
    """Find or make the group of a combination; NONE if there is no room for one more."""
    parts, chosen, at_parts = config[PARTS], config[CHOSEN], config[GROUP_PARTS]
    if parts == 0:
        return 0
    if parts == 1:
        return entries[scratch[chosen + program[config[PART_ROWS], G_INPUT]], PART]
    mixed = np.uint64(0)
    for p in range(parts):
        mixed = mix(mixed, entries[scratch[chosen + program[config[PART_ROWS] + p, G_INPUT]], PART])
    mask = len(table) - 1
    at = np.int64(mixed & np.uint64(mask))
    while table[at] != NONE:
        group, same = table[at], True
        for p in range(parts):
            part = entries[scratch[chosen + program[config[PART_ROWS] + p, G_INPUT]], PART]
            same &= groups[group, at_parts + p] == part
        if same:
            return group
        at = (at + 1) & mask
    group = new_group(groups, table, counters, at)
    if group != NONE:
        for p in range(parts):
            groups[group, at_parts + p] = entries[scratch[chosen + program[config[PART_ROWS] + p, G_INPUT]], PART]
    return group


@part
def group_of_pair(groups, table, counters, at_parts, one, other):
    """`group_of` for a pair of parts."""
    mask = len(table) - 1
    at = np.int64(mix(mix(np.uint64(0), one), other) & np.uint64(mask))
    while table[at] != NONE:
        group = table[at]
        if groups[group, at_parts] == one and groups[group, at_parts + 1] == other:
            return group
        at = (at + 1) & mask
    group = new_group(groups, table, counters, at)
    if group != NONE:
        groups[group, at_parts], groups[group, at_parts + 1] = one, other
    return group


@part
def new_group(groups, table, counters, at):
    """Make a group at this place of the hash table; NONE if there is no room."""
    group = counters[GROUPS]
    if group >= len(groups) or 2 * group >= len(table):
        return NONE
    counters[GROUPS] += 1
    table[at] = group
    return group


@kernel
def fill_table(table, groups, first_part, parts, count):
    """Enter the first `count` groups into an empty hash table."""
    mask = len(table) - 1
    for group in range(count):
        mixed = np.uint64(0)
        for p in range(parts):
            mixed = mix(mixed, groups[group, first_part + p])
        at = np.int64(mixed & np.uint64(mask))
        while table[at] != NONE:
            at = (at + 1) & mask
        table[at] = group
