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
# much the clock moves on with a row; how many rows were turned away at once; and how much an object's values in several
# streams are alike, from 0 to 1; and the position of the latest row.
BAR, ROWS, LOOKED, TICKS, TURNED_AWAY, ALIKE, LATEST, FIGURES = range(8)

# By object: how many objects it stands for (more than one if it is held by chance), the least it was ever worth, the
# row count at its latest row, a number from [0, 1) that decides whether chance holds it, until when it is worth most.
WEIGHT, LEAST, CAME, LOT, UNTIL, FACTS = range(6)

LEVELS_AN_OCTAVE = 12
LEVELS = 12 * LEVELS_AN_OCTAVE  # of what objects are worth
AGES = 48  # two an octave: up to 2**24 rows
EVENTS, WAITED = range(2)
HOPE, LIMIT, COMES, LACKS, HOPES = range(5)  # of what may come by a moment: how often; drawn below; a draw's weights


class Learnt(NamedTuple):
    """What is known of the streams."""

    facts: Floats  # FACTS, by object
    recent: Floats  # by stream: its latest values, round and round
    taken: Ints  # by stream: how many values there were
    waits: (
        Floats  # EVENTS and WAITED, by set of streams, stream and age: rows that came, and rows waited for them, also
    )
    # after others had come in between
    coming: Floats  # by set, stream and age: how often a row came up to that age, of objects that wait on, as a sum
    values: Floats  # by stream: quantiles
    pairs: Floats  # of values that came, by quantile, and those their objects had: how many, sums, squares, products
    draws: Floats  # whether and what may come: minus the logarithm of a chance, and which quantile, by draw and stream
    moments: Ints  # when to look ahead
    needed: Floats  # by moment: what a score has to exceed to be in the answer then, in rising steps of equal chance
    spread: Floats  # by step: how many standard deviations more objects than usual are in its way
    sure: Floats  # scratch: the best sure scores at a moment, best first; -inf where there are none
    ladder: Floats  # the mean score of the best, the second best, …
    least: Floats  # by stream: the value from which on an object that is new is worth holding
    shares: Floats  # scratch, by moment
    waiting: Floats  # scratch, by moment: which part of what may come is still to come
    hopes: Floats  # scratch: HOPES, by stream and moment
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
def set_since(slots, code, stream, sets):  # type: ignore[no-untyped-def]
    """The same as of when its row in `stream` had come."""
    came, number, until = 0, 0, slots[code, stream].position
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER and slots[code, s].position <= until:
            came |= 1 << s
            number += 1
    return came if sets > slots.shape[1] + 1 else number


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
def _chance(needed, stream, likely, own, learnt, scoring):  # type: ignore[no-untyped-def]
    """How likely the values given, and perhaps one of `stream`, beat what is needed; that has equal chances.

    `own`: where the object's values are; the one to come is as near to it as values are alike.
    """
    table, steps, total = scoring.table, len(needed), 0.0
    without, reached = score(scoring), 0
    while reached < steps and without > needed[reached]:
        reached += 1
    if stream >= 0 and reached < steps:
        count = learnt.values.shape[1]
        table[GIVEN, stream] = learnt.values[stream, count - 1]
        most, short = score(scoring), 0
        table[GIVEN, stream] = table[LOW, stream]
        for i in range(reached, steps):
            if most <= needed[i]:
                break
            short = _falling_short(stream, needed[i], short, learnt, scoring)
            alike = learnt.figures[ALIKE]
            drawn = (short - alike * own) / (1.0 - alike)
            total += likely * (1.0 - min(max(drawn / count, 0.0), 1.0))
    return (reached + total) / steps


@part
def _hope(slots, code, some, age, clock, moments, learnt):  # type: ignore[no-untyped-def]
    """Of the values that may still come: how likely by which moment, and what draws of it weigh; how many there are.

    A draw lets them come more often than they do, so that there are enough; that is made good by its weight.
    """
    unknown = 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            continue
        now = _rises(learnt.coming, some, s, age)
        hope = 0.0
        for j in range(moments):
            rows = age + max(np.int64((learnt.moments[j] - clock) / learnt.figures[TICKS]), np.int64(0))
            hope = _rises(learnt.coming, some, s, rows) - now
            if learnt.waits.shape[1] == slots.shape[1] + 1:
                # By then others are likely to have come: half of the way it goes on as with one more.
                more_come = 1.0 - math.exp(-0.5 * hope * (slots.shape[1] - some))
                hope += more_come * (_rises(learnt.coming, some + 1, s, (rows - age) >> 1) - 0.5 * hope)
            learnt.hopes[HOPE, s, j] = hope
        if hope <= 1e-9:
            continue
        learnt.open[unknown] = s
        unknown += 1
        more = max(0.7 / hope, 1.0)
        for j in range(moments):
            hope = learnt.hopes[HOPE, s, j]
            comes, often = 1.0 - math.exp(-hope), 1.0 - math.exp(-more * hope)
            learnt.hopes[LIMIT, s, j] = more * hope
            learnt.hopes[COMES, s, j] = comes / often if often > 0 else 0.0
            learnt.hopes[LACKS, s, j] = math.exp((more - 1.0) * hope)
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

    Of the values that may still come, one is reckoned with exactly, in turn; of the others it is drawn whether they do.
    """
    streams, last, moments = slots.shape[1], NEVER, 0
    for s in range(streams):
        last = max(last, slots[code, s].last)
    while moments < len(learnt.moments) and learnt.moments[moments] <= last:
        learnt.shares[moments] = 0.0
        moments += 1
    unknown = _hope(slots, code, some, age, clock, moments, learnt)
    own = place_of_object(slots, code, learnt) if learnt.figures[ALIKE] > 0 else 0.0
    _wait_on(unknown, moments, learnt)
    draws = learnt.draws.shape[1] if unknown > 1 else 1
    for i in range(draws):
        exact = learnt.open[i % unknown] if unknown else -1
        for j in range(moments):
            if learnt.moments[j] < clock:
                continue
            weight, came = _draw(slots, code, i, j, exact, unknown, own, learnt, scoring)
            likely = 0.0
            if unknown:
                hope = learnt.hopes[HOPE, exact, j]
                if came:
                    # What came in between, half of the way, may make it more likely.
                    ahead = np.int64((learnt.moments[j] - clock) / learnt.figures[TICKS])
                    with_it = some | came if learnt.waits.shape[1] > streams + 1 else some + 1
                    hope = 0.5 * (hope + max(hope, _rises(learnt.coming, with_it, exact, ahead >> 1)))
                likely = 1.0 - math.exp(-hope)
            learnt.shares[j] += weight * _chance(learnt.needed[j], exact, likely, own, learnt, scoring) / draws
    return moments


@part
def _draw(slots, code, i, j, exact, unknown, own, learnt, scoring):  # type: ignore[no-untyped-def]
    """Give the object its values at moment j, and those that come in draw i.

    Returns what the draw weighs, and the streams in which something came, as bits.
    """
    table, weight, came, alike = scoring.table, 1.0, 0, learnt.figures[ALIKE]
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        table[GIVEN, s] = slot.value if slot.last >= learnt.moments[j] else table[LOW, s]
    for n in range(unknown):
        s = learnt.open[n]
        if s != exact and learnt.draws[0, i, s] < learnt.hopes[LIMIT, s, j]:
            table[GIVEN, s] = learnt.values[s, int(alike * own + (1.0 - alike) * learnt.draws[1, i, s])]
            weight *= learnt.hopes[COMES, s, j]
            came |= 1 << s
        elif s != exact:
            weight *= learnt.hopes[LACKS, s, j]
    return weight, came


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
