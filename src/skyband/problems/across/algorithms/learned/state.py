"""What `learned` holds.

What an object may become is looked up: to which streams it still comes (after which streams had come, by age), what
these bring (each stream's latest values, nearer to those it has the more values are alike), and which k scores are
sure, or usual by then, that are to be beaten. The more good objects come in bursts, the less is usual. Whether that is
right is not taken on trust: what is missed is counted, and the bar follows.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.problems.across.algorithms.learned.habits import FEWEST_ROWS, LOOKS, Habits
from skyband.problems.across.algorithms.learned.kernels import forecast
from skyband.problems.across.algorithms.learned.kernels import steps as kernels
from skyband.problems.across.algorithms.learned.kernels.bar import expect_missed
from skyband.problems.across.algorithms.learned.kernels.retention import (
    BAR,
    CAME,
    JUDGES,
    LEVELS,
    LEVELS_AN_OCTAVE,
    LOOKED,
    ROWS,
    TICKS,
)
from skyband.problems.across.algorithms.learned.kernels.shadow import MISSING, RECORDS, scan
from skyband.problems.across.algorithms.learned.shadow import Seen, grown, new_shadow, prints_of, restored, shadow_state
from skyband.problems.across.algorithms.staircase.kernels import SIZE
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.drivers.clock import Steps
from skyband.problems.across.drivers.kernels.slots import current_score, new_slots
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.windows import NEVER

MOST_STREAMS: Final = 63
MOST_K: Final = 4096
FEWEST_TO_JUDGE: Final = 75  # rows between two times at which all objects are judged
LEAST_LEVEL: Final = 2 * LEVELS_AN_OCTAVE  # of the bar: above it there is enough to compare
LEARNS_FOR: Final = 1.5  # windows in which all is held
RISES_BY: Final = LEVELS_AN_OCTAVE // 2  # levels a look: the bar rises slowly, and falls at once


class Config(NamedTuple):
    k: int
    emit: int
    each: bool
    sweep_after: int
    size: int
    alarm_at: int
    judge_after: int


class Learned(Staircase):
    wants_keys = True

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec)
        self._door = new_slots(1, spec.streams)  # one object that is looked at, and not held
        self._habits = Habits(spec, self._lowest())
        self._shadow = new_shadow(spec)
        self._seen = Seen(spec.recall, spec.k)
        self._shown_mass = np.zeros(LEVELS)  # objects that answers showed, by the least retention value they ever had

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        self._shadow.prints[batch.code] = prints_of(batch.key if len(batch.key) else batch.code.astype(np.int64))
        return super().push(batch)

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        figures, window = self._habits.learnt.figures, self.spec.window
        if self._habits.began == NEVER:
            self._habits.began = self._habits.looked = int(steps.clock[step])
        rows = window.size / figures[TICKS] if window.known_rows or figures[LOOKED] else 0.0
        after = max(FEWEST_ROWS, int(rows / LOOKS))
        alarm = self._shadow.numbers[MISSING] >= self._seen.alarm_at and figures[BAR] > 0
        if figures[ROWS] - figures[LOOKED] >= after or alarm:
            self._look()
        self._shadow = grown(self._shadow, self.spec)
        if self._s.numbers[SIZE] + self.spec.streams > len(self._s.score):
            self._widen(2 * len(self._s.score))
        config = Config(
            self.spec.k,
            self.spec.emit,
            steps.each,
            after,
            window.size,
            self._seen.alarm_at,
            max(FEWEST_TO_JUDGE, int(rows / LOOKS)),
        )
        return kernels.execute(
            config, self._scoring, steps.rows, steps.clock, steps.row, step, end,
            self._s, self._door, self._habits.learnt, self._shadow, self._shown, self._out, written,
        )  # fmt: skip

    def _rank_now(self, clock: int) -> int:
        found = super()._rank_now(clock)
        self.recall = float(
            kernels.recount(
                self._shadow, self._s, self._shown, found, self.spec.k, self._clock(), self._door, self._scoring
            )
        )
        return found

    # -- learning -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Learn from what has happened since the last look, and judge every object anew."""
        habits, clock = self._habits, self._clock()
        current, good = self._look_at_all()
        share = habits.fade(clock, doubted=self._seen.look(self._shadow.numbers, clock, self.spec.window.size))
        habits.learn_likeness()
        habits.learn_arrivals()
        if good is not None:
            habits.learn_bursts(good, share)
        habits.remember(current, clock)
        habits.learn_scores(current)
        habits.learn_values()
        found = super()._rank_now(clock)
        needed = float(self._shown.top_score[self.spec.k - 1]) if found == self.spec.k else self._lowest()
        habits.learn_likely(needed, clock, share)
        points = self._s.numbers[SIZE]
        habits.foresee(self._s.front, self._s.score[:points], clock)
        self._learn_bar(found, share)
        self._scan()
        self._shadow = grown(self._shadow, self.spec, self.spec.streams * len(current))
        self._judge(found)

    def _look_at_all(self) -> tuple[Floats, float | None]:
        """The scores of all objects, best first; and how many good ones came in half a window, if that is known."""
        habits = self._habits
        then, level = habits.past[:, -habits.half()].tolist()
        current = np.empty(len(self._s.slots))
        known = not math.isnan(then)
        found, good = forecast.look_at_all(
            self._s.slots,
            self._clock(),
            habits.learnt,
            self._scoring,
            int(then) if known else -NEVER,
            level if known else 0.0,
            self.spec.window.size,
            current,
        )
        return -np.sort(-current[:found]), float(good) if known else None

    def _judge(self, found: int) -> None:
        """Let go of all objects that are not worth their place, but for the `found` ones of the answer."""
        learnt, k, size = self._habits.learnt, self.spec.k, self.spec.window.size
        if learnt.figures[JUDGES]:
            kernels.judge_doors(self._s, self._door, self._clock(), k, size, learnt, self._scoring)
            kernels.judge_all(self._s, k, size, learnt, self._shadow, self._door, self._scoring, self._shown, found)

    def _lowest(self) -> float:
        return float(current_score(self._door, 0, 0, self._scoring))

    def _scan(self) -> None:
        stair_last, stair_score, stairs = self._prune()
        if self._shadow.numbers[RECORDS]:
            scan(self._shadow, self._clock(), stair_last, stair_score, stairs, self._door, self._scoring)

    # -- the bar ------------------------------------------------------------------------------------------------------

    def _learn_bar(self, found: int, share: float) -> None:
        """Set the bar by what objects that answers show were worth; in the first windows all is held."""
        figures, clock, size = self._habits.learnt.figures, self._clock(), self.spec.window.size
        if figures[JUDGES]:
            self._habits.learnt.lost[:] *= share
            self._shown_mass *= share
            kernels.count_levels(
                self._s,
                self._shown,
                found,
                self.spec.k,
                self._door,
                self._habits.learnt,
                self._scoring,
                self._shown_mass,
            )
            if clock - self._habits.began >= LEARNS_FOR * size:
                self._set_bar()
        elif clock - self._habits.began >= size:
            figures[JUDGES] = 1.0
            self._seen.begin(clock)

    def _set_bar(self) -> None:
        """The most that can be asked of an object to be worth, without missing more than is allowed."""
        figures = self._habits.learnt.figures
        if self._seen.must_be_exact:
            figures[BAR] = 0.0
            return
        missed = np.empty(LEVELS)
        expect_missed(figures[BAR], self._shown_mass, self._habits.learnt.lost, self._habits.looks(), missed)
        level = max(int(np.argmax(missed * self._seen.times <= self._seen.aim)), LEAST_LEVEL)
        before = -LEVELS_AN_OCTAVE * math.log2(figures[BAR]) if figures[BAR] else float(LEVELS - 1)
        figures[BAR] = 2.0 ** (-max(float(level), before - RISES_BY * LOOKS / self._habits.looks()) / LEVELS_AN_OCTAVE)

    # -- state --------------------------------------------------------------------------------------------------------

    def rows_on_record(self) -> int:
        """How many rows that were let go the shadow knows of."""
        return int(self._shadow.numbers[RECORDS])

    def _grow(self, codes: int) -> None:
        super()._grow(codes)
        self._habits.grow(codes)
        prints = np.zeros(codes, np.uint32)
        prints[: len(self._shadow.prints)] = self._shadow.prints
        self._shadow = self._shadow._replace(prints=prints)

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        super()._compact(kept, code_of)
        self._habits.compact(kept)
        self._shadow = self._shadow._replace(prints=self._shadow.prints[kept])

    def _state(self) -> Arrays:
        return {
            **super()._state(),
            **self._habits.state(),
            **shadow_state(self._shadow),
            **self._seen.state(),
            "shown_mass": self._shown_mass.copy(),
        }

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        self._habits.restore(state)
        self._shadow = restored(self._shadow, state, self.spec)
        self._seen.restore(state)
        self._shown_mass[:] = state["shown_mass"]

    def check(self) -> None:
        facts, alive = self._habits.learnt.facts, (self._s.slots["last"] >= self._clock()).any(axis=1)
        assert (facts[CAME, alive] <= self._habits.learnt.figures[ROWS]).all(), "an object came before now"
        table = self._shadow.table
        assert np.count_nonzero(table["used"]) == self.rows_on_record(), "every record is counted"
        assert 2 * self.rows_on_record() <= len(table), "and half of the table is free"
        assert 0 <= self.recall <= 1, "answers have no more than all objects"
