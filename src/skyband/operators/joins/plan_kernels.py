"""The compiled loops of all plans: Tran and Lee's Algorithm 1.

`run` takes what comes and goes, moment by moment. Each event updates its entry (a row of a window, or where rows are
aggregated early the aggregation set), is joined with the entries of the other inputs, and what that gives is added to
the groups of the output. Where a join multiplies, it is the paper's coalescing property: n rows that agree count n
times. At the end of a moment the groups it touched are shown.

Nothing is allocated here. When the arrays run out, `run` takes back the event it is at, says what it needs, and is
called again. Taking back is exact: sums are whole numbers, and a staircase does not mind the same step twice.
"""

from __future__ import annotations

import numpy as np

from skyband.operators.joins.arrays import (
    BROKEN,
    C_INPUT,
    C_VARIABLE,
    CHECK_ROWS,
    CHOSEN,
    COALESCE,
    CURSOR,
    DELTA,
    E_SIGN,
    E_SLOT,
    EVENT,
    FOLLOWING,
    G_INPUT,
    GROUP_PARTS,
    GROUP_SUMS,
    GROUPS,
    I_LINK,
    I_LINK_END,
    I_SIMPLE,
    I_STAIR,
    I_STAIR_END,
    I_TERM,
    I_TERM_END,
    I_TO,
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
    PRECEDING,
    R_ARGUMENTS,
    R_ENTRY,
    R_LAST,
    R_VALID,
    S_ARGUMENT,
    S_FLOAT,
    S_NEGATED,
    SILENT,
    SIMPLE,
    SOURCE,
    STAGE,
    STAIR_ROWS,
    STAIRS,
    STAIRS_WIDE,
    STEP_ROWS,
    SUMS,
    T_ARGUMENT,
    T_FLOAT,
    T_FROM,
    T_LIMBS,
    T_LOW,
    T_PLAIN,
    T_TO,
    TERM_ROWS,
    TOUCHED,
    TURN,
    VARIABLES,
)
from skyband.operators.joins.showing_kernels import room_to_show, settle, show
from skyband.operators.joins.stairs_kernels import LENGTH, OFFSET, UNTIL, VALUE, clear, expire, insert
from skyband.operators.joins.sums_kernels import EXPONENT, add_int, add_scaled, write_float, write_int
from skyband.structures.compiling import inlined, kernel, part

DONE, MORE_GROUPS, MORE_ENTRY_STEPS, MORE_GROUP_STEPS, MORE_RECORDS = 0, 1, 2, 3, 4
GATHER, UPDATE, JOIN = 0, 1, 2
MOST = 2.0**62


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
        if rule[COALESCE] and counters[STAGE] == GATHER:
            gather(rule, program, entries, listed, slots, events, end, counters)
            counters[STAGE], counters[ITEM] = UPDATE, 0
        while True:
            # One thing to do: an event or, where changes were gathered, an entry.
            if rule[COALESCE]:
                if counters[ITEM] == counters[LISTED]:
                    break
                entry, sign, last = listed[counters[ITEM]], 1, now
                for c in range(rule[DELTA] - rule[SUMS]):
                    entries[0, rule[SUMS] + c] = entries[entry, rule[DELTA] + c]
            else:
                if counters[EVENT] == end:
                    break
                slot, sign = events[counters[EVENT], E_SLOT], events[counters[EVENT], E_SIGN]
                entry, last = slots[slot, R_ENTRY], slots[slot, R_LAST]
                read_row(rule, program, entries, slots, slot, scratch)
            if counters[STAGE] != JOIN:
                if not update(rule, program, entries, first, entry_stairs, scratch, entry, sign, last, now):
                    return MORE_ENTRY_STEPS
                counters[STAGE] = JOIN
            status = join(
                rule,
                program,
                entries,
                first,
                groups,
                lists,
                table,
                entry_stairs,
                group_stairs,
                scratch,
                counters,
                entry,
                last,
                now,
                sign,
                sign > 0,
                -1,
            )
            if status != DONE:
                join(
                    rule,
                    program,
                    entries,
                    first,
                    groups,
                    lists,
                    table,
                    entry_stairs,
                    group_stairs,
                    scratch,
                    counters,
                    entry,
                    last,
                    now,
                    -sign,
                    False,
                    counters[MATCHED],
                )
                return status
            counters[STAGE] = UPDATE
            counters[MATCHES] += counters[MATCHED]
            if rule[COALESCE]:
                entries[entry, IS_LISTED] = 0
                for c in range(rule[DELTA] - rule[SUMS]):
                    entries[entry, rule[DELTA] + c] = 0
                counters[ITEM] += 1
            else:
                counters[EVENT] += 1
        if not room_to_show(counters, records):
            return MORE_RECORDS
        settle(rule, program, groups, lists, group_stairs, moments, turn, records, scratch, floats, counters)
        if not counters[SILENT]:
            show(rule, groups, lists, moments, turn, records, scratch, counters)
        counters[TURN] += 1
        counters[STAGE] = GATHER
        counters[LISTED] = 0
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
        add_row(rule, program, entries, slots, slot, entry, sign)
    counters[EVENT] = end


@part
def add_row(rule, program, entries, slots, slot, entry, sign):  # type: ignore[no-untyped-def]
    """Add a row to what waits of its entry, or take it off."""
    start = rule[DELTA]
    entries[entry, start] += sign
    mine, valid = rule[INPUT_ROWS] + entries[entry, SOURCE], slots[slot, R_VALID]
    for t in range(rule[TERM_ROWS] + program[mine, I_TERM], rule[TERM_ROWS] + program[mine, I_TERM_END]):
        argument, at, plain = program[t, T_ARGUMENT], start + program[t, T_FROM], program[t, T_PLAIN]
        if not valid >> argument & 1:
            continue
        entries[entry, at] += sign
        limbs, value = program[t, T_LIMBS], slots[slot, R_ARGUMENTS + argument]
        if limbs == 0:
            continue
        if not program[t, T_FLOAT]:
            add_int(value, sign, entries, entry, at + plain, limbs)
        elif (value >> 52) & EXPONENT == EXPONENT:
            entries[entry, at + (2 if value < 0 else 1)] += sign
        else:
            free = rule[SUMS] + program[t, T_FROM] + plain
            write_float(value, entries, free, limbs, program[t, T_LOW])
            add_scaled(entries, entry, at + plain, entries, 0, free, 0, limbs, sign)


@part
def read_terms(rule, program, entries, slots, slot):  # type: ignore[no-untyped-def]
    """What one row adds to its entry, to entry 0."""
    valid, start = slots[slot, R_VALID], rule[SUMS]
    source = entries[slots[slot, R_ENTRY], SOURCE]
    entries[0, start] = 1
    mine = program[rule[INPUT_ROWS] + source]
    for t in range(mine[I_TERM], mine[I_TERM_END]):
        term = program[rule[TERM_ROWS] + t]
        at, plain, limbs = start + term[T_FROM], term[T_PLAIN], term[T_LIMBS]
        for c in range(plain + limbs):
            entries[0, at + c] = 0
        if not valid >> term[T_ARGUMENT] & 1:
            continue
        entries[0, at] = 1
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
def has_value(rule, program, entries, source, s):  # type: ignore[no-untyped-def]
    """Has the row in entry 0 a value for this staircase? Its argument is a term, too, and counts it."""
    term = program[rule[INPUT_ROWS] + source, I_TERM] + program[rule[STAIR_ROWS] + s, S_ARGUMENT]
    return entries[0, rule[SUMS] + program[rule[TERM_ROWS] + term, T_FROM]] > 0


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


@part
def join(  # type: ignore[no-untyped-def]
    rule,
    program,
    entries,
    first,
    groups,
    lists,
    table,
    entry_stairs,
    group_stairs,
    scratch,
    counters,
    entry,
    last,
    now,
    sign,
    comes,
    most,
):
    """Join entry 0, a part of `entry`, with the other inputs, and add what that gives to the output.

    Up to `most` matches (-1: all), always in the same order; counters[MATCHED] says how many there were.
    """
    if counters[SIMPLE]:
        return join_simply(rule, program, entries, first, groups, lists, table, scratch, counters, entry, sign, most)
    source, steps = entries[entry, SOURCE], rule[INPUTS] - 1
    chosen, cursor = rule[CHOSEN], rule[CURSOR]
    counters[MATCHED] = 0
    scratch[chosen + source] = entry
    at = rule[STEP_ROWS] + source * steps
    depth = 0
    if steps > 0:
        scratch[cursor] = first[program[at, P_INDEX], entries[entry, rule[KEYS] + program[at, P_DOMAIN]]]
    # Invariant: steps before `depth` have chosen an entry each; the cursor at `depth` is the next one to try.
    while counters[MATCHED] != most:
        if steps > 0:
            step, candidate = program[at + depth], scratch[cursor + depth]
            if candidate == NONE:
                depth -= 1
                if depth < 0:
                    return DONE
                before = scratch[cursor + depth]
                scratch[cursor + depth] = entries[before, rule[FOLLOWING] + program[at + depth, P_LINK]]
                continue
            agrees = True
            for c in range(step[P_CHECK], step[P_CHECK_END]):
                check = program[rule[CHECK_ROWS] + c]
                variable, other = rule[VARIABLES] + check[C_VARIABLE], scratch[chosen + check[C_INPUT]]
                agrees &= entries[candidate, variable] == entries[other, variable]
            if not agrees:
                scratch[cursor + depth] = entries[candidate, rule[FOLLOWING] + step[P_LINK]]
                continue
            scratch[chosen + step[P_INPUT]] = candidate
            if depth < steps - 1:
                depth += 1
                step = program[at + depth]
                key = entries[scratch[chosen + step[P_PARENT]], rule[KEYS] + step[P_DOMAIN]]
                scratch[cursor + depth] = first[step[P_INDEX], key]
                continue
            scratch[cursor + depth] = entries[candidate, rule[FOLLOWING] + step[P_LINK]]
        group = group_of(rule, program, entries, groups, table, scratch, counters)
        if group == NONE:
            return MORE_GROUPS
        if comes and not add_steps(
            rule, program, entries, entry_stairs, group_stairs, scratch, group, source, last, now
        ):
            return MORE_GROUP_STEPS
        add_match(rule, program, entries, groups, lists, scratch, counters, group, source, entry, sign)
        counters[MATCHED] += 1
        if steps == 0:
            return DONE
    return DONE


@part
def join_simply(rule, program, entries, first, groups, lists, table, scratch, counters, entry, sign, most):  # type: ignore[no-untyped-def]
    """The same for up to two inputs whose numbers have one limb each, without staircases: in one short loop."""
    source, sums, out = entries[entry, SOURCE], rule[SUMS], rule[GROUP_SUMS]
    mine, parts, other = rule[INPUT_ROWS] + source, rule[PARTS], 1 - source
    own_to, own_width = out + program[mine, I_TO], program[mine, I_SIMPLE]
    other_to, other_width, following, candidate = out, 0, 0, entry
    if rule[INPUTS] == 2:
        step = rule[STEP_ROWS] + source
        candidate = first[program[step, P_INDEX], entries[entry, rule[KEYS] + program[step, P_DOMAIN]]]
        following = rule[FOLLOWING] + program[step, P_LINK]
        other_to += program[rule[INPUT_ROWS] + other, I_TO]
        other_width = program[rule[INPUT_ROWS] + other, I_SIMPLE]
    scratch[rule[CHOSEN] + source] = entry
    own_group = -1
    if parts == 0:
        own_group = 0
    elif parts == 1 and program[rule[PART_ROWS], G_INPUT] == source:
        own_group = entries[entry, PART]
    own, matched, touched = entries[0, sums] * sign, 0, counters[TOUCHED]
    status = DONE
    while candidate != NONE and matched != most:
        group = own_group
        if own_group == -1:
            if parts == 1:
                group = entries[candidate, PART]
            else:
                scratch[rule[CHOSEN] + other] = candidate
                group = group_of(rule, program, entries, groups, table, scratch, counters)
                if group == NONE:
                    status = MORE_GROUPS
                    break
        rows = entries[candidate, sums] if rule[INPUTS] == 2 else 1
        groups[group, out] += own * rows
        for c in range(own_width):
            groups[group, own_to + c] += entries[0, sums + 1 + c] * (sign * rows)
        for c in range(other_width):
            groups[group, other_to + c] += entries[candidate, sums + 1 + c] * own
        # Without a branch: overwritten by the next one unless this one is new.
        lists[L_TOUCHED, touched] = group
        touched += groups[group, IS_TOUCHED] == 0
        groups[group, IS_TOUCHED] = 1
        matched += 1
        candidate = entries[candidate, following] if rule[INPUTS] == 2 else NONE
    counters[TOUCHED], counters[MATCHED] = touched, matched
    return status


@part
def add_match(rule, program, entries, groups, lists, scratch, counters, group, source, entry, sign):  # type: ignore[no-untyped-def]
    """Add one combination of entries to its group of the output."""
    chosen, inputs, rows_at = rule[CHOSEN], rule[INPUTS], rule[SUMS]
    out = rule[GROUP_SUMS]
    scratch[chosen + source] = 0
    rows, size = np.int64(sign), 1.0
    for i in range(inputs):
        rows *= entries[scratch[chosen + i], rows_at]
        size *= entries[scratch[chosen + i], rows_at]
    if abs(size) > MOST or abs(groups[group, out] + float(rows)) > MOST:
        counters[BROKEN] = 1
    groups[group, out] += rows
    for i in range(inputs):
        mine = rule[INPUT_ROWS] + i
        if program[mine, I_TERM] == program[mine, I_TERM_END]:
            continue
        # The coalescing property: what an input adds counts once for each combination of the others' rows.
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
        for t in range(rule[TERM_ROWS] + program[mine, I_TERM], rule[TERM_ROWS] + program[mine, I_TERM_END]):
            start, to = rows_at + program[t, T_FROM], out + program[t, T_TO]
            plain, limbs = program[t, T_PLAIN], program[t, T_LIMBS]
            add_scaled(groups, group, to, entries, added, start, plain, limbs, factor)
    scratch[chosen + source] = entry
    if not groups[group, IS_TOUCHED]:
        groups[group, IS_TOUCHED] = 1
        lists[L_TOUCHED, counters[TOUCHED]] = group
        counters[TOUCHED] += 1


@part
def add_steps(rule, program, entries, entry_stairs, group_stairs, scratch, group, source, last, now):  # type: ignore[no-untyped-def]
    """Add the values of a combination to the staircases of its group. It lives until the first of its rows goes."""
    chosen = rule[CHOSEN]
    if rule[STAIRS] == 0:
        return True
    for i in range(rule[INPUTS]):
        mine = program[rule[INPUT_ROWS] + i]
        others = last
        for j in range(rule[INPUTS]):
            if j != i and j != source:
                others = min(others, entries[scratch[chosen + j], LAST])
        for s in range(mine[I_STAIR], mine[I_STAIR_END]):
            owner = group * rule[STAIRS] + s
            if i == source:
                value = scratch[rule[OWN] + s]
                if has_value(rule, program, entries, source, s) and not insert(group_stairs, owner, others, value):
                    return False
                continue
            header = entry_stairs.owners[scratch[chosen + i] * rule[STAIRS_WIDE] + s - mine[I_STAIR]]
            for p in range(header[OFFSET], header[OFFSET] + header[LENGTH]):
                until = entry_stairs.steps[p, UNTIL]
                if until >= now:
                    if not insert(group_stairs, owner, min(others, until), entry_stairs.steps[p, VALUE]):
                        return False
                    if until >= others:
                        break  # later ones are larger, and live no longer
    return True


@part
def group_of(rule, program, entries, groups, table, scratch, counters):  # type: ignore[no-untyped-def]
    """The group of a combination; NONE: there is no room for one more."""
    parts, chosen, at_parts = rule[PARTS], rule[CHOSEN], rule[GROUP_PARTS]
    if parts == 0:
        return 0
    if parts == 1:
        return entries[scratch[chosen + program[rule[PART_ROWS], G_INPUT]], PART]
    mixed = np.uint64(0)
    for p in range(parts):
        mixed = mix(mixed, entries[scratch[chosen + program[rule[PART_ROWS] + p, G_INPUT]], PART])
    mask = len(table) - 1
    at = np.int64(mixed & np.uint64(mask))
    while table[at] != NONE:
        group, same = table[at], True
        for p in range(parts):
            part = entries[scratch[chosen + program[rule[PART_ROWS] + p, G_INPUT]], PART]
            same &= groups[group, at_parts + p] == part
        if same:
            return group
        at = (at + 1) & mask
    group = counters[GROUPS]
    if group >= len(groups) or 2 * group >= len(table):
        return NONE
    counters[GROUPS] += 1
    table[at] = group
    for p in range(parts):
        groups[group, at_parts + p] = entries[scratch[chosen + program[rule[PART_ROWS] + p, G_INPUT]], PART]
    return group


@inlined
def mix(mixed, part):  # type: ignore[no-untyped-def]
    mixed = (mixed ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@kernel
def fill_table(table, groups, first_part, parts, count):  # type: ignore[no-untyped-def]
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
