"""The compiled half of `learned`: steps that hold only objects that are worth it, and see what that misses."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.across.algorithms.learned.kernels.forecast import is_known, learn_arrival
from skyband.problems.across.algorithms.learned.kernels.retention import (
    BAR,
    CAME,
    DUE,
    FELL,
    JUDGED,
    JUDGES,
    LATEST,
    LEAST,
    LOOKED,
    ROWS,
    expect_loss,
    level_of,
    retention_value,
)
from skyband.problems.across.algorithms.learned.kernels.shadow import (
    MISSING,
    NEXT_END,
    RECORDS,
    RECOUNT,
    SEEN_MISSING,
    SEEN_SHOULD,
    SHOULD,
    count_missing,
    recall_of,
    record_more,
    record_new,
    record_object,
)
from skyband.problems.across.algorithms.staircase.kernels import (
    CLOCK,
    FOUND,
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
from skyband.problems.across.drivers.kernels.emit import show
from skyband.problems.across.drivers.kernels.slots import NEVER, current_score, forget, latest_row, points_of
from skyband.problems.across.drivers.kernels.steps import ANSWER_DUE

WAITS_ON = 0.4  # of the time since its latest row until an object is judged again

# -- holding and letting go -------------------------------------------------------------------------------------------


@part
def _let_go(state, code, clock, k, shadow, door, scoring):
    """Forget the object, also in the front; its rows go on record."""
    points, scores = state.points, state.scores
    record_object(shadow, state.slots, code, clock, door, scoring)
    old = points_of(state.slots, code, clock, scoring, points[OLD_LAST], scores[OLD], points[OLD_BEFORE])
    time, position = latest_row(state.slots, code, clock)
    if old:
        replace_points(state, code, old, 0, time, position, time, position, k)
    forget(state.slots, code)


@part
def _judge(state, code, clock, k, size, learnt, shadow, door, scoring):
    """Let go of the object unless it is worth holding. Returns whether it is held."""
    facts = learnt.facts
    found, total = retention_value(state, state.slots, code, facts[CAME, code], clock, k, size, learnt, scoring)
    if found < facts[LEAST, code]:
        expect_loss(learnt.lost, facts[LEAST, code], found, total)
        facts[LEAST, code], facts[FELL, code] = found, learnt.figures[LATEST]
    # The longer it has waited, the less another look can tell.
    facts[DUE, code] = learnt.figures[ROWS] + WAITS_ON * (learnt.figures[ROWS] - facts[CAME, code])
    if found >= learnt.figures[BAR]:
        return True
    _let_go(state, code, clock, k, shadow, door, scoring)
    return False


@kernel
def judge_doors(state, door, clock, k, size, learnt, scoring):
    """What new objects are worth, by stream and quantile of their first value."""
    doors, values = learnt.doors, learnt.values
    for s in range(door.shape[1]):
        for i in range(doors.shape[2]):
            door[0, s].value, door[0, s].last = values[s, quantile_of(i, doors, values)], clock + size
            found, total = retention_value(state, door, 0, learnt.figures[ROWS], clock, k, size, learnt, scoring)
            # It never falls with the value.
            doors[0, s, i] = max(found, doors[0, s, i - 1]) if i else found
            doors[1, s, i] = max(total, doors[1, s, i - 1]) if i else total
        door[0, s].last = NEVER


@inlined
def quantile_of(i, doors, values):
    return i * (values.shape[1] - 1) // (doors.shape[2] - 1)


@part
def _value_at_the_door(value, stream, learnt):
    """The retention value of a new object, and for how many windows it is needed, between those of `judge_doors`."""
    doors, values = learnt.doors, learnt.values
    i, last = 0, doors.shape[2] - 1
    while i < last and values[stream, quantile_of(i, doors, values)] < value:
        i += 1
    above = values[stream, quantile_of(i, doors, values)]
    if i == 0 or value >= above:
        return doors[0, stream, i], doors[1, stream, i]
    below = values[stream, quantile_of(i - 1, doors, values)]
    part_ = (value - below) / (above - below)
    return (
        doors[0, stream, i - 1] + part_ * (doors[0, stream, i] - doors[0, stream, i - 1]),
        doors[1, stream, i - 1] + part_ * (doors[1, stream, i] - doors[1, stream, i - 1]),
    )


@kernel
def judge_all(state, k, size, learnt, shadow, door, scoring, shown, found):
    """Let go of all that is not worth its place, except what the answer shows: the first `found` of the top.

    As long as there is room for records; the others come next time.
    """
    clock, streams = state.numbers[CLOCK], state.slots.shape[1]
    learnt.figures[JUDGED] = learnt.figures[ROWS]
    for i in range(found):
        shown.mark[shown.top_code[i]] |= 4
    for code in range(state.slots.shape[0]):
        if 2 * (shadow.numbers[RECORDS] + streams) > len(shadow.table):
            break
        if not is_known(state.slots, code, clock):
            forget(state.slots, code)
        elif not shown.mark[code] and learnt.facts[DUE, code] <= learnt.figures[ROWS]:
            _judge(state, code, clock, k, size, learnt, shadow, door, scoring)
    for i in range(found):
        shown.mark[shown.top_code[i]] &= 3


@inlined
def _needed_now(state, k, shown):
    """The k-th best score, as of the last answer."""
    return shown.top_score[k - 1] if state.numbers[FOUND] == k else -np.inf


@part
def _admit(rows, r, clock, k, size, state, learnt, shadow, door, scoring, shown):
    """A row comes: of an object that is held, or of one that may be worth holding."""
    slots, facts, figures = state.slots, learnt.facts, learnt.figures
    code, stream = np.int64(rows.code[r]), np.int64(rows.stream[r])
    needed, is_new = _needed_now(state, k, shown), False
    is_on_record = shadow.numbers[RECORDS] > 0 and record_more(shadow, state, rows, r, clock, door, scoring)
    if is_known(slots, code, clock):
        if slots[code, stream].last == NEVER:
            learn_arrival(slots, code, stream, rows.value[r], rows.position[r], learnt)
    else:
        facts[LEAST, code], facts[DUE, code] = 1.0, 0.0
        if figures[JUDGES]:
            # Most objects that are new are not worth holding: so they never get into the front.
            found, total = _value_at_the_door(rows.value[r], stream, learnt)
            expect_loss(learnt.lost, 1.0, found, total)
            if found < figures[BAR] and _score_alone(rows, r, door, scoring) < needed:
                if not is_on_record:
                    record_new(shadow, rows, r, clock, door, scoring)
                return
            facts[LEAST, code], facts[FELL, code] = found, figures[LATEST]
        is_new = True
    take_row(rows, r, clock, k, state, scoring, shown.top_score)
    if is_known(slots, code, clock):
        facts[CAME, code] = figures[ROWS]
        if figures[JUDGES] and not is_new and current_score(slots, code, clock, scoring) < needed:
            _judge(state, code, clock, k, size, learnt, shadow, door, scoring)


@inlined
def _score_alone(rows, r, door, scoring):
    slot = door[0, rows.stream[r]]
    slot.value, slot.last = rows.value[r], rows.last[r]
    points = current_score(door, 0, rows.last[r], scoring)
    slot.last = NEVER
    return points


@kernel
def execute(config, scoring, rows, clocks, steps, step, end, state, door, learnt, shadow, shown, out, written):
    """Execute steps as far as there is room, or until it is time to look at all objects."""
    k, entries, streams = config.k, len(shown.code), state.slots.shape[1]
    numbers, figures, seen = state.numbers, learnt.figures, shadow.numbers
    while step < end:
        if written + 2 * entries > len(out.at) or numbers[SIZE] + streams > len(state.score):
            break
        if figures[ROWS] - figures[LOOKED] >= config.sweep_after or 2 * (seen[RECORDS] + streams) > len(shadow.table):
            break
        if seen[MISSING] >= config.alarm_at and figures[BAR] > 0.0:
            break
        if figures[BAR] > 0.0 and figures[ROWS] - figures[JUDGED] >= config.judge_after and not numbers[STALE]:
            judge_all(state, k, config.size, learnt, shadow, door, scoring, shown, numbers[FOUND])
            continue
        expire(state.front, state.score, numbers, clocks[step])
        r = steps[step]
        if r != ANSWER_DUE and rows.value[r] == rows.value[r]:
            figures[ROWS] += 1.0
            figures[LATEST] = rows.position[r]
            stream = rows.stream[r]
            learnt.recent[stream, learnt.taken[stream] % learnt.recent.shape[1]] = rows.value[r]
            learnt.taken[stream] += 1
            _admit(rows, r, clocks[step], k, config.size, state, learnt, shadow, door, scoring, shown)
        if r == ANSWER_DUE or config.each:
            changes = numbers[STALE] or r == ANSWER_DUE
            if numbers[STALE]:
                rank(state, k, shown)
                seen[RECOUNT] = 1
            if seen[RECOUNT] or clocks[step] > seen[NEXT_END]:
                count_missing(shadow, state, shown, numbers[FOUND], k, clocks[step], door, scoring)
            seen[SEEN_MISSING] += seen[MISSING]
            seen[SEEN_SHOULD] += seen[SHOULD]
            if changes:
                before = written
                written = show(clocks[step], numbers[FOUND], config.emit, shown, out, written)
                out.recall[before:written] = recall_of(seen)
        step += 1
    return step, written


# -- looking at all ---------------------------------------------------------------------------------------------------


@kernel
def recount(shadow, state, shown, found, k, clock, door, scoring):
    """Which share of the objects the answer has that it should."""
    count_missing(shadow, state, shown, found, k, clock, door, scoring)
    return recall_of(shadow.numbers)


@kernel
def count_levels(state, shown, found, k, door, learnt, scoring, mass):
    """Count objects shown by the level of the bar from which on they would not be; 0, if they would by later rows."""
    slots, facts, clock = state.slots, learnt.facts, state.numbers[CLOCK]
    needed = shown.top_score[found - 1] if found == k else -np.inf
    for i in range(found):
        code, back = shown.top_code[i], False
        for s in range(slots.shape[1]):
            if slots[code, s].last >= clock and slots[code, s].position > facts[FELL, code]:
                door[0, s].value, door[0, s].last = slots[code, s].value, slots[code, s].last
                back = True
        level = level_of(facts[LEAST, code])
        if back and current_score(door, 0, clock, scoring) >= needed:
            level = 0
        mass[level] += 1.0
        for s in range(slots.shape[1]):
            door[0, s].last = NEVER
