"""What `learned` learns of the streams: where objects still come, which values they bring, and which scores will do.

All of it is learnt at looks, some times a window, and counts less and less as time goes on.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats, Ints
from skyband.problems.across.algorithms.learned.kernels import forecast
from skyband.problems.across.algorithms.learned.kernels.retention import (
    AGES,
    ALIKE,
    BINS,
    FACTS,
    FIGURES,
    LEVELS,
    LOOKED,
    ROWS,
    TICKS,
    Learnt,
)
from skyband.problems.across.operator import AcrossSpec
from skyband.windows import NEVER

LOOKS: Final = 20  # how often a window all objects are looked at, at most
FEWEST_ROWS: Final = 180  # between two looks
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
FEW_STREAMS: Final = 4  # up to which every set of streams has waits of its own
TRUST_IN_STEPS: Final = 2.0  # in how likely they are: as if it had been seen for so many windows
FEWEST_BURSTS: Final = 0.5  # as if half a window had been seen so often in which objects come independently
MOST_ALIKE: Final = 0.95
MOST_NEAR: Final = 0.98

MIDDLES: Final = np.cumsum(LIKELY) - 0.5 * LIKELY
SPREADS: Final = np.array([NormalDist().inv_cdf(p) for p in MIDDLES])
CONSTANT: Final = ("draws", "widths")  # of what is learnt: not saved
SAVED: Final = ("pace", "foreseen_at", "foreseen", "came_true", "past", "bursts")


class Habits:
    """The streams' habits. `lowest`: the score of an object without values."""

    def __init__(self, spec: AcrossSpec, lowest: float) -> None:
        self.spec = spec
        self._lowest = lowest
        d, k = spec.streams, spec.k
        sets = 1 << d if d <= FEW_STREAMS else d + 1
        figures = np.zeros(FIGURES)
        figures[TICKS] = 1.0
        self.learnt = Learnt(
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
        self.began = NEVER  # the clock's first moment
        self.looked = NEVER  # its moment at the last look
        self.pace = np.zeros(2)  # how much the clock moved on, and rows came, with less and less weight
        # At the last looks: what was foreseen to be needed at which moments; and how often it was, by moment and step.
        self.foreseen_at = np.full((LOOKS, MOMENTS), -NEVER)
        self.foreseen = np.zeros((LOOKS, *self.learnt.needed.shape))
        self.came_true = np.zeros_like(self.learnt.needed)
        self.past = np.full((2, LOOKS // 2), np.nan)  # at the last looks: the clock, and the k-th best score
        self.bursts = np.zeros(3)  # halves of windows, good objects that came in them, and their squares

    def looks(self) -> float:
        """How often a window all objects are looked at."""
        rows = self.spec.window.size / float(self.learnt.figures[TICKS])
        return min(max(rows / FEWEST_ROWS, 1.0), LOOKS)

    def half(self) -> int:
        """Looks in half a window."""
        return max(int(self.looks() / 2), 1)

    def fade(self, clock: int, *, doubted: bool) -> float:
        """Let what was learnt before count less; returns how much it still counts."""
        share = self.pace_of(clock) * (DOUBTED if doubted else 1.0)
        self.learnt.waits[:] *= share
        self.learnt.pairs[:] *= share
        return share

    def pace_of(self, clock: int) -> float:
        """How much the clock moves on with a row; returns how much of what was learnt before still counts."""
        figures = self.learnt.figures
        moved, rows = clock - self.looked, figures[ROWS] - figures[LOOKED]
        share = math.exp(-moved / (MEMORY * self.spec.window.size))
        self.pace = self.pace * share + (moved, rows)
        if self.pace[0] > 0:
            figures[TICKS] = self.pace[0] / self.pace[1]
        self.looked, figures[LOOKED] = clock, figures[ROWS]
        return share

    def learn_arrivals(self) -> None:
        """To which streams objects still come, and how soon."""
        learnt = self.learnt
        rows = max(int(self.spec.window.size / learnt.figures[TICKS]), 1)
        forecast.complete(learnt.waits, learnt.coming, learnt.completion, rows, np.empty(self.spec.streams))
        forecast.arrive(learnt.coming, learnt.arrives, rows, AHEAD)

    def learn_scores(self, current: npt.NDArray[np.float64]) -> None:
        """The usual scores: of the best k as they are; below, where objects are missing, as these fall."""
        ladder, k = self.learnt.ladder, self.spec.k
        there = current[: len(ladder)]
        now = np.full(len(ladder), self._lowest)
        now[: len(there)] = there
        if k >= FEWEST_TO_GO_BY and len(there) >= k:
            now[k:] = np.maximum(now[k:], now[k - 1] - (now[k // 2 - 1] - now[k - 1]) * self._octaves)
        ladder[:] = now if ladder[0] == -np.inf else ladder + (now - ladder) * min(2 / self.looks(), 1.0)

    def learn_bursts(self, good: float, share: float) -> None:
        """How much the number of good objects varies: the more they come in bursts, the less is sure to come.

        That is, of those that came in half a window and reach the k-th best score from before it. If they come
        independently of each other, the variance of their number is its mean, and some more for that score's own. Few
        windows tell little of it; values that are near the ones before them do at once.
        """
        self.bursts = self.bursts * share + (1.0, good, good * good)
        looks, total, squares = self.bursts.tolist()
        halves, mean = looks / self.half(), total / looks
        times = (squares / looks - mean * mean) / max(mean * (1.0 + mean / self.spec.k), 1.0)
        times = (FEWEST_BURSTS + halves * times) / (FEWEST_BURSTS + halves)
        near, streams = forecast.nearness(self.learnt.recent, self.learnt.taken)
        near = min(max(near - 2 / math.sqrt(RECENT * max(streams, 1)), 0.0), MOST_NEAR)
        # So many values of a stream are worth as much as one if they were independent.
        follow = (1.0 + near) / (1.0 - near)
        self.learnt.spread[:] = math.sqrt(max(times, follow, 1.0)) * SPREADS

    def remember(self, current: npt.NDArray[np.float64], clock: int) -> None:
        """Remember the k-th best score, for `learn_bursts`."""
        k = self.spec.k
        known = clock - self.began >= self.spec.window.size and len(current) >= k
        self.past[:, :-1] = self.past[:, 1:]
        self.past[:, -1] = (clock, current[k - 1]) if known else math.nan

    def foresee(self, front: Ints, score: Floats, clock: int) -> None:
        """What a score will need, by moments ahead: from the front, whose points have these scores."""
        learnt, size = self.learnt, self.spec.window.size
        order = np.argsort(-score, kind="stable")
        forecast.foresee(front, score, order, clock, size, self.spec.k, AHEAD, learnt)
        forecast.tabulate(learnt)
        if clock - self.began >= size:
            self.foreseen_at[:-1], self.foreseen[:-1] = self.foreseen_at[1:], self.foreseen[1:]
            self.foreseen_at[-1], self.foreseen[-1] = learnt.moments, learnt.needed

    def learn_likely(self, needed: float, clock: int, share: float) -> None:
        """How likely each step of what is foreseen is, by what is needed now."""
        near, trust = self.spec.window.size / self.looks(), TRUST_IN_STEPS * self.looks()
        forecast.learn_likely(
            self.foreseen_at, self.foreseen, self.came_true, needed, clock, near, share, LIKELY, trust,
            self.learnt.likely,
        )  # fmt: skip

    def learn_values(self) -> None:
        """Quantiles of each stream's latest values."""
        learnt = self.learnt
        if (learnt.taken >= RECENT).all():
            learnt.values[:] = np.sort(learnt.recent, axis=1)[:, RECENT // QUANTILES // 2 :: RECENT // QUANTILES]
            return
        for s, taken in enumerate(learnt.taken.tolist()):
            if taken:
                known = np.sort(learnt.recent[s, : min(taken, RECENT)])
                learnt.values[s] = known[((np.arange(QUANTILES) + 0.5) / QUANTILES * len(known)).astype(np.int64)]

    def learn_likeness(self) -> None:
        """How much of an object's place among the values of its streams the next one has: the slope, less its error.

        Unlike a correlation it is not changed by which objects are held, which is decided before the value comes.
        """
        number, own, came, squares, products = self.learnt.pairs.tolist()
        spread = number * squares - own * own
        slope = (number * products - own * came) / spread if spread > 0 else 0.0
        slope = min(max(slope - 2 / math.sqrt(max(number, 1.0)), 0.0), MOST_ALIKE)
        # With weights w and 1 - w, what is the object's own and what is not correlate as the slope says.
        self.learnt.figures[ALIKE] = slope / (slope + math.sqrt(1.0 - slope * slope))

    # -- state --------------------------------------------------------------------------------------------------------

    def grow(self, codes: int) -> None:
        facts, before = np.ones((FACTS, codes)), self.learnt.facts.shape[1]
        facts[:, :before] = self.learnt.facts
        self.learnt = self.learnt._replace(facts=facts)

    def compact(self, kept: Ints) -> None:
        self.learnt = self.learnt._replace(facts=np.ascontiguousarray(self.learnt.facts[:, kept]))

    def state(self) -> Arrays:
        return {
            **{f"learnt_{name}": array.copy() for name, array in self.learnt._asdict().items() if name not in CONSTANT},
            **{name: getattr(self, name).copy() for name in SAVED},
            "learnt": np.array([self.began, self.looked], np.int64),
        }

    def restore(self, state: Arrays) -> None:
        for name, array in self.learnt._asdict().items():
            if name == "facts":
                saved = state["learnt_facts"].reshape(FACTS, -1)
                array[:, : saved.shape[1]] = saved
            elif name not in CONSTANT:
                array[:] = state[f"learnt_{name}"].reshape(array.shape)
        for name in SAVED:
            array = getattr(self, name)
            array[:] = state[name].reshape(array.shape)
        self.began, self.looked = (int(number) for number in state["learnt"])


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
