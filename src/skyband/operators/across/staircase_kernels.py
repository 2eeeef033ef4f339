"""The compiled half of `staircase`.

`front` is the k-skyband of what objects are sure to score: points (last, current), each the score that an object has
for sure until `last`, with fewer than k others that are sure to rank before it for as long. It is small, about
k (1 + ln(n / k)) points whatever the window, and lies in flat arrays in no order: every question to it is one pass that
the compiler vectorises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from skyband.operators.across.schedule import ANSWER_DUE
from skyband.operators.across.showing import show
from skyband.operators.across.slots import (
    NEVER,
    best_score,
    forget,
    is_held,
    is_later,
    latest_row,
    points_of,
    take_value,
    write_values,
)
from skyband.operators.protocol import Floats, Ints

# Numbers that change.
SIZE, CLOCK, OLDEST, NEXT_FALL, FOUND, STALE, REPEATED, SINCE_SWEEP = range(8)


class Front(NamedTuple):
    last: Ints
    before: Ints  # the end of the object's next point down the time: from there on, this is its score
    current: Floats
    time: Ints  # of the object's most recent row
    position: Ints
    code: Ints
    dominators: Ints  # objects that rank before it at least until `last`; below k
    flag: Ints  # scratch


class Points(NamedTuple):
    """Scratch for the points of one object."""

    last: Ints
    current: Floats
    before: Ints


class State(NamedTuple):
    slots: npt.NDArray[np.void]
    front: Front
    old: Points
    new: Points
    top_time: Ints  # of the objects of the top
    top_position: Ints
    numbers: Ints


def new_front(room: int) -> Front:
    whole = [np.zeros(room, np.int64) for _ in range(7)]
    return Front(whole[0], whole[1], np.zeros(room), *whole[2:])


def new_points(streams: int) -> Points:
    return Points(np.zeros(streams, np.int64), np.zeros(streams), np.zeros(streams, np.int64))


# -- questions to the front -------------------------------------------------------------------------------------------


@njit(cache=True)
def is_dominated(front, size, moment, best, k):  # type: ignore[no-untyped-def]
    """Do k objects score more than `best` for sure, at least until `moment`?"""
    last, before, current = front.last[:size], front.before[:size], front.current[:size]
    n = 0
    for e in range(size):
        n += (last[e] >= moment) & (before[e] < moment) & (current[e] > best)
    return n >= k


@njit(cache=True)
def _outranked(front, size, moment, score, time, position):  # type: ignore[no-untyped-def]
    """How many objects rank before this score and row, at least until `moment`?"""
    last, before, current = front.last[:size], front.before[:size], front.current[:size]
    times, positions = front.time[:size], front.position[:size]
    n = 0
    for e in range(size):
        later = (times[e] > time) | ((times[e] == time) & (positions[e] > position))
        n += (last[e] >= moment) & (before[e] < moment) & ((current[e] > score) | ((current[e] == score) & later))
    return n


@njit(cache=True)
def _mark(front, size, points, n, time, position, sign):  # type: ignore[no-untyped-def]
    """Add `sign` to the flag of every point that an object with these points dominates."""
    last, current, flag = front.last[:size], front.current[:size], front.flag[:size]
    times, positions = front.time[:size], front.position[:size]
    for i in range(n):
        # Of an object's points the one that decides about a moment is the earliest to end after it.
        end, begin, score = points.last[i], points.before[i], points.current[i]
        for e in range(size):
            later = (time > times[e]) | ((time == times[e]) & (position > positions[e]))
            before = (score > current[e]) | ((score == current[e]) & later)
            flag[e] += sign * ((last[e] <= end) & (last[e] > begin) & before)


# -- changes to the front ---------------------------------------------------------------------------------------------


@njit(cache=True, forceinline=True)
def _move(front, source, target):  # type: ignore[no-untyped-def]
    front.last[target] = front.last[source]
    front.before[target] = front.before[source]
    front.current[target] = front.current[source]
    front.time[target] = front.time[source]
    front.position[target] = front.position[source]
    front.code[target] = front.code[source]
    front.dominators[target] = front.dominators[source]


@njit(cache=True)
def expire(state, clock):  # type: ignore[no-untyped-def]
    """Time moves on: points end. Those that they dominated have ended before, or end now."""
    front, numbers = state.front, state.numbers
    numbers[CLOCK] = clock
    if clock > numbers[NEXT_FALL]:
        numbers[STALE] = 1
    if clock <= numbers[OLDEST]:
        return
    n, oldest = 0, np.int64(2**63 - 1)
    for e in range(numbers[SIZE]):
        if front.last[e] >= clock:
            oldest = min(oldest, front.last[e])
            _move(front, e, n)
            n += 1
    numbers[SIZE], numbers[OLDEST] = n, oldest


@njit(cache=True)
def _replace(state, code, old, new, old_row, new_row, k):  # type: ignore[no-untyped-def]
    """The object's points were the `old` ones of state.old, and are the `new` ones of state.new now."""
    front, numbers = state.front, state.numbers
    size = numbers[SIZE]
    front.flag[:size] = 0
    _mark(front, size, state.old, old, old_row[0], old_row[1], -1)
    _mark(front, size, state.new, new, new_row[0], new_row[1], 1)
    leaving = 0
    flag, codes, dominators = front.flag[:size], front.code[:size], front.dominators[:size]
    for e in range(size):
        dominators[e] += flag[e]
        leaving += (codes[e] == code) | (dominators[e] >= k)
    if leaving:
        n = 0
        for e in range(size):
            if front.code[e] != code and front.dominators[e] < k:
                if n < e:
                    _move(front, e, n)
                n += 1
        size = n
    kept = size
    for i in range(new):
        moment, score = state.new.last[i], state.new.current[i]
        dominators_of_it = _outranked(front, kept, moment, score, new_row[0], new_row[1])
        if dominators_of_it < k:
            front.last[size], front.before[size], front.current[size] = moment, state.new.before[i], score
            front.time[size], front.position[size], front.code[size] = new_row[0], new_row[1], code
            front.dominators[size] = dominators_of_it
            numbers[OLDEST] = min(numbers[OLDEST], moment)
            size += 1
    numbers[SIZE] = size


# -- steps ------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _prune_object(state, code, clock, k, scoring):  # type: ignore[no-untyped-def]
    """Let go of the object's instances that are dominated, and of the object when none is left.

    So an object is forgotten, and begins anew, at the same row as if pruning had been done all the time.
    """
    slots, size = state.slots, state.numbers[SIZE]
    kept = False
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.held and slot.last >= clock:
            best = best_score(slots, code, slot.last, clock, scoring)
            if is_dominated(state.front, size, slot.last, best, k):
                slot.held = 0
            else:
                kept = True
    if not kept:
        forget(slots, code)
    return kept


@njit(cache=True)
def _take(rows, r, clock, k, state, scoring, shown):  # type: ignore[no-untyped-def]
    slots, numbers = state.slots, state.numbers
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    old, old_row = 0, (NEVER, NEVER)
    if _prune_object(state, code, clock, k, scoring):
        old = points_of(slots, code, clock, scoring, state.old.last, state.old.current, state.old.before)
        old_row = latest_row(slots, code, clock)
    taken, repeats = take_value(slots, code, stream, rows.value[r], rows.time[r], rows.position[r], rows.last[r], clock)
    if repeats:
        numbers[REPEATED] += 1
        numbers[STALE] = 1
    if not taken:
        return
    slot = slots[code, stream]
    if is_dominated(state.front, numbers[SIZE], slot.last, best_score(slots, code, slot.last, clock, scoring), k):
        slot.held = 0
        if not is_held(slots, code, clock):
            forget(slots, code)
            return
    new = points_of(slots, code, clock, scoring, state.new.last, state.new.current, state.new.before)
    row = latest_row(slots, code, clock)
    _replace(state, code, old, new, old_row, row, k)
    numbers[SINCE_SWEEP] += 1
    if not numbers[STALE]:
        numbers[STALE] = _touches_top(state, new, row, k, shown)


@njit(cache=True)
def _touches_top(state, new, row, k, shown):  # type: ignore[no-untyped-def]
    """Is the object that has just changed in the top, or better than its last?"""
    worst = state.numbers[FOUND] - 1
    if worst + 1 < k:
        return 1
    score = state.new.current[new - 1]
    if score != shown.top_score[worst]:
        return 1 if score > shown.top_score[worst] else 0
    return 0 if is_later(state.top_time[worst], state.top_position[worst], row[0], row[1]) else 1


@njit(cache=True)
def rank(state, k, shown):  # type: ignore[no-untyped-def]
    """Write the k best objects at the clock to the top; return how many there are."""
    front, numbers = state.front, state.numbers
    clock, found, next_fall = numbers[CLOCK], 0, np.int64(2**63 - 1)
    for e in range(numbers[SIZE]):
        if front.before[e] >= clock or front.last[e] < clock:
            continue
        score, time, position = front.current[e], front.time[e], front.position[e]
        i = found
        while i > 0 and (
            score > shown.top_score[i - 1]
            or (
                score == shown.top_score[i - 1]
                and is_later(time, position, state.top_time[i - 1], state.top_position[i - 1])
            )
        ):
            i -= 1
        if i == k:
            continue
        found = min(found + 1, k)
        for j in range(found - 1, i, -1):
            shown.top_code[j], shown.top_score[j] = shown.top_code[j - 1], shown.top_score[j - 1]
            state.top_time[j], state.top_position[j] = state.top_time[j - 1], state.top_position[j - 1]
        shown.top_code[i], shown.top_score[i] = front.code[e], score
        state.top_time[i], state.top_position[i] = time, position
    for i in range(found):
        write_values(state.slots, shown.top_code[i], clock, shown.top_values, i)
        for s in range(state.slots.shape[1]):
            last = state.slots[shown.top_code[i], s].last
            if last >= clock:
                next_fall = min(next_fall, last)
    numbers[FOUND], numbers[NEXT_FALL], numbers[STALE] = found, next_fall, 0
    return found


@njit(cache=True, _nrt=False)
def execute(rule, scoring, rows, clocks, steps, step, end, state, shown, out, written):  # type: ignore[no-untyped-def]
    """Execute steps as far as there is room; return the first that was not, and how much is written."""
    k, entries, streams = rule.k, len(shown.code), state.slots.shape[1]
    numbers = state.numbers
    while step < end:
        if written + 2 * entries > len(out.at) or numbers[SIZE] + streams > len(state.front.last):
            break
        if numbers[SINCE_SWEEP] >= rule.sweep_after:
            break
        expire(state, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, clocks[step], k, state, scoring, shown)
        if r == ANSWER_DUE or rule.each:
            if numbers[STALE]:
                found = rank(state, k, shown)
                written = show(clocks[step], found, rule.emit, shown, out, written)
            elif not rule.each:
                written = show(clocks[step], numbers[FOUND], rule.emit, shown, out, written)
        step += 1
    return step, written


# -- pruning all ------------------------------------------------------------------------------------------------------


@njit(cache=True)
def build_stairs(front, size, order, k, stair_last, stair_score, best_code, best_score_of):  # type: ignore[no-untyped-def]
    """The k-th best sure score of objects that live until some moment, as a staircase over moments, latest first.

    stair_score[i] holds from just after stair_last[i + 1] until stair_last[i]. `order`: the points, the latest first.
    """
    n, found = 0, 0
    for j in range(size):
        e = order[j]
        code, current = front.code[e], front.current[e]
        i = 0
        while i < found and best_code[i] != code:
            i += 1
        if i == found and found == k:
            i = k - 1
            if best_score_of[i] >= current:
                continue
        elif i == found:
            found += 1
        while i > 0 and best_score_of[i - 1] < current:
            best_score_of[i], best_code[i] = best_score_of[i - 1], best_code[i - 1]
            i -= 1
        best_score_of[i], best_code[i] = current, code
        if found == k and (n == 0 or best_score_of[k - 1] > stair_score[n - 1]):
            if n > 0 and stair_last[n - 1] == front.last[e]:
                n -= 1
            stair_last[n], stair_score[n] = front.last[e], best_score_of[k - 1]
            n += 1
    return n


@njit(cache=True)
def sweep(state, stair_last, stair_score, stairs, scoring):  # type: ignore[no-untyped-def]
    """Let go of every dominated instance, and of every object that has no other; return how many are held."""
    slots, clock, held = state.slots, state.numbers[CLOCK], 0
    for code in range(slots.shape[0]):
        mine = 0
        for s in range(slots.shape[1]):
            slot = slots[code, s]
            if slot.held and slot.last >= clock:
                low, high = 0, stairs  # the last stair that ends at this moment or later is the highest that counts
                while low < high:
                    middle = (low + high) >> 1
                    if stair_last[middle] >= slot.last:
                        low = middle + 1
                    else:
                        high = middle
                if low > 0 and stair_score[low - 1] > best_score(slots, code, slot.last, clock, scoring):
                    slot.held = 0
                else:
                    mine += 1
        if mine == 0:
            forget(slots, code)
        held += mine
    state.numbers[SINCE_SWEEP] = 0
    return held
