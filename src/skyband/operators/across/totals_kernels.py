"""The compiled half of `totals`: rows come, and change what their object has; rows end, and take it back."""

from __future__ import annotations

import numpy as np

from skyband.operators.across.candidates import (
    BELOW,
    CLOCK,
    COUNT,
    DELAYED,
    END,
    FIRST,
    FREE,
    LIVE,
    NEW,
    REPEATED,
    STALE,
    TOP,
    rebuild,
    settle,
)
from skyband.operators.across.protocol import MAX, ONCE, SUM
from skyband.operators.across.schedule import ANSWER_DUE
from skyband.operators.across.showing import show
from skyband.structures.compiling import inlined, kernel, part
from skyband.windows import FOREVER


@inlined
def _add(value, amount):  # type: ignore[no-untyped-def]
    """Add to a sum, and what is lost by that to its rest."""
    total = value.value + amount
    back = total - value.value
    lost = (value.value - (total - back)) + (amount - back) + value.rest
    value.value = total + lost
    value.rest = lost - (value.value - total)


# -- the largest of several -------------------------------------------------------------------------------------------


@part
def _remember(nodes, place, numbers, amount, last):  # type: ignore[no-untyped-def]
    """A value that may be the largest: those that it exceeds and outlives are of no use any more."""
    following, i = np.int64(END), place.tail
    while i != END and nodes[i].last > last:
        if nodes[i].value >= amount:
            return
        following, i = i, nodes[i].preceding
    while i != END and nodes[i].value <= amount:
        gone = i
        i = nodes[gone].preceding
        nodes[gone].following = numbers[FREE]
        numbers[FREE] = gone
    if i != END and nodes[i].last == last:
        _link(nodes, place, i, following)  # it is larger, and ends with the new one
        return
    new = numbers[FREE]
    numbers[FREE] = nodes[new].following
    nodes[new].value, nodes[new].last = amount, last
    _link(nodes, place, i, new)
    _link(nodes, place, new, following)


@part
def _link(nodes, place, i, following):  # type: ignore[no-untyped-def]
    if i == END:
        place.head = following
    else:
        nodes[i].following = following
    if following == END:
        place.tail = i
    else:
        nodes[following].preceding = i


@part
def _largest(nodes, place, numbers, clock):  # type: ignore[no-untyped-def]
    """The largest value that lives; 0 if there is none."""
    i = place.head
    while i != END and nodes[i].last < clock:
        gone = i
        i = nodes[gone].following
        nodes[gone].following = numbers[FREE]
        numbers[FREE] = gone
    _link(nodes, place, np.int64(END), i)
    return nodes[i].value if i != END else 0.0


# -- rows -------------------------------------------------------------------------------------------------------------


@inlined
def _drop(state, row, clock, rule, scoring):  # type: ignore[no-untyped-def]
    """A row has ended. The latest row of a stream ends last, so while there are others it is there too."""
    code, stream = np.int64(row.code), np.int64(row.stream)
    value = state.values[code, stream]
    value.rows -= 1
    if value.rows == 0:
        value.value = value.rest = 0.0
        alive = False
        for s in range(state.values.shape[1]):
            alive = alive or state.values[code, s].rows > 0
        state.numbers[LIVE] -= not alive
    elif rule.repeat == SUM:
        _add(value, -row.value)
    if rule.repeat == MAX:
        value.value = _largest(state.nodes, state.lists[code, stream], state.numbers, clock)
    # What falls below the bar stays there, and of the heap's objects more may be said than is true while they live.
    place = state.values[code, 0].place
    if place < BELOW or (place > BELOW and value.rows == 0):
        settle(state, code, rule.k, rule.width, scoring)


@part
def _remove_first_delayed(heap, numbers):  # type: ignore[no-untyped-def]
    numbers[DELAYED] -= 1
    n, i = numbers[DELAYED], 0
    moment = heap[n].last
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and heap[child + 1].last < heap[child].last:
            child += 1
        if heap[child].last >= moment:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = heap[n]


@inlined
def expire(state, clock, rule, scoring):  # type: ignore[no-untyped-def]
    """Time moves on: rows end."""
    ring, delayed, numbers = state.ring, state.delayed, state.numbers
    numbers[CLOCK] = clock
    mask = len(ring) - 1
    while True:
        in_order = numbers[COUNT] > 0 and ring[numbers[FIRST] & mask].last < clock
        if not in_order and (numbers[DELAYED] == 0 or delayed[0].last >= clock):
            break
        row = ring[numbers[FIRST] & mask] if in_order else delayed[0]
        _drop(state, row, clock, rule, scoring)
        if in_order:
            numbers[FIRST] += 1
            numbers[COUNT] -= 1
        else:
            _remove_first_delayed(delayed, numbers)


@part
def _delay(heap, numbers, code, stream, amount, last):  # type: ignore[no-untyped-def]
    i = numbers[DELAYED]
    numbers[DELAYED] += 1
    while i > 0 and heap[(i - 1) >> 1].last > last:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    row = heap[i]
    row.value, row.last, row.code, row.stream = amount, last, code, stream


@inlined
def _keep(state, code, stream, amount, last):  # type: ignore[no-untyped-def]
    """Remember the row until it ends, if it ever does."""
    numbers = state.numbers
    if last == FOREVER:
        return
    mask = len(state.ring) - 1
    if numbers[COUNT] == 0 or state.ring[(numbers[FIRST] + numbers[COUNT] - 1) & mask].last <= last:
        row = state.ring[(numbers[FIRST] + numbers[COUNT]) & mask]
        row.value, row.last, row.code, row.stream = amount, last, code, stream
        numbers[COUNT] += 1
    else:
        _delay(state.delayed, numbers, code, stream, amount, last)


@inlined
def _take(rows, r, state, rule, scoring):  # type: ignore[no-untyped-def]
    numbers = state.numbers
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    amount, time, position = rows.value[r], rows.time[r], rows.position[r]
    value = state.values[code, stream]
    later = value.rows == 0 or time > value.time or (time == value.time and position > value.position)
    if value.rows == 0:
        alive = False
        for s in range(state.values.shape[1]):
            alive = alive or state.values[code, s].rows > 0
        numbers[LIVE] += not alive
    if later:
        value.time, value.position = time, position
    if rule.repeat == SUM:
        _add(value, amount)
    elif rule.repeat == MAX:
        place = state.lists[code, stream]
        _remember(state.nodes, place, numbers, amount, rows.last[r])
        value.value = state.nodes[place.head].value
    else:
        numbers[REPEATED] += rule.repeat == ONCE and value.rows > 0
        if later:
            value.value = amount
    value.rows += 1
    _keep(state, code, stream, amount, rows.last[r])
    settle(state, code, rule.k, rule.width, scoring)


# -- answers ----------------------------------------------------------------------------------------------------------


@kernel
def rank(state, k, width, shown, scoring):  # type: ignore[no-untyped-def]
    """Write the k best objects to the top that is shown; return how many there are."""
    numbers = state.numbers
    if numbers[TOP] < k and numbers[TOP] < numbers[LIVE]:
        rebuild(state, k, width, scoring)
    _write_top(state, shown.top_code, shown.top_score, shown.top_time, shown.top_values)
    numbers[STALE] = numbers[NEW] = 0
    return numbers[TOP]


@part
def _write_top(state, code, score, time, shown):  # type: ignore[no-untyped-def]
    top, values = state.top, state.values
    for i in range(state.numbers[TOP]):
        code[i], score[i], time[i] = top[i].code, top[i].score, top[i].time
        for s in range(values.shape[1]):
            value = values[top[i].code, s]
            shown[i, s] = value.value if value.rows else np.nan


@kernel
def execute(rule, scoring, rows, clocks, steps, step, end, state, shown, out, written):  # type: ignore[no-untyped-def]
    """Execute steps as far as there is room to write; return the first that was not, and how much is written."""
    entries, numbers = len(shown.code), state.numbers
    while step < end:
        if written + 2 * entries > len(out.at):
            break
        expire(state, clocks[step], rule, scoring)
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, state, rule, scoring)
        if r == ANSWER_DUE or (rule.each and numbers[NEW]):
            found = rank(state, rule.k, rule.width, shown, scoring)
            written = show(clocks[step], found, rule.emit, shown, out, written)
        elif rule.each and numbers[STALE]:
            # The same objects as before, perhaps in another order: what is remembered of them is brought up to date.
            _write_top(state, shown.code, shown.score, shown.time, shown.values)
            numbers[STALE] = 0
        step += 1
    return step, written
