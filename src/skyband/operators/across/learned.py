"""Learned: as many objects as a promised share of the answers needs, by what the streams have shown so far.

Paper:      ours, after Haghani, Michel, Aberer, CIKM 2009, section 4.
Invariant:  an object is held as long as it is worth its place: as the share of its time in which it is expected to be
            in the answer, and would not be if it were let go, is at least a bar. The bar is the highest that misses no
            more than three quarters of what was allowed: by what is expected of all that is let go, times how much more
            than expected is seen of what is held. The first two windows are held as `staircase` holds them: that is
            when it learns.
Cost:       push as `staircase`, on fewer objects; judging an object takes some microseconds, and all are judged 20
            times a window. State: the objects held, and some kilobytes of what was learnt, whatever the window.
Choose it:  recall=0.95, that is, a share of the objects is enough, and memory matters.

What an object is worth is worked out by looking ahead: values that it lacks come as often, as late and as large as they
came to others (after which streams had come, by age; each stream's latest values), nearer to those it has the more
values are alike, and k scores that are sure, or usual by then, are to be beaten. The more good objects come in bursts,
the less is usual; a stream whose values are near the ones before them is known for bursts at once. How likely it is
that more or less is needed than usual is learnt from what came of what was foreseen. Some objects that are not worth it
are held by chance, each for all that were let go alike: if many that seemed worth nothing are shown, what is expected
is wrong, and all is held.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.operators.across import learned_kernels as kernels
from skyband.operators.across.learned_kernels import Lottery
from skyband.operators.across.protocol import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.operators.across.schedule import Steps
from skyband.operators.across.slots import NEVER, current_score, new_slots
from skyband.operators.across.staircase import Staircase
from skyband.operators.across.staircase import expected_rows as exact_rows
from skyband.operators.across.staircase import refuses as refused_by_staircase
from skyband.operators.across.staircase_kernels import CLOCK, SIZE
from skyband.operators.across.worth_kernels import (
    AGES,
    ALIKE,
    BAR,
    CAME,
    FACTS,
    FIGURES,
    HOPES,
    JUDGES,
    LEVELS,
    LEVELS_AN_OCTAVE,
    LOOKED,
    LOT,
    ROWS,
    TICKS,
    UNTIL,
    WEIGHT,
    Learnt,
    level_of,
)
from skyband.operators.protocol import Arrays, Codes, Ints
from skyband.windows import FOREVER

NAME = "learned"

LOOKS: Final = 20  # how often a window all objects are looked at
FEWEST_ROWS: Final = 16  # between two looks
MEMORY: Final = 6.0  # windows after which what was learnt counts a third
MOMENTS: Final = 8  # at which an object's future is looked at
NEARBY: Final = 5  # moments about each of them
DRAWS: Final = 16  # of what may come
QUANTILES: Final = 32  # of a stream's values
LIKELY: Final = np.array([0.01, 0.06, 0.15, 0.28, 0.28, 0.22])  # steps of what may be needed to be in the answer
HALF: Final = LOOKS // 2
RECENT: Final = 256  # values of a stream that are remembered
FEWEST_TO_GO_BY: Final = 4  # scores
FEW_STREAMS: Final = 5  # up to which every set of streams has waits of its own
LOTTERY: Final = Lottery(most=0.03, fewest=0.015)
TRUST: Final = 1.0  # in what is expected: as if so many objects had been seen for a window, just as expected
TRUST_IN_STEPS: Final = 2.0  # in how likely they are: as if it had been seen for so many windows
LEAST_LEVEL: Final = 2 * LEVELS_AN_OCTAVE  # of the bar: above it there is enough to compare
LEAST_TIMES: Final = 0.7  # as much as expected, at least: that little was seen of late says little where habits change
COMPARED: Final = 0.25  # share of what is shown by which it is told how far what is expected is right
SELDOM: Final = 0.1  # what is expected n times more seldom than what is compared is seen n**SELDOM times as often
TINY: Final = 1e-9  # nothing is divided by less
FEWEST_BURSTS: Final = 0.5  # as if half a window had been seen so often in which objects come independently
UNFORESEEN: Final = 0.005  # of what answers show seems worth nothing at some time, as far as nothing else is seen
MOST_ALIKE: Final = 0.95
MOST_NEAR: Final = 0.98
MISSED_BY_A_LOOK: Final = 3.0 / LOOKS  # of what is let go: nearly all within a window
AIMED_AT: Final = 0.75  # of what may be missed: what is expected may be off by a half or more, one way or the other
MANY_LOTS: Final = 12.0  # windows: one object held by chance stands for so many that alone it must not be believed


MIDDLES: Final = np.cumsum(LIKELY) - 0.5 * LIKELY
SPREADS: Final = np.array([NormalDist().inv_cdf(p) for p in MIDDLES])


class Rule(NamedTuple):
    k: int
    emit: int
    each: bool
    sweep_after: int
    size: int


MOST = 100_000  # as k


def refuses(spec: AcrossSpec) -> str | None:
    if not spec.recall:
        return "it needs recall=, the share of objects that is enough"
    if spec.window.size == FOREVER:
        return "nothing leaves a window from the start on, so it never knows what it is worth to hold an object"
    if spec.k > MOST:
        return f"k is above {MOST:,}, and it keeps several scores for each of the k best"
    return refused_by_staircase(spec)


def expected_rows(spec: AcrossSpec, window_rows: float) -> float:
    """As measured for recall=0.95, three streams half in step, objects that come again within 1/7 of the window."""
    return exact_rows(spec, window_rows) / 5


def open(spec: AcrossSpec) -> Learned:
    return Learned(spec)


class Learned(Staircase):
    wants_keys = True

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec)
        d, k = spec.streams, spec.k
        sets = 1 << d if d <= FEW_STREAMS else d + 1
        draws = _spread_evenly(DRAWS << (d > 3) + (d > 5), d)  # the more may come, the more ways there are
        draws[0] = -np.log(draws[0])
        draws[1] *= QUANTILES
        figures = np.zeros(FIGURES)
        figures[TICKS] = 1.0
        self._learnt = Learnt(
            facts=np.ones((FACTS, 0)),
            recent=np.zeros((d, RECENT)),
            taken=np.zeros(d, np.int64),
            waits=np.zeros((2, sets, d, AGES)),
            coming=np.zeros((sets, d, AGES + 1)),
            values=np.zeros((d, QUANTILES)),
            pairs=np.zeros(5),
            draws=draws,
            moments=np.zeros(MOMENTS, np.int64),
            needed=np.full((MOMENTS, len(LIKELY)), -np.inf),
            likely=np.tile(LIKELY, (MOMENTS, 1)),
            spread=SPREADS.copy(),
            sure=np.full(k, -np.inf),
            ladder=np.full(4 * k, -np.inf),
            least=np.full(d, -np.inf),
            shares=np.zeros(MOMENTS),
            waiting=np.zeros(MOMENTS),
            hopes=np.zeros((HOPES, d, MOMENTS)),
            alone=np.zeros(MOMENTS),
            heard=np.zeros(d),
            open=np.zeros(d, np.int64),
            lost=np.zeros(LEVELS),
            figures=figures,
        )
        self._scratch = new_slots(1, d)
        self._began = FOREVER  # the clock's first moment
        self._looked = FOREVER  # its moment at the last look
        self._pace = np.zeros(2)  # how much the clock moved on, and rows came, with less and less weight
        # What answers showed, by the least that it was ever worth: objects, by what they stand for and by number.
        self._shown_mass = np.zeros((2, LEVELS))
        # At the last looks: what was foreseen to be needed at which moments; and how often it was, by moment and step.
        self._foreseen_at = np.full((LOOKS, MOMENTS), -FOREVER)
        self._foreseen = np.zeros((LOOKS, *self._learnt.needed.shape))
        self._came_true = np.zeros_like(self._learnt.needed)
        self._past = np.full((2, HALF), np.nan)  # at the last looks: the clock, and the k-th best score
        self._bursts = np.zeros(3)  # halves of windows, good objects that came in them, and their squares
        self.recall = 1.0  # as of the last look

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        key = batch.key if len(batch.key) else batch.code.astype(np.int64)
        self._learnt.facts[LOT, batch.code] = _lots(key)
        return super().push(batch)

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        figures, window = self._learnt.figures, self.spec.window
        if self._began == FOREVER:
            self._began = self._looked = int(steps.clock[step])
        rows = window.size / figures[TICKS] if window.by_count or figures[LOOKED] else 0
        after = max(FEWEST_ROWS, int(rows / LOOKS))
        if figures[ROWS] - figures[LOOKED] >= after:
            self._look()
        if self._s.numbers[SIZE] + self.spec.streams > len(self._s.score):
            self._widen(2 * len(self._s.score))
        rule = Rule(self.spec.k, self.spec.emit, steps.each, after, window.size)
        step, after_it = kernels.execute(
            rule, self._scoring, steps.rows, steps.clock, steps.row, step, end,
            self._s, self._scratch, self._learnt, LOTTERY, self._shown, self._out, written,
        )  # fmt: skip
        self._out.recall[written:after_it] = self.recall
        return step, after_it

    # -- learning -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Learn from what has happened since the last look, and judge every object anew."""
        learnt, k, size, clock = self._learnt, self.spec.k, self.spec.window.size, self._clock()
        current = np.empty(len(self._s.slots))
        kernels.wait(self._s.slots, clock, learnt, self._scoring, current)
        share = self._pace_of(clock)
        learnt.waits[:] *= share
        learnt.pairs[:] *= share
        self._learn_likeness()
        kernels.accumulate(learnt.waits, learnt.coming)
        self._learn_bursts(current, clock, share)
        self._learn_scores(current)
        self._learn_values()
        found = self._rank_now(clock)
        self._learn_odds(float(self._shown.top_score[k - 1]) if found == k else self._lowest(), clock, share)
        self._foresee(clock)
        shown = self._shown.top_code[:found]
        begins = not learnt.figures[JUDGES] and clock - self._began >= size
        if learnt.figures[JUDGES]:
            learnt.lost[:] *= share
            self._learn_losses(found, share)
        if clock - self._began >= 2 * size:
            self._set_bar()
        if begins:
            learnt.figures[JUDGES] = 1.0
        self._prune()
        mark = self._shown.mark
        mark[shown] = 1
        kernels.judge_all(self._s, k, learnt, LOTTERY, self._scoring, mark)
        mark[shown] = 0
        if begins:
            # From now on, what is expected is told as objects come; not of those that were there before.
            learnt.lost[:] = 0.0
        high = self._scoring.table[2]
        highest = np.where(np.isfinite(high), high, learnt.values[:, -1])
        kernels.least_values(self._scratch, clock, size, learnt, self._scoring, highest)

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
        there = -np.sort(-current[~np.isnan(current)])[: len(ladder)]
        now = np.full(len(ladder), self._lowest())
        now[: len(there)] = there
        if k >= FEWEST_TO_GO_BY and len(there) >= k:
            below = np.log2(np.arange(k + 1, len(ladder) + 1) / k)
            now[k:] = np.maximum(now[k:], now[k - 1] - (now[k // 2 - 1] - now[k - 1]) * below)
        ladder[:] = now if ladder[0] == -np.inf else ladder + (now - ladder) * 2 / LOOKS

    def _learn_bursts(self, current: npt.NDArray[np.float64], clock: int, share: float) -> None:
        """How much the number of good objects varies: the more they come in bursts, the less is sure to come.

        That is, of those that came in half a window and reach the k-th best score from before it. If they come
        independently of each other, the variance of their number is its mean, and some more for that score's own. Few
        windows tell little of it; values that are near the ones before them do at once.
        """
        then, level = self._past[:, 0]
        if not np.isnan(then):
            last = self._s.slots["last"]
            came = np.where(last == NEVER, FOREVER, last).min(axis=1) - self.spec.window.size
            good = float(np.count_nonzero((came >= then) & (current >= level)))
            self._bursts = self._bursts * share + (1.0, good, good * good)
            looks, total, squares = self._bursts.tolist()
            halves, mean = looks / HALF, total / looks
            times = (squares / looks - mean * mean) / max(mean * (1.0 + mean / self.spec.k), 1.0)
            times = (FEWEST_BURSTS + halves * times) / (FEWEST_BURSTS + halves)
            self._learnt.spread[:] = math.sqrt(max(times, self._follow(), 1.0)) * SPREADS
        there = np.sort(current[~np.isnan(current)])[-self.spec.k :]
        known = clock - self._began >= self.spec.window.size and len(there) == self.spec.k
        self._past = np.append(self._past[:, 1:], [[clock], [there[0]]] if known else [[np.nan], [np.nan]], axis=1)

    def _follow(self) -> float:
        """How many values of a stream are worth as much as one if they were independent: by how near neighbours are."""
        near, streams = 0.0, np.flatnonzero(self._learnt.taken >= RECENT)
        for s in streams:
            in_order = np.roll(self._learnt.recent[s], -self._learnt.taken[s])
            rank = np.unique(in_order, return_inverse=True)[1]
            off = rank - rank.mean()
            near += float(off[1:] @ off[:-1]) / max(float(off @ off), 1.0)
        by_chance = 2 / math.sqrt(RECENT * max(len(streams), 1))
        near = min(max(near / max(len(streams), 1) - by_chance, 0.0), MOST_NEAR)
        return (1.0 + near) / (1.0 - near)

    def _foresee(self, clock: int) -> None:
        """What a score needs to be in the answer about each moment: as at some around it, in likely steps."""
        learnt, size = self._learnt, self.spec.window.size
        learnt.moments[:] = clock + ((np.arange(MOMENTS) + 0.5) * size / MOMENTS).astype(np.int64)
        needed = np.empty((MOMENTS * NEARBY, len(LIKELY)))
        kernels.foresee(self._s.front, self._s.score, self._s.numbers[SIZE], clock, size, self.spec.k, learnt, needed)
        needed = needed.reshape(MOMENTS, -1)
        order = np.argsort(needed, axis=1)
        below = np.cumsum(np.tile(LIKELY / NEARBY, NEARBY)[order], axis=1)
        steps = (below[:, :, np.newaxis] >= MIDDLES).argmax(axis=1)
        learnt.needed[:] = np.take_along_axis(np.take_along_axis(needed, order, axis=1), steps, axis=1)
        if clock - self._began >= size:
            self._foreseen_at = np.append(self._foreseen_at[1:], learnt.moments[np.newaxis], axis=0)
            self._foreseen = np.append(self._foreseen[1:], learnt.needed[np.newaxis], axis=0)

    def _learn_odds(self, needed: float, clock: int, share: float) -> None:
        """How likely each step is: as often as what is needed now was foreseen as that step, for each moment ahead.

        Between two steps it counts half for each; if several are the same, for all of them.
        """
        self._came_true *= share
        off = np.abs(self._foreseen_at - clock)
        for j, look in enumerate(off.argmin(axis=0)):
            if off[look, j] > self.spec.window.size / LOOKS:
                continue
            low, high = (int(np.searchsorted(self._foreseen[look, j], needed, side)) for side in ("left", "right"))
            if low == high:
                self._came_true[j, [max(low - 1, 0), min(high, len(LIKELY) - 1)]] += 0.5
            else:
                self._came_true[j, low:high] += LIKELY[low:high] / LIKELY[low:high].sum()
        odds, trust = self._came_true, TRUST_IN_STEPS * LOOKS
        self._learnt.likely[:] = (trust * LIKELY + odds) / (trust + odds.sum(axis=1, keepdims=True))

    def _lowest(self) -> float:
        scratch = self._scratch
        return float(current_score(scratch, 0, 0, self._scoring))

    def _learn_values(self) -> None:
        learnt = self._learnt
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

    def _learn_losses(self, found: int, share: float) -> None:
        levels = np.empty(found, np.int64)
        kernels.levels_shown(
            self._s, self._shown, found, self.spec.k, self._scratch, self._learnt, self._scoring, levels
        )
        self._shown_mass *= share
        np.add.at(self._shown_mass[0], levels, self._learnt.facts[WEIGHT, self._shown.top_code[:found]])
        np.add.at(self._shown_mass[1], levels, 1.0)

    def _set_bar(self) -> None:
        """The most that can be asked of an object to be worth, without missing more than is allowed."""
        allowed = AIMED_AT * (1 - self.spec.recall)
        # Objects that seemed worth nothing are let go whatever the bar.
        trust = MANY_LOTS * LOOKS * self.spec.k
        unforeseen = (UNFORESEEN * trust + self._shown_mass[0, -1]) / (trust + self._shown_mass[0].sum())
        missed = np.minimum(self._missed() + min(unforeseen, 0.5 * allowed), 1.0)
        level = max(int(np.argmax(missed <= allowed)), LEAST_LEVEL)
        self._learnt.figures[BAR] = 2.0 ** (-level / LEVELS_AN_OCTAVE)
        if unforeseen > allowed:
            # Too many of them are shown, so what is expected is wrong: all is held from now on, as by `staircase`.
            self._learnt.figures[BAR] = missed[level] = 0.0
        # What is let go now is missed within a window.
        self.recall += (1.0 - float(missed[level]) - self.recall) * MISSED_BY_A_LOOK

    def _missed(self) -> npt.NDArray[np.float64]:
        """By level of the bar: which share of the objects that answers should show is missed, but for the unforeseen.

        That is what is expected, times how much more is seen than expected where both are known: above the bar, of as
        much as is enough to tell. What is expected more seldom than that happens somewhat oftener than expected.
        """
        bar, number = self._learnt.figures[BAR], self._shown_mass[1]
        known = LEVELS - 1 if not bar else max(level_of(bar) - LEVELS_AN_OCTAVE // 2, 2)
        seen = np.append(np.cumsum(number[1:known][::-1])[::-1], 0.0)
        expected = self._learnt.lost * (LOOKS / MOMENTS)
        level = int(np.argmax(seen <= COMPARED * number.sum()))
        trust = TRUST * LOOKS
        times = (trust + seen[level]) / (trust + expected[level] - expected[known - 1])
        seldom = np.maximum(expected[level] / np.maximum(expected, TINY), 1.0)
        return np.asarray(max(times, LEAST_TIMES) * seldom**SELDOM * expected / max(number.sum(), 1.0))

    # -- state --------------------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        return (
            int(kernels.count(self._s.slots, self._s.numbers[CLOCK], self._learnt.facts[UNTIL]))
            + self._schedule.rows_waiting()
        )

    def _live(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._s.slots["last"] >= self._s.numbers[CLOCK]).any(axis=1))

    def _grow(self, codes: int) -> None:
        super()._grow(codes)
        facts = np.ones((FACTS, codes))
        facts[:, : self._learnt.facts.shape[1]] = self._learnt.facts
        self._learnt = self._learnt._replace(facts=facts)

    def _recode(self, kept: Ints, code_of: Codes) -> None:
        super()._recode(kept, code_of)
        self._learnt = self._learnt._replace(facts=np.ascontiguousarray(self._learnt.facts[:, kept]))

    def _state(self) -> Arrays:
        saved = {f"learnt_{name}": array.copy() for name, array in self._learnt._asdict().items() if name != "draws"}
        return {
            **super()._state(),
            **saved,
            "learnt": np.array([self._began, self._looked], np.int64),
            "pace": np.append(self._pace, self.recall),
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
            elif name != "draws":
                array[:] = state[f"learnt_{name}"].reshape(array.shape)
        self._began, self._looked = (int(number) for number in state["learnt"])
        self._pace[:], self.recall = state["pace"][:2], float(state["pace"][2])
        self._shown_mass[:] = state["shown_mass"].reshape(2, LEVELS)
        self._foreseen_at = state["foreseen_at"].reshape(LOOKS, MOMENTS).copy()
        self._foreseen[:] = state["foreseen"].reshape(self._foreseen.shape)
        self._came_true[:] = state["came_true"].reshape(self._came_true.shape)
        self._past, self._bursts = state["past"].reshape(2, HALF).copy(), state["bursts"].copy()

    def check(self) -> None:
        facts, alive = self._learnt.facts, self._live()
        assert (facts[WEIGHT, alive] >= 1).all(), "an object stands at least for itself"
        assert (facts[CAME, alive] <= self._learnt.figures[ROWS]).all(), "and came before now"
        assert 0 < self.recall <= 1, "answers have no more than all objects"


def _spread_evenly(number: int, streams: int) -> npt.NDArray[np.float64]:
    """Two numbers from (0, 1) for each draw and stream, such that few draws have some of everything.

    Each is a multiple of a power of the root g of g**(n + 1) = g + 1, less what is whole: the golden ratio, for n = 1.
    """
    root = 2.0
    for _ in range(50):
        root = (1.0 + root) ** (1.0 / (2 * streams + 1))
    step = root ** -np.arange(1.0, 2 * streams + 1)
    points = (0.5 + np.outer(np.arange(1, number + 1), step)) % 1.0
    return np.ascontiguousarray(points.reshape(number, 2, streams).transpose(1, 0, 2))


def _lots(key: Ints) -> npt.NDArray[np.float64]:
    """A number from [0, 1) for each object that is the same whenever it comes."""
    mixed = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
