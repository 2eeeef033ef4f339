"""What it is worth to hold an object, compiled: the share of that time for which answers are expected to need it.

Three tables say what to expect, and are filled anew at each look: to which streams an object still comes, by those it
has come to and by how long it has waited (`completion`); which values they bring (`values`); and what a score needs to
be in the answer, by moments ahead (`needed`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import inlined, part
from skyband.problems.across.algorithms.staircase.kernels import BEFORE, LAST, SIZE
from skyband.problems.across.combining import ADD
from skyband.problems.across.drivers.kernels.scoring import GIVEN, LOW, WEIGHT, score
from skyband.problems.across.drivers.kernels.slots import NEVER, current_score

# Numbers that are learnt: the least retention value of an object that is held; rows so far, and when they were looked
# at last; how much the clock moves on with a row; how much an object's values in several streams are alike, from 0 to
# 1; the position of the latest row; whether objects are judged: 0 or 1; the least score that may be needed; where the
# bins of scores begin, and how many there are for a score of one; and rows when all objects were judged last.
BAR, ROWS, LOOKED, TICKS, ALIKE, LATEST, JUDGES, LOWEST, BOTTOM, SCALE, JUDGED, FIGURES = range(12)

# By object: the least retention value it ever had, the row count at its latest row, the latest row's position
# when it was worth least, and the row count at which it is judged again.
LEAST, CAME, FELL, DUE, FACTS = range(5)

LEVELS_AN_OCTAVE = 6
LEVELS = 12 * LEVELS_AN_OCTAVE  # of retention values
AGES = 48  # two an octave: up to 2**24 rows
EVENTS, WAITED = range(2)
COARSE = 4  # quantiles of a value that may be any, of which one is looked at
BINS = 128  # of scores, from the least to the most that may be needed; the first is below, the last above
UNLIKELY = 5e-4  # a set of streams that is not looked at
NOTHING = 1e-12  # the least retention value
KNOWN = 1.5  # windows from which it is known what is usual
AT_THE_END = 0.3  # of its time an object is in the answer, if it is just before it ends


class Learnt(NamedTuple):
    """What is known of the streams."""

    facts: Floats  # FACTS, by object
    recent: Floats  # by stream: its latest values, round and round
    taken: Ints  # by stream: how many values there were
    waits: Floats  # EVENTS and WAITED, by set of streams that have come, stream and age: rows that came, and waited for
    coming: Floats  # by set and age: how often any row comes up to that age, of objects that wait on, as a sum
    completion: Floats  # by set, age and set: the chance that the second one has come in the end
    values: Floats  # by stream: quantiles
    pairs: Floats  # of values that came, by quantile, and those their objects had: how many, sums, squares, products
    draws: Floats  # which quantile may come, and in which order streams are taken, by draw and stream
    moments: Ints  # when to look ahead
    widths: Floats  # by moment: for which share of the window it stands
    arrives: Floats  # by set, age and moment: the chance that a row has come by then
    needed: Floats  # by moment: what a score has to exceed to be in the answer then, in rising steps
    likely: Floats  # by moment and step: how likely that much is needed
    spread: Floats  # by step: how many standard deviations more objects than usual are in its way
    ladder: Floats  # the mean score of the best, the second best, …
    enough: Floats  # by moment and bin of scores: for how many windows such a score is enough, up to that moment
    doors: Floats  # the retention value of a new object, and for how many windows it is needed, by stream and quantile
    lost: Floats  # by level of the bar: for how many more windows than at the level above objects would be missed
    figures: Floats


# -- ages and sets ----------------------------------------------------------------------------------------------------


@inlined
def age_of(rows):
    """The interval of ages, two an octave, in which so many rows fall; 0: none, or one."""
    if rows < 2:
        return 0
    octave = math.frexp(float(rows))[1] - 1
    return min(2 * octave - 1 + ((rows >> (octave - 1)) & 1), AGES - 1)


@inlined
def begin_of(age):
    """The first number of rows of an interval of ages."""
    if age == 0:
        return 0
    octave = (age + 1) >> 1
    return (1 << octave) + ((1 << (octave - 1)) if age % 2 == 0 else 0)


@inlined
def has_sets(streams, sets):
    """Is every set of streams told apart, or only how many there are?"""
    return sets > streams + 1


@part
def set_of(slots, code, sets):
    """The streams in which the object has come, as bits; of many streams, how many."""
    came, number = 0, 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            came |= 1 << s
            number += 1
    return came if has_sets(slots.shape[1], sets) else number


@part
def latest_position(slots, code):
    """The position of the object's latest row."""
    latest = NEVER
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            latest = max(latest, slots[code, s].position)
    return latest


@part
def place_of(value, values):
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
def place_of_object(slots, code, learnt):
    """Where the object's values are among the quantiles of their streams, on average."""
    total, number = 0.0, 0
    for s in range(slots.shape[1]):
        if slots[code, s].last != NEVER:
            total += place_of(slots[code, s].value, learnt.values[s])
            number += 1
    return total / max(number, 1)


# -- looking ahead ----------------------------------------------------------------------------------------------------


@part
def _give(slots, code, moment, table):
    """The values that the object has until then; returns how many."""
    alive = 0
    for s in range(slots.shape[1]):
        slot = slots[code, s]
        if slot.last >= moment:
            table[GIVEN, s] = slot.value
            alive += 1
        else:
            table[GIVEN, s] = table[LOW, s]
    return alive


@inlined
def bin_of(points, figures):
    """Where a score is between the least and the most that may be needed."""
    return np.int64(min(max((points - figures[BOTTOM]) * figures[SCALE] + 1.0, 0.0), BINS - 1.0))


@part
def _best_case(slots, code, learnt, scoring):
    """Its score now, if every stream in which it may still come brings its largest value."""
    table = scoring.table
    for s in range(slots.shape[1]):
        if slots[code, s].last == NEVER:
            table[GIVEN, s] = max(learnt.values[s, learnt.values.shape[1] - 1], table[LOW, s])
    return score(scoring)


@part
def _draw(slots, code, i, more, becomes, own, learnt, table):
    """Give the values of draw i, of the streams of a set, as bits, or of `more` streams that it lacks, but for one.

    Returns that one, whose value may be any.
    """
    streams, alike, open_one = slots.shape[1], learnt.figures[ALIKE], -1
    turn = int(learnt.draws[1, i, 0])
    for n in range(streams):
        s = (n + turn) % streams
        if slots[code, s].last != NEVER:
            continue
        table[GIVEN, s] = table[LOW, s]
        if (becomes >> s) & 1 if more < 0 else more > 0:
            more -= 1 if more > 0 else 0
            if open_one < 0:
                open_one = s
            else:
                table[GIVEN, s] = learnt.values[s, int(alike * own + (1.0 - alike) * learnt.draws[0, i, s])]
    return open_one


@part
def _drawn(stream, own, first, last, learnt, scoring):
    """How long the values given, and one of `stream`, are enough, from moment `first` to `last`, in windows.

    `own`: where the object's values are; the one to come is as near to it as values are alike.
    """
    table, values, figures, until = scoring.table, learnt.values[stream], learnt.figures, learnt.enough
    count = len(values)
    table[GIVEN, stream] = values[count - 1]
    most = score(scoring)
    if most <= figures[LOWEST]:
        table[GIVEN, stream] = table[LOW, stream]
        return 0.0
    alike, total, number = figures[ALIKE], 0.0, 0
    weight = table[WEIGHT, stream] / scoring.divisor if scoring.kind == ADD else 0.0
    for q in range(COARSE // 2, count, COARSE):
        value = values[int(alike * own + (1.0 - alike) * q)]
        if scoring.kind == ADD:
            points = most - weight * (values[count - 1] - value)
        else:
            table[GIVEN, stream] = value
            points = score(scoring)
        bin_ = bin_of(points, figures)
        total += until[last, bin_] - until[first, bin_]
        number += 1
    table[GIVEN, stream] = table[LOW, stream]
    return total / number


@part
def _hope(slots, code, some, age, own, first, last, learnt, scoring):
    """How long what the object may become is enough, from moment `first` to `last`, between which no value ends.

    Less as long as it is all the same if it is let go now, by the values that are still to come.
    """
    streams, sets, table, total = slots.shape[1], learnt.completion.shape[0], scoring.table, 0.0
    told_apart = has_sets(streams, sets)
    moment = learnt.moments[first]
    for becomes in range(some + 1, sets):
        chance = learnt.completion[some, age, becomes]
        if chance < UNLIKELY:
            continue
        # One value is not drawn: there is one way, if it is the only one.
        draws = learnt.draws.shape[1] if not told_apart or _bits(becomes ^ some) > 1 else 1
        for i in range(draws):
            _give(slots, code, moment, table)
            stream = _draw(slots, code, i, -1 if told_apart else becomes - some, becomes, own, learnt, table)
            gain = _drawn(stream, own, first, last, learnt, scoring)
            if gain > 0.0:
                for s in range(streams):
                    if slots[code, s].last != NEVER:
                        table[GIVEN, s] = table[LOW, s]
                gain -= _drawn(stream, own, first, last, learnt, scoring)
                total += chance / draws * gain
    return total


@inlined
def _bits(some):
    number = 0
    while some:
        number += some & 1
        some >>= 1
    return number


@part
def _surely_at(state, moment, ahead, points, j, k, learnt):
    """How likely a score is in the answer at a moment: by what is sure to be there, and by what else is usual.

    As `foresee` works out what is needed at moment j, which is near.
    """
    front, current, size, ladder = state.front, state.score, state.numbers[SIZE], learnt.ladder
    last, before, scores = front[LAST, :size], front[BEFORE, :size], current[:size]
    sure = 0
    for e in range(size):
        sure += (last[e] >= moment) & (before[e] < moment) & (scores[e] > points)
    low, high = 0, len(ladder)
    while low < high:
        middle = (low + high) >> 1
        if ladder[middle] > points:
            low = middle + 1
        else:
            high = middle
    usual, chance = ahead * low, 0.0
    spread = math.sqrt(usual * (1.0 + ahead / KNOWN))
    for step in range(len(learnt.spread)):
        if sure + max(usual + learnt.spread[step] * spread, 0.0) < k:
            chance += learnt.likely[j, step]
    return chance


@part
def _at_the_end(state, slots, code, clock, k, size, learnt, scoring):
    """The best chance of what is sure to be in the answer just before one of the object's values ends.

    That is when least is sure to be better. Moments ahead are too far apart to see it.
    """
    best = 0.0
    for s in range(slots.shape[1]):
        end = slots[code, s].last
        if end >= clock:
            j = 0
            while j < len(learnt.moments) - 1 and learnt.moments[j] < end:
                j += 1
            points = current_score(slots, code, end, scoring)
            best = max(best, _surely_at(state, end, (end - clock) / size, points, j, k, learnt))
    return best


@part
def retention_value(state, slots, code, came, clock, k, size, learnt, scoring):
    """For what share of the time for which it is held answers need an object, at best; and for how many windows."""
    figures, until, widths = learnt.figures, learnt.enough, learnt.widths
    _give(slots, code, clock, scoring.table)
    if _best_case(slots, code, learnt, scoring) <= figures[LOWEST]:
        return NOTHING, 0.0
    some = set_of(slots, code, learnt.waits.shape[1])
    age = age_of(max(np.int64(figures[ROWS] - came), np.int64(0)))
    last, moments = NEVER, 0
    for s in range(slots.shape[1]):
        last = max(last, slots[code, s].last)
    while moments < len(learnt.moments) and learnt.moments[moments] <= last:
        moments += 1
    in_the_end, arrives = 1.0 - learnt.completion[some, age, some], learnt.arrives[some, age]
    hopes = in_the_end > UNLIKELY
    own = place_of_object(slots, code, learnt) if hopes and figures[ALIKE] > 0 else 0.0
    best, total, held, first, surely = NOTHING, 0.0, 0.0, 0, 0.0
    while first < moments:
        alive = _give(slots, code, learnt.moments[first], scoring.table)
        points, end = score(scoring), first + 1
        while end < moments and _give(slots, code, learnt.moments[end], scoring.table) == alive:
            end += 1
        bin_ = bin_of(points, figures)
        span = np.sum(widths[first:end])
        becomes = (
            _hope(slots, code, some, age, own, first, end, learnt, scoring) / (in_the_end * span) if hopes else 0.0
        )
        for j in range(first, end):
            # Rows come before a moment with chance `comes`; then it is what it has become in the end.
            comes = arrives[j]
            share = (1.0 - comes) * (until[j + 1, bin_] - until[j, bin_]) / widths[j] + comes * becomes
            waits = 1.0 - (arrives[j - 1] / in_the_end if j else 0.0) if hopes else 1.0
            if learnt.moments[j] >= clock:
                share = min(max(share, 0.0), 1.0)
                total += share * widths[j]
                held += max(share, waits) * widths[j]
                best = max(best, total / held) if held > 0 else best
        first = end
    if current_score(slots, code, clock, scoring) > figures[LOWEST]:
        surely = AT_THE_END * _at_the_end(state, slots, code, clock, k, size, learnt, scoring)
    return min(max(best, surely), 1.0), max(total, surely * widths[0])


# -- levels of the bar ------------------------------------------------------------------------------------------------


@part
def level_of(value):
    return max(np.int64(0), min(np.int64(-LEVELS_AN_OCTAVE * math.log2(value)), np.int64(LEVELS - 1)))


@part
def expect_loss(lost, before, now, total):
    """If the bar were at one of the levels that the object falls below just now, so much would be lost."""
    lost[level_of(before)] += total
    lost[level_of(now)] -= total
