"""The compiled loops of all plans: Tran and Lee's Algorithm 1.

`run` takes what comes and goes, moment by moment. Each event updates its entry (a row of a window, or where rows are
aggregated early the aggregation set), is joined with the entries of the other inputs, and what that gives is added to
the groups of the output. Where a join multiplies, it is the paper's coalescing property: n rows that agree count n
times. At the end of a moment the groups it touched are shown.

Nothing is allocated here. When the arrays run out, `run` takes back the event it is at, says what it needs, and is
called again. Taking back is exact: sums are whole numbers, and a staircase does not mind the same step twice.
"""

from __future__ import annotations

from skyband.operators.joins.arrays import (
    COALESCE,
    DELTA,
    E_SIGN,
    E_SLOT,
    EVENT,
    FOLLOWING,
    GROUP_SUMS,
    I_LINK,
    I_LINK_END,
    I_STAIR,
    I_STAIR_END,
    I_TERM,
    I_TERM_END,
    INPUT_ROWS,
    INPUTS,
    IS_LISTED,
    IS_TOUCHED,
    ITEM,
    KEYS,
    L_DOMAIN,
    L_TOUCHED,
    LAST,
    LINK_ROWS,
    LISTED,
    M_END,
    M_NOW,
    MATCHED,
    MATCHES,
    NONE,
    OWN,
    PRECEDING,
    R_ARGUMENTS,
    R_ENTRY,
    R_LAST,
    R_VALID,
    R_WEIGHT,
    S_ARGUMENT,
    S_FLOAT,
    S_NEGATED,
    SILENT,
    SIMPLE,
    SOURCE,
    STAGE,
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
    TOUCHED,
    TURN,
)
from skyband.operators.joins.matching_kernels import DONE, MORE_ENTRY_STEPS, MORE_RECORDS, has_value, join, join_simply
from skyband.operators.joins.showing_kernels import room_to_show, settle, show
from skyband.operators.joins.stairs_kernels import clear, expire, insert
from skyband.operators.joins.sums_kernels import EXPONENT, add_int, add_scaled, write_float, write_int
from skyband.structures.compiling import kernel, part

GATHER, UPDATE, JOIN = 0, 1, 2


@kernel
def run(  # type: ignore[no-untyped-def]
    rule,
    program,
    entries,
    first,
    listed,
    slots,
    groups,
    lists,
    table,
    entry_stairs,
    group_stairs,
    events,
    moments,
    records,
    scratch,
    floats,
    counters,
):
    """Take events until there are no more, or until something runs out: the status says what."""
    while counters[TURN] < len(moments):
        turn = counters[TURN]
        now, end = moments[turn, M_NOW], moments[turn, M_END]
        if rule[COALESCE] and rule[INPUTS] == 1:
            take_alone(rule, program, entries, slots, groups, lists, events, end, counters)
            status = DONE
        elif rule[COALESCE]:
            if counters[STAGE] == GATHER:
                gather(rule, program, entries, listed, slots, events, end, counters)
                counters[STAGE], counters[ITEM] = UPDATE, 0
            status = take_listed(
                *(rule, program, entries, first, listed, groups, lists, table, entry_stairs, group_stairs, scratch),
                *(counters, now),
            )
        else:
            status = take_events(
                *(rule, program, entries, first, slots, groups, lists, table, entry_stairs, group_stairs, scratch),
                *(counters, events, end, now),
            )
        if status != DONE:
            return status
        if not room_to_show(counters, records):
            return MORE_RECORDS
        settle(rule, program, groups, lists, group_stairs, moments, turn, records, scratch, floats, counters)
        if not counters[SILENT]:
            show(rule, groups, lists, moments, turn, records, scratch, counters)
        counters[TURN] += 1
        counters[STAGE], counters[LISTED] = GATHER, 0
    return DONE


@part
def take_events(  # type: ignore[no-untyped-def]
    rule,
    program,
    entries,
    first,
    slots,
    groups,
    lists,
    table,
    entry_stairs,
    group_stairs,
    scratch,
    counters,
    events,
    end,
    now,
):
    """The events of a moment, one after the other."""
    while counters[EVENT] < end:
        slot, sign = events[counters[EVENT], E_SLOT], events[counters[EVENT], E_SIGN]
        entry, last = slots[slot, R_ENTRY], slots[slot, R_LAST]
        read_row(rule, program, entries, slots, slot, scratch)
        if counters[STAGE] != JOIN:
            if not update(rule, program, entries, first, entry_stairs, scratch, entry, sign, last, now):
                return MORE_ENTRY_STEPS
            counters[STAGE] = JOIN
        status = join(
            *(rule, program, entries, first, groups, lists, table, entry_stairs, group_stairs, scratch, counters),
            *(entry, last, now, sign, sign > 0, -1),
        )
        if status != DONE:
            join(
                *(rule, program, entries, first, groups, lists, table, entry_stairs, group_stairs, scratch, counters),
                *(entry, last, now, -sign, False, counters[MATCHED]),
            )
            return status
        counters[STAGE] = UPDATE
        counters[MATCHES] += counters[MATCHED]
        counters[EVENT] += 1
    return DONE


@part
def take_listed(  # type: ignore[no-untyped-def]
    rule, program, entries, first, listed, groups, lists, table, entry_stairs, group_stairs, scratch, counters, now
):
    """Join what was gathered, entry by entry: what changed of one with all there is now of the others."""
    sums, delta = rule[SUMS], rule[DELTA]
    width = delta - sums
    while counters[ITEM] < counters[LISTED]:
        entry = listed[counters[ITEM]]
        if counters[STAGE] == UPDATE:
            was = entries[entry, sums]
            if counters[SIMPLE]:
                for c in range(width):
                    entries[entry, sums + c] += entries[entry, delta + c]
            else:
                for c in range(width):
                    entries[0, sums + c] = entries[entry, delta + c]
                add_entry(rule, program, entries, entry, sums, 1)
            if (was > 0) != (entries[entry, sums] > 0):
                relink(rule, program, entries, first, entry)
            counters[STAGE] = JOIN
        status, most = DONE, -1
        for sign in (1, -1):
            if counters[SIMPLE]:
                found = join_simply(
                    *(rule, program, entries, first, groups, lists, table, scratch, counters),
                    *(entry, entry, delta, sign, most),
                )
            else:
                for c in range(width):
                    entries[0, sums + c] = entries[entry, delta + c]
                found = join(
                    *(rule, program, entries, first, groups, lists, table, entry_stairs, group_stairs, scratch),
                    *(counters, entry, now, now, sign, False, most),
                )
            if sign == 1:
                status, most = found, counters[MATCHED]
                if found == DONE:
                    break
        if status != DONE:
            return status
        entries[entry, IS_LISTED] = 0
        for c in range(width):
            entries[entry, delta + c] = 0
        counters[MATCHES] += most
        counters[ITEM] += 1
        counters[STAGE] = UPDATE
    return DONE


@part
def gather(rule, program, entries, listed, slots, events, end, counters):  # type: ignore[no-untyped-def]
    """Add up what the events of a moment change of each entry."""
    for i in range(counters[EVENT], end):
        slot, sign = events[i, E_SLOT], events[i, E_SIGN]
        entry = slots[slot, R_ENTRY]
        if not entries[entry, IS_LISTED]:
            entries[entry, IS_LISTED] = 1
            listed[counters[LISTED]] = entry
            counters[LISTED] += 1
        source = entries[entry, SOURCE]
        add_row(rule, program, entries, entries, entry, rule[DELTA], source, slots, slot, sign)
    counters[EVENT] = end


@part
def add_row(rule, program, entries, target, at_row, start, source, slots, slot, sign):  # type: ignore[no-untyped-def]
    """Add a row to the numbers from column `start` on of a row of `target`, or take it off. Entry 0 is scratch."""
    rows = sign * slots[slot, R_WEIGHT]
    target[at_row, start] += rows
    mine, valid = rule[INPUT_ROWS] + source, slots[slot, R_VALID]
    for t in range(rule[TERM_ROWS] + program[mine, I_TERM], rule[TERM_ROWS] + program[mine, I_TERM_END]):
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
            free = rule[SUMS] + program[t, T_FROM] + plain
            write_float(value, entries, free, limbs, program[t, T_LOW])
            add_scaled(target, at_row, at + plain, entries, 0, free, 0, limbs, sign)


@part
def take_alone(rule, program, entries, slots, groups, lists, events, end, counters):  # type: ignore[no-untyped-def]
    """The events of a moment when nothing is joined: in place of its entry a row has its group, and is added to it."""
    out, touched = rule[GROUP_SUMS], counters[TOUCHED]
    for i in range(counters[EVENT], end):
        slot = events[i, E_SLOT]
        group = slots[slot, R_ENTRY]
        add_row(rule, program, entries, groups, group, out, 0, slots, slot, events[i, E_SIGN])
        # Without a branch: overwritten by the next one unless this one is new.
        lists[L_TOUCHED, touched] = group
        touched += groups[group, IS_TOUCHED] == 0
        groups[group, IS_TOUCHED] = 1
    counters[MATCHES] += end - counters[EVENT]
    counters[EVENT], counters[TOUCHED] = end, touched


@part
def read_terms(rule, program, entries, slots, slot):  # type: ignore[no-untyped-def]
    """What one row adds to its entry, to entry 0."""
    valid, start = slots[slot, R_VALID], rule[SUMS]
    source = entries[slots[slot, R_ENTRY], SOURCE]
    entries[0, start] = weight = slots[slot, R_WEIGHT]
    mine = program[rule[INPUT_ROWS] + source]
    for t in range(mine[I_TERM], mine[I_TERM_END]):
        term = program[rule[TERM_ROWS] + t]
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
def read_row(rule, program, entries, slots, slot, scratch):  # type: ignore[no-untyped-def]
    """What one row adds to its entry, to entry 0, and its values for staircases, to scratch."""
    read_terms(rule, program, entries, slots, slot)
    mine = program[rule[INPUT_ROWS] + entries[slots[slot, R_ENTRY], SOURCE]]
    for s in range(mine[I_STAIR], mine[I_STAIR_END]):
        stair = program[rule[STAIR_ROWS] + s]
        value = slots[slot, R_ARGUMENTS + stair[S_ARGUMENT]]
        if stair[S_FLOAT] and value < 0:
            value ^= 0x7FFFFFFFFFFFFFFF  # so that whole numbers are in the order of the floats
        scratch[rule[OWN] + s] = ~value if stair[S_NEGATED] else value


@part
def add_entry(rule, program, entries, entry, to, factor):  # type: ignore[no-untyped-def]
    """Add entry 0 to the sums, or what waits, of an entry: to the columns from `to` on."""
    start = rule[SUMS]
    entries[entry, to] += entries[0, start] * factor
    mine = program[rule[INPUT_ROWS] + entries[entry, SOURCE]]
    for t in range(mine[I_TERM], mine[I_TERM_END]):
        term = program[rule[TERM_ROWS] + t]
        at = term[T_FROM]
        add_scaled(entries, entry, to + at, entries, 0, start + at, term[T_PLAIN], term[T_LIMBS], factor)


@part
def update(rule, program, entries, first, entry_stairs, scratch, entry, sign, last, now):  # type: ignore[no-untyped-def]
    """The window update and, for the same entry, the update of its aggregation set. False: no room for staircases."""
    source, rows = entries[entry, SOURCE], rule[SUMS]
    mine = program[rule[INPUT_ROWS] + source]
    stairs = entry * rule[STAIRS_WIDE] - mine[I_STAIR]
    was = entries[entry, rows]
    if sign > 0:
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            expire(entry_stairs, stairs + s, now)
            value = scratch[rule[OWN] + s]
            if has_value(rule, program, entries, source, s) and not insert(entry_stairs, stairs + s, last, value):
                return False
        entries[entry, LAST] = last if was == 0 else max(last, entries[entry, LAST])
    add_entry(rule, program, entries, entry, rows, sign)
    if (was > 0) != (entries[entry, rows] > 0):
        relink(rule, program, entries, first, entry)
    if entries[entry, rows] == 0:
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            clear(entry_stairs, stairs + s)
    return True


@part
def relink(rule, program, entries, first, entry):  # type: ignore[no-untyped-def]
    """An entry is found by its keys while it has rows."""
    mine = program[rule[INPUT_ROWS] + entries[entry, SOURCE]]
    for index in range(mine[I_LINK], mine[I_LINK_END]):
        next_column, last_column = rule[FOLLOWING] + index - mine[I_LINK], rule[PRECEDING] + index - mine[I_LINK]
        key = entries[entry, rule[KEYS] + program[rule[LINK_ROWS] + index, L_DOMAIN]]
        if entries[entry, rule[SUMS]] > 0:
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
