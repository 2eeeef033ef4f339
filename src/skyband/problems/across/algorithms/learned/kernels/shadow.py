"""The shadow of what was let go, compiled: enough of every row to see what answers miss, and no more.

A row that is let go leaves a record of 16 bytes in a hash table: a print of its object's id, the stream, the value in
single precision and until when it lives. When the object comes again, its records tell what it scores in truth.

The best objects on record are watched: kept in a list with their values, so that their scores are known at every
answer. No object that is on record and not watched scores more than a bound. An answer is compared with the watched
objects before it is shown. If an object below the bound could belong in it, all records are scanned first and the best
of them are watched. So every answer is compared with all that was let go, at the moment at which it is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.algorithms.staircase.kernels import AFTER_ALL, LAST
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

# Numbers that change: RECORDS in the table, objects that are WATCHED, how many of them the answer should have now
# (MISSING), of how many in all (SHOULD), when a value of one of them ends first, and whether they have to be counted
# anew. SEEN_MISSING and SEEN_SHOULD are summed up over answers.
RECORDS, WATCHED, MISSING, SHOULD, NEXT_END, RECOUNT, SEEN_MISSING, SEEN_SHOULD, NUMBERS = range(9)

SINGLE = 1e-6  # scores of values in single precision are equal if they differ by no more, relatively


class Shadow(NamedTuple):
    table: npt.NDArray[Any]  # RECORD; open addressing, its length is a power of two
    spare: npt.NDArray[Any]  # as long: scratch
    prints: npt.NDArray[np.uint32]  # by object that is known: the print of its id
    slots: npt.NDArray[Any]  # SLOT, by place and stream
    print: npt.NDArray[np.uint32]  # by place: of the object that is watched there
    score: Floats  # by place: its score now
    order: Ints  # the places of the watched objects, ranks [0, WATCHED), best first; then those that are free
    bound: Floats  # of one: no object on record that is not watched scores more
    unit: int  # of a record's `last`
    numbers: Ints  # single numbers, by the names above


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


# -- what is watched --------------------------------------------------------------------------------------------------


@part
def _rank_of(shadow, print_):
    """Where an object is among the watched, by rank; -1: nowhere."""
    for n in range(shadow.numbers[WATCHED]):
        if shadow.print[shadow.order[n]] == print_:
            return n
    return -1


@part
def _settle(shadow, n):
    """The n-th best of the watched has another score: put it where it belongs among the others."""
    order, score, count = shadow.order, shadow.score, shadow.numbers[WATCHED]
    place = order[n]
    while n > 0 and score[order[n - 1]] < score[place]:
        order[n] = order[n - 1]
        n -= 1
    while n + 1 < count and score[order[n + 1]] > score[place]:
        order[n] = order[n + 1]
        n += 1
    order[n] = place


@part
def _make_room(shadow, points):
    """Returns the rank of a place for an object that scores so much; -1: all that are watched score more.

    If no place is free, the worst leaves. The bound rises to whoever is not watched, or no more.
    """
    numbers, bound, count = shadow.numbers, shadow.bound, shadow.numbers[WATCHED]
    if count < len(shadow.order):
        numbers[WATCHED] += 1
        return count
    worst = shadow.score[shadow.order[count - 1]]
    bound[0], numbers[RECOUNT] = max(bound[0], min(worst, points)), 1
    return count - 1 if worst < points else -1


@part
def _watch(shadow, print_, door, clock, scoring):
    """Watch the object whose values are in `door`, unless it scores no more than the bound and is not watched yet."""
    numbers = shadow.numbers
    points = current_score(door, 0, clock, scoring)
    n = _rank_of(shadow, print_)
    if n < 0:
        n = _make_room(shadow, points) if points > shadow.bound[0] else -1
        if n < 0:
            return
    place = shadow.order[n]
    for s in range(door.shape[1]):
        shadow.slots[place, s] = door[0, s]
        if door[0, s].last >= clock:
            numbers[NEXT_END] = min(numbers[NEXT_END], door[0, s].last)
    shadow.print[place], shadow.score[place] = print_, points
    numbers[RECOUNT] = 1
    _settle(shadow, n)


@part
def record_object(shadow, slots, code, clock, door, scoring):
    """The object is let go."""
    for s in range(slots.shape[1]):
        if slots[code, s].last >= clock:
            record_row(shadow, shadow.prints[code], s, slots[code, s].value, slots[code, s].last)
    _gather(shadow.table, shadow.prints[code], clock, shadow.unit, door)
    _watch(shadow, shadow.prints[code], door, clock, scoring)
    forget(door, 0)


@part
def record_new(shadow, rows, r, clock, door, scoring):
    """An object that is new is let go with its first row."""
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    record_row(shadow, shadow.prints[code], stream, rows.value[r], rows.last[r])
    slot = door[0, stream]
    slot.value, slot.last, slot.held = rows.value[r], rows.last[r], 1
    _watch(shadow, shadow.prints[code], door, clock, scoring)
    forget(door, 0)


@part
def record_more(shadow, state, rows, r, clock, door, scoring):
    """A row has come: if some of its object was let go, the row goes on record too. Returns whether it does."""
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    print_ = shadow.prints[code]
    if _gather(shadow.table, print_, clock, shadow.unit, door) == 0:
        return False
    for s in range(door.shape[1]):
        if state.slots[code, s].last >= clock:
            door[0, s] = state.slots[code, s]
    door[0, stream].value, door[0, stream].last = rows.value[r], rows.last[r]
    record_row(shadow, print_, stream, rows.value[r], rows.last[r])
    _watch(shadow, print_, door, clock, scoring)
    forget(door, 0)
    return True


@part
def _end(shadow, clock, scoring):
    """Values of watched objects have ended: score these anew, and forget those that have no other."""
    numbers, order, score, following = shadow.numbers, shadow.order, shadow.score, AFTER_ALL
    for n in range(numbers[WATCHED]):
        i, alive, ended = order[n], False, False
        for s in range(shadow.slots.shape[1]):
            last = shadow.slots[i, s].last
            if last >= clock:
                alive = True
                following = min(following, last)
            else:
                ended = ended or last != NEVER
        if ended:
            score[i] = current_score(shadow.slots, i, clock, scoring) if alive else -np.inf
    for n in range(1, numbers[WATCHED]):  # mostly in order
        _settle_up(order, score, n)
    while numbers[WATCHED] and score[order[numbers[WATCHED] - 1]] == -np.inf:
        numbers[WATCHED] -= 1
    numbers[NEXT_END], numbers[RECOUNT] = following, 1


@inlined
def _settle_up(order, score, n):
    place = order[n]
    while n > 0 and score[order[n - 1]] < score[place]:
        order[n] = order[n - 1]
        n -= 1
    order[n] = place


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
def scan(shadow, clock, stair_last, stair_score, stairs, door, scoring):
    """Look at all records: keep those of objects that may still be in an answer, and watch the best of them."""
    table, spare, numbers = shadow.table, shadow.spare, shadow.numbers
    for i in range(len(spare)):
        spare[i].used = 0
    numbers[RECORDS], numbers[WATCHED], numbers[NEXT_END], numbers[RECOUNT] = 0, 0, AFTER_ALL, 1
    shadow.bound[0] = -np.inf
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
            _watch(shadow, table[i].print, door, clock, scoring)
        forget(door, 0)
    for i in range(len(table)):
        table[i] = spare[i]


# -- what is missed ---------------------------------------------------------------------------------------------------


@part
def _lives_until(slots, i, clock):
    """The last moment of the object's most recent row: of equal scores, the later one comes first."""
    last = NEVER
    for s in range(slots.shape[1]):
        last = max(last, slots[i, s].last) if slots[i, s].last >= clock else last
    return last


@part
def _place_in_answer(shadow, print_, shown, found):
    """Where the answer shows the object; `found`: nowhere."""
    i = 0
    while i < found and shadow.prints[shown.top_code[i]] != print_:
        i += 1
    return i


@inlined
def _is_before(state, shown, i, points, ends, clock):
    """Does the i-th of the answer come before an object on record? At most SINGLE apart, the more recent one does."""
    equal = SINGLE * max(abs(points), 1.0)
    return shown.top_score[i] > points + equal or (
        shown.top_score[i] >= points - equal and _lives_until(state.slots, np.int64(shown.top_code[i]), clock) >= ends
    )


@part
def _compare(shadow, state, shown, found, k, clock):
    """Count what the answer, the first `found` of the top, misses of what is watched.

    Some objects of the answer are watched, too: those of whose rows only the later ones are held. They count where they
    belong, not where they are shown. Returns a score that k objects reach; -inf if there are fewer than k.
    """
    numbers, mark, top_code = shadow.numbers, shown.mark, shown.top_code
    before, early, missing, least = 0, 0, 0, np.inf  # of the answer, of these shown too late, and of what is missed
    for n in range(numbers[WATCHED]):
        i = shadow.order[n]
        points = shadow.score[i]
        ends = _lives_until(shadow.slots, i, clock)
        while before < found and _is_before(state, shown, before, points, ends, clock):
            early -= (mark[top_code[before]] & 4) != 0
            before += 1
        if before + early + missing >= k:
            break
        place = _place_in_answer(shadow, shadow.print[i], shown, found)
        if place == found:
            missing += 1
            least = points
        elif place >= before:
            mark[top_code[place]] |= 4
            early += 1
    for i in range(found):
        mark[top_code[i]] &= 3
    numbers[MISSING], numbers[SHOULD], numbers[RECOUNT] = missing, min(found + missing, k), 0
    if found + missing < k:
        return -np.inf
    return min(least, shown.top_score[k - missing - 1]) if missing < k else least


@inlined
def _may_overlook(shadow, needed, k):
    """May an object that is on record and not watched be among the k best, the least of which scores `needed`?"""
    bound = shadow.bound[0]
    known = shadow.numbers[WATCHED] >= k and shadow.score[shadow.order[k - 1]] >= bound
    return bound > -np.inf and bound >= needed - SINGLE * max(abs(bound), 1.0) and not known


@part
def count_missing(shadow, state, shown, found, k, clock, door, scoring):
    """How many objects the answer, the first `found` of the top, should have and has not."""
    if clock > shadow.numbers[NEXT_END]:
        _end(shadow, clock, scoring)
    needed = _compare(shadow, state, shown, found, k, clock)
    if _may_overlook(shadow, needed, k):
        scan(shadow, clock, state.front[LAST, :0], state.score[:0], 0, door, scoring)
        _compare(shadow, state, shown, found, k, clock)


@inlined
def recall_of(numbers):
    return 1.0 - numbers[MISSING] / numbers[SHOULD] if numbers[SHOULD] else 1.0


@kernel
def rehash(source, target, numbers):
    """Put all records into an empty table of another length."""
    numbers[RECORDS] = 0
    for i in range(len(source)):
        if source[i].used:
            _put(target, numbers, source[i].print, source[i].stream, source[i].value, source[i].last)
