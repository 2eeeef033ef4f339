"""The compiled half of `sorted_lists`: a list a stream, sorted by value, a list of all rows by time, and a view.

Where an object comes to a stream again (section 5), it has an entry in the stream's list for each of its rows: what the
row and those that live as long come to together. The largest of them, which is found first, is its value now; when the
oldest row expires, the next entry is the value, and nothing has to be changed.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel, part
from skyband.problems.across.drivers.kernels.emit import show
from skyband.problems.across.drivers.kernels.scoring import GIVEN, LOW, score
from skyband.problems.across.drivers.kernels.slots import (
    ANSWER_DUE,
    EARLIEST,
    is_in_slots,
    is_later,
    latest_row,
    take_value,
)
from skyband.study.baselines.across.early_aggregation.kernels import (
    current_score,
    insert,
    place_for,
    put_together,
    remove,
    write_values,
)

# Rows of `best`, and the numbers that change.
CODE, TIME, POSITION = range(3)
ROWS, VIEW, LIVE, CLOCK, REPEATED, RECOMPUTED, REPEAT, NUMBERS = range(8)


# -- the view: always the best of all objects, but not always as many as wanted ---------------------------------------


@part
def _beats(points, time, position, state, i):
    if points != state.scores[i]:
        return points > state.scores[i]
    return is_later(time, position, state.best[TIME, i], state.best[POSITION, i])


@part
def _drop(state, i):
    state.numbers[VIEW] -= 1
    for j in range(i, state.numbers[VIEW]):
        state.scores[j] = state.scores[j + 1]
        for row in range(3):
            state.best[row, j] = state.best[row, j + 1]


@part
def _place(state, code, points, time, position):
    """Put an object into the view, if it is better than the last or there is room; what falls out is forgotten."""
    numbers, room = state.numbers, len(state.scores)
    i = numbers[VIEW]
    while i > 0 and _beats(points, time, position, state, i - 1):
        i -= 1
    if i == room:
        return
    numbers[VIEW] = min(numbers[VIEW] + 1, room)
    for j in range(numbers[VIEW] - 1, i, -1):
        state.scores[j] = state.scores[j - 1]
        for row in range(3):
            state.best[row, j] = state.best[row, j - 1]
    state.scores[i], state.best[CODE, i], state.best[TIME, i], state.best[POSITION, i] = points, code, time, position


@part
def _find(state, code):
    for i in range(state.numbers[VIEW]):
        if state.best[CODE, i] == code:
            return i
    return -1


@part
def _change(state, code, clock, was_whole, scoring):
    """The object's score has changed. A view that is not whole holds no object that an unknown one may beat."""
    numbers = state.numbers
    i = _find(state, code)
    if i >= 0:
        _drop(state, i)
    time, position = latest_row(state.slots, code, clock)
    if time == EARLIEST:
        return
    points = current_score(state.slots, code, clock, scoring, state.numbers[REPEAT])
    last = numbers[VIEW] - 1
    if was_whole or (last >= 0 and _beats(points, time, position, state, last)):
        _place(state, code, points, time, position)


# -- rows -------------------------------------------------------------------------------------------------------------


@kernel
def expire(state, clock, scoring):
    """Time moves on: rows end, and leave the list of their stream."""
    numbers, places = state.numbers, state.slots.shape[1]
    times = places // len(state.sizes)
    numbers[CLOCK] = clock
    ended = np.searchsorted(state.moments[: numbers[ROWS]], clock)
    for e in range(ended):
        code, place = state.instances[e] // places, state.instances[e] % places
        slot, s = state.slots[code, place], place // times
        if slot.last != state.moments[e]:
            continue  # another row has taken its place
        whole = numbers[VIEW] == numbers[LIVE]
        remove(state.keys[s], state.codes[s], state.sizes[s], state.entry[code, place], code)
        state.sizes[s] -= 1
        slot.last = EARLIEST
        numbers[LIVE] -= not is_in_slots(state.slots, code)
        _change(state, code, clock, whole, scoring)
    for j in range(ended, numbers[ROWS]):
        state.moments[j - ended], state.instances[j - ended] = state.moments[j], state.instances[j]
    numbers[ROWS] -= ended


@part
def _take(rows, r, clock, state, scoring):
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    times = places // len(state.sizes)
    code, s = np.int64(rows.code[r]), np.int64(rows.stream[r])
    place = place_for(slots, code, s, times)
    slot = slots[code, place]
    whole, alive = numbers[VIEW] == numbers[LIVE], is_in_slots(slots, code)
    known = slot.last != EARLIEST
    if known and is_later(slot.time, slot.position, rows.time[r], rows.position[r]):
        numbers[REPEATED] += 1
        return
    for p in range(s * times, (s + 1) * times):
        if slots[code, p].last != EARLIEST:
            remove(state.keys[s], state.codes[s], state.sizes[s], state.entry[code, p], code)
            state.sizes[s] -= 1
    _, repeats = take_value(slots, code, place, rows.value[r], rows.time[r], rows.position[r], rows.last[r])
    numbers[REPEATED] += repeats
    numbers[LIVE] += not alive
    for p in range(s * times, (s + 1) * times):
        if slots[code, p].last != EARLIEST:
            value, _, _ = put_together(slots, code, s, times, slots[code, p].last, numbers[REPEAT])
            state.entry[code, p] = value
            insert(state.keys[s], state.codes[s], state.sizes[s], value, code)
            state.sizes[s] += 1
    insert(state.moments, state.instances, numbers[ROWS], rows.last[r], code * places + place)
    numbers[ROWS] += 1
    _change(state, code, clock, whole, scoring)


@part
def _threshold_algorithm(state, clock, scoring):
    """Fill the view anew: go down all lists at once, until no object that is still to come can belong there."""
    slots, numbers, streams = state.slots, state.numbers, len(state.sizes)
    numbers[VIEW], room = 0, len(state.scores)
    numbers[RECOMPUTED] += 1
    depth, deepest = 0, 0
    for s in range(streams):
        deepest = max(deepest, state.sizes[s])
    while depth < deepest:
        for s in range(streams):
            i = state.sizes[s] - 1 - depth
            if i >= 0:
                code = state.codes[s, i]
                if _find(state, code) < 0:
                    time, position = latest_row(slots, code, clock)
                    _place(state, code, current_score(slots, code, clock, scoring, numbers[REPEAT]), time, position)
        for s in range(streams):
            i = state.sizes[s] - 1 - depth
            scoring.table[GIVEN, s] = state.keys[s, i] if i >= 0 else scoring.table[LOW, s]
        depth += 1
        # An object not seen yet may score the threshold, and be more recent.
        if numbers[VIEW] == room and state.scores[room - 1] > score(scoring):
            break


@kernel
def rank(state, k, shown, scoring):
    """Write the k best objects to the top; return how many there are."""
    numbers = state.numbers
    if numbers[VIEW] < k and numbers[VIEW] < numbers[LIVE]:
        _threshold_algorithm(state, numbers[CLOCK], scoring)
    found = min(numbers[VIEW], k)
    for i in range(found):
        shown.top_code[i], shown.top_score[i] = state.best[CODE, i], state.scores[i]
        shown.top_time[i] = state.best[TIME, i]
        write_values(state.slots, state.best[CODE, i], numbers[CLOCK], shown.top_values, i, numbers[REPEAT])
    return found


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, shown, out, written):
    """Execute steps as far as there is room; return the first that was not, and how much is written."""
    entries = len(shown.code)
    while step < end:
        if written + 2 * entries > len(out.at):
            break
        expire(state, clocks[step], scoring)
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, clocks[step], state, scoring)
        if r == ANSWER_DUE or config.each:
            written = show(clocks[step], rank(state, config.k, shown, scoring), config.emit, shown, out, written)
        step += 1
    return step, written
