"""The compiled loops that add a row to its entry or subtract it, and that link the entry."""

from __future__ import annotations

from skyband.kernels.compiling import inlined, part
from skyband.problems.joins.algorithms.plans.arrays import (
    FOLLOWING,
    I_LINK,
    I_LINK_END,
    I_SIMPLE,
    I_STAIR,
    I_STAIR_END,
    I_TERM,
    I_TERM_END,
    INPUT_ROWS,
    KEYS,
    L_DOMAIN,
    LAST,
    LINK_ROWS,
    M_NOW,
    NONE,
    OWN,
    PRECEDING,
    R_ARGUMENTS,
    R_ENTRY,
    R_VALID,
    R_WEIGHT,
    S_ARGUMENT,
    S_FLOAT,
    S_NEGATED,
    SOURCE,
    STAIR_ROWS,
    STAIRS_WIDE,
    SUMS,
    T_ARGUMENT,
    T_FLOAT,
    T_FROM,
    T_LIMBS,
    T_LOW,
    T_PLAIN,
    TERM_ROWS,
)
from skyband.problems.joins.algorithms.plans.kernels.matching import has_value
from skyband.problems.joins.algorithms.plans.kernels.stairs import NEVER, clear, expire, insert
from skyband.problems.joins.algorithms.plans.kernels.sums import EXPONENT, add_int, add_scaled, write_float, write_int


@part
def add_row(config, program, entries, target, at_row, start, source, slots, slot, sign):
    """Add `sign` times a row to the numbers of a row of `target`, from column `start` on. Entry 0 is scratch space."""
    rows = sign * slots[slot, R_WEIGHT]
    target[at_row, start] += rows
    mine, valid = config[INPUT_ROWS] + source, slots[slot, R_VALID]
    for t in range(config[TERM_ROWS] + program[mine, I_TERM], config[TERM_ROWS] + program[mine, I_TERM_END]):
        argument, at, plain = program[t, T_ARGUMENT], start + program[t, T_FROM], program[t, T_PLAIN]
        if not valid >> argument & 1:
            continue
        target[at_row, at] += rows
        limbs, value = program[t, T_LIMBS], slots[slot, R_ARGUMENTS + argument]
        if limbs == 0:
            continue
        if not program[t, T_FLOAT]:
            add_int(value, sign, target, at_row, at + plain, limbs)
        elif (value >> 52) & EXPONENT == EXPONENT:
            target[at_row, at + (2 if value < 0 else 1)] += sign
        else:
            free = config[SUMS] + program[t, T_FROM] + plain
            write_float(value, entries, free, limbs, program[t, T_LOW])
            add_scaled(target, at_row, at + plain, entries, 0, free, 0, limbs, sign)


@part
def only_plain(config, program):
    """Are all terms whole numbers of one limb?"""
    others = 0
    for t in range(config[TERM_ROWS], config[STAIR_ROWS]):
        others |= program[t, T_FLOAT] | (program[t, T_LIMBS] > 1)
    return others == 0


@inlined
def add_plain_row(config, program, target, at_row, start, source, slots, slot, sign):
    """`add_row` if all terms are whole numbers of one limb."""
    rows, valid, mine = sign * slots[slot, R_WEIGHT], slots[slot, R_VALID], config[INPUT_ROWS] + source
    target[at_row, start] += rows
    for t in range(config[TERM_ROWS] + program[mine, I_TERM], config[TERM_ROWS] + program[mine, I_TERM_END]):
        argument, at = program[t, T_ARGUMENT], start + program[t, T_FROM]
        if valid >> argument & 1:
            target[at_row, at] += rows
            if program[t, T_LIMBS]:
                target[at_row, at + program[t, T_PLAIN]] += sign * slots[slot, R_ARGUMENTS + argument]


@part
def read_terms(config, program, entries, slots, slot):
    """Write what a row adds to its entry to entry 0."""
    valid, start = slots[slot, R_VALID], config[SUMS]
    source = entries[slots[slot, R_ENTRY], SOURCE]
    entries[0, start] = weight = slots[slot, R_WEIGHT]
    mine = program[config[INPUT_ROWS] + source]
    for t in range(mine[I_TERM], mine[I_TERM_END]):
        term = program[config[TERM_ROWS] + t]
        at, plain, limbs = start + term[T_FROM], term[T_PLAIN], term[T_LIMBS]
        for c in range(plain + limbs):
            entries[0, at + c] = 0
        if not valid >> term[T_ARGUMENT] & 1:
            continue
        entries[0, at] = weight
        if limbs == 0:
            continue
        value = slots[slot, R_ARGUMENTS + term[T_ARGUMENT]]
        if not term[T_FLOAT]:
            write_int(value, entries, at + plain, limbs)
        elif (value >> 52) & EXPONENT == EXPONENT:
            entries[0, at + (2 if value < 0 else 1)] = 1
        else:
            write_float(value, entries, at + plain, limbs, term[T_LOW])


@part
def read_row(config, program, entries, slots, slot, scratch):
    """Write what a row adds to its entry to entry 0, and its values for staircases to scratch space."""
    read_terms(config, program, entries, slots, slot)
    mine = program[config[INPUT_ROWS] + entries[slots[slot, R_ENTRY], SOURCE]]
    for s in range(mine[I_STAIR], mine[I_STAIR_END]):
        stair = program[config[STAIR_ROWS] + s]
        value = slots[slot, R_ARGUMENTS + stair[S_ARGUMENT]]
        if stair[S_FLOAT] and value < 0:
            value ^= 0x7FFFFFFFFFFFFFFF  # so that whole numbers are in the order of the floats
        scratch[config[OWN] + s] = ~value if stair[S_NEGATED] else value


@part
def add_entry(config, program, entries, entry, to, factor):
    """Add entry 0 to the columns of an entry from `to` on: its sums, or its waiting change."""
    start, mine = config[SUMS], program[config[INPUT_ROWS] + entries[entry, SOURCE]]
    if mine[I_SIMPLE] != NONE:
        for c in range(1 + mine[I_SIMPLE]):
            entries[entry, to + c] += entries[0, start + c] * factor
        return
    entries[entry, to] += entries[0, start] * factor
    for t in range(mine[I_TERM], mine[I_TERM_END]):
        term = program[config[TERM_ROWS] + t]
        at = term[T_FROM]
        add_scaled(entries, entry, to + at, entries, 0, start + at, term[T_PLAIN], term[T_LIMBS], factor)


@part
def update(config, program, entries, first, entry_stairs, scratch, entry, sign, last, moments, turn):
    """Update an entry for an event: the paper's updates of the window and of the aggregation set. Returns False if
    there is no room for staircases."""
    source, rows = entries[entry, SOURCE], config[SUMS]
    mine = program[config[INPUT_ROWS] + source]
    stairs = entry * config[STAIRS_WIDE] - mine[I_STAIR]
    was = entries[entry, rows]
    if sign > 0:
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            expire(entry_stairs, stairs + s, moments[turn, M_NOW + source])
            value = scratch[config[OWN] + s]
            if has_value(config, program, entries, source, s) and not insert(entry_stairs, stairs + s, last, value):
                return False
        # Until this moment, the group has the combinations of the entry's other rows: see `add_steps`.
        entries[0, LAST] = entries[entry, LAST] if was > 0 else NEVER
        entries[entry, LAST] = last if was == 0 else max(last, entries[entry, LAST])
    add_entry(config, program, entries, entry, rows, sign)
    if (was > 0) != (entries[entry, rows] > 0):
        relink(config, program, entries, first, entry)
    if entries[entry, rows] == 0:
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            clear(entry_stairs, stairs + s)
    return True


@part
def relink(config, program, entries, first, entry):
    """Link an entry to the lists of its keys if it has rows, or unlink it."""
    mine = program[config[INPUT_ROWS] + entries[entry, SOURCE]]
    for index in range(mine[I_LINK], mine[I_LINK_END]):
        next_column, last_column = config[FOLLOWING] + index - mine[I_LINK], config[PRECEDING] + index - mine[I_LINK]
        key = entries[entry, config[KEYS] + program[config[LINK_ROWS] + index, L_DOMAIN]]
        if entries[entry, config[SUMS]] > 0:
            following = first[index, key]
            entries[entry, next_column] = following
            entries[entry, last_column] = NONE
            if following != NONE:
                entries[following, last_column] = entry
            first[index, key] = entry
        else:
            following, preceding = entries[entry, next_column], entries[entry, last_column]
            if preceding != NONE:
                entries[preceding, next_column] = following
            else:
                first[index, key] = following
            if following != NONE:
                entries[following, last_column] = preceding
