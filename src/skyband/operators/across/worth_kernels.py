"""What it is worth to hold an object, compiled: for which share of that time it is expected to be in the answer.

It is worked out by looking ahead, with what was learnt of the streams.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.operators.across.scoring import GIVEN, LOW, score
from skyband.operators.across.slots import NEVER
from skyband.operators.protocol import Floats, Ints
from skyband.structures.compiling import kernel, part

# Numbers that are learnt: the least that an object must be worth; rows so far, and when they were looked at last; how
# much the clock moves on with a row; how many rows were turned away at once; how much an object's values in several
# streams are alike, from 0 to 1; the position of the latest row; and whether objects are judged, from the second window
# on: 0 or 1.
BAR, ROWS, LOOKED, TICKS, TURNED_AWAY, ALIKE, LATEST, JUDGES, FIGURES = range(9)

# By object: how many objects it stands for (more than one if it is held by chance), the least it was ever worth, the
# row count at its latest row, a number from [0, 1) that decides whether chance holds it, until when it is worth most,
# and the latest row's position when it was worth least.
WEIGHT, LEAST, CAME, LOT, UNTIL, FELL, FACTS = range(7)

LEVELS_AN_OCTAVE = 12
LEVELS = 12 * LEVELS_AN_OCTAVE  # of what objects are worth
AGES = 48  # two an octave: up to 2**24 rows
EVENTS, WAITED = range(2)
HOPE, FIRST, HOPES = range(3)  # of what may come by a moment: how often if nothing else does; the chance to be first


class Learnt(NamedTuple):
    """What is known of the streams."""

    facts: Floats  # FACTS, by object
    recent: Floats  # by stream: its latest values, round and round
    taken: Ints  # by stream: how many values there were
    waits: Floats  # EVENTS and WAITED, by set of streams that have come, stream and age: rows that came, and waited for
    coming: Floats  # by set, stream and age: how often a row came up to that age, of objects that wait on, as a sum
    values: Floats  # by stream: quantiles
    pairs: Floats  # of values that came, by quantile, and those their objects had: how many, sums, squares, products
    draws: Floats  # whether and what may come: minus the logarithm of a chance, and which quantile, by draw and stream
    moments: Ints  # when to look ahead
    needed: Floats  # by moment: what a score has to exceed to be in the answer then, in rising steps
    likely: Floats  # by moment and step: how likely that much is needed
    spread: Floats  # by step: how many standard deviations more objects than usual are in its way
    sure: Floats  # scratch: the best sure scores at a moment, best first; -inf where there are none
    ladder: Floats  # the mean score of the best, the second best, …
    least: Floats  # by stream: the value from which on an object that is new is worth holding
    shares: Floats  # scratch, by moment
    waiting: Floats  # scratch, by moment: which part of what may come is still to come
    hopes: Floats  # scratch: HOPES, by stream and moment
    alone: Floats  # scratch, by moment: the chance that nothing has come
    heard: Floats  # scratch, by stream: how often it was expected to come since another did
    open: Ints  # scratch: streams in which a row may still come
    lost: Floats  # by level of the bar: at how many moments objects would be missed that are worth less, as expected
    figures: Floats


# -- what an object is worth ------------------------------------------------------------------------------------------


@part
def age_of(rows):  # type: ignore[no-untyped-def]
    """The interval of ages, two an octave, in which so many rows fall; 0: none, or one."""
    if rows < 2:
        return 0
    octave = 0
    while rows >> (octave + 1):
        octave += 1
    return min(2 * octave - 1 + ((rows >> (octave - 1)) & 1), AGES - 1)


@part
def begin_of(age):  # type: ignore[no-untyped-def]
    """The first number of rows of an interval of ages."""
    if age == 0:
        return 0
    octave = (age + 1) >> 1
    return (1 << octave) + ((1 << (octave - 1)) if age % 2 == 0 else 0)


@part
def set_of(slots, code, sets):  # type: ignore[no-untyped-def]
    """The streams in which the object has come, as bits; of many streams, how many."""
    came, number = 0, 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            came |= 1 << s
            number += 1
    return came if sets > slots.shape[1] + 1 else number


@part
def latest_position(slots, code):  # type: ignore[no-untyped-def]
    """The position of the object's latest row."""
    latest = NEVER
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            latest = max(latest, slots[code, s].position)
    return latest


@part
def _rises(coming, some, stream, rows):  # type: ignore[no-untyped-def]
    """The sum of `coming` up to so many rows."""
    age = age_of(rows)
    begin, end = begin_of(age), begin_of(age + 1)
    before = coming[some, stream, age]
    return before + (coming[some, stream, age + 1] - before) * (rows - begin) / (end - begin)


@part
def place_of(value, values):  # type: ignore[no-untyped-def]
    """Where a value is among the quantiles of its stream."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return min(low + 0.5, len(values) - 0.5)


@part
def place_of_object(slots, code, learnt):  # type: ignore[no-untyped-def]
    """Where the object's values are among the quantiles of their streams, on average."""
    total, number = 0.0, 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            total += place_of(slots[code, s].value, learnt.values[s])
            number += 1
    return total / max(number, 1)


@part
def _falling_short(stream, needed, low, learnt, scoring):  # type: ignore[no-untyped-def]
    """How many of the stream's values do not make the score more than `needed`, others as given: at least `low`."""
    values, table = learnt.values[stream], scoring.table
    high = len(values)
    while low < high:
        middle = (low + high) >> 1
        table[GIVEN, stream] = values[middle]
        if score(scoring) > needed:
            high = middle
        else:
            low = middle + 1
    table[GIVEN, stream] = table[LOW, stream]
    return low


@part
def _chance(j, stream, own, learnt, scoring):  # type: ignore[no-untyped-def]
    """How likely the values given, and one of `stream` if there is one, beat what is needed at moment j.

    `own`: where the object's values are; the one to come is as near to it as values are alike.
    """
    needed, likely = learnt.needed[j], learnt.likely[j]
    table, steps, total = scoring.table, len(needed), 0.0
    without, reached = score(scoring), 0
    while reached < steps and without > needed[reached]:
        total += likely[reached]
        reached += 1
    if stream >= 0 and reached < steps:
        count, alike = learnt.values.shape[1], learnt.figures[ALIKE]
        table[GIVEN, stream] = learnt.values[stream, count - 1]
        most, short = score(scoring), 0
        table[GIVEN, stream] = table[LOW, stream]
        for i in range(reached, steps):
            if most <= needed[i]:
                break
            short = _falling_short(stream, needed[i], short, learnt, scoring)
            drawn = (short - alike * own) / (1.0 - alike)
            total += likely[i] * (1.0 - min(max(drawn / count, 0.0), 1.0))
    return total


@part
def _rows_until(moment, clock, learnt):  # type: ignore[no-untyped-def]
    return max(np.int64((moment - clock) / learnt.figures[TICKS]), np.int64(0))


@part
def _hope(slots, code, some, age, clock, moments, learnt):  # type: ignore[no-untyped-def]
    """How often each value that may still come is expected by which moment, as long as none does; how many there are.

    And with which chance it is the first to come, by which moment.
    """
    hopes, unknown = learnt.hopes, 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            continue
        now = _rises(learnt.coming, some, s, age)
        for j in range(moments):
            rows = age + _rows_until(learnt.moments[j], clock, learnt)
            hopes[HOPE, s, j] = _rises(learnt.coming, some, s, rows) - now
        if moments and hopes[HOPE, s, moments - 1] > 1e-9:
            learnt.open[unknown] = s
            unknown += 1
    before = 0.0
    for j in range(moments):
        now = 0.0
        for n in range(unknown):
            now += hopes[HOPE, learnt.open[n], j]
        learnt.alone[j] = math.exp(-now)
        comes = math.exp(-before) - learnt.alone[j]
        for n in range(unknown):
            s = learnt.open[n]
            last = hopes[HOPE, s, j - 1] if j else 0.0
            hopes[FIRST, s, j] = comes * (hopes[HOPE, s, j] - last) / (now - before) if now > before else 0.0
            if j:
                hopes[FIRST, s, j] += hopes[FIRST, s, j - 1]
        before = now
    return unknown


@part
def _wait_on(unknown, moments, learnt):  # type: ignore[no-untyped-def]
    """How likely an object is still held before each moment: one that only hopes, as long as there is hope."""
    before = 0.0
    for j in range(moments):
        now, last = 0.0, 0.0
        for n in range(unknown):
            now += learnt.hopes[HOPE, learnt.open[n], j]
            last += learnt.hopes[HOPE, learnt.open[n], moments - 1]
        learnt.waiting[j] = 1.0 - before / last if unknown else 1.0
        before = now


@part
def _look_ahead(slots, code, some, age, clock, learnt, scoring):  # type: ignore[no-untyped-def]
    """The chance to be in the answer at each moment ahead, into `shares`; returns how many moments it lives.

    Less the chance to be there all the same if it is let go now, by the values that are still to come.
    """
    last, moments = NEVER, 0
    for s in range(slots.shape[1]):
        last = max(last, slots[code, s].last)
    while moments < len(learnt.moments) and learnt.moments[moments] <= last:
        moments += 1
    unknown = _hope(slots, code, some, age, clock, moments, learnt)
    _wait_on(unknown, moments, learnt)
    own = place_of_object(slots, code, learnt) if learnt.figures[ALIKE] > 0 else 0.0
    for j in range(moments):
        _give(slots, code, learnt.moments[j], scoring.table)
        learnt.shares[j] = learnt.alone[j] * _chance(j, -1, own, learnt, scoring)
        if unknown == 1:
            stream = learnt.open[0]
            learnt.shares[j] += (1.0 - learnt.alone[j]) * _gain(
                slots, code, np.int64(0), j, 1 << stream, stream, own, learnt, scoring
            )
    if unknown > 1:
        draws = learnt.draws.shape[1]
        for i in range(draws):
            _follow(slots, code, some, i, draws, moments, unknown, own, clock, learnt, scoring)
    return moments


@part
def _follow(slots, code, some, i, draws, moments, unknown, own, clock, learnt, scoring):  # type: ignore[no-untyped-def]
    """One way in which it may go on: which value comes first, and when; which ones that brings; and so on.

    Each stream is the first in some of the draws, early and late. Draws weigh as much as what they stand for is likely.
    """
    n, ways = i // unknown, (draws - 1 - i % unknown) // unknown + 1
    latest = learnt.open[i % unknown]
    first = learnt.hopes[FIRST, latest]
    weight, j = first[moments - 1] / ways, 0
    while j < moments - 1 and first[j] < (n + 0.5) * weight:
        j += 1
    came, number = 1 << latest, 1
    learnt.heard[:] = 0.0
    now, before = _rows_until(learnt.moments[j], clock, learnt), np.int64(0)
    if j:
        before = _rows_until(learnt.moments[j - 1], clock, learnt)
    since, waited = (before + now) >> 1, np.int64(0)  # when the latest came: half of the way
    while True:
        learnt.shares[j] += weight * _gain(slots, code, i, j, came, latest, own, learnt, scoring)
        j += 1
        if j >= moments or number == unknown:
            break
        before, now = now, _rows_until(learnt.moments[j], clock, learnt)
        known = some | came if learnt.waits.shape[1] > slots.shape[1] + 1 else some + number
        arrived = -1
        for m in range(unknown):
            s = learnt.open[m]
            if not (came >> s) & 1:
                learnt.heard[s] += _rises(learnt.coming, known, s, now - since) - _rises(
                    learnt.coming, known, s, waited
                )
                if arrived < 0 and learnt.heard[s] > learnt.draws[0, i, s]:
                    arrived = s
        waited = now - since
        if arrived >= 0:
            came |= 1 << arrived
            number += 1
            latest, since, waited = arrived, (before + now) >> 1, np.int64(0)
    for rest in range(j, moments):
        learnt.shares[rest] += weight * _gain(slots, code, i, rest, came, latest, own, learnt, scoring)


@part
def _give(slots, code, moment, table):  # type: ignore[no-untyped-def]
    """The values that the object has until then."""
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        table[GIVEN, s] = slot.value if slot.last >= moment else table[LOW, s]


@part
def _gain(slots, code, i, j, came, latest, own, learnt, scoring):  # type: ignore[no-untyped-def]
    """The chance to be in the answer at moment j, when streams have come, by what the object has now.

    The latest value may be any; the others are those of draw i.
    """
    table = scoring.table
    streams, count, alike = slots.shape[1], learnt.values.shape[1], learnt.figures[ALIKE]
    _give(slots, code, learnt.moments[j], table)
    for s in range(streams):
        if (came >> s) & 1 and s != latest:
            table[GIVEN, s] = learnt.values[s, int(alike * own + (1.0 - alike) * learnt.draws[1, i, s])]
    with_it = _chance(j, latest, own, learnt, scoring)
    if with_it == 0.0:
        return 0.0
    for s in range(streams):
        if not (came >> s) & 1:
            table[GIVEN, s] = table[LOW, s]
    table[GIVEN, latest] = learnt.values[latest, count - 1]
    most = score(scoring)
    table[GIVEN, latest] = table[LOW, latest]
    if most > learnt.needed[j, 0]:
        with_it -= _chance(j, latest, own, learnt, scoring)
    return with_it


@part
def weigh(slots, code, came, clock, learnt, scoring):  # type: ignore[no-untyped-def]
    """For what share of the time for which it is held an object is in the answer, and until when: at best.

    And at how many of all moments it is expected to be.
    """
    some = set_of(slots, code, learnt.waits.shape[1])
    age = max(np.int64(learnt.figures[ROWS] - came), np.int64(0))
    moments = _look_ahead(slots, code, some, age, clock, learnt, scoring)
    best, total, held, until = 1e-12, 0.0, 0.0, NEVER
    for j in range(moments):
        if learnt.moments[j] >= clock:
            total += learnt.shares[j]
            held += max(learnt.shares[j], learnt.waiting[j])
            if total >= best * held and held > 0:
                best, until = total / held, learnt.moments[j]
    return min(best, 1.0), until, total


@kernel
def worth(slots, code, came, clock, learnt, scoring):  # type: ignore[no-untyped-def]
    """For what share of the time for which it is held an object is in the answer: of the best time to hold it."""
    return weigh(slots, code, came, clock, learnt, scoring)[0]


@part
def level_of(worth):  # type: ignore[no-untyped-def]
    return max(np.int64(0), min(np.int64(-LEVELS_AN_OCTAVE * math.log2(worth)), np.int64(LEVELS - 1)))


@part
def tell(lost, before, now, total):  # type: ignore[no-untyped-def]
    """If the bar were at one of the levels that the object falls below just now, so much would be lost."""
    for level in range(level_of(before), level_of(now)):
        lost[level] += total
