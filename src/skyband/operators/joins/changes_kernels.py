"""The compiled loops of `multiply` for most joins: two inputs whose numbers have one limb each, and groups that are
known by one part or none. Nothing can run out here, so that no step is ever taken back, and what does not depend on the
row is read once for a moment.
"""

from __future__ import annotations

from skyband.operators.joins.arrays import (
    DELTA,
    E_SIGN,
    E_SLOT,
    EVENT,
    FOLLOWING,
    G_INPUT,
    GROUP_SUMS,
    I_SIMPLE,
    I_TERM,
    I_TERM_END,
    I_TO,
    INPUT_ROWS,
    IS_LISTED,
    IS_TOUCHED,
    KEYS,
    L_TOUCHED,
    MATCHES,
    NONE,
    P_DOMAIN,
    P_INDEX,
    P_LINK,
    PART,
    PART_ROWS,
    PARTS,
    R_ARGUMENTS,
    R_ENTRY,
    R_VALID,
    R_WEIGHT,
    SOURCE,
    STEP_ROWS,
    SUMS,
    T_ARGUMENT,
    T_FLOAT,
    T_FROM,
    T_LIMBS,
    T_PLAIN,
    TERM_ROWS,
    TOUCHED,
)
from skyband.operators.joins.updating_kernels import add_row, relink
from skyband.structures.compiling import part


@part
def take_changes(rule, program, entries, first, listed, slots, groups, lists, events, end, counters):  # type: ignore[no-untyped-def]
    """The events of a moment: what they change of each entry, joined with all there is of the other input."""
    ahead, behind = gather_changes(rule, program, entries, listed, slots, events, end, counters)
    for source in range(2):
        begin, stop = (0, ahead) if source == 0 else (behind, len(listed))
        join_changes(rule, program, entries, first, listed, begin, stop, groups, lists, counters, source)


@part
def gather_changes(rule, program, entries, listed, slots, events, end, counters):  # type: ignore[no-untyped-def]
    """Add up what the events of a moment change of each entry.

    Entries of the first input are listed from the front, those of the second from the back: returns where these lists
    end and begin.
    """
    delta, terms, inputs = rule[DELTA], rule[TERM_ROWS], rule[INPUT_ROWS]
    begin_0, end_0 = terms + program[inputs, I_TERM], terms + program[inputs, I_TERM_END]
    begin_1, end_1 = terms + program[inputs + 1, I_TERM], terms + program[inputs + 1, I_TERM_END]
    floats = 0
    for t in range(begin_0, end_1):
        floats |= program[t, T_FLOAT]
    ahead, behind = 0, len(listed)
    for i in range(counters[EVENT], end):
        slot, sign = events[i, E_SLOT], events[i, E_SIGN]
        entry = slots[slot, R_ENTRY]
        source = entries[entry, SOURCE]
        if entries[entry, IS_LISTED] == 0:
            entries[entry, IS_LISTED] = 1
            if source == 0:
                listed[ahead] = entry
                ahead += 1
            else:
                behind -= 1
                listed[behind] = entry
        if floats:
            add_row(rule, program, entries, entries, entry, delta, source, slots, slot, sign)
            continue
        rows, valid = sign * slots[slot, R_WEIGHT], slots[slot, R_VALID]
        entries[entry, delta] += rows
        begin, stop = (begin_0, end_0) if source == 0 else (begin_1, end_1)
        for t in range(begin, stop):
            argument, at = program[t, T_ARGUMENT], delta + program[t, T_FROM]
            if valid >> argument & 1:
                entries[entry, at] += rows
                if program[t, T_LIMBS]:
                    entries[entry, at + program[t, T_PLAIN]] += sign * slots[slot, R_ARGUMENTS + argument]
    counters[EVENT] = end
    return ahead, behind


@part
def join_changes(rule, program, entries, first, listed, begin, end, groups, lists, counters, source):  # type: ignore[no-untyped-def]
    """Add what was gathered of some entries of an input to them, and join it with the entries of the other one."""
    sums, delta, out = rule[SUMS], rule[DELTA], rule[GROUP_SUMS]
    mine, others, step = rule[INPUT_ROWS] + source, rule[INPUT_ROWS] + 1 - source, rule[STEP_ROWS] + source
    index, key = program[step, P_INDEX], rule[KEYS] + program[step, P_DOMAIN]
    following = rule[FOLLOWING] + program[step, P_LINK]
    own_to, own_width = out + program[mine, I_TO], program[mine, I_SIMPLE]
    other_to, other_width = out + program[others, I_TO], program[others, I_SIMPLE]
    grouped = program[rule[PART_ROWS], G_INPUT] if rule[PARTS] else NONE
    touched, matches = counters[TOUCHED], 0
    for i in range(begin, end):
        entry = listed[i]
        entries[entry, IS_LISTED] = 0
        was, changed = entries[entry, sums], 0
        for c in range(delta - sums):
            change = entries[entry, delta + c]
            changed |= change
            entries[entry, sums + c] += change
        if changed == 0:
            continue  # as much came as went
        if (was > 0) != (entries[entry, sums] > 0):
            relink(rule, program, entries, first, entry)
        rows, group = entries[entry, delta], 0
        if grouped == source:
            group = entries[entry, PART]
        candidate = first[index, entries[entry, key]]
        while candidate != NONE:
            if grouped == 1 - source:
                group = entries[candidate, PART]
            times = entries[candidate, sums]
            groups[group, out] += rows * times
            for c in range(own_width):
                groups[group, own_to + c] += entries[entry, delta + 1 + c] * times
            for c in range(other_width):
                groups[group, other_to + c] += entries[candidate, sums + 1 + c] * rows
            # Without a branch: overwritten by the next one unless this one is new.
            lists[L_TOUCHED, touched] = group
            touched += groups[group, IS_TOUCHED] == 0
            groups[group, IS_TOUCHED] = 1
            matches += 1
            candidate = entries[candidate, following]
        for c in range(delta - sums):
            entries[entry, delta + c] = 0
    counters[TOUCHED] = touched
    counters[MATCHES] += matches
