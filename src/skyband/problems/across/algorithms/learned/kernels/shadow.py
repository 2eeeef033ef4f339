"""The shadow of what was let go, compiled: enough of every row to see what answers miss, and no more.

A row that is let go leaves a record of 16 bytes in a hash table: a print of its object's id, the stream, the value in
single precision and until when it lives. When the object comes again, or when scores fall, its records tell what it
scores in truth. An object that answers should show and cannot is missed: it is kept, as long as it lives, in a list.
So what answers miss is seen at once, of all objects and not of a sample: so few objects enter an answer that a sample
of them says nothing for several windows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.algorithms.staircase.kernels import AFTER_ALL, CLOCK
from skyband.problems.across.drivers.kernels.slots import NEVER, best_score, current_score, forget

RECORD = np.dtype(
    [
        ("print", np.uint32),
        ("value", np.float32),
        ("last", np.uint32),  # in units of the window, round and round: it lives for half a round at most
        ("stream", np.uint16),
        ("used", np.uint16),
    ],
    align=True,
)

# Numbers that change: RECORDS in the table, objects that are MISSED or were (in `slots`), how many of them the answer
# should have now (MISSING), of how many in all (SHOULD), when one of them ends first, and whether they have to be
# counted anew. SEEN_MISSING and SEEN_SHOULD are summed up over answers.
RECORDS, MISSED, MISSING, SHOULD, NEXT_END, RECOUNT, SEEN_MISSING, SEEN_SHOULD, NUMBERS = range(9)


class Shadow(NamedTuple):
    table: npt.NDArray[Any]  # RECORD; open addressing, its length is a power of two
    spare: npt.NDArray[Any]  # as long: scratch
    prints: npt.NDArray[np.uint32]  # by object that is known: the print of its id
    # Objects that are missed, or were when they were seen; they stay until they end.
    slots: npt.NDArray[Any]
    print: npt.NDArray[np.uint32]
    code: Ints  # their number, if known; else -1
    score: Floats
    order: Ints  # best first
    unit: int  # of a record's `last`
    numbers: Ints


@inlined
def _home(print_, table):
    return np.int64(print_) & (len(table) - 1)


@inlined
def _decoded(last, clock, unit):
    """The moment that a record's `last` stands for; NEVER if it is over."""
    now = np.uint32((clock // unit) & 0xFFFFFFFF)
    ahead = np.int64(np.uint32(last - now))
    return (clock // unit + ahead) * unit + unit - 1 if ahead < 2**31 else NEVER


@part
def _put(table, numbers, print_, stream, value, last):
    """Add a record, or replace the object's record in that stream."""
    i = _home(print_, table)
    while table[i].used and not (table[i].print == print_ and table[i].stream == stream):
        i = (i + 1) & (len(table) - 1)
    record = table[i]
    numbers[RECORDS] += record.used == 0
    record.print, record.stream, record.value, record.last, record.used = print_, stream, value, last, 1


@part
def record_row(shadow, print_, stream, value, last):
    _put(shadow.table, shadow.numbers, print_, stream, value, np.uint32((last // shadow.unit) & 0xFFFFFFFF))


@part
def record_object(shadow, slots, code, clock):
    """The object is let go."""
    for s in range(slots.shape[1]):
        if slots[code, s].last >= clock:
            record_row(shadow, shadow.prints[code], s, slots[code, s].value, slots[code, s].last)


@part
def _gather(table, print_, clock, unit, door):
    """Write what the records say of an object into `door`, a row of slots; returns how many live."""
    found = 0
    i = _home(print_, table)
    while table[i].used:
        if table[i].print == print_:
            last = _decoded(table[i].last, clock, unit)
            if last >= clock:
                slot = door[0, table[i].stream]
                slot.value, slot.last, slot.held = table[i].value, last, 1
                found += 1
        i = (i + 1) & (len(table) - 1)
    return found


# -- what is missed ---------------------------------------------------------------------------------------------------


@part
def _place(shadow, print_):
    """Where an object is among those that are missed; -1: nowhere."""
    for i in range(shadow.numbers[MISSED]):
        if shadow.print[i] == print_:
            return i
    return -1


@part
def _miss(shadow, print_, code, door, clock, scoring):
    """Put the object whose values are in `door` among those that are missed. If there is no room, the worst leaves."""
    numbers = shadow.numbers
    place = _place(shadow, print_)
    points = current_score(door, 0, clock, scoring)
    if place >= 0:
        shadow.code[place] = code if code >= 0 else shadow.code[place]
    else:
        place = numbers[MISSED]
        if place == len(shadow.score):
            place = 0
            for i in range(1, numbers[MISSED]):
                if shadow.score[i] < shadow.score[place]:
                    place = i
            if shadow.score[place] >= points:
                return
        else:
            shadow.order[place] = place
            numbers[MISSED] += 1
        shadow.code[place] = code
    for s in range(door.shape[1]):
        shadow.slots[place, s] = door[0, s]
        if door[0, s].last >= clock:
            numbers[NEXT_END] = min(numbers[NEXT_END], door[0, s].last)
    shadow.print[place], shadow.score[place] = print_, points
    numbers[RECOUNT] = 1


@part
def notice(shadow, state, rows, r, clock, needed, door, scoring):
    """A row has come: was some of its object let go, and does it score more than `needed` with that?

    Returns whether some was: then the row goes on record too.
    """
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    print_ = shadow.prints[code]
    if _gather(shadow.table, print_, clock, shadow.unit, door) == 0:
        return False
    for s in range(door.shape[1]):
        if state.slots[code, s].last >= clock:
            door[0, s] = state.slots[code, s]
    door[0, stream].value, door[0, stream].last = rows.value[r], rows.last[r]
    if current_score(door, 0, clock, scoring) > needed or _place(shadow, print_) >= 0:
        _miss(shadow, print_, code, door, clock, scoring)
    forget(door, 0)
    return True


@part
def _end(shadow, clock, scoring):
    """Values of what is missed have ended: score anew, and forget what has no other."""
    numbers, n, following = shadow.numbers, 0, AFTER_ALL
    for i in range(numbers[MISSED]):
        alive = False
        for s in range(shadow.slots.shape[1]):
            if shadow.slots[i, s].last >= clock:
                alive = True
                following = min(following, shadow.slots[i, s].last)
        if alive:
            for s in range(shadow.slots.shape[1]):
                shadow.slots[n, s] = shadow.slots[i, s]
            shadow.print[n], shadow.code[n] = shadow.print[i], shadow.code[i]
            shadow.score[n] = current_score(shadow.slots, n, clock, scoring)
            shadow.order[n] = n
            n += 1
    numbers[MISSED], numbers[NEXT_END], numbers[RECOUNT] = n, following, 1


@part
def count_missing(shadow, shown, found, k, clock, scoring):
    """How many objects the answer, the first `found` of the top, should have and has not."""
    numbers = shadow.numbers
    if clock > numbers[NEXT_END]:
        _end(shadow, clock, scoring)
    missed, order, score = numbers[MISSED], shadow.order, shadow.score
    for n in range(1, missed):  # mostly in order
        i, m = order[n], n
        while m > 0 and score[order[m - 1]] < score[i]:
            order[m] = order[m - 1]
            m -= 1
        order[m] = i
    for i in range(found):
        shown.mark[shown.top_code[i]] |= 4
    better, missing = 0, 0  # of the answer, and of what is missed
    for n in range(missed):
        i = order[n]
        while better < found and shown.top_score[better] >= score[i]:
            better += 1
        if better + missing >= k:
            break
        missing += shadow.code[i] < 0 or not shown.mark[shadow.code[i]] & 4
    for i in range(found):
        shown.mark[shown.top_code[i]] &= 3
    numbers[MISSING], numbers[SHOULD], numbers[RECOUNT] = missing, min(found + missing, k), 0


@inlined
def recall_of(numbers):
    return 1.0 - numbers[MISSING] / numbers[SHOULD] if numbers[SHOULD] else 1.0


# -- all records ------------------------------------------------------------------------------------------------------


@part
def _is_dominated(door, moment, stair_last, stair_score, stairs, scoring):
    low, high = 0, stairs
    while low < high:
        middle = (low + high) >> 1
        if stair_last[middle] >= moment:
            low = middle + 1
        else:
            high = middle
    return low > 0 and stair_score[low - 1] > best_score(door, 0, moment, scoring)


@kernel
def scan(shadow, state, needed, stair_last, stair_score, stairs, door, scoring):
    """Look at all records: keep those of objects that may still be in an answer, and notice those that should be."""
    table, spare, numbers, clock = shadow.table, shadow.spare, shadow.numbers, state.numbers[CLOCK]
    for i in range(len(spare)):
        spare[i].used = 0
    numbers[RECORDS] = 0
    for i in range(len(table)):
        if not table[i].used:
            continue
        first = _home(table[i].print, table)
        while table[first].print != table[i].print or not table[first].used:
            first = (first + 1) & (len(table) - 1)
        if first != i:
            continue
        if _gather(table, table[i].print, clock, shadow.unit, door) == 0:
            continue
        matters = False
        for s in range(door.shape[1]):
            last = door[0, s].last
            matters = matters or (
                last >= clock and not _is_dominated(door, last, stair_last, stair_score, stairs, scoring)
            )
        if matters:
            for s in range(door.shape[1]):
                if door[0, s].last >= clock:
                    last = np.uint32((door[0, s].last // shadow.unit) & 0xFFFFFFFF)
                    _put(spare, numbers, table[i].print, s, door[0, s].value, last)
            if current_score(door, 0, clock, scoring) > needed:
                _miss(shadow, table[i].print, np.int64(-1), door, clock, scoring)
        forget(door, 0)
    for i in range(len(table)):
        table[i] = spare[i]


@kernel
def rehash(source, target, numbers):
    """Put all records into an empty table of another length."""
    numbers[RECORDS] = 0
    for i in range(len(source)):
        if source[i].used:
            _put(target, numbers, source[i].print, source[i].stream, source[i].value, source[i].last)
