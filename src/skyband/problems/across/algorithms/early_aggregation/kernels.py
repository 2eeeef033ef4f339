"""The compiled half of `early_aggregation`: instances in three sorted lists, as published.

An instance is the place of a value, object times streams plus stream: the object with those of its values that live at
least as long as this one.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel, part
from skyband.problems.across.drivers.kernels.ascending import insert, remove
from skyband.problems.across.drivers.kernels.emit import rank_in_top, show
from skyband.problems.across.drivers.kernels.slots import (
    best_score,
    current_score,
    forget,
    is_held,
    is_later,
    latest_row,
    take_value,
    write_values,
)
from skyband.problems.across.drivers.kernels.steps import ANSWER_DUE

# The lists, ascending, and the numbers that change.
CURRENT, BEST, TIME, LISTS = range(4)
SIZE, CLOCK, REPEATED, GONE, NUMBERS = range(5)


@part
def _leave(state, instance):
    """Take an instance out of the lists; its object is forgotten with its last one."""
    slots, numbers, streams = state.slots, state.numbers, state.slots.shape[1]
    code, s = instance // streams, instance % streams
    for which in range(TIME):
        remove(state.keys[which], state.lists[which], numbers[SIZE], state.score[which, instance], instance)
    remove(state.moments, state.lists[TIME], numbers[SIZE], slots[code, s].last, instance)
    numbers[SIZE] -= 1
    slots[code, s].held = 0


@part
def _dominate(state, code, instance, k):
    """The object dominates the instance, as it may have done before."""
    n = state.dominators[instance]
    if n >= k:
        return
    for i in range(n):
        if state.who[instance, i] == code:
            return
    state.who[instance, n] = code
    state.dominators[instance] = n + 1
    if n + 1 == k:
        state.gone[state.numbers[GONE]] = instance
        state.numbers[GONE] += 1


@part
def _compare(state, instance, floor, ceiling, k):
    """The instance's current score has risen from `floor`, and its best score has fallen from `ceiling`.

    Look at the instances whose best score lies between the current scores, and at those whose current score lies
    between the best ones.
    """
    slots, numbers, streams = state.slots, state.numbers, state.slots.shape[1]
    size, code = numbers[SIZE], instance // streams
    last = slots[code, instance % streams].last
    current, best = state.score[CURRENT, instance], state.score[BEST, instance]
    keys, instances = state.keys[BEST], state.lists[BEST]
    i = np.searchsorted(keys[:size], floor)
    while i < size and keys[i] < current:
        other = instances[i]
        if other // streams != code and slots[other // streams, other % streams].last <= last:
            _dominate(state, code, other, k)
        i += 1
    keys, instances = state.keys[CURRENT], state.lists[CURRENT]
    i = np.searchsorted(keys[:size], ceiling, side="right") - 1
    while i >= 0 and keys[i] > best:
        other = instances[i]
        if other // streams != code and slots[other // streams, other % streams].last >= last:
            _dominate(state, other // streams, instance, k)
        i -= 1


@part
def _score(state, instance, scoring):
    streams = state.slots.shape[1]
    code, last = instance // streams, state.slots[instance // streams, instance % streams].last
    state.score[CURRENT, instance] = current_score(state.slots, code, last, scoring)
    state.score[BEST, instance] = best_score(state.slots, code, last, scoring)


@part
def _enter(state, instance):
    streams, size = state.slots.shape[1], state.numbers[SIZE]
    for which in range(TIME):
        insert(state.keys[which], state.lists[which], size, state.score[which, instance], instance)
    last = state.slots[instance // streams, instance % streams].last
    insert(state.moments, state.lists[TIME], size, last, instance)
    state.numbers[SIZE] += 1


@part
def _update(state, instance, scoring, k):
    """More is known of the instance's object: move it in the lists, and see what it dominates now, and what it."""
    size = state.numbers[SIZE]
    floor, ceiling = state.score[CURRENT, instance], state.score[BEST, instance]
    for which in range(TIME):
        remove(state.keys[which], state.lists[which], size, state.score[which, instance], instance)
    _score(state, instance, scoring)
    for which in range(TIME):
        insert(state.keys[which], state.lists[which], size - 1, state.score[which, instance], instance)
    _compare(state, instance, floor, ceiling, k)


@kernel
def expire(state, clock):
    """Time moves on: instances end, the first of the list TIME first."""
    numbers, streams = state.numbers, state.slots.shape[1]
    numbers[CLOCK] = clock
    while numbers[SIZE] and state.moments[0] < clock:
        instance = state.lists[TIME, 0]
        _leave(state, instance)
        if not is_held(state.slots, instance // streams, clock):
            forget(state.slots, instance // streams)


@part
def _take(rows, r, clock, k, state, scoring):
    slots, numbers, streams = state.slots, state.numbers, state.slots.shape[1]
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    new = code * streams + stream
    if slots[code, stream].held and slots[code, stream].last >= clock:
        if is_later(slots[code, stream].time, slots[code, stream].position, rows.time[r], rows.position[r]):
            numbers[REPEATED] += 1
            return
        _leave(state, new)
    taken, repeats = take_value(slots, code, stream, rows.value[r], rows.time[r], rows.position[r], rows.last[r])
    numbers[REPEATED] += repeats
    if not taken:
        return
    numbers[GONE] = 0
    for s in range(streams):
        if s != stream and slots[code, s].held and slots[code, s].last >= clock:
            _update(state, code * streams + s, scoring, k)
    _score(state, new, scoring)
    state.dominators[new] = 0
    _enter(state, new)
    _compare(state, new, -np.inf, np.inf, k)
    for i in range(numbers[GONE]):
        instance = state.gone[i]
        _leave(state, instance)
        if not is_held(slots, instance // streams, clock):
            forget(slots, instance // streams)


@kernel
def rank(state, k, shown):
    """Write the k best objects at the clock to the top: those that come first from the end of the list CURRENT."""
    slots, numbers, streams, top = state.slots, state.numbers, state.slots.shape[1], state.top
    clock, found = numbers[CLOCK], 0
    top_code, top_score = shown.top_code, shown.top_score
    for e in range(numbers[SIZE] - 1, -1, -1):
        score = state.keys[CURRENT, e]
        if found == k and score < top_score[k - 1]:
            break
        code = state.lists[CURRENT, e] // streams
        known = False
        for i in range(found):
            known = known or top_code[i] == code
        if known:
            continue
        time, position = latest_row(slots, code, clock)
        found = rank_in_top(shown, top, found, k, code, score, time, position)
    for i in range(found):
        shown.top_time[i] = top[0, i]
        write_values(slots, top_code[i], clock, shown.top_values, i)
    return found


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, shown, out, written):
    """Execute steps as far as there is room; return the first that was not, and how much is written."""
    entries = len(shown.code)
    while step < end:
        if written + 2 * entries > len(out.at) or state.numbers[SIZE] == len(state.moments):
            break
        expire(state, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, clocks[step], config.k, state, scoring)
        if r == ANSWER_DUE or config.each:
            written = show(clocks[step], rank(state, config.k, shown), config.emit, shown, out, written)
        step += 1
    return step, written
