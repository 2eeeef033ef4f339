"""The values of each object: one for each stream, with its lifetime.

This is for objects that come only once to a stream while any of their rows lives. So, as more values come, an object's
sure score at a moment can only rise, and its best possible score can only fall.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.drivers.kernels.scoring import GIVEN, HIGH, LOW, score

EARLIEST = np.int64(-(2**63))  # before every clock
START = EARLIEST + 1  # the clock before the first step

SLOT = np.dtype(
    [
        ("value", np.float64),
        ("last", np.int64),  # the last moment at which the value lives; EARLIEST: the object has no row in this stream
        ("time", np.int64),
        ("position", np.int64),
        ("held", np.int64),  # 1: an answer may still show the instance that lives until `last`
    ],
    align=True,
)


def new_slots(codes: int, streams: int) -> npt.NDArray[Any]:
    slots = np.zeros((codes, streams), SLOT)
    slots["last"] = EARLIEST
    return slots


def with_room(slots: npt.NDArray[Any], codes: int) -> npt.NDArray[Any]:
    """Copy slots, with room for this many objects."""
    longer = new_slots(codes, slots.shape[1])
    longer[: len(slots)] = slots
    return longer


@inlined
def is_later(time, position, other_time, other_position):
    return time > other_time or (time == other_time and position > other_position)


@kernel
def current_score(slots, code, moment, scoring):
    """The object's sure score at `moment`, from the values that live until then."""
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        scoring.table[GIVEN, s] = slot.value if slot.last >= moment else scoring.table[LOW, s]
    return score(scoring)


@part
def _came(slots, code):
    """The streams in which the object has come, as bits."""
    came = 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != EARLIEST:
            came |= 1 << s
    return came


@kernel
def best_score(slots, code, moment, scoring):
    """The best possible score at `moment`: streams in which the object has not come yet may bring their largest
    value."""
    came = _came(slots, code) if scoring.chance.shape[0] > 1 else 0
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.last >= moment:
            scoring.table[GIVEN, s] = slot.value
        elif came and slot.last == EARLIEST:
            low, high = scoring.table[LOW, s], scoring.table[HIGH, s]
            scoring.table[GIVEN, s] = low + scoring.chance[came, s] * (high - low)
        elif slot.last != EARLIEST:
            scoring.table[GIVEN, s] = scoring.table[LOW, s]
        else:
            scoring.table[GIVEN, s] = scoring.table[HIGH, s]
            if scoring.table[HIGH, s] == np.inf:
                return np.inf
    return score(scoring)


@kernel
def take_value(slots, code, stream, value, time, position, last):
    """Put a row into its slot. If the slot has a row, the later one stays. Returns whether the row was taken, and
    whether the slot had one."""
    slot = slots[code, stream]
    repeats = slot.last != EARLIEST
    if repeats and is_later(slot.time, slot.position, time, position):
        return False, True
    slot.value, slot.last, slot.time, slot.position, slot.held = value, last, time, position, 1
    return True, repeats


@part
def is_in_slots(slots, code):
    """Has the object a value in any stream?"""
    found = False
    for s in range(slots.shape[1]):
        found = found or slots[code, s].last != EARLIEST
    return found


@part
def forget(slots, code):
    for s in range(slots.shape[1]):
        slots[code, s].last = EARLIEST
        slots[code, s].held = 0


@part
def is_held(slots, code, clock):
    """Is a live instance of the object held?"""
    held = False
    for s in range(slots.shape[1]):
        held = held or (slots[code, s].held != 0 and slots[code, s].last >= clock)
    return held


@part
def points_of(slots, code, clock, scoring, last, current, before):
    """Write the object's sure score as a staircase, latest first: current[i] holds from just after before[i] until
    last[i]. Returns the number of points."""
    n = 0
    for s in range(slots.shape[1]):
        moment = slots[code, s].last
        if moment < clock:
            continue
        i = n
        while i > 0 and last[i - 1] < moment:
            i -= 1
        if i > 0 and last[i - 1] == moment:
            continue
        for j in range(n, i, -1):
            last[j] = last[j - 1]
        last[i] = moment
        n += 1
    for i in range(n):
        current[i] = current_score(slots, code, last[i], scoring)
        before[i] = last[i + 1] if i + 1 < n else EARLIEST
    return n


@part
def latest_row(slots, code, clock):
    """The time and position of the object's most recent row."""
    time, position = EARLIEST, EARLIEST
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.last >= clock and is_later(slot.time, slot.position, time, position):
            time, position = slot.time, slot.position
    return time, position


@part
def write_values(slots, code, clock, values, i):
    """Write the object's values now; NaN for a stream without a value."""
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        values[i, s] = slot.value if slot.last >= clock else np.nan


ANSWER_DUE = -1  # in place of a row: an answer is due


@kernel
def slide(first, every, count, clock, row):
    """Write `count` arrivals, and an answer after each `every` of them."""
    n, end = 0, (first // every + 1) * every
    for i in range(count):
        clock[n], row[n] = end, i
        n += 1
        if first + i + 1 == end:
            clock[n], row[n] = end, ANSWER_DUE
            n += 1
            end += every


@kernel
def interleave(begins, last, closed, until, every, longest, shown, lingers, clock, row):
    """Write rows, and the answers of all windows up to `until` that have something to show, in order.

    Returns the number of steps (steps without room are only counted), the last moment of any row, and whether the last
    answer shows something.
    """
    i, n, end = 0, 0, closed + every
    while True:
        if longest < end and not (shown and lingers):
            if i == len(begins):
                break
            end = begins[i]
        if end > until:
            break
        while i < len(begins) and begins[i] <= end:
            if n < len(clock):
                clock[n], row[n] = end, i
            n += 1
            longest = max(longest, last[i])
            i += 1
        if n < len(clock):
            clock[n], row[n] = end, ANSWER_DUE
        n += 1
        shown = longest >= end
        end += every
    return n, longest, shown
