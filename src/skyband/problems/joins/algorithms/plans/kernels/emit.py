"""The compiled loops that show groups: all of them, those that changed, or the best k."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.intrinsics import prefetch, prefetch_in
from skyband.kernels.panes import largest
from skyband.problems.joins.algorithms.plans.arrays import (
    A_FLOAT,
    A_FUNCTION,
    A_STAIR,
    A_TERM,
    AGGREGATE_ROWS,
    AGGREGATES,
    APART,
    ASCENDING,
    BROKEN,
    DIRTY,
    FIRST_TURN,
    GROUP_DISTINCT,
    GROUP_SUMS,
    GROUP_VALUES,
    IN_RESERVE,
    IS_LIVE,
    IS_TOUCHED,
    KTH,
    L_LIVING,
    L_RESERVE,
    L_TOUCHED,
    LIMBS,
    LIVING,
    M_AT,
    M_NOW,
    MISSING,
    NO_SCORE,
    NONE,
    O_AT,
    O_GROUP,
    O_LIVE,
    O_TURN,
    O_VALID,
    O_VALUES,
    PLACE,
    RESERVE,
    S_NEGATED,
    SCORE,
    SILENT,
    STAIR_ROWS,
    STAIRS,
    T_FLOAT,
    T_LIMBS,
    T_LOW,
    T_PLAIN,
    T_SCALE,
    T_TO,
    TAKES_BACK,
    TAU,
    TERM_ROWS,
    TOP,
    TOP_BY,
    TOUCHED,
    VALID,
    VALUES,
    WRITTEN,
)
from skyband.problems.joins.algorithms.plans.kernels.stairs import (
    LENGTH,
    OFFSET,
    VALUE,
    clear,
    expire,
    expire_apart,
)
from skyband.problems.joins.algorithms.plans.kernels.sums import as_float, as_int
from skyband.problems.joins.operator import AVG, COUNT, DISTINCT, SUM

AHEAD = 8  # how many groups ahead are prefetched


@part
def room_to_emit(counters, records):
    """Is there room for all records of a moment? It shows at most the living and the touched groups."""
    return counters[WRITTEN] + counters[LIVING] + counters[TOUCHED] + 1 <= len(records)


@part
def settle(config, program, groups, lists, group_stairs, moments, turn, records, scratch, floats, counters):
    """Compute the values of the touched groups; with changes, record those that differ from the last ones shown."""
    for i in range(counters[TOUCHED]):
        if i + AHEAD < counters[TOUCHED]:
            soon = lists[L_TOUCHED, i + AHEAD]
            prefetch(groups, soon)
            prefetch_in(groups, soon, config[GROUP_SUMS])
        group = lists[L_TOUCHED, i]
        row = groups[group]
        row[IS_TOUCHED] = 0
        live, was_live = row[config[GROUP_SUMS]] > 0, row[IS_LIVE] != 0
        valid = 0
        if live:
            valid = evaluate(config, program, groups, group_stairs, scratch, floats, counters, group, moments, turn)
        else:
            for s in range(config[STAIRS]):
                clear(group_stairs, group * config[STAIRS] + s)
            if not was_live:
                continue
        same = live == was_live and valid == row[VALID]
        if live:
            for a in range(config[AGGREGATES]):
                value = scratch[config[VALUES] + a]
                same &= row[config[GROUP_VALUES] + a] == value
                row[config[GROUP_VALUES] + a] = value
        if same:
            continue
        row[VALID] = valid
        if live != was_live:
            enlist(groups, lists, counters, group, live)
        if config[TOP]:
            rank(config, program, groups, lists, counters, group, was_live)
        elif config[TAKES_BACK] and not counters[SILENT]:
            record(config, groups, moments, turn, records, counters, group)
    counters[TOUCHED] = 0


@inlined
def evaluate(config, program, groups, group_stairs, scratch, floats, counters, group, moments, turn):
    """Compute the aggregates of a group in scratch space. Returns a bit for each that has a value. `floats` is the same
    memory as `scratch`."""
    valid = 0
    for a in range(config[AGGREGATES]):
        aggregate, place = program[config[AGGREGATE_ROWS] + a], config[VALUES] + a
        function = aggregate[A_FUNCTION]
        scratch[place] = 0
        if function == COUNT and aggregate[A_TERM] == NONE:
            scratch[place] = groups[group, config[GROUP_SUMS]]
            valid |= 1 << a
            continue
        if function == DISTINCT:
            scratch[place] = groups[group, config[GROUP_DISTINCT] + aggregate[A_TERM]]
            valid |= 1 << a
            continue
        if function != COUNT and function != SUM and function != AVG:
            owner, lowest = group * config[STAIRS] + aggregate[A_STAIR], NONE
            if config[APART]:
                lowest = expire_apart(group_stairs, owner, moments[turn, M_NOW:])
            else:
                expire(group_stairs, owner, moments[turn, M_NOW])
                header = group_stairs.owners[owner]
                if header[LENGTH] > 0:
                    lowest = header[OFFSET]
            if lowest != NONE:
                value = group_stairs.steps[lowest, VALUE]
                if program[config[STAIR_ROWS] + aggregate[A_STAIR], S_NEGATED]:
                    value = ~value
                if aggregate[A_FLOAT] and value < 0:
                    value ^= 0x7FFFFFFFFFFFFFFF
                scratch[place] = value
                valid |= 1 << a
            continue
        term = program[config[TERM_ROWS] + aggregate[A_TERM]]
        at = config[GROUP_SUMS] + term[T_TO]
        count = groups[group, at]
        if function == COUNT:
            scratch[place] = count
            valid |= 1 << a
        elif count != 0:
            valid |= 1 << a
            if aggregate[A_FLOAT]:
                divisor = count if function == AVG else np.int64(1)
                floats[place] = as_one_float(groups, group, at, term, divisor, scratch, config[LIMBS])
            else:
                whole, fits = as_int(groups, group, at + term[T_PLAIN], term[T_LIMBS])
                scratch[place] = whole
                if not fits:
                    counters[BROKEN] = 2 + a
    return valid


@part
def as_one_float(groups, group, at, term, divisor, scratch, limbs):
    """The sum of a term, divided by `divisor`, as the nearest float64."""
    if term[T_FLOAT]:
        above, below = groups[group, at + 1], groups[group, at + 2]
        if above > 0 or below > 0:
            return np.nan if above > 0 and below > 0 else np.inf if above > 0 else -np.inf
    at += term[T_PLAIN]
    return as_float(groups, group, at, term[T_LIMBS], term[T_LOW], divisor, term[T_SCALE], scratch, limbs)


@inlined
def enlist(groups, lists, counters, group, live):
    """Add a group to the list of living groups, or remove it."""
    groups[group, IS_LIVE] = live
    if live:
        groups[group, PLACE] = counters[LIVING]
        lists[L_LIVING, counters[LIVING]] = group
        counters[LIVING] += 1
    else:
        counters[LIVING] -= 1
        moved = lists[L_LIVING, counters[LIVING]]
        lists[L_LIVING, groups[group, PLACE]] = moved
        groups[moved, PLACE] = groups[group, PLACE]


@part
def record(config, groups, moments, turn, records, counters, group):
    line = records[counters[WRITTEN]]
    counters[WRITTEN] += 1
    live = group != NONE and groups[group, IS_LIVE] != 0
    line[O_AT], line[O_TURN] = moments[turn, M_AT], counters[FIRST_TURN] + turn
    line[O_GROUP], line[O_LIVE], line[O_VALID] = group, live, groups[group, VALID] if live else 0
    for a in range(config[AGGREGATES]):
        line[O_VALUES + a] = groups[group, config[GROUP_VALUES] + a] if live else 0


@part
def emit(config, groups, lists, moments, turn, records, scratch, counters):
    """Record what a moment shows besides changes: the living groups, or the best k of them."""
    if config[TOP]:
        if not config[TAKES_BACK] or counters[DIRTY]:
            emit_best(config, groups, lists, moments, turn, records, counters)
    elif not config[TAKES_BACK]:
        for i in range(counters[LIVING]):
            record(config, groups, moments, turn, records, counters, lists[L_LIVING, i])


# -- the best k --------------------------------------------------------------------------------------------------------
#
# Only groups in the reserve are visited. No score outside it exceeds TAU, and a group whose score rises above TAU joins
# it. While at least k groups there exceed TAU, the best k are among them. When there are fewer, TAU is set anew so that
# a few times k groups exceed it. This visits all groups, but rarely.


@inlined
def rank(config, program, groups, lists, counters, group, was_live):
    """Compute the score of a group, and update the reserve."""
    before, after = groups[group, SCORE] if was_live else np.int64(MISSING), np.int64(MISSING)
    if groups[group, IS_LIVE]:
        after = np.int64(NO_SCORE)
        if groups[group, VALID] >> config[TOP_BY] & 1:
            after = groups[group, config[GROUP_VALUES] + config[TOP_BY]]
            if program[config[AGGREGATE_ROWS] + config[TOP_BY], A_FLOAT] and after < 0:
                after ^= 0x7FFFFFFFFFFFFFFF
            if config[ASCENDING]:
                after = ~after
            after = max(after, np.int64(NO_SCORE + 1))
    groups[group, SCORE] = after
    if after > counters[TAU] and not groups[group, IN_RESERVE]:
        groups[group, IN_RESERVE] = 1
        lists[L_RESERVE, counters[RESERVE]] = group
        counters[RESERVE] += 1
    if max(before, after) >= counters[KTH]:
        counters[DIRTY] = 1


@part
def emit_best(config, groups, lists, moments, turn, records, counters):
    k, scores = config[TOP], lists[L_TOUCHED]  # no group is touched now, so this list has room for scores
    prune(groups, lists, counters)
    if (counters[RESERVE] < k and counters[RESERVE] < counters[LIVING]) or counters[RESERVE] > 64 * k + 1024:
        refill(groups, lists, counters, k)
    n = counters[RESERVE]
    for i in range(n):
        scores[i] = groups[lists[L_RESERVE, i], SCORE]
    worst = largest(scores[:n], k - 1) if n >= k else np.int64(NO_SCORE)
    for i in range(n):
        if groups[lists[L_RESERVE, i], SCORE] >= worst:
            record(config, groups, moments, turn, records, counters, lists[L_RESERVE, i])
    if n == 0 and config[TAKES_BACK]:
        record(config, groups, moments, turn, records, counters, np.int64(NONE))
    # With fewer than k groups, any that appears or disappears changes the answer.
    counters[KTH] = worst if n >= k else MISSING
    counters[DIRTY] = 0


@part
def prune(groups, lists, counters):
    """Remove groups from the reserve whose score no longer exceeds TAU."""
    kept = 0
    for i in range(counters[RESERVE]):
        group = lists[L_RESERVE, i]
        if groups[group, SCORE] > counters[TAU]:
            lists[L_RESERVE, kept] = group
            kept += 1
        else:
            groups[group, IN_RESERVE] = 0
    counters[RESERVE] = kept


@part
def refill(groups, lists, counters, k):
    """Set TAU so that a few times k living groups exceed it, or as few more as ties allow."""
    living, wanted, scores = counters[LIVING], 4 * k + 64, lists[L_TOUCHED]
    tau = np.int64(MISSING)
    if living > wanted:
        for i in range(living):
            scores[i] = groups[lists[L_LIVING, i], SCORE]
        tau = largest(scores[:living], wanted - 1)
        above = 0
        for i in range(living):
            above += groups[lists[L_LIVING, i], SCORE] > tau
        if above < 2 * k:
            tau -= 1
    counters[TAU], counters[RESERVE] = tau, 0
    for i in range(living):
        group = lists[L_LIVING, i]
        inside = groups[group, SCORE] > tau
        groups[group, IN_RESERVE] = inside
        if inside:
            lists[L_RESERVE, counters[RESERVE]] = group
            counters[RESERVE] += 1
