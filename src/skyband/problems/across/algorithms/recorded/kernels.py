"""The compiled loops of `recorded`.

An object is in slots while it has a point in the front, because only such objects can enter an answer without another
row. All others are on record: a hash table has their rows, under a hash of the object's id (its print). When a row
comes, its object is first brought back from there. So no object is missed, and for most objects Skyband need keep
neither the id nor slots for every stream.
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
from skyband.problems.across.drivers.kernels.slots import ANSWER_DUE, forget, is_in_slots

RECORD = np.dtype(
    [
        ("print", np.uint64),  # the hash of the object's id
        ("value", np.float64),
        ("time", np.int64),  # it also determines how long the row lives
        ("position", np.uint32),  # the last 32 bits of the position
        ("stream", np.int32),  # or FREE, or GONE
    ],
    align=True,
)
FREE, GONE = -1, -2  # a place of the table that never had a row, or that lost its row

# The entries of `Records.numbers`: places of the table that are not free; objects in slots; the largest position so
# far; and the moment until which answers may miss objects, because an object came again and scores less now.
TAKEN, IN_SLOTS, NEWEST, UNSURE, NUMBERS = range(5)

MOST_TAKEN = 0.8  # the share of places that may be taken; with more, searching takes long

IN_FRONT, KEPT = 4, 8  # marks of objects, besides those of `show`
MARKS_OF_SHOW = 3


class Records(NamedTuple):
    """The rows on record, and which objects are in slots."""

    table: npt.NDArray[Any]  # of RECORD, with open addressing
    prints: npt.NDArray[np.uint64]  # by object code: the hash of its id
    in_slots: Ints  # [0, IN_SLOTS): the objects in slots, in no order; some twice, some no longer there
    numbers: Ints  # see the names above


class Lifetime(NamedTuple):
    """How long rows live: until time + span, rounded down to a slide."""

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
    """The first free place for a row with this print."""
    i = _home(print_, table)
    while table[i].stream >= 0:
        i = _following(i, table)
    return i


@part
def _record(records, slots, code, clock):
    """Put the rows of an object on record. They are all in slots; none is on record yet."""
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
    """Write a row on record into its slot."""
    slot = slots[code, record.stream]
    slot.value, slot.time, slot.held = record.value, record.time, 1
    slot.last = _last_moment(record.time, lifetime)
    slot.position = newest - ((newest - np.int64(record.position)) & 0xFFFFFFFF)


@part
def _bring_back(records, slots, code, clock, lifetime):
    """Move the rows of an object from the record to its slots; expired rows are dropped."""
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
    """Drop the rows of objects that no answer can show any more. `door` is scratch space: empty slots of one object."""
    table = records.table
    for i in range(len(table)):
        if table[i].stream < 0:
            continue
        print_ = table[i].print
        first = _home(print_, table)
        while table[first].stream < 0 or table[first].print != print_:
            first = _following(first, table)
        if first == i:  # otherwise the object was handled at its first row
            _drop_unless_needed(table, i, print_, clock, lifetime, stair_last, stair_score, stairs, door, scoring)


@part
def _drop_unless_needed(table, first, print_, clock, lifetime, stair_last, stair_score, stairs, door, scoring):
    """Do so for the object whose first row is in place `first`."""
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
    """Put rows into an empty table."""
    for i in range(len(rows)):
        if rows[i].stream >= 0:
            table[_place_for(table, rows[i].print)] = rows[i]


# -- steps ------------------------------------------------------------------------------------------------------------


@inlined
def has_room(records, streams):
    """Has the table room for all objects in slots?"""
    return records.numbers[TAKEN] + records.numbers[IN_SLOTS] * streams < MOST_TAKEN * len(records.table)


@kernel
def settle(state, records, k, scoring, mark):
    """Put every object on record that has no point in the front. The table must have room for it."""
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
def _take(rows, r, clock, k, state, records, lifetime, scoring, top_score):
    slots, code, stream, numbers = state.slots, np.int64(rows.code[r]), np.int64(rows.stream[r]), records.numbers
    numbers[NEWEST] = max(numbers[NEWEST], rows.position[r])
    was_in_slots = is_in_slots(slots, code)
    if not was_in_slots:
        _bring_back(records, slots, code, clock, lifetime)
    if slots[code, stream].last >= clock and slots[code, stream].value > rows.value[r]:
        # Objects that it outscored may have been dropped. They live for a window at most.
        numbers[UNSURE] = max(numbers[UNSURE], rows.last[r], state.numbers[LATEST])
    take_row(rows, r, clock, k, state, scoring, top_score)
    if not was_in_slots and is_in_slots(slots, code):
        records.in_slots[numbers[IN_SLOTS]] = code
        numbers[IN_SLOTS] += 1


@inlined
def recall_at(clock, records):
    """The recall of answers: 1, or NaN while an object that scores less than before may have pushed others out."""
    return 1.0 if clock > records.numbers[UNSURE] else np.nan


@kernel
def execute(config, lifetime, scoring, rows, clocks, steps, step, end, state, records, shown, out, written):
    """Execute steps while there is room. Returns the first step not executed, and the number of entries written."""
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
