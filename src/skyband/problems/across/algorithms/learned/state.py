"""What `learned` holds.

What an object may become is looked up: to which streams it still comes (after which streams had come, by age), what
these bring (each stream's latest values, nearer to those it has the more values are alike), and which k scores are
sure, or usual by then, that are to be beaten. The more good objects come in bursts, the less is usual. Whether that is
right is not taken on trust: what is missed is counted, and the bar follows.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Ints
from skyband.problems.across.algorithms.learned.kernels import forecast
from skyband.problems.across.algorithms.learned.kernels import steps as kernels
from skyband.problems.across.algorithms.learned.kernels.retention import (
    AGES,
    ALIKE,
    BAR,
    BINS,
    CAME,
    FACTS,
    FIGURES,
    JUDGES,
    LEVELS,
    LEVELS_AN_OCTAVE,
    LOOKED,
    ROWS,
    SCANNED,
    SCANNED_AT,
    TICKS,
    Learnt,
)
from skyband.problems.across.algorithms.learned.kernels.shadow import MISSED, MISSING, RECORDS, scan
from skyband.problems.across.algorithms.learned.shadow import Seen, grown, new_shadow, prints_of, restored, shadow_state
from skyband.problems.across.algorithms.staircase.kernels import SIZE
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.drivers.clock import Steps
from skyband.problems.across.drivers.kernels.slots import current_score, new_slots
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.windows import FOREVER

LOOKS: Final = 20  # how often a window all objects are looked at, at most
FEWEST_ROWS: Final = 150  # between two looks
FEWEST_TO_JUDGE: Final = 48  # rows between two times at which all objects are judged
MEMORY: Final = 6.0  # windows after which what was learnt counts a third
DOUBTED: Final = 0.25  # of what was learnt counts when more is missed than is allowed
# How far ahead an object's future is looked at, as shares of the window; and up to where each of these counts.
AHEAD: Final = np.array([0.0125, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
WIDTHS: Final = np.diff(np.concatenate([[0.0], (AHEAD[1:] + AHEAD[:-1]) / 2, [1.0]]))
MOMENTS: Final = len(AHEAD)
DRAWS: Final = 8  # of what may come
QUANTILES: Final = 32  # of a stream's values
DOORS: Final = 12  # of them, for which it is worked out what new objects are worth
LIKELY: Final = np.array([0.01, 0.06, 0.15, 0.28, 0.28, 0.22])  # steps of what may be needed to be in the answer
RECENT: Final = 256  # values of a stream that are remembered
FEWEST_TO_GO_BY: Final = 4  # scores
MOST_STREAMS: Final = 63
MOST_K: Final = 4096
FEW_STREAMS: Final = 4  # up to which every set of streams has waits of its own
TRUST: Final = 1.0  # in what is expected: as if so many objects had been seen for a window, just as expected
TRUST_IN_STEPS: Final = 2.0  # in how likely they are: as if it had been seen for so many windows
LEAST_LEVEL: Final = 2 * LEVELS_AN_OCTAVE  # of the bar: above it there is enough to compare
LEAST_TIMES: Final = 0.7  # as much as expected, at least: that little was seen of late says little where habits change
COMPARED: Final = 0.25  # share of what is shown by which it is told how far what is expected is right
SELDOM: Final = 0.1  # what is expected n times more seldom than what is compared is seen n**SELDOM times as often
TINY: Final = 1e-9  # nothing is divided by less
FEWEST_BURSTS: Final = 0.5  # as if half a window had been seen so often in which objects come independently
MOST_ALIKE: Final = 0.95
MOST_NEAR: Final = 0.98
LEARNS_FOR: Final = 1.5  # windows in which all is held
RISES_BY: Final = LEVELS_AN_OCTAVE // 2  # levels a look: the bar rises slowly, and falls at once

MIDDLES: Final = np.cumsum(LIKELY) - 0.5 * LIKELY
SPREADS: Final = np.array([NormalDist().inv_cdf(p) for p in MIDDLES])
CONSTANT: Final = ("draws", "widths")  # of what is learnt: not saved


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
        d, k = spec.streams, spec.k
        sets = 1 << d if d <= FEW_STREAMS else d + 1
        figures = np.zeros(FIGURES)
        figures[TICKS], figures[SCANNED_AT] = 1.0, np.inf
        self._learnt = Learnt(
            facts=np.ones((FACTS, 0)),
            recent=np.zeros((d, RECENT)),
            taken=np.zeros(d, np.int64),
            waits=np.zeros((2, sets, d, AGES)),
            coming=np.zeros((sets, AGES + 1)),
            completion=np.zeros((sets, AGES + 1, sets)),
            values=np.zeros((d, QUANTILES)),
            pairs=np.zeros(5),
            draws=_spread_evenly(DRAWS, d),
            moments=np.zeros(MOMENTS, np.int64),
            widths=WIDTHS.copy(),
            arrives=np.zeros((sets, AGES + 1, MOMENTS)),
            needed=np.full((MOMENTS, len(LIKELY)), -np.inf),
            likely=np.tile(LIKELY, (MOMENTS, 1)),
            spread=SPREADS.copy(),
            ladder=np.full(4 * k, -np.inf),
            enough=np.zeros((MOMENTS + 1, BINS)),
            doors=np.zeros((2, d, DOORS)),
            lost=np.zeros(LEVELS),
            figures=figures,
        )
        self._octaves = np.log2(np.arange(k + 1, 4 * k + 1) / k)  # of ranks below k
        self._shadow = new_shadow(spec)
        self._seen = Seen(spec.recall, k)
        self._door = new_slots(1, d)  # an object that is looked at, and not held
        self._began = FOREVER  # the clock's first moment
        self._looked = FOREVER  # its moment at the last look
        self._pace = np.zeros(2)  # how much the clock moved on, and rows came, with less and less weight
        self._shown_mass = np.zeros(LEVELS)  # objects that answers showed, by the least retention value they ever had
        # At the last looks: what was foreseen to be needed at which moments; and how often it was, by moment and step.
        self._foreseen_at = np.full((LOOKS, MOMENTS), -FOREVER)
        self._foreseen = np.zeros((LOOKS, *self._learnt.needed.shape))
        self._came_true = np.zeros_like(self._learnt.needed)
        self._past = np.full((2, LOOKS // 2), np.nan)  # at the last looks: the clock, and the k-th best score
        self._bursts = np.zeros(3)  # halves of windows, good objects that came in them, and their squares

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        self._shadow.prints[batch.code] = prints_of(batch.key if len(batch.key) else batch.code.astype(np.int64))
        return super().push(batch)

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        figures, window = self._learnt.figures, self.spec.window
        if self._began == FOREVER:
            self._began = self._looked = int(steps.clock[step])
        rows = window.size / figures[TICKS] if window.by_count or figures[LOOKED] else 0.0
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
            self._s, self._door, self._learnt, self._shadow, self._shown, self._out, written,
        )  # fmt: skip

    def _rank_now(self, clock: int) -> int:
        found = super()._rank_now(clock)
        self.recall = float(
            kernels.recount(self._shadow, self._shown, found, self.spec.k, self._clock(), self._scoring)
        )
        return found

    # -- learning -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Learn from what has happened since the last look, and judge every object anew."""
        learnt, k, size, clock = self._learnt, self.spec.k, self.spec.window.size, self._clock()
        then, level = self._past[:, -self._half()].tolist()
        current = np.empty(len(self._s.slots))
        since = -FOREVER if math.isnan(then) else int(then)
        found, good = forecast.look_at_all(
            self._s.slots, clock, learnt, self._scoring, since, 0.0 if math.isnan(level) else level, size, current
        )
        current = -np.sort(-current[:found])
        share = self._pace_of(clock)
        if self._seen.look(self._shadow.numbers, clock, size):
            share *= DOUBTED
        learnt.waits[:] *= share
        learnt.pairs[:] *= share
        self._learn_likeness()
        rows = max(int(size / learnt.figures[TICKS]), 1)
        forecast.complete(learnt.waits, learnt.coming, learnt.completion, rows, np.empty(self.spec.streams))
        forecast.arrive(learnt.coming, learnt.arrives, rows, AHEAD)
        if not math.isnan(then):
            self._learn_bursts(float(good), share)
        self._remember(current, clock)
        self._learn_scores(current)
        self._learn_values()
        found = super()._rank_now(clock)
        self._learn_likely(float(self._shown.top_score[k - 1]) if found == k else self._lowest(), clock, share)
        self._foresee(clock)
        if learnt.figures[JUDGES]:
            learnt.lost[:] *= share
            self._learn_losses(found, share)
            if clock - self._began >= LEARNS_FOR * size:
                self._set_bar()
        elif clock - self._began >= size:
            learnt.figures[JUDGES] = 1.0
            self._seen.begin(clock)
        self._scan(found)
        self._shadow = grown(self._shadow, self.spec, self.spec.streams * len(current))
        if learnt.figures[JUDGES]:
            kernels.judge_doors(self._s, self._door, clock, k, size, learnt, self._scoring)
            kernels.judge_all(self._s, k, size, learnt, self._shadow, self._scoring, self._shown, found)

    def _looks(self) -> float:
        """How often a window all objects are looked at."""
        rows = self.spec.window.size / float(self._learnt.figures[TICKS])
        return min(max(rows / FEWEST_ROWS, 1.0), LOOKS)

    def _half(self) -> int:
        """Looks in half a window."""
        return max(int(self._looks() / 2), 1)

    def _scan(self, found: int) -> None:
        stair_last, stair_score, stairs = self._prune()
        if self._shadow.numbers[RECORDS]:
            needed = float(self._shown.top_score[found - 1]) if found == self.spec.k else -math.inf
            figures = self._learnt.figures
            figures[SCANNED], figures[SCANNED_AT] = figures[ROWS], needed
            scan(self._shadow, self._s, needed, stair_last, stair_score, stairs, self._door, self._scoring)

    def _pace_of(self, clock: int) -> float:
        """How much the clock moves on with a row; returns how much of what was learnt before still counts."""
        figures = self._learnt.figures
        moved, rows = clock - self._looked, figures[ROWS] - figures[LOOKED]
        share = math.exp(-moved / (MEMORY * self.spec.window.size))
        self._pace = self._pace * share + (moved, rows)
        if self._pace[0] > 0:
            figures[TICKS] = self._pace[0] / self._pace[1]
        self._looked, figures[LOOKED] = clock, figures[ROWS]
        return share

    def _learn_scores(self, current: npt.NDArray[np.float64]) -> None:
        """The usual scores: of the best k as they are; below, where objects are missing, as these fall."""
        ladder, k = self._learnt.ladder, self.spec.k
        there = current[: len(ladder)]
        now = np.full(len(ladder), self._lowest())
        now[: len(there)] = there
        if k >= FEWEST_TO_GO_BY and len(there) >= k:
            now[k:] = np.maximum(now[k:], now[k - 1] - (now[k // 2 - 1] - now[k - 1]) * self._octaves)
        ladder[:] = now if ladder[0] == -np.inf else ladder + (now - ladder) * min(2 / self._looks(), 1.0)

    def _learn_bursts(self, good: float, share: float) -> None:
        """How much the number of good objects varies: the more they come in bursts, the less is sure to come.

        That is, of those that came in half a window and reach the k-th best score from before it. If they come
        independently of each other, the variance of their number is its mean, and some more for that score's own. Few
        windows tell little of it; values that are near the ones before them do at once.
        """
        self._bursts = self._bursts * share + (1.0, good, good * good)
        looks, total, squares = self._bursts.tolist()
        halves, mean = looks / self._half(), total / looks
        times = (squares / looks - mean * mean) / max(mean * (1.0 + mean / self.spec.k), 1.0)
        times = (FEWEST_BURSTS + halves * times) / (FEWEST_BURSTS + halves)
        near, streams = forecast.nearness(self._learnt.recent, self._learnt.taken)
        near = min(max(near - 2 / math.sqrt(RECENT * max(streams, 1)), 0.0), MOST_NEAR)
        # So many values of a stream are worth as much as one if they were independent.
        follow = (1.0 + near) / (1.0 - near)
        self._learnt.spread[:] = math.sqrt(max(times, follow, 1.0)) * SPREADS

    def _remember(self, current: npt.NDArray[np.float64], clock: int) -> None:
        k = self.spec.k
        known = clock - self._began >= self.spec.window.size and len(current) >= k
        self._past[:, :-1] = self._past[:, 1:]
        self._past[:, -1] = (clock, current[k - 1]) if known else math.nan

    def _foresee(self, clock: int) -> None:
        learnt, size, points = self._learnt, self.spec.window.size, self._s.numbers[SIZE]
        order = np.argsort(-self._s.score[:points], kind="stable")
        forecast.foresee(self._s.front, self._s.score, order, clock, size, self.spec.k, AHEAD, learnt)
        forecast.tabulate(learnt)
        if clock - self._began >= size:
            self._foreseen_at[:-1], self._foreseen[:-1] = self._foreseen_at[1:], self._foreseen[1:]
            self._foreseen_at[-1], self._foreseen[-1] = learnt.moments, learnt.needed

    def _learn_likely(self, needed: float, clock: int, share: float) -> None:
        near, trust = self.spec.window.size / self._looks(), TRUST_IN_STEPS * self._looks()
        forecast.learn_likely(
            self._foreseen_at, self._foreseen, self._came_true, needed, clock, near, share, LIKELY, trust,
            self._learnt.likely,
        )  # fmt: skip

    def _lowest(self) -> float:
        return float(current_score(self._door, 0, 0, self._scoring))

    def _learn_values(self) -> None:
        learnt = self._learnt
        if (learnt.taken >= RECENT).all():
            learnt.values[:] = np.sort(learnt.recent, axis=1)[:, RECENT // QUANTILES // 2 :: RECENT // QUANTILES]
            return
        for s, taken in enumerate(learnt.taken.tolist()):
            if taken:
                known = np.sort(learnt.recent[s, : min(taken, RECENT)])
                learnt.values[s] = known[((np.arange(QUANTILES) + 0.5) / QUANTILES * len(known)).astype(np.int64)]

    def _learn_likeness(self) -> None:
        """How much of an object's place among the values of its streams the next one has: the slope, less its error.

        Unlike a correlation it is not changed by which objects are held, which is decided before the value comes.
        """
        number, own, came, squares, products = self._learnt.pairs.tolist()
        spread = number * squares - own * own
        slope = (number * products - own * came) / spread if spread > 0 else 0.0
        slope = min(max(slope - 2 / math.sqrt(max(number, 1.0)), 0.0), MOST_ALIKE)
        # With weights w and 1 - w, what is the object's own and what is not correlate as the slope says.
        self._learnt.figures[ALIKE] = slope / (slope + math.sqrt(1.0 - slope * slope))

    # -- the bar ------------------------------------------------------------------------------------------------------

    def _learn_losses(self, found: int, share: float) -> None:
        self._shown_mass *= share
        kernels.count_levels(
            self._s, self._shown, found, self.spec.k, self._door, self._learnt, self._scoring, self._shown_mass
        )

    def _set_bar(self) -> None:
        """The most that can be asked of an object to be worth, without missing more than is allowed."""
        figures = self._learnt.figures
        if self._seen.must_be_exact:
            figures[BAR] = 0.0
            return
        missed = self._missed() * self._seen.times
        level = max(int(np.argmax(missed <= self._seen.aim)), LEAST_LEVEL)
        before = -LEVELS_AN_OCTAVE * math.log2(figures[BAR]) if figures[BAR] else float(LEVELS - 1)
        figures[BAR] = 2.0 ** (-max(float(level), before - RISES_BY * LOOKS / self._looks()) / LEVELS_AN_OCTAVE)

    def _missed(self) -> npt.NDArray[np.float64]:
        """By level of the bar: which share of the objects that answers should show is missed, as expected.

        That is, times how much more is seen than expected where both are known: above the bar, of as much as is enough
        to tell. What is expected more seldom than that happens somewhat oftener than expected.
        """
        bar, number = self._learnt.figures[BAR], self._shown_mass
        held = LEVELS - 1 if not bar else max(int(-LEVELS_AN_OCTAVE * math.log2(bar)) - LEVELS_AN_OCTAVE // 2, 2)
        seen = np.append(np.cumsum(number[1:held][::-1])[::-1], 0.0)
        expected = np.maximum(np.cumsum(self._learnt.lost), 0.0) * self._looks()
        level = int(np.argmax(seen <= COMPARED * number.sum()))
        trust = TRUST * self._looks()
        times = (trust + seen[level]) / (trust + max(expected[level] - expected[held - 1], 0.0))
        seldom = np.maximum(expected[level] / np.maximum(expected, TINY), 1.0)
        return np.asarray(max(times, LEAST_TIMES) * seldom**SELDOM * expected / max(number.sum(), 1.0))

    # -- state --------------------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        self._prune()
        return self._held + self._schedule.rows_waiting()

    def rows_on_record(self) -> int:
        """How many rows that were let go the shadow knows of."""
        return int(self._shadow.numbers[RECORDS])

    def _grow(self, codes: int) -> None:
        super()._grow(codes)
        facts, before = np.ones((FACTS, codes)), self._learnt.facts.shape[1]
        facts[:, :before] = self._learnt.facts
        prints = np.zeros(codes, np.uint32)
        prints[:before] = self._shadow.prints
        self._learnt, self._shadow = self._learnt._replace(facts=facts), self._shadow._replace(prints=prints)

    def _recode(self, kept: Ints, code_of: Codes) -> None:
        super()._recode(kept, code_of)
        self._learnt = self._learnt._replace(facts=np.ascontiguousarray(self._learnt.facts[:, kept]))
        self._shadow = self._shadow._replace(prints=self._shadow.prints[kept])
        code = self._shadow.code[: self._shadow.numbers[MISSED]]
        code[:] = np.where(code >= 0, code_of[code], -1)

    def _state(self) -> Arrays:
        saved = {
            f"learnt_{name}": array.copy() for name, array in self._learnt._asdict().items() if name not in CONSTANT
        }
        return {
            **super()._state(),
            **saved,
            **shadow_state(self._shadow),
            **self._seen.state(),
            "learnt": np.array([self._began, self._looked], np.int64),
            "pace": self._pace.copy(),
            "shown_mass": self._shown_mass.copy(),
            "foreseen_at": self._foreseen_at.copy(),
            "foreseen": self._foreseen.copy(),
            "came_true": self._came_true.copy(),
            "past": self._past.copy(),
            "bursts": self._bursts.copy(),
        }

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        for name, array in self._learnt._asdict().items():
            if name == "facts":
                saved = state["learnt_facts"].reshape(FACTS, -1)
                array[:, : saved.shape[1]] = saved
            elif name not in CONSTANT:
                array[:] = state[f"learnt_{name}"].reshape(array.shape)
        self._shadow = restored(self._shadow, state, self.spec)
        self._seen.restore(state)
        self._began, self._looked = (int(number) for number in state["learnt"])
        for name in ("pace", "shown_mass", "foreseen_at", "foreseen", "came_true", "past", "bursts"):
            array = getattr(self, f"_{name}")
            array[:] = state[name].reshape(array.shape)

    def check(self) -> None:
        facts, alive = self._learnt.facts, (self._s.slots["last"] >= self._clock()).any(axis=1)
        assert (facts[CAME, alive] <= self._learnt.figures[ROWS]).all(), "an object came before now"
        table = self._shadow.table
        assert np.count_nonzero(table["used"]) == self.rows_on_record(), "every record is counted"
        assert 2 * self.rows_on_record() <= len(table), "and half of the table is free"
        assert 0 <= self.recall <= 1, "answers have no more than all objects"


def _spread_evenly(number: int, streams: int) -> npt.NDArray[np.float64]:
    """Which quantile each draw has of each stream, such that few draws have some of everything; and where it begins.

    Each is a multiple of a power of the root g of g**(n + 1) = g + 1, less what is whole: the golden ratio, for n = 1.
    """
    root = 2.0
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (streams + 1))
    step = root ** -np.arange(1.0, streams + 1)
    points = (0.5 + np.outer(np.arange(1, number + 1), step)) % 1.0
    turns = np.tile(np.arange(number)[:, np.newaxis] % streams, (1, streams))
    return np.ascontiguousarray(np.stack([points * QUANTILES, turns.astype(np.float64)]))
