"""The compiled half of `recorded`.

An object is in slots while it has a point in the front: only such objects can enter an answer without another row. All
others are on record: a hash table has their rows, under a print of the object's id. When a row comes, its object is
brought back from there first. So nothing is missed, and of most objects the id, and slots for every stream, need not be
kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import LATEST as NO_END
from skyband.core.operator import Ints
from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.algorithms.staircase.kernels import (
    CLOCK,
    CODE,
    FOUND,
    LATEST,
    SIZE,
    STALE,
    expire,
    is_below_stairs,
    prune_object,
    rank,
    take_row,
)
from skyband.problems.across.drivers.kernels.emit import show
from skyband.problems.across.drivers.kernels.slots import EARLIEST, forget
from skyband.problems.across.drivers.kernels.steps import ANSWER_DUE

RECORD = np.dtype(
    [
        ("print", np.uint64),  # of the object's id
        ("value", np.float64),
        ("time", np.int64),  # which says how long the row lives, too
        ("position", np.uint32),  # its last 32 bits
        ("stream", np.int32),  # or FREE, or GONE
    ],
    align=True,
)
FREE, GONE = -1, -2  # a place of the table that never had a row, or has none any more

# Numbers that change: places of the table that are not free; objects in slots; the largest position of a row so far;
# and until when objects may be missing, because an object came again in a stream and scores less now.
TAKEN, IN_SLOTS, NEWEST, UNSURE, NUMBERS = range(5)

MOST_TAKEN = 0.8  # of the table's places: with more of them, looking for a row takes long

IN_FRONT, KEPT = 4, 8  # marks of objects, beside those of `show`
MARKS_OF_SHOW = 3


class Records(NamedTuple):
    table: npt.NDArray[Any]  # RECORD; open addressing
    prints: npt.NDArray[np.uint64]  # by object that has a number: of its id
    in_slots: Ints  # the objects in slots, [0, IN_SLOTS), in no order; some more than once, some no longer
    numbers: Ints  # single numbers, by the names above


class Lifetime(NamedTuple):
    """How long rows live: until time + span, or the last slide before."""

    span: int
    every: int
    endless: bool


def new_table(places: int) -> npt.NDArray[Any]:
    table = np.zeros(places, RECORD)
    table["stream"] = FREE
    return table


@inlined
def _last_moment(time, lifetime):
    return NO_END if lifetime.endless else (time + lifetime.span) // lifetime.every * lifetime.every


# -- the table --------------------------------------------------------------------------------------------------------


@inlined
def _home(print_, table):
    return np.int64(((print_ >> np.uint64(32)) * np.uint64(len(table))) >> np.uint64(32))


@inlined
def _following(i, table):
    return i + 1 if i + 1 < len(table) else 0


@part
def _place_for(table, print_):
    """The first place that a row of this print can have."""
    i = _home(print_, table)
    while table[i].stream >= 0:
        i = _following(i, table)
    return i


@part
def _record(records, slots, code, clock):
    """Put the rows of an object on record. It has none there: all of them were in slots."""
    table, print_ = records.table, records.prints[code]
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.last >= clock:
            record = table[_place_for(table, print_)]
            records.numbers[TAKEN] += record.stream == FREE
            record.print, record.value, record.time, record.stream = print_, slot.value, slot.time, s
            record.position = np.uint32(slot.position & 0xFFFFFFFF)


@part
def _read(record, slots, code, newest, lifetime):
    """Write a row on record into the slot where it belongs."""
    slot = slots[code, record.stream]
    slot.value, slot.time, slot.held = record.value, record.time, 1
    slot.last = _last_moment(record.time, lifetime)
    slot.position = newest - ((newest - np.int64(record.position)) & 0xFFFFFFFF)


@part
def _bring_back(records, slots, code, clock, lifetime):
    """Write the rows of an object that is on record into its slots, where they live; they are on record no more."""
    table, print_ = records.table, records.prints[code]
    i = _home(print_, table)
    while table[i].stream != FREE:
        record = table[i]
        if record.stream >= 0 and record.print == print_:
            if _last_moment(record.time, lifetime) >= clock:
                _read(record, slots, code, records.numbers[NEWEST], lifetime)
            record.stream = GONE
        i = _following(i, table)


@kernel
def drop_dominated(records, clock, lifetime, stair_last, stair_score, stairs, door, scoring):
    """Drop the rows of objects that cannot be in an answer any more. `door`: slots of one object, with none in them."""
    table = records.table
    for i in range(len(table)):
        if table[i].stream < 0:
            continue
        print_ = table[i].print
        first = _home(print_, table)
        while table[first].stream < 0 or table[first].print != print_:
            first = _following(first, table)
        if first == i:  # else it was looked at with the first one
            _drop_unless_needed(table, i, print_, clock, lifetime, stair_last, stair_score, stairs, door, scoring)


@part
def _drop_unless_needed(table, first, print_, clock, lifetime, stair_last, stair_score, stairs, door, scoring):
    """Of the object with a row in place `first`, and others behind it."""
    i, is_needed = first, False
    while table[i].stream != FREE:
        record = table[i]
        if record.stream >= 0 and record.print == print_:
            if _last_moment(record.time, lifetime) >= clock:
                _read(record, door, 0, np.int64(0), lifetime)
            else:
                record.stream = GONE
        i = _following(i, table)
    for s in range(door.shape[1]):
        last = door[0, s].last
        is_needed = is_needed or (
            last >= clock and not is_below_stairs(door, 0, last, stair_last, stair_score, stairs, scoring)
        )
    forget(door, 0)
    i = first
    while not is_needed and table[i].stream != FREE:
        if table[i].stream >= 0 and table[i].print == print_:
            table[i].stream = GONE
        i = _following(i, table)


@kernel
def fill(rows, table):
    """Put rows on record in an empty table."""
    for i in range(len(rows)):
        if rows[i].stream >= 0:
            table[_place_for(table, rows[i].print)] = rows[i]


# -- steps ------------------------------------------------------------------------------------------------------------


@inlined
def has_room(records, streams):
    """Is there room for all that is in slots?"""
    return records.numbers[TAKEN] + records.numbers[IN_SLOTS] * streams < MOST_TAKEN * len(records.table)


@kernel
def settle(state, records, k, scoring, mark):
    """Put every object on record that has no point in the front. There is room for it."""
    slots, front, numbers, objects = state.slots, state.front, state.numbers, records.in_slots
    for e in range(numbers[SIZE]):
        mark[front[CODE, e]] |= IN_FRONT
    kept = 0
    for i in range(records.numbers[IN_SLOTS]):
        code = objects[i]
        if mark[code] & KEPT:
            continue
        if mark[code] & IN_FRONT:
            mark[code] |= KEPT
            objects[kept] = code
            kept += 1
        elif prune_object(slots, front, state.score, numbers, code, numbers[CLOCK], k, scoring):
            _record(records, slots, code, numbers[CLOCK])
            forget(slots, code)
    records.numbers[IN_SLOTS] = kept
    for e in range(numbers[SIZE]):
        mark[front[CODE, e]] &= MARKS_OF_SHOW


@part
def _is_in_slots(slots, code):
    found = False
    for s in range(slots.shape[1]):
        found = found or slots[code, s].last != EARLIEST
    return found


@part
def _take(rows, r, clock, k, state, records, lifetime, scoring, top_score):
    slots, code, stream, numbers = state.slots, np.int64(rows.code[r]), np.int64(rows.stream[r]), records.numbers
    numbers[NEWEST] = max(numbers[NEWEST], rows.position[r])
    was_in_slots = _is_in_slots(slots, code)
    if not was_in_slots:
        _bring_back(records, slots, code, clock, lifetime)
    if slots[code, stream].last >= clock and slots[code, stream].value > rows.value[r]:
        # What it outscored may have been forgotten: that lives for a window at most.
        numbers[UNSURE] = max(numbers[UNSURE], rows.last[r], state.numbers[LATEST])
    take_row(rows, r, clock, k, state, scoring, top_score)
    if not was_in_slots and _is_in_slots(slots, code):
        records.in_slots[numbers[IN_SLOTS]] = code
        numbers[IN_SLOTS] += 1


@inlined
def recall_at(clock, records):
    """Answers have all objects; if an object scores less than before, nobody knows."""
    return 1.0 if clock > records.numbers[UNSURE] else np.nan


@kernel
def execute(config, lifetime, scoring, rows, clocks, steps, step, end, state, records, shown, out, written):
    """Execute steps as far as there is room; return the first that was not, and how much is written."""
    k, entries, streams = config.k, len(shown.code), state.slots.shape[1]
    numbers = state.numbers
    while step < end:
        if written + 2 * entries > len(out.at) or numbers[SIZE] + streams > len(state.score):
            break
        if records.numbers[IN_SLOTS] >= 2 * numbers[SIZE] + config.patience:
            if not has_room(records, streams):
                break
            settle(state, records, k, scoring, shown.mark)
        expire(state.front, state.score, numbers, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            _take(rows, r, clocks[step], k, state, records, lifetime, scoring, shown.top_score)
        if r == ANSWER_DUE or (config.each and numbers[STALE]):
            found = rank(state, k, shown) if numbers[STALE] else numbers[FOUND]
            before = written
            written = show(clocks[step], found, config.emit, shown, out, written)
            out.recall[before:written] = recall_at(clocks[step], records)
        step += 1
    return step, written
