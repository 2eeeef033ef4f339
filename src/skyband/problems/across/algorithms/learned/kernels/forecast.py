"""Learning what to expect of streams, compiled: to which of them objects still come, and what scores will be needed."""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.compiling import kernel, part
from skyband.problems.across.algorithms.learned.kernels.retention import (
    AGES,
    BINS,
    BOTTOM,
    EVENTS,
    KNOWN,
    LATEST,
    LOOKED,
    LOWEST,
    ROWS,
    SCALE,
    WAITED,
    age_of,
    begin_of,
    has_sets,
    latest_position,
    place_of,
    place_of_object,
    set_of,
)
from skyband.problems.across.algorithms.staircase.kernels import BEFORE, LAST
from skyband.problems.across.drivers.kernels.slots import NEVER, current_score

LARGE = 1e308
AS_USUAL = 8.0  # rows: as if so many had come, or been waited for, as with other sets of streams


@part
def is_known(slots, code, clock):
    known = False
    for s in range(slots.shape[1]):
        known = known or slots[code, s].last >= clock
    return known


# -- which rows come --------------------------------------------------------------------------------------------------


@part
def _wait(slots, code, end, learnt):
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


@part
def learn_arrival(slots, code, stream, value, position, learnt):
    """A row comes to an object that has others: after how long, and how alike its value is to theirs."""
    waited = max(position - latest_position(slots, code), np.int64(0))
    _wait(slots, code, waited, learnt)
    learnt.waits[EVENTS, set_of(slots, code, learnt.waits.shape[1]), stream, age_of(waited)] += 1.0
    if learnt.figures[LOOKED] > 0:
        own, came = place_of_object(slots, code, learnt), place_of(value, learnt.values[stream])
        pairs = learnt.pairs
        pairs[0] += 1.0
        pairs[1] += own
        pairs[2] += came
        pairs[3] += own * own
        pairs[4] += own * came


@kernel
def look_at_all(slots, clock, learnt, scoring, since, level, size, current):
    """What objects score now, into `current`, and how long they have waited for which rows.

    Returns how many scores there are, and how many objects that came after `since` score at least `level`.
    """
    found, good = 0, 0
    for code in range(slots.shape[0]):
        if not is_known(slots, code, clock):
            continue
        current[found] = current_score(slots, code, clock, scoring)
        came = NEVER
        for s in range(slots.shape[1]):
            last = slots[code, s].last
            if last != NEVER:
                came = last if came == NEVER else min(came, last)
        good += came - size >= since and current[found] >= level
        found += 1
        _wait(slots, code, np.int64(learnt.figures[LATEST]) - latest_position(slots, code), learnt)
    return found, good


@part
def _rates(waits, some, age, rates):
    """How often a row of each stream comes; where little is known, as with other sets of streams."""
    sets, streams = waits.shape[1], waits.shape[2]
    for s in range(streams):
        events, waited = 0.0, 0.0
        for other in range(sets):
            events += waits[EVENTS, other, s, age]
            waited += waits[WAITED, other, s, age]
        usual = events / waited if waited > 0 else 0.0
        trust = AS_USUAL / usual if usual > 0 else 1.0
        rates[s] = (waits[EVENTS, some, s, age] + usual * trust) / (waits[WAITED, some, s, age] + trust)


@part
def _rises(coming, rows):
    """The sum of `coming` up to so many rows."""
    age = age_of(rows)
    begin, end = begin_of(age), begin_of(age + 1)
    return coming[age] + (coming[age + 1] - coming[age]) * min((rows - begin) / (end - begin), 1.0)


@kernel
def arrive(coming, arrives, window_rows, aheads):
    """How likely a row has come to an object of some age, by moments ahead."""
    for some in range(coming.shape[0]):
        for age in range(min(age_of(window_rows), AGES - 1) + 1):
            now = coming[some, age]
            for j in range(len(aheads)):
                more = _rises(coming[some], begin_of(age) + np.int64(aheads[j] * window_rows)) - now
                arrives[some, age, j] = 1.0 - math.exp(-more)


@kernel
def complete(waits, coming, completion, window_rows, rates):
    """From how often rows come: to which streams an object comes in the end, backwards from the largest set and age."""
    sets, streams = waits.shape[1], waits.shape[2]
    told_apart = has_sets(streams, sets)
    oldest = min(age_of(window_rows), AGES - 1)
    for some in range(sets - 1, -1, -1):
        for becomes in range(sets):
            completion[some, oldest + 1 :, becomes] = 1.0 if becomes == some else 0.0
        for age in range(oldest, -1, -1):
            _rates(waits, some, age, rates)
            rows, rate = begin_of(age + 1) - begin_of(age), 0.0
            for s in range(streams):
                if not told_apart or not (some >> s) & 1:
                    rate += rates[s]
            if not told_apart:
                rate *= (streams - some) / streams
            nothing = math.exp(-rate * rows)
            for becomes in range(sets):
                completion[some, age, becomes] = nothing * completion[some, age + 1, becomes]
            if rate > 0 and told_apart:
                for s in range(streams):
                    if not (some >> s) & 1:
                        share = (1.0 - nothing) * rates[s] / rate
                        for becomes in range(sets):
                            completion[some, age, becomes] += share * completion[some | 1 << s, 0, becomes]
            elif rate > 0:
                for becomes in range(sets):
                    completion[some, age, becomes] += (1.0 - nothing) * completion[some + 1, 0, becomes]
            coming[some, age + 1] = rate * rows
        coming[some, 0] = 0.0
        for age in range(AGES):
            coming[some, age + 1] = coming[some, age] + (coming[some, age + 1] if age <= oldest else 0.0)


# -- which scores are needed ------------------------------------------------------------------------------------------


@part
def _needed(front, score, order, moment, ahead, off, k, ladder):
    """The score that k others reach: sure ones, and as many as usual in that share of the window, off by so much.

    What is usual is known as from a few windows, give or take as much.
    """
    a, b, sure, needed = 0, 0, 0, -np.inf  # points, of those the sure ones, and usual ones that score more
    while a < len(order) or b < len(ladder):
        if a < len(order) and (b == len(ladder) or score[order[a]] >= ladder[b]):
            e = order[a]
            a += 1
            if front[LAST, e] < moment or front[BEFORE, e] >= moment:
                continue
            needed = score[e]
            sure += 1
        else:
            needed = ladder[b]
            b += 1
        if sure + max(ahead * b + off * math.sqrt(ahead * b * (1.0 + ahead / KNOWN)), 0.0) >= k:
            return needed
    return -np.inf


@kernel
def foresee(front, score, order, clock, span, k, aheads, learnt):
    """What a score needs to be in the answer, by moments ahead and steps of how many more than usual come.

    `order`: the points of the front, the best first. `aheads`: how far ahead moments are, as shares of the window.
    """
    moments, steps = learnt.needed.shape
    for j in range(moments):
        ahead = aheads[j]
        learnt.moments[j] = clock + np.int64(ahead * span)
        for step in range(steps):
            learnt.needed[j, step] = _needed(
                front, score, order, learnt.moments[j], ahead, learnt.spread[step], k, learnt.ladder
            )


@kernel
def tabulate(learnt):
    """For how long scores are enough, from what is needed and how likely."""
    needed, likely, figures, enough = learnt.needed, learnt.likely, learnt.figures, learnt.enough
    low, bottom, high = np.inf, np.inf, -np.inf
    for j in range(needed.shape[0]):
        low = min(low, needed[j, 0])
        for step in range(needed.shape[1]):
            if needed[j, step] > -np.inf:
                bottom, high = min(bottom, needed[j, step]), max(high, needed[j, step])
    figures[LOWEST], figures[BOTTOM] = low, bottom if bottom < np.inf else 0.0
    figures[SCALE] = (BINS - 2) / (high - bottom) if high > bottom else 0.0
    for bin_ in range(BINS):
        points = bottom + (bin_ - 0.5) / figures[SCALE] if figures[SCALE] > 0 else high
        points = -LARGE if bin_ == 0 else np.inf if bin_ == BINS - 1 else points
        enough[0, bin_] = 0.0
        for j in range(needed.shape[0]):
            chance = 0.0
            for step in range(needed.shape[1]):
                chance += likely[j, step] * (points > needed[j, step])
            enough[j + 1, bin_] = enough[j, bin_] + chance * learnt.widths[j]


@kernel
def learn_likely(foreseen_at, foreseen, came_true, needed, clock, near, share, prior, trust, likely):
    """How likely each step is: as often as what is needed now was foreseen as that step, for each moment ahead.

    Between two steps it counts half for each; if several are the same, for all of them.
    """
    looks, moments, steps = foreseen.shape
    for j in range(moments):
        nearest = 0
        for look in range(1, looks):
            if abs(foreseen_at[look, j] - clock) < abs(foreseen_at[nearest, j] - clock):
                nearest = look
        total = 0.0
        for step in range(steps):
            came_true[j, step] *= share
        if abs(foreseen_at[nearest, j] - clock) <= near:
            low = high = 0
            while low < steps and foreseen[nearest, j, low] < needed:
                low += 1
            while high < steps and foreseen[nearest, j, high] <= needed:
                high += 1
            if low == high:
                came_true[j, max(low - 1, 0)] += 0.5
                came_true[j, min(high, steps - 1)] += 0.5
            else:
                for step in range(low, high):
                    came_true[j, step] += prior[step] / np.sum(prior[low:high])
        for step in range(steps):
            total += came_true[j, step]
        for step in range(steps):
            likely[j, step] = (trust * prior[step] + came_true[j, step]) / (trust + total)


@kernel
def nearness(recent, taken):
    """How near neighbours are among the latest values of a stream: their correlation, on average; and of how many."""
    near, number, length = 0.0, 0, recent.shape[1]
    for s in range(recent.shape[0]):
        if taken[s] < length:
            continue
        mean = np.mean(recent[s])
        squares = products = 0.0
        for i in range(length):
            this = recent[s, (taken[s] + i) % length] - mean
            squares += this * this
            if i:
                products += this * (recent[s, (taken[s] + i - 1) % length] - mean)
        near += products / squares if squares > 0 else 0.0
        number += 1
    return near / max(number, 1), number
