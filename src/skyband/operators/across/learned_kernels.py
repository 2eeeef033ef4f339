"""The compiled half of `learned`: what an object may be worth, and steps that hold only those that are worth enough."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.operators.across.schedule import ANSWER_DUE
from skyband.operators.across.scoring import LOW
from skyband.operators.across.showing import show
from skyband.operators.across.slots import NEVER, current_score, forget, latest_row, points_of
from skyband.operators.across.staircase_kernels import (
    BEFORE,
    CLOCK,
    FOUND,
    LAST,
    OLD,
    OLD_BEFORE,
    OLD_LAST,
    SIZE,
    STALE,
    expire,
    rank,
    replace_points,
    take_row,
)
from skyband.operators.across.worth_kernels import (
    AGES,
    BAR,
    CAME,
    EVENTS,
    FELL,
    JUDGES,
    LATEST,
    LEAST,
    LOOKED,
    LOT,
    ROWS,
    TURNED_AWAY,
    UNTIL,
    WAITED,
    WEIGHT,
    age_of,
    begin_of,
    latest_position,
    level_of,
    place_of,
    place_of_object,
    set_of,
    tell,
    weigh,
    worth,
)
from skyband.structures.compiling import kernel, part

LOOK_AT_ONE_OF = 4.0  # rows that are turned away
KNOWN = 1.5  # windows from which it is known what is usual
SEARCH_STEPS = 12  # for the least value that is worth holding


class Lottery(NamedTuple):
    """How likely an object that is not worth its place is held all the same, so that what is missed can be told."""

    most: float
    fewest: float


# -- holding and letting go -------------------------------------------------------------------------------------------


@part
def _drop(state, code, clock, k, scoring):  # type: ignore[no-untyped-def]
    """Forget the object, also in the front."""
    points, scores = state.points, state.scores
    old = points_of(state.slots, code, clock, scoring, points[OLD_LAST], scores[OLD], points[OLD_BEFORE])
    time, position = latest_row(state.slots, code, clock)
    if old:
        replace_points(state, code, old, 0, time, position, time, position, k)
    forget(state.slots, code)


@part
def judge(state, code, clock, k, learnt, lottery, scoring):  # type: ignore[no-untyped-def]
    """Hold the object if it is worth it, or by chance; otherwise let it go. Returns whether it is held."""
    facts = learnt.facts
    if not learnt.figures[JUDGES]:
        facts[UNTIL, code] = np.inf
        return True
    found, until, total = weigh(state.slots, code, facts[CAME, code], clock, learnt, scoring)
    tell(learnt.lost, facts[LEAST, code], found, facts[WEIGHT, code] * total)
    if found < facts[LEAST, code]:
        facts[LEAST, code], facts[FELL, code] = found, learnt.figures[LATEST]
    facts[UNTIL, code] = until
    bar = learnt.figures[BAR]
    if found >= bar or facts[WEIGHT, code] > 1.0:
        return True
    chance = max(lottery.most * math.sqrt(found / bar), lottery.fewest)
    if facts[LOT, code] < chance:
        facts[WEIGHT, code] = 1.0 / chance
        return True
    _drop(state, code, clock, k, scoring)
    return False


@part
def _is_known(slots, code, clock):  # type: ignore[no-untyped-def]
    known = False
    for s in range(slots.shape[1]):
        known = known or slots[code, s].last >= clock
    return known


@part
def _compare(own, came, pairs):  # type: ignore[no-untyped-def]
    """A value has come to an object that had others."""
    pairs[0] += 1.0
    pairs[1] += own
    pairs[2] += came
    pairs[3] += own * own
    pairs[4] += own * came


@part
def _admit(rows, r, clock, k, state, door, learnt, lottery, scoring, top_score):  # type: ignore[no-untyped-def]
    """A row comes: of an object that is held, or of one that is worth holding."""
    slots, facts, numbers, figures = state.slots, learnt.facts, state.numbers, learnt.figures
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    if _is_known(slots, code, clock):
        if slots[code, stream].last == NEVER:
            waited = max(rows.position[r] - latest_position(slots, code), np.int64(0))
            _wait(slots, code, waited, learnt)
            learnt.waits[EVENTS, set_of(slots, code, learnt.waits.shape[1]), stream, age_of(waited)] += 1.0
            if figures[LOOKED] > 0:
                _compare(
                    place_of_object(slots, code, learnt), place_of(rows.value[r], learnt.values[stream]), learnt.pairs
                )
    else:
        if rows.value[r] < learnt.least[stream] and facts[LOT, code] >= lottery.most:
            figures[TURNED_AWAY] += 1.0
            if figures[TURNED_AWAY] % LOOK_AT_ONE_OF == 0.0:
                # What is turned away at the door counts too: one of several stands for all.
                slot = door[0, stream]
                slot.value, slot.last = rows.value[r], rows.last[r]
                found, _, total = weigh(door, 0, figures[ROWS], clock, learnt, scoring)
                slot.last = NEVER
                tell(learnt.lost, 1.0, found, LOOK_AT_ONE_OF * total)
            return
        facts[WEIGHT, code], facts[LEAST, code] = 1.0, 1.0
    take_row(rows, r, clock, k, state, scoring, top_score)
    if _is_known(slots, code, clock):
        facts[CAME, code] = learnt.figures[ROWS]
        if not judge(state, code, clock, k, learnt, lottery, scoring):
            numbers[STALE] = 1


@kernel
def execute(rule, scoring, rows, clocks, steps, step, end, state, door, learnt, lottery, shown, out, written):  # type: ignore[no-untyped-def]
    """Execute steps as far as there is room, or until it is time to look at all objects."""
    k, entries, streams = rule.k, len(shown.code), state.slots.shape[1]
    numbers, figures = state.numbers, learnt.figures
    while step < end:
        if written + 2 * entries > len(out.at) or numbers[SIZE] + streams > len(state.score):
            break
        if figures[ROWS] - figures[LOOKED] >= rule.sweep_after:
            break
        expire(state.front, state.score, numbers, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            figures[ROWS] += 1.0
            figures[LATEST] = rows.position[r]
            stream = rows.stream[r]
            learnt.recent[stream, learnt.taken[stream] % learnt.recent.shape[1]] = rows.value[r]
            learnt.taken[stream] += 1
            _admit(rows, r, clocks[step], k, state, door, learnt, lottery, scoring, shown.top_score)
        if r == ANSWER_DUE or (rule.each and numbers[STALE]):
            found = rank(state, k, shown) if numbers[STALE] else numbers[FOUND]
            written = show(clocks[step], found, rule.emit, shown, out, written)
        step += 1
    return step, written


# -- learning ---------------------------------------------------------------------------------------------------------


@kernel
def wait(slots, clock, learnt, scoring, current):  # type: ignore[no-untyped-def]
    """What objects score now, NaN for those that are not there; and how long they have waited for which rows."""
    for code in range(slots.shape[0]):
        current[code] = np.nan
        if not _is_known(slots, code, clock):
            continue
        current[code] = current_score(slots, code, clock, scoring)
        _wait(slots, code, np.int64(learnt.figures[LATEST]) - latest_position(slots, code), learnt)


@part
def _wait(slots, code, end, learnt):  # type: ignore[no-untyped-def]
    """The object has had no row for `end` rows: since the last look, all streams it lacks have been waited for."""
    waits, some = learnt.waits, set_of(slots, code, learnt.waits.shape[1])
    begin = max(end - np.int64(learnt.figures[ROWS] - learnt.figures[LOOKED]), np.int64(0))
    age = age_of(begin)
    while age < AGES and begin < end:
        until = min(begin_of(age + 1), end)
        for s in range(slots.shape[1]):
            if slots[code, s].last == NEVER:
                waits[WAITED, some, s, age] += until - begin
        begin = until
        age += 1


@kernel
def accumulate(waits, coming):  # type: ignore[no-untyped-def]
    """How often rows come, summed up over ages; where little is known, as with other sets of streams."""
    sets, streams = waits.shape[1], waits.shape[2]
    for s in range(streams):
        for some in range(sets):
            coming[some, s, 0] = 0.0
        for age in range(AGES):
            events, waited = 0.0, 0.0
            for some in range(sets):
                events += waits[EVENTS, some, s, age]
                waited += waits[WAITED, some, s, age]
            usual = events / waited if waited > 0 else 0.0
            rows = begin_of(age + 1) - begin_of(age)
            for some in range(sets):
                # As if eight rows had come, or been waited for, as usual.
                trust = 8.0 / usual if usual > 0 else 1.0
                rate = (waits[EVENTS, some, s, age] + usual * trust) / (waits[WAITED, some, s, age] + trust)
                coming[some, s, age + 1] = coming[some, s, age] + rate * rows


@part
def _surely(front, score, size, moment, k, sure):  # type: ignore[no-untyped-def]
    """The best scores at a moment of what is there now, at most k, into `sure`; returns how many."""
    found = 0
    for e in range(size):
        if front[LAST, e] < moment or front[BEFORE, e] >= moment:
            continue
        i = found
        while i > 0 and sure[i - 1] < score[e]:
            i -= 1
        if i == k:
            continue
        found = min(found + 1, k)
        for other in range(found - 1, i, -1):
            sure[other] = sure[other - 1]
        sure[i] = score[e]
    return found


@part
def _needed(found, ahead, off, k, learnt):  # type: ignore[no-untyped-def]
    """The score that k others exceed: sure ones, and as many as usual in that share of the window, off by so much.

    What is usual is known as from a few windows, give or take as much.
    """
    sure, ladder = learnt.sure, learnt.ladder
    a, b, needed = 0, 0, -np.inf  # how many of the sure ones, and of the usual ones, score more
    while a < found or b < len(ladder):
        if a < found and (b == len(ladder) or sure[a] >= ladder[b]):
            needed = sure[a]
            a += 1
        else:
            needed = ladder[b]
            b += 1
        if a + max(ahead * b + off * math.sqrt(ahead * b * (1.0 + ahead / KNOWN)), 0.0) >= k:
            break
    return needed


@kernel
def foresee(front, score, size, clock, span, k, learnt, needed):  # type: ignore[no-untyped-def]
    """What a score needs to be in the answer, by moments ahead and steps of how many more than usual come."""
    moments, steps = needed.shape
    for j in range(moments):
        ahead = (j + 0.5) / moments
        found = _surely(front, score, size, clock + np.int64(ahead * span), k, learnt.sure)
        for step in range(steps):
            needed[j, step] = _needed(found, ahead, learnt.spread[step], k, learnt)


@kernel
def levels_shown(state, shown, found, k, door, learnt, scoring, levels):  # type: ignore[no-untyped-def]
    """By object shown: the level of the bar from which on it would not be; 0, if it would be by what came since."""
    slots, facts, clock = state.slots, learnt.facts, state.numbers[CLOCK]
    needed = shown.top_score[found - 1] if found == k else -np.inf
    for i in range(found):
        code, back = shown.top_code[i], False
        for s in range(slots.shape[1]):
            if slots[code, s].last >= clock and slots[code, s].position > facts[FELL, code]:
                door[0, s].value, door[0, s].last = slots[code, s].value, slots[code, s].last
                back = True
        levels[i] = level_of(facts[LEAST, code])
        if back and current_score(door, 0, clock, scoring) >= needed:
            levels[i] = 0
        for s in range(slots.shape[1]):
            door[0, s].last = NEVER


@kernel
def judge_all(state, k, learnt, lottery, scoring, shown):  # type: ignore[no-untyped-def]
    """Let go of all that is not worth its place, except what the answer shows."""
    clock = state.numbers[CLOCK]
    for code in range(state.slots.shape[0]):
        if not _is_known(state.slots, code, clock):
            forget(state.slots, code)
        elif not shown[code]:
            judge(state, code, clock, k, learnt, lottery, scoring)


@kernel
def least_values(scratch, clock, size, learnt, scoring, highest):  # type: ignore[no-untyped-def]
    """By stream: from which value on an object that comes there first is worth holding."""
    for s in range(scratch.shape[1]):
        scratch[0, s].last = clock + size
        low, high = scoring.table[LOW, s], highest[s]
        scratch[0, s].value = low
        if worth(scratch, 0, learnt.figures[ROWS], clock, learnt, scoring) >= learnt.figures[BAR]:
            learnt.least[s] = -np.inf
        else:
            for _ in range(SEARCH_STEPS):
                scratch[0, s].value = 0.5 * (low + high)
                if worth(scratch, 0, learnt.figures[ROWS], clock, learnt, scoring) >= learnt.figures[BAR]:
                    high = scratch[0, s].value
                else:
                    low = scratch[0, s].value
            learnt.least[s] = low
        scratch[0, s].last = NEVER


@kernel
def count(slots, clock, until):  # type: ignore[no-untyped-def]
    """How many instances are held: an object has one for each moment at which one of its values ends.

    Those that end after the time for which it is worth most are not: they are looked at when it is over. One is always.
    """
    held = 0
    for code in range(slots.shape[0]):
        first = NEVER
        for s in range(slots.shape[1]):
            last = slots[code, s].last
            if slots[code, s].held and last >= clock:
                first = last if first == NEVER else min(first, last)
        for s in range(slots.shape[1]):
            last = slots[code, s].last
            if slots[code, s].held and last >= clock and (last == first or last <= until[code]):
                new = True
                for other in range(s):
                    new = new and not (slots[code, other].held and slots[code, other].last == last)
                held += new
    return held
