"""The compiled loops of `totals`: a row changes its object's value in a stream when it comes and when it ends."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.intrinsics import prefetch
from skyband.problems.across.drivers.kernels.candidates import (
    BELOW,
    CLOCK,
    COUNT,
    DELAYED,
    END,
    FIRST,
    FREE,
    HEAP,
    LIVE,
    NEW,
    REPEATED,
    STALE,
    TOP,
    lower_bar,
    note,
    rebuild,
    resettle,
    settle,
)
from skyband.problems.across.drivers.kernels.emit import show
from skyband.problems.across.drivers.kernels.slots import ANSWER_DUE, START
from skyband.problems.across.operator import MAX, SUM

AHEAD = 16  # how many rows ahead values are prefetched: a table of many objects is not in the cache


@inlined
def _add(value, amount):
    """Add to a sum, and add the rounding error to its rest."""
    total = value.value + amount
    back = total - value.value
    lost = (value.value - (total - back)) + (amount - back) + value.rest
    value.value = total + lost
    value.rest = lost - (value.value - total)


# -- the largest of several -------------------------------------------------------------------------------------------


@part
def _remember(nodes, place, numbers, amount, last):
    """Add a value that may become the largest, and drop those that it exceeds and outlives."""
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
        _link(nodes, place, i, following)  # a larger value ends with the new one
        return
    new = numbers[FREE]
    numbers[FREE] = nodes[new].following
    nodes[new].value, nodes[new].last = amount, last
    _link(nodes, place, i, new)
    _link(nodes, place, new, following)


@part
def _link(nodes, place, i, following):
    if i == END:
        place.head = following
    else:
        nodes[i].following = following
    if following == END:
        place.tail = i
    else:
        nodes[following].preceding = i


@kernel
def remember_all(rows, nodes, lists, numbers):
    """Rebuild the lists of values from live rows in any order, after a restart."""
    for i in range(len(rows)):
        row = rows[i]
        _remember(nodes, lists[np.int64(row.code), np.int64(row.stream)], numbers, row.value, row.last)


@part
def _largest(nodes, place, numbers, clock):
    """The largest live value; 0 if there is none."""
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
def _lives(values, code):
    """Has the object a row in any stream?"""
    alive = False
    for s in range(values.shape[1]):
        alive = alive or values[code, s].rows > 0
    return alive


@inlined
def _drop(values, nodes, lists, numbers, row, clock, repeat):
    """Take back a row that has ended. The latest row of a stream ends last, so it is still there if any other is.

    Returns the row's object, and whether the object has no other row in the stream.
    """
    code, stream = np.int64(row.code), np.int64(row.stream)
    value = values[code, stream]
    value.rows -= 1
    if value.rows == 0:
        value.value = value.rest = 0.0
    elif repeat == SUM:
        _add(value, -row.value)
    if repeat == MAX:
        value.value = _largest(nodes, lists[code, stream], numbers, clock)
    return code, value.rows == 0


@part
def _remove_first_delayed(heap, numbers):
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


@part
def _expire_all(values, ring, nodes, lists, numbers, clock, repeat):
    """End all due rows of the ring without updating candidates. Local variables keep the counts in registers."""
    first, count, live, mask = numbers[FIRST], numbers[COUNT], numbers[LIVE], len(ring) - 1
    while count > 0 and ring[first & mask].last < clock:
        prefetch(values, ring[(first + AHEAD) & mask].code)
        code, gone = _drop(values, nodes, lists, numbers, ring[first & mask], clock, repeat)
        if gone:
            live -= not _lives(values, code)
        first += 1
        count -= 1
    numbers[FIRST], numbers[COUNT], numbers[LIVE] = first, count, live


@inlined
def expire(state, clock, config, scoring, later):
    """Move the clock, and end rows. `later`: the caller updates the candidates afterwards."""
    values, ring, delayed, numbers = state.values, state.ring, state.delayed, state.numbers
    numbers[CLOCK] = clock
    mask = len(ring) - 1
    if later:
        _expire_all(values, ring, state.nodes, state.lists, numbers, clock, config.repeat)
    while True:
        in_order = numbers[COUNT] > 0 and ring[numbers[FIRST] & mask].last < clock
        if not in_order and (numbers[DELAYED] == 0 or delayed[0].last >= clock):
            break
        row = ring[numbers[FIRST] & mask] if in_order else delayed[0]
        code, gone = _drop(values, state.nodes, state.lists, numbers, row, clock, config.repeat)
        if gone:
            numbers[LIVE] -= not _lives(values, code)
        # An object below the bar stays there when it falls. The heap may overrate a live object, so that can wait.
        place = values[code, 0].place
        if not later and (place < BELOW or (place > BELOW and gone)):
            settle(state, code, config.k, config.width, scoring)
        if in_order:
            numbers[FIRST] += 1
            numbers[COUNT] -= 1
        else:
            _remove_first_delayed(delayed, numbers)


@part
def _delay(heap, numbers, code, stream, amount, last):
    i = numbers[DELAYED]
    numbers[DELAYED] += 1
    while i > 0 and heap[(i - 1) >> 1].last > last:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    row = heap[i]
    row.value, row.last, row.code, row.stream = amount, last, code, stream


@inlined
def _keep(state, code, stream, amount, last):
    """Keep the row until it ends."""
    numbers = state.numbers
    mask = len(state.ring) - 1
    if numbers[COUNT] == 0 or state.ring[(numbers[FIRST] + numbers[COUNT] - 1) & mask].last <= last:
        row = state.ring[(numbers[FIRST] + numbers[COUNT]) & mask]
        row.value, row.last, row.code, row.stream = amount, last, code, stream
        numbers[COUNT] += 1
    else:
        _delay(state.delayed, numbers, code, stream, amount, last)


@inlined
def _count_in(rows, r, state, code, repeat):
    """Add a row to its object's value. Returns how many rows the object had in the stream before."""
    stream, amount, time, position = np.int64(rows.stream[r]), rows.value[r], rows.time[r], rows.position[r]
    value = state.values[code, stream]
    before = value.rows
    later = before == 0 or time > value.time or (time == value.time and position > value.position)
    if later:
        value.time, value.position = time, position
    if repeat == SUM:
        _add(value, amount)
    elif repeat == MAX:
        place = state.lists[code, stream]
        _remember(state.nodes, place, state.numbers, amount, rows.last[r])
        value.value = state.nodes[place.head].value
    elif later:
        value.value = amount
    value.rows = before + 1
    return before


@inlined
def _take(rows, r, state, config, scoring):
    """Take a row, and update its object among the candidates."""
    if rows.value[r] != rows.value[r]:
        return
    code, numbers = np.int64(rows.code[r]), state.numbers
    numbers[LIVE] += not _lives(state.values, code)
    before = _count_in(rows, r, state, code, config.repeat)
    numbers[REPEATED] += before >= config.most
    if config.ends:
        _keep(state, code, rows.stream[r], rows.value[r], rows.last[r])
    settle(state, code, config.k, config.width, scoring)


@part
def _take_all(rows, begin, end, state, config, scoring):
    """Take rows [begin, end) without updating candidates, and choose the objects that reach the bar.

    Returns how many are chosen, including the room for the present candidates before them. Local variables keep the
    counts in registers.
    """
    values, ring, numbers = state.values, state.ring, state.numbers
    chosen, live, repeated = numbers[TOP] + numbers[HEAP], numbers[LIVE], numbers[REPEATED]
    mask, behind = len(ring) - 1, numbers[FIRST] + numbers[COUNT]
    latest = ring[(behind - 1) & mask].last if numbers[COUNT] > 0 else START
    for r in range(begin, end):
        if r + AHEAD < end:
            prefetch(values, rows.code[r + AHEAD])
        if rows.value[r] != rows.value[r]:
            continue
        code, last = np.int64(rows.code[r]), rows.last[r]
        if values[code, rows.stream[r]].rows == 0:
            live += not _lives(values, code)
        repeated += _count_in(rows, r, state, code, config.repeat) >= config.most
        if config.ends and latest <= last:
            row = ring[behind & mask]
            row.value, row.last, row.code, row.stream = rows.value[r], last, code, rows.stream[r]
            latest = last
            behind += 1
        elif config.ends:
            _delay(state.delayed, numbers, code, rows.stream[r], rows.value[r], last)
        chosen = note(state, code, chosen, scoring)
    numbers[COUNT], numbers[LIVE], numbers[REPEATED] = behind - numbers[FIRST], live, repeated
    return chosen


# -- answers ----------------------------------------------------------------------------------------------------------


@kernel
def rank(state, k, width, shown, scoring):
    """Write the k best objects to the top that is shown. Returns their number."""
    numbers = state.numbers
    if numbers[TOP] < k:
        if numbers[TOP] < numbers[LIVE]:
            rebuild(state, k, width, scoring)
        else:
            # All objects are in the top, so the next one must enter, whatever the bar was.
            lower_bar(state.bar[0])
    _write_top(state, shown.top_code, shown.top_score, shown.top_time, shown.top_values)
    numbers[STALE] = numbers[NEW] = 0
    return numbers[TOP]


@part
def _write_top(state, code, score, time, shown):
    top, values = state.top, state.values
    for i in range(state.numbers[TOP]):
        code[i], score[i], time[i] = top[i].code, top[i].score, top[i].time
        for s in range(values.shape[1]):
            value = values[top[i].code, s]
            shown[i, s] = value.value if value.rows else np.nan


@inlined
def _next_answer(steps, step, end):
    while step < end and steps[step] != ANSWER_DUE:
        step += 1
    return step


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, shown, out, written):
    """Execute steps while there is room. Returns the first step not executed, and the number of entries written.

    Rows between two answers have the same clock. If there are more of them than candidates, the candidates are updated
    once, afterwards, and not with each row.
    """
    entries, numbers = len(shown.code), state.numbers
    while step < end:
        if written + 2 * entries > len(out.at):
            break
        stop = step + 1 if config.each else _next_answer(steps, step, end)
        later = not config.each and stop - step > numbers[TOP] + numbers[HEAP]
        expire(state, clocks[step], config, scoring, later)
        if later:
            begin = steps[step]  # the rows of these steps follow one another
            chosen = _take_all(rows, begin, begin + stop - step, state, config, scoring)
            resettle(state, chosen, config.k, config.width, scoring)
        else:
            for i in range(step, stop):
                _take(rows, steps[i], state, config, scoring)
        if stop == step or (config.each and numbers[NEW]):
            found = rank(state, config.k, config.width, shown, scoring)
            written = show(clocks[step], found, config.emit, shown, out, written)
        elif config.each and numbers[STALE]:
            # The same objects as before, perhaps in another order: only the last answer must be updated.
            _write_top(state, shown.code, shown.score, shown.time, shown.values)
            numbers[STALE] = 0
        step = max(stop, step + 1)
    return step, written
