"""The compiled half of `early_aggregation`: instances in sorted lists, as published.

An instance is the place of a row, object times places plus place: the object with those of its values that live at
least as long as this row. A stream has as many places as an object may come there, one after the other: where it has
come m_i times of m, m - m_i places are free, and each may still bring the largest value (section 5).
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import kernel, part
from skyband.problems.across.drivers.kernels.emit import rank_in_top, show
from skyband.problems.across.drivers.kernels.scoring import GIVEN, HIGH, LOW, score
from skyband.problems.across.drivers.kernels.slots import ANSWER_DUE, EARLIEST, forget, is_later, latest_row, take_value
from skyband.problems.across.operator import SUM

# The lists, ascending, and the numbers that change, but for REPEAT: how values of a stream are put together.
CURRENT, BEST, TIME, LISTS = range(4)
SIZE, ROWS, CLOCK, REPEATED, GONE, REPEAT, NUMBERS = range(7)


# -- sorted lists in two arrays: keys, and the owner of each key -----------------------------------------------------


@part
def insert(keys, owners, size, key, owner):
    i = np.searchsorted(keys[:size], key, side="right")
    for j in range(size, i, -1):
        keys[j], owners[j] = keys[j - 1], owners[j - 1]
    keys[i], owners[i] = key, owner


@part
def remove(keys, owners, size, key, owner):
    i = np.searchsorted(keys[:size], key)
    while owners[i] != owner:
        i += 1
    for j in range(i, size - 1):
        keys[j], owners[j] = keys[j + 1], owners[j + 1]


# -- objects -----------------------------------------------------------------------------------------------------------


@part
def put_together(slots, code, stream, times, moment, repeat):
    """Of the object's values in a stream that live until then the sum or the largest, how many they are, and how many
    may still come."""
    total, rest, live, free = 0.0, 0.0, 0, 0
    for place in range(stream * times, (stream + 1) * times):
        slot = slots[code, place]
        free += slot.last == EARLIEST
        if slot.last < moment:
            continue
        live += 1
        if repeat == SUM:
            # In two numbers, of which the second is what the first cannot hold.
            new = total + slot.value
            added = new - total
            rest += (total - (new - added)) + (slot.value - added)
            total = new
        else:
            total = slot.value if live == 1 else max(total, slot.value)
    return total + rest, live, free


@kernel
def current_score(slots, code, moment, scoring, repeat):
    """What the object is sure to score at `moment`: by the values that live until then."""
    streams = scoring.table.shape[1]
    for s in range(streams):
        value, live, _ = put_together(slots, code, s, slots.shape[1] // streams, moment, repeat)
        scoring.table[GIVEN, s] = value if live else scoring.table[LOW, s]
    return score(scoring)


@part
def _came(slots, code, streams):
    """The streams in which the object has come, as bits."""
    came, times = 0, slots.shape[1] // streams
    for place in range(slots.shape[1]):
        if slots[code, place].last != EARLIEST:
            came |= 1 << (place // times)
    return came


@kernel
def best_score(slots, code, moment, scoring, repeat, often):
    """The most it can score at `moment`: each time that it may still come to a stream may bring the largest value.

    `often`: how often it comes to each stream, where that is estimated; infinite: as often as there is room for.
    """
    streams = scoring.table.shape[1]
    times = slots.shape[1] // streams
    came = _came(slots, code, streams) if scoring.chance.shape[0] > 1 else 0
    for s in range(streams):
        value, live, free = put_together(slots, code, s, times, moment, repeat)
        more = min(float(free), max(often[s] - (times - free), 0.0))
        if came and not came >> s & 1:
            more *= scoring.chance[came, s]
        low, high = scoring.table[LOW, s], scoring.table[HIGH, s]
        if more == 0:
            scoring.table[GIVEN, s] = value if live else low
        elif high == np.inf:
            return np.inf
        elif repeat == SUM:
            scoring.table[GIVEN, s] = value + more * high
        elif more >= 1:
            scoring.table[GIVEN, s] = high
        else:
            scoring.table[GIVEN, s] = max(value if live else low, low + more * (high - low))
    return score(scoring)


@part
def write_values(slots, code, clock, values, i, repeat):
    """The object's values now, NaN where it has none."""
    streams = values.shape[1]
    for s in range(streams):
        value, live, _ = put_together(slots, code, s, slots.shape[1] // streams, clock, repeat)
        values[i, s] = value if live else np.nan


@part
def place_for(slots, code, stream, times):
    """Where a row of the object goes: to a free place of its stream, or else to that of the earliest row."""
    first = stream * times
    found = first
    for place in range(first, first + times):
        if slots[code, place].last == EARLIEST:
            return place
        one, other = slots[code, found], slots[code, place]
        if is_later(one.time, one.position, other.time, other.position):
            found = place
    return found


@part
def _leave(state, instance):
    """Take an instance out of the lists of scores."""
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    for which in range(TIME):
        remove(state.keys[which], state.lists[which], numbers[SIZE], state.score[which, instance], instance)
    numbers[SIZE] -= 1
    slots[instance // places, instance % places].held = 0


@part
def _end(state, instance):
    """A row is over, or replaced."""
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    code, place = instance // places, instance % places
    if slots[code, place].held:
        _leave(state, instance)
    remove(state.moments, state.lists[TIME], numbers[ROWS], slots[code, place].last, instance)
    numbers[ROWS] -= 1


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
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    size, code = numbers[SIZE], instance // places
    last = slots[code, instance % places].last
    current, best = state.score[CURRENT, instance], state.score[BEST, instance]
    keys, instances = state.keys[BEST], state.lists[BEST]
    i = np.searchsorted(keys[:size], floor)
    while i < size and keys[i] < current:
        other = instances[i]
        if other // places != code and slots[other // places, other % places].last <= last:
            _dominate(state, code, other, k)
        i += 1
    keys, instances = state.keys[CURRENT], state.lists[CURRENT]
    i = np.searchsorted(keys[:size], ceiling, side="right") - 1
    while i >= 0 and keys[i] > best:
        other = instances[i]
        if other // places != code and slots[other // places, other % places].last >= last:
            _dominate(state, other // places, instance, k)
        i -= 1


@part
def _score(state, instance, scoring):
    places, repeat = state.slots.shape[1], state.numbers[REPEAT]
    code, last = instance // places, state.slots[instance // places, instance % places].last
    state.score[CURRENT, instance] = current_score(state.slots, code, last, scoring, repeat)
    state.score[BEST, instance] = best_score(state.slots, code, last, scoring, repeat, state.often)


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
    """Time moves on: rows end, the first of the list TIME first. Objects are forgotten with the last of their rows."""
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    numbers[CLOCK] = clock
    ended = 0
    while numbers[ROWS] and state.moments[0] < clock:
        state.gone[ended] = state.lists[TIME, 0]
        _end(state, state.gone[ended])
        ended += 1
    for i in range(ended):
        code, lives = state.gone[i] // places, False
        for place in range(places):
            lives = lives or slots[code, place].last >= clock
        if not lives:
            forget(slots, code)


@part
def _take(rows, r, clock, k, state, scoring):
    slots, numbers, places = state.slots, state.numbers, state.slots.shape[1]
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    place = place_for(slots, code, stream, places // scoring.table.shape[1])
    new, before = code * places + place, slots[code, place].last
    if before != EARLIEST:
        numbers[REPEATED] += 1
        if is_later(slots[code, place].time, slots[code, place].position, rows.time[r], rows.position[r]):
            return
        if before >= clock:
            _end(state, new)
    take_value(slots, code, place, rows.value[r], rows.time[r], rows.position[r], rows.last[r])
    insert(state.moments, state.lists[TIME], numbers[ROWS], rows.last[r], new)
    numbers[ROWS] += 1
    numbers[GONE] = 0
    for p in range(places):
        if p != place and slots[code, p].held and slots[code, p].last >= clock:
            _update(state, code * places + p, scoring, k)
    _score(state, new, scoring)
    state.dominators[new] = 0
    for which in range(TIME):
        insert(state.keys[which], state.lists[which], numbers[SIZE], state.score[which, new], new)
    numbers[SIZE] += 1
    _compare(state, new, -np.inf, np.inf, k)
    for i in range(numbers[GONE]):
        _leave(state, state.gone[i])


@kernel
def rank(state, k, shown):
    """Write the k best objects at the clock to the top: those that come first from the end of the list CURRENT."""
    slots, numbers, places, top = state.slots, state.numbers, state.slots.shape[1], state.top
    clock, found = numbers[CLOCK], 0
    top_code, top_score = shown.top_code, shown.top_score
    for e in range(numbers[SIZE] - 1, -1, -1):
        score = state.keys[CURRENT, e]
        if found == k and score < top_score[k - 1]:
            break
        code = state.lists[CURRENT, e] // places
        known = False
        for i in range(found):
            known = known or top_code[i] == code
        if known:
            continue
        time, position = latest_row(slots, code, clock)
        found = rank_in_top(shown, top, found, k, code, score, time, position)
    for i in range(found):
        shown.top_time[i] = top[0, i]
        write_values(slots, top_code[i], clock, shown.top_values, i, numbers[REPEAT])
    return found


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, shown, out, written):
    """Execute steps as far as there is room; return the first that was not, and how much is written."""
    entries = len(shown.code)
    while step < end:
        if written + 2 * entries > len(out.at) or state.numbers[ROWS] == len(state.moments):
            break
        expire(state, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, clocks[step], config.k, state, scoring)
        if r == ANSWER_DUE or config.each:
            written = show(clocks[step], rank(state, config.k, shown), config.emit, shown, out, written)
        step += 1
    return step, written
