"""The shadow of what was let go, and what is done about what it sees: see `shadow_kernels`."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Ints
from skyband.problems.across.algorithms.learned.kernels.shadow import (
    MISSING,
    NEXT_END,
    NUMBERS,
    RECORD,
    RECORDS,
    SEEN_MISSING,
    SEEN_SHOULD,
    WATCHED,
    Shadow,
    rehash,
)
from skyband.problems.across.algorithms.staircase.kernels import AFTER_ALL
from skyband.problems.across.drivers.kernels.slots import SLOT, new_slots
from skyband.problems.across.operator import AcrossSpec

FEWEST_RECORDS: Final = 64
FEWEST_WATCHED: Final = 32
SPARE: Final = 2  # times k objects are watched, and FEWEST_WATCHED more

AIMED_AT: Final = 0.35  # of what may be missed: the rest is for what nothing foretells
LATELY: Final = 0.5  # windows in which what is missed counts as recent
OFTEN: Final = 2.0  # windows in which it is told whether more is missed than expected
TURNOVER: Final = 1.5  # times k objects are in answers in that time, more or less
SURPRISE: Final = 3.0  # standard deviations by which what is missed may exceed what is allowed
BY_CHANCE: Final = 0.002  # how likely so many objects are missed at once, if no more are than is allowed
# Octaves a window by which what is expected is corrected, if twice as much is missed as is aimed at, or nothing.
WIDENS: Final = 1.0
NARROWS: Final = 0.3
MOST_TRIM: Final = 4.0
LEAST_TRIM: Final = -1.0
MOST_PATIENCE: Final = 64.0  # windows for which all is held, at most, before less is tried again
CALMS: Final = 16.0  # windows after which an alarm is half forgotten


def new_shadow(spec: AcrossSpec) -> Shadow:
    numbers = np.zeros(NUMBERS, np.int64)
    numbers[NEXT_END] = AFTER_ALL
    return Shadow(
        np.zeros(2 * FEWEST_RECORDS, RECORD),
        np.zeros(2 * FEWEST_RECORDS, RECORD),
        np.zeros(0, np.uint32),
        new_slots(FEWEST_WATCHED, spec.streams),
        np.zeros(FEWEST_WATCHED, np.uint32),
        np.zeros(FEWEST_WATCHED),
        np.arange(FEWEST_WATCHED),
        np.full(1, -np.inf),
        max(1, spec.window.size >> 24),
        numbers,
    )


def prints_of(key: Ints) -> npt.NDArray[np.uint32]:
    """32 bits of an id, well mixed."""
    mixed = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(32)).astype(np.uint32)


def grown(shadow: Shadow, spec: AcrossSpec, more: int = 0) -> Shadow:
    """With room for some records more, and some objects more that are watched; smaller if it was too large."""
    needed = int(shadow.numbers[RECORDS]) + more + spec.streams
    length = 2 * FEWEST_RECORDS
    while length < 3 * needed:
        length *= 2
    if 2 * needed > len(shadow.table) or 4 * length < len(shadow.table):
        table = np.zeros(length, RECORD)
        rehash(shadow.table, table, shadow.numbers)
        shadow = shadow._replace(table=table, spare=np.zeros(length, RECORD))
    room, most = len(shadow.order), SPARE * spec.k + FEWEST_WATCHED
    if shadow.numbers[WATCHED] == room and room < most:
        shadow = _with_room(shadow, spec, min(2 * room, most))
    return shadow


def _with_room(shadow: Shadow, spec: AcrossSpec, room: int) -> Shadow:
    """With room for so many objects that are watched, the best in the first place."""
    places = shadow.order[: shadow.numbers[WATCHED]]
    n = len(places)
    slots, print_, score = new_slots(room, spec.streams), np.zeros(room, np.uint32), np.zeros(room)
    slots[:n], print_[:n], score[:n] = shadow.slots[places], shadow.print[places], shadow.score[places]
    return shadow._replace(slots=slots, print=print_, score=score, order=np.arange(room))


def shadow_state(shadow: Shadow) -> Arrays:
    places = shadow.order[: shadow.numbers[WATCHED]]
    return {
        "shadow_table": shadow.table.copy(),
        "shadow_prints": shadow.prints.copy(),
        "shadow_slots": shadow.slots[places],
        "shadow_print": shadow.print[places],
        "shadow_score": shadow.score[places],
        "shadow_bound": shadow.bound.copy(),
        "shadow_numbers": np.append(shadow.numbers, len(shadow.order)),
    }


def restored(shadow: Shadow, state: Arrays, spec: AcrossSpec) -> Shadow:
    table = state["shadow_table"].astype(RECORD)
    shadow.numbers[WATCHED] = 0
    shadow = _with_room(shadow, spec, int(state["shadow_numbers"][-1]))
    shadow = shadow._replace(table=table.copy(), spare=np.zeros(len(table), RECORD))
    shadow.numbers[:] = state["shadow_numbers"][:-1]
    n = int(shadow.numbers[WATCHED])
    shadow.prints[: len(state["shadow_prints"])] = state["shadow_prints"]
    shadow.slots[:n] = state["shadow_slots"].astype(SLOT).reshape(n, spec.streams)
    shadow.print[:n], shadow.score[:n], shadow.bound[:] = (
        state["shadow_print"],
        state["shadow_score"],
        state["shadow_bound"],
    )
    return shadow


class Seen:
    """What answers were seen to miss, and whether they may miss anything now.

    Of all objects that answers should have shown so far, no more than 1 - recall may be missed. If more is missed, or
    much more lately, all is held: for a window, and until what is missed is less than what is aimed at again. Each time
    it is held twice as long, unless the last time is long ago.
    """

    def __init__(self, recall: float, k: int) -> None:
        self._allowed = 1.0 - recall
        self.aim = AIMED_AT * self._allowed
        # One object is missed for long: of few objects, that is a large share, and says little.
        self._alarm = self._allowed + SURPRISE * math.sqrt(self._allowed / (TURNOVER * k))
        self.alarm_at = _most_by_chance(self._allowed * k)  # objects that an answer misses
        self._total = np.zeros(2)  # objects that were missed, and that should have been shown: in all answers
        self._lately = np.zeros(2)  # the same, of late
        self._often = np.zeros(2)
        self._trim = 0.0  # octaves
        self._patience = 1.0  # windows
        self._since = math.inf  # the clock when less was held than all
        self._exact_until = -math.inf
        self._looked = -math.inf  # the clock at the last look
        self.must_be_exact = False

    @property
    def times(self) -> float:
        """How much more than expected is missed."""
        return float(2.0**self._trim)

    def look(self, numbers: Ints, clock: int, size: int) -> bool:
        """Take in what was seen since the last look. Returns whether what was learnt is in doubt."""
        now = numbers[[SEEN_MISSING, SEEN_SHOULD]].astype(np.float64)
        numbers[[SEEN_MISSING, SEEN_SHOULD]] = 0
        moved = (clock - self._looked) / size if self._looked > -math.inf else 0.0
        self._looked = clock
        self._total += now
        self._lately = self._lately * math.exp(-moved / LATELY) + now
        self._often = self._often * math.exp(-moved / OFTEN) + now
        self._patience = max(1.0, self._patience * 0.5 ** (moved / CALMS))
        if not self.must_be_exact and clock - self._since >= size:
            error = min(float(self._often[0] / max(self._often[1], 1.0)) / self.aim, 4.0) - 1.0
            self._trim = min(
                max(self._trim + (WIDENS if error > 0 else NARROWS) * moved * error, LEAST_TRIM), MOST_TRIM
            )
        lately = float(self._lately[0] / max(self._lately[1], 1.0))
        exceeds = bool(self._total[0] > self._allowed * self._total[1])
        if not self.must_be_exact and (exceeds or lately > self._alarm or numbers[MISSING] >= self.alarm_at):
            self._exact_until = clock + self._patience * size
            self._patience = min(2.0 * self._patience, MOST_PATIENCE)
            self.must_be_exact = True
            return True
        if self.must_be_exact and clock >= self._exact_until and not exceeds and lately <= self.aim:
            self.must_be_exact, self._since = False, clock
        return False

    def begin(self, clock: int) -> None:
        """From now on, less than all is held."""
        self._since = clock

    def state(self) -> Arrays:
        numbers = [self._trim, self._patience, self._since, self._exact_until, self._looked, float(self.must_be_exact)]
        return {"seen": np.array([*self._total, *self._lately, *self._often, *numbers])}

    def restore(self, state: Arrays) -> None:
        numbers = state["seen"].tolist()
        self._total[:], self._lately[:], self._often[:] = numbers[:2], numbers[2:4], numbers[4:6]
        self._trim, self._patience, self._since, self._exact_until, self._looked = numbers[6:11]
        self.must_be_exact = bool(numbers[11])


def _most_by_chance(mean: float) -> int:
    """The number that is exceeded, or reached, with a chance below BY_CHANCE, if `mean` is usual (Poisson)."""
    chance, tail, number = math.exp(-mean), 1.0, 0
    while tail >= BY_CHANCE:
        tail -= chance
        number += 1
        chance *= mean / number
    return number
