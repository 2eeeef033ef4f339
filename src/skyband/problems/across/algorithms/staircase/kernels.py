"""The compiled loops of `staircase`.

The front is the k-skyband of sure scores. Each point (last, score) is the score that an object has for sure until
`last`; fewer than k other objects are sure to rank before it for as long. The front is small, about k (1 + ln(n / k))
points whatever the window, and lies in flat arrays in no order: every question about it is one vectorised pass.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.drivers.kernels.emit import rank_in_top, show
from skyband.problems.across.drivers.kernels.slots import (
    ANSWER_DUE,
    EARLIEST,
    best_score,
    forget,
    is_held,
    is_later,
    latest_row,
    points_of,
    take_value,
    write_values,
)

# Rows of `front`. A point is its object's score from just after BEFORE until LAST. TIME and POSITION are those of the
# object's most recent row. DOMINATORS, below k, counts the objects that rank before it at least until LAST.
LAST, BEFORE, TIME, POSITION, CODE, DOMINATORS, COLUMNS = range(7)

# Rows of `points`, scratch space for an object's points before and after a row, and of `scores`, their scores.
OLD_LAST, OLD_BEFORE, NEW_LAST, NEW_BEFORE = range(4)
OLD, NEW = range(2)

# The entries of `State.numbers`. OLDEST and LATEST bound the LAST of the front; after NEXT_FALL the top may change.
SIZE, CLOCK, OLDEST, LATEST, NEXT_FALL, FOUND, STALE, REPEATED, SINCE_SWEEP, NUMBERS = range(10)

AFTER_ALL = np.int64(2**63 - 1)


# -- questions about the front ----------------------------------------------------------------------------------------


@part
def is_dominated(front, score, numbers, moment, best, k):
    """Are k objects sure to score more than `best`, at least until `moment`?"""
    if moment > numbers[LATEST]:
        return False
    size = numbers[SIZE]
    last, before, current = front[LAST, :size], front[BEFORE, :size], score[:size]
    n = 0
    for e in range(size):
        n += (last[e] >= moment) & (before[e] < moment) & (current[e] > best)
    return n >= k


@part
def _outranked(front, score, size, moment, points, time, position):
    """How many objects rank before this score, time and position, at least until `moment`."""
    last, before, current = front[LAST, :size], front[BEFORE, :size], score[:size]
    times, positions = front[TIME, :size], front[POSITION, :size]
    n = 0
    for e in range(size):
        later = (times[e] > time) | ((times[e] == time) & (positions[e] > position))
        n += (last[e] >= moment) & (before[e] < moment) & ((current[e] > points) | ((current[e] == points) & later))
    return n


@part
def _count(front, score, size, end, begin, points, time, position, sign):
    """Add `sign` to the dominators of every point that this point dominates and whose LAST is in (begin, end]."""
    last, current, dominators = front[LAST, :size], score[:size], front[DOMINATORS, :size]
    times, positions = front[TIME, :size], front[POSITION, :size]
    for e in range(size):
        later = (time > times[e]) | ((time == times[e]) & (position > positions[e]))
        before = (points > current[e]) | ((points == current[e]) & later)
        dominators[e] += sign * ((last[e] <= end) & (last[e] > begin) & before)


# -- changes to the front ---------------------------------------------------------------------------------------------


@inlined
def _move(front, score, source, target):
    for row in range(COLUMNS):
        front[row, target] = front[row, source]
    score[target] = score[source]


@kernel
def expire(front, score, numbers, clock):
    """Move the clock, and drop the points that have ended. The points that they dominated have ended, too."""
    numbers[CLOCK] = clock
    if clock > numbers[NEXT_FALL]:
        numbers[STALE] = 1
    if clock <= numbers[OLDEST]:
        return
    n, oldest = 0, AFTER_ALL
    for e in range(numbers[SIZE]):
        if front[LAST, e] >= clock:
            oldest = min(oldest, front[LAST, e])
            _move(front, score, e, n)
            n += 1
    numbers[SIZE], numbers[OLDEST] = n, oldest


@part
def _leave(front, score, numbers, code, k):
    """Remove the object's points, and those that have k dominators now."""
    size = numbers[SIZE]
    codes, dominators = front[CODE, :size], front[DOMINATORS, :size]
    leaving = 0
    for e in range(size):
        leaving += (codes[e] == code) | (dominators[e] >= k)
    if leaving == 0:
        return
    n = 0
    for e in range(size):
        if front[CODE, e] != code and front[DOMINATORS, e] < k:
            if n < e:
                _move(front, score, e, n)
            n += 1
    numbers[SIZE] = n


@part
def replace_points(state, code, old, new, old_time, old_position, time, position, k):
    """Replace the object's `old` points by its `new` ones, all of which are in the scratch space."""
    front, score, points, scores, numbers = state.front, state.score, state.points, state.scores, state.numbers
    size = numbers[SIZE]
    for i in range(old):
        end, begin = points[OLD_LAST, i], points[OLD_BEFORE, i]
        _count(front, score, size, end, begin, scores[OLD, i], old_time, old_position, -1)
    for i in range(new):
        end, begin = points[NEW_LAST, i], points[NEW_BEFORE, i]
        _count(front, score, size, end, begin, scores[NEW, i], time, position, 1)
    _leave(front, score, numbers, code, k)
    kept = size = numbers[SIZE]
    latest = numbers[LATEST]
    for i in range(new):
        moment, dominators = points[NEW_LAST, i], 0
        if moment <= latest:
            dominators = _outranked(front, score, kept, moment, scores[NEW, i], time, position)
        if dominators < k:
            front[LAST, size], front[BEFORE, size], score[size] = moment, points[NEW_BEFORE, i], scores[NEW, i]
            front[TIME, size], front[POSITION, size], front[CODE, size] = time, position, code
            front[DOMINATORS, size] = dominators
            numbers[OLDEST] = min(numbers[OLDEST], moment)
            numbers[LATEST] = max(numbers[LATEST], moment)
            size += 1
    numbers[SIZE] = size


# -- steps ------------------------------------------------------------------------------------------------------------


@part
def prune_object(slots, front, score, numbers, code, clock, k, scoring):
    """Drop the object's dominated instances, and the object if none is left. Returns whether one is.

    So an object is forgotten, and starts anew, at the same row as if pruning happened all the time.
    """
    kept = False
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.held and slot.last >= clock:
            best = best_score(slots, code, slot.last, scoring)
            if is_dominated(front, score, numbers, slot.last, best, k):
                slot.held = 0
            else:
                kept = True
    if not kept:
        forget(slots, code)
    return kept


@part
def take_row(rows, r, clock, k, state, scoring, top_score):
    slots, front, score, points, scores, numbers = (
        state.slots, state.front, state.score, state.points, state.scores, state.numbers,
    )  # fmt: skip
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    old, old_time, old_position = 0, EARLIEST, EARLIEST
    if prune_object(slots, front, score, numbers, code, clock, k, scoring):
        old = points_of(slots, code, clock, scoring, points[OLD_LAST], scores[OLD], points[OLD_BEFORE])
        old_time, old_position = latest_row(slots, code, clock)
    taken, repeats = take_value(slots, code, stream, rows.value[r], rows.time[r], rows.position[r], rows.last[r])
    if repeats:
        numbers[REPEATED] += 1
        numbers[STALE] = 1
    if not taken:
        return
    slot = slots[code, stream]
    if slot.last <= numbers[LATEST] and is_dominated(
        front, score, numbers, slot.last, best_score(slots, code, slot.last, scoring), k
    ):
        slot.held = 0
        if not is_held(slots, code, clock):
            forget(slots, code)
            return
    new = points_of(slots, code, clock, scoring, points[NEW_LAST], scores[NEW], points[NEW_BEFORE])
    time, position = latest_row(slots, code, clock)
    replace_points(state, code, old, new, old_time, old_position, time, position, k)
    numbers[SINCE_SWEEP] += 1
    if not numbers[STALE]:
        numbers[STALE] = _touches_top(state.top, numbers, scores[NEW, new - 1], time, position, k, top_score)


@part
def _touches_top(top, numbers, points, time, position, k, top_score):
    """Is an object with this new score in the top, or better than the last one there?"""
    worst = numbers[FOUND] - 1
    if worst + 1 < k:
        return 1
    if points != top_score[worst]:
        return 1 if points > top_score[worst] else 0
    return 0 if is_later(top[0, worst], top[1, worst], time, position) else 1


@kernel
def rank(state, k, shown):
    """Write the k best objects at the clock to the top. Returns their number."""
    front, numbers, top = state.front, state.numbers, state.top
    clock, found, next_fall = numbers[CLOCK], 0, AFTER_ALL
    for e in range(numbers[SIZE]):
        if front[BEFORE, e] >= clock or front[LAST, e] < clock:
            continue
        time, position = front[TIME, e], front[POSITION, e]
        found = rank_in_top(shown, top, found, k, front[CODE, e], state.score[e], time, position)
    for i in range(found):
        shown.top_time[i] = top[0, i]
        write_values(state.slots, shown.top_code[i], clock, shown.top_values, i)
        for s in range(state.slots.shape[1]):
            last = state.slots[shown.top_code[i], s].last
            if last >= clock:
                next_fall = min(next_fall, last)
    numbers[FOUND], numbers[NEXT_FALL], numbers[STALE] = found, next_fall, 0
    return found


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, shown, out, written):
    """Execute steps while there is room. Returns the first step not executed, and the number of entries written."""
    k, entries, streams = config.k, len(shown.code), state.slots.shape[1]
    numbers = state.numbers
    while step < end:
        if written + 2 * entries > len(out.at) or numbers[SIZE] + streams > len(state.score):
            break
        if numbers[SINCE_SWEEP] >= config.sweep_after:
            break
        expire(state.front, state.score, numbers, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            take_row(rows, r, clocks[step], k, state, scoring, shown.top_score)
        if r == ANSWER_DUE or (config.each and numbers[STALE]):
            found = rank(state, k, shown) if numbers[STALE] else numbers[FOUND]
            written = show(clocks[step], found, config.emit, shown, out, written)
        step += 1
    return step, written


# -- pruning all ------------------------------------------------------------------------------------------------------


@kernel
def build_stairs(front, score, size, order, k, stair_last, stair_score, best_code, best):
    """Build the k-th best sure score of the objects that live until a moment, as a staircase over moments, latest
    first. Returns the number of stairs.

    stair_score[i] holds from just after stair_last[i + 1] until stair_last[i]. `order` sorts the points, latest first.
    """
    n, found = 0, 0
    for j in range(size):
        e = order[j]
        code, current = front[CODE, e], score[e]
        i = 0
        while i < found and best_code[i] != code:
            i += 1
        if i == found and found == k:
            i = k - 1
            if best[i] >= current:
                continue
        elif i == found:
            found += 1
        while i > 0 and best[i - 1] < current:
            best[i], best_code[i] = best[i - 1], best_code[i - 1]
            i -= 1
        best[i], best_code[i] = current, code
        if found == k and (n == 0 or best[k - 1] > stair_score[n - 1]):
            if n > 0 and stair_last[n - 1] == front[LAST, e]:
                n -= 1
            stair_last[n], stair_score[n] = front[LAST, e], best[k - 1]
            n += 1
    return n


@part
def is_below_stairs(slots, code, moment, stair_last, stair_score, stairs, scoring):
    """Is the object's instance that lives until this moment dominated?"""
    low, high = 0, stairs  # of the stairs that end at this moment or later, the last is the highest
    while low < high:
        middle = (low + high) >> 1
        if stair_last[middle] >= moment:
            low = middle + 1
        else:
            high = middle
    return low > 0 and stair_score[low - 1] > best_score(slots, code, moment, scoring)


@kernel
def sweep(slots, numbers, stair_last, stair_score, stairs, scoring):
    """Drop every dominated instance, and every object that has no other. Returns how many instances are left."""
    clock, held = numbers[CLOCK], 0
    for code in range(slots.shape[0]):
        mine = 0
        for s in range(slots.shape[1]):
            slot = slots[code, s]
            if slot.held and slot.last >= clock:
                if is_below_stairs(slots, code, slot.last, stair_last, stair_score, stairs, scoring):
                    slot.held = 0
                else:
                    mine += 1
        if mine == 0:
            forget(slots, code)
        held += mine
    numbers[SINCE_SWEEP] = 0
    return held
