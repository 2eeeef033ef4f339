"""Finds the best of many objects whose scores rise and fall, with the help of a bar.

Objects that rank at the bar or above are candidates. The k best of them are in order (the top); the others are in a
heap, which leaves falling scores as they were until it matters. Other objects need only be compared with the bar when
they change. The bar is raised when there are too many candidates; when there are too few, all objects are visited to
set it anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.ranking import ranks_before
from skyband.problems.across.combining import ADD
from skyband.problems.across.drivers.kernels.scoring import GIVEN, LOW, WEIGHT, score

# An object's value in a stream. A sum is two numbers; the second has what the first cannot represent, so that rounding
# errors do not add up as rows come and go.
VALUE = np.dtype(
    [
        ("value", np.float64),
        ("rest", np.float64),  # SUM: the second number
        ("time", np.int64),  # of the latest row
        ("position", np.int64),
        ("rows", np.int32),  # the number of live rows
        ("place", np.int32),  # in the first stream only: the object's place among the candidates
    ],
    align=True,
)

ROW = np.dtype([("value", np.float64), ("last", np.int64), ("code", np.int32), ("stream", np.int32)], align=True)

# An object, and what it is ranked by.
RANKED = np.dtype([("score", np.float64), ("time", np.int64), ("position", np.int64), ("code", np.int64)], align=True)

# MAX: for each object and stream, a linked list of the values that may still become the largest, latest last.
NODE = np.dtype(
    [("value", np.float64), ("last", np.int64), ("following", np.int64), ("preceding", np.int64)], align=True
)
LIST = np.dtype([("head", np.int64), ("tail", np.int64)], align=True)
END = -1  # the end of a list

BELOW = -1  # the place of an object that is no candidate. Places in the heap are 0, 1, …, in the top -2, -3, …

# The entries of `State.numbers`. NEW: the top has other members than the last answer. STALE: or other scores.
FIRST, COUNT, DELAYED, TOP, HEAP, LIVE, CLOCK, STALE, NEW, REPEATED, REBUILDS, FREE, NUMBERS = range(13)


class State(NamedTuple):
    """The arrays of the operator."""

    values: npt.NDArray[Any]  # records of type VALUE, by object and stream
    ring: npt.NDArray[Any]  # rows in order of their last moment; the length is a power of two
    delayed: npt.NDArray[Any]  # rows that came after others with a later last moment: a heap, the first to end on top
    nodes: npt.NDArray[Any]
    lists: npt.NDArray[Any]  # by object and stream
    top: npt.NDArray[Any]  # best first
    heap: npt.NDArray[Any]
    chosen: npt.NDArray[Any]  # scratch space, one entry for each object
    bar: npt.NDArray[Any]  # the rank that a candidate must reach, and scratch entries
    numbers: Ints


@inlined
def _put(values, ranked, i, place, source):
    """Copy an object to entry i."""
    ranked[i] = source
    values[source.code, 0].place = place


@part
def _sift(values, heap, n, i, held):
    """Put `held` into the heap of n entries, where entry i is free: there, or where it belongs above or below."""
    while i > 0 and ranks_before(held, heap[(i - 1) >> 1]):
        _put(values, heap, i, i, heap[(i - 1) >> 1])
        i = (i - 1) >> 1
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and ranks_before(heap[child + 1], heap[child]):
            child += 1
        if not ranks_before(heap[child], held):
            break
        _put(values, heap, i, i, heap[child])
        i = child
    _put(values, heap, i, i, held)


@part
def _settle_in_top(values, top, n, i, held):
    """Put `held` into the top of n entries, where entry i is free: there, or where it belongs among the others."""
    while i > 0 and ranks_before(held, top[i - 1]):
        _put(values, top, i, -2 - i, top[i - 1])
        i -= 1
    while i + 1 < n and ranks_before(top[i + 1], held):
        _put(values, top, i, -2 - i, top[i + 1])
        i += 1
    _put(values, top, i, -2 - i, held)


@part
def _leave_heap(values, heap, numbers, i):
    values[heap[i].code, 0].place = BELOW
    numbers[HEAP] -= 1
    if i < numbers[HEAP]:
        _sift(values, heap, numbers[HEAP], i, heap[numbers[HEAP]])


@part
def _enter(values, top, heap, numbers, k, held, spare):
    """Add a candidate. The object that it pushes out of the top goes to the heap. `spare` is scratch space."""
    if numbers[TOP] < k:
        numbers[TOP] += 1
        numbers[NEW] = numbers[STALE] = 1
        _settle_in_top(values, top, numbers[TOP], numbers[TOP] - 1, held)
        return
    numbers[HEAP] += 1
    if ranks_before(held, top[k - 1]):
        numbers[NEW] = numbers[STALE] = 1
        _put(values, spare, 0, BELOW, top[k - 1])
        _settle_in_top(values, top, k, k - 1, held)
        _sift(values, heap, numbers[HEAP], numbers[HEAP] - 1, spare[0])
    else:
        _sift(values, heap, numbers[HEAP], numbers[HEAP] - 1, held)


@inlined
def score_of(values, code, scoring):
    """Whether the object has a live row, and its score."""
    alive, total = False, 0.0
    for s in range(values.shape[1]):
        given = scoring.table[LOW, s]
        if values[code, s].rows:
            alive = True
            given = values[code, s].value
        scoring.table[GIVEN, s] = given
        total += scoring.table[WEIGHT, s] * given
    return alive, total / scoring.divisor if scoring.kind == ADD else score(scoring)


@inlined
def _describe(entry, values, code, points):
    """Write the object's score and its most recent row."""
    time, position = np.int64(-(2**63)), np.int64(-(2**63))
    for s in range(values.shape[1]):
        value = values[code, s]
        if value.rows and (value.time > time or (value.time == time and value.position > position)):
            time, position = value.time, value.position
    entry.score, entry.time, entry.position, entry.code = points, time, position, code


@part
def _refresh_root(state, scoring):
    """The heap may overrate objects, because it leaves falling scores. Correct its first entry."""
    values, heap, numbers, true = state.values, state.heap, state.numbers, state.bar[4]
    while numbers[HEAP]:
        code = heap[0].code
        _, points = score_of(values, code, scoring)
        _describe(true, values, code, points)
        if ranks_before(state.bar[0], true):
            _leave_heap(values, heap, numbers, 0)
        elif ranks_before(heap[0], true):
            _sift(values, heap, numbers[HEAP], 0, true)
        else:
            break


@part
def _refill(state, k, scoring):
    """Move the best object of the heap to the top, if it belongs there now."""
    values, top, heap, numbers, spare = state.values, state.top, state.heap, state.numbers, state.bar[1:]
    if numbers[HEAP] == 0 or (numbers[TOP] == k and ranks_before(top[k - 1], heap[0])):
        return
    _refresh_root(state, scoring)
    if numbers[HEAP] == 0:
        return
    if numbers[TOP] < k:
        _put(values, spare, 0, BELOW, heap[0])
        _leave_heap(values, heap, numbers, 0)
        numbers[TOP] += 1
        numbers[NEW] = numbers[STALE] = 1
        _settle_in_top(values, top, numbers[TOP], numbers[TOP] - 1, spare[0])
    elif ranks_before(heap[0], top[k - 1]):
        _put(values, spare, 0, BELOW, top[k - 1])
        numbers[NEW] = numbers[STALE] = 1
        _settle_in_top(values, top, k, k - 1, heap[0])
        _sift(values, heap, numbers[HEAP], 0, spare[0])


@part
def _leave_top(state, i, k, scoring):
    values, top, numbers = state.values, state.top, state.numbers
    values[top[i].code, 0].place = BELOW
    numbers[TOP] -= 1
    numbers[NEW] = numbers[STALE] = 1
    for j in range(i, numbers[TOP]):
        _put(values, top, j, -2 - j, top[j + 1])
    _refill(state, k, scoring)


@kernel
def current(values, code, scoring):
    """The object's score."""
    return score_of(values, code, scoring)[1]


@inlined
def settle(state, code, k, width, scoring):
    """Update the place of an object that has changed. Mostly it is in the right place already."""
    top, heap, numbers = state.top, state.heap, state.numbers
    alive, points = score_of(state.values, code, scoring)
    place = state.values[code, 0].place
    if place == BELOW:
        if not alive or points < state.bar[0].score:
            return
    elif alive and place >= 0:
        if points < heap[place].score:
            return  # the heap may overrate an object, but never underrates one
        if points < top[k - 1].score and (place == 0 or points < heap[(place - 1) >> 1].score):
            _describe(heap[place], state.values, code, points)
            return
    elif alive and points > state.bar[0].score:
        i, n = -2 - place, numbers[TOP]
        below = top[i + 1].score if i + 1 < n else (heap[0].score if numbers[HEAP] else -np.inf)
        if points > below and (i == 0 or points < top[i - 1].score):
            _describe(top[i], state.values, code, points)
            numbers[STALE] = 1
            return
    _settle_candidate(state, code, alive, points, k, width, scoring)


@part
def _settle_candidate(state, code, alive, points, k, width, scoring):
    values, top, heap, numbers = state.values, state.top, state.heap, state.numbers
    place, held = values[code, 0].place, state.bar[3]
    _describe(held, values, code, points)
    counts = alive and not ranks_before(state.bar[0], held)
    if place == BELOW:
        if counts and numbers[HEAP] == len(heap):
            _narrow(state, k, width, scoring)
            counts = not ranks_before(state.bar[0], held)
        if counts:
            _enter(values, top, heap, numbers, k, held, state.bar[1:])
    elif place >= 0:
        if not counts:
            _leave_heap(values, heap, numbers, place)
        else:
            _sift(values, heap, numbers[HEAP], place, held)
            _refill(state, k, scoring)
    elif not counts:
        _leave_top(state, -2 - place, k, scoring)
    else:
        numbers[STALE] = 1
        _settle_in_top(values, top, numbers[TOP], -2 - place, held)
        _refill(state, k, scoring)


@inlined
def note(state, code, n, scoring):
    """Choose a changed object, as entry n, if it has reached the bar. Returns how many are chosen."""
    if state.values[code, 0].place == BELOW:
        _, points = score_of(state.values, code, scoring)
        if points >= state.bar[0].score:
            state.chosen[n].code = code
            state.values[code, 0].place = 0  # not to be chosen again
            n += 1
    return n


@part
def resettle(state, n, k, width, scoring):
    """Update all candidates after they have changed. n objects are chosen: the present candidates, then new ones."""
    values, top, heap, chosen, numbers = state.values, state.top, state.heap, state.chosen, state.numbers
    for i in range(numbers[TOP]):
        chosen[i].code = top[i].code
    for i in range(numbers[HEAP]):
        chosen[numbers[TOP] + i].code = heap[i].code
    reached = 0
    for i in range(n):
        code = chosen[i].code
        values[code, 0].place = BELOW
        alive, points = score_of(values, code, scoring)
        _describe(chosen[reached], values, code, points)
        reached += alive and not ranks_before(state.bar[0], chosen[reached])
    numbers[NEW] = numbers[STALE] = 1
    if reached > len(heap):
        _choose(state, reached, k, width)
        return
    # They are mostly in order, because those of the top come first.
    numbers[TOP] = numbers[HEAP] = 0
    for i in range(reached):
        _enter(values, top, heap, numbers, k, chosen[i], state.bar[1:])


# -- the bar ----------------------------------------------------------------------------------------------------------


@inlined
def lower_bar(bar):
    """Lower the bar so that every object reaches it."""
    bar.score, bar.time, bar.position = -np.inf, np.int64(-(2**63)), np.int64(-(2**63))


@part
def _select(chosen, spare, n, m):
    """Rearrange the n chosen objects so that the m best come first, and the worst of these is the m-th."""
    low, high = 0, n - 1
    while low < high:
        spare[0] = chosen[(low + high) >> 1]
        chosen[(low + high) >> 1] = chosen[high]
        split = low
        for i in range(low, high):
            if ranks_before(chosen[i], spare[0]):
                spare[1] = chosen[i]
                chosen[i] = chosen[split]
                chosen[split] = spare[1]
                split += 1
        chosen[high] = chosen[split]
        chosen[split] = spare[0]
        if split == m - 1:
            break
        if split < m - 1:
            low = split + 1
        else:
            high = split - 1


@part
def _choose(state, n, k, width):
    """Make the best of the n chosen objects, which are all that reach the bar, candidates, and the last one the bar."""
    numbers, chosen, spare = state.numbers, state.chosen, state.bar[1:]
    m = min(n, width)
    if m < n:
        _select(chosen, spare, n, m)
        state.bar[0] = chosen[m - 1]
    for i in range(n):
        state.values[chosen[i].code, 0].place = BELOW
    numbers[TOP] = numbers[HEAP] = 0
    if k < m:
        _select(chosen, spare, m, k)
    for i in range(m):
        _enter(state.values, state.top, state.heap, numbers, k, chosen[i], spare)


@part
def _narrow(state, k, width, scoring):
    """Raise the bar, because there are too many candidates."""
    n = state.numbers[TOP] + state.numbers[HEAP]
    for i in range(n):
        code = state.top[i].code if i < state.numbers[TOP] else state.heap[i - state.numbers[TOP]].code
        _, points = score_of(state.values, code, scoring)
        _describe(state.chosen[i], state.values, code, points)
    _choose(state, n, k, width)


@part
def rebuild(state, k, width, scoring):
    """Visit every object to choose new candidates, because there are too few."""
    n = 0
    for code in range(state.values.shape[0]):
        alive, points = score_of(state.values, code, scoring)
        if alive:
            _describe(state.chosen[n], state.values, code, points)
            n += 1
    lower_bar(state.bar[0])
    _choose(state, n, k, width)
    state.numbers[REBUILDS] += 1
