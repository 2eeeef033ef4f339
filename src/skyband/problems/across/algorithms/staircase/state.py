"""The state of `staircase`.

An object is forgotten when none of its instances is held. If it comes again, it starts anew, and its best score treats
all streams as unseen, even those in which it had come. So the size of the state depends on the instances held, not on
all objects of the window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.algorithms.staircase import kernels
from skyband.problems.across.algorithms.staircase.kernels import (
    CLOCK,
    CODE,
    COLUMNS,
    DOMINATORS,
    FOUND,
    LAST,
    LATEST,
    NEXT_FALL,
    NUMBERS,
    OLDEST,
    POSITION,
    REPEATED,
    SINCE_SWEEP,
    SIZE,
    STALE,
    TIME,
)
from skyband.problems.across.drivers.kernels.slots import (
    EARLIEST,
    START,
    best_score,
    current_score,
    new_slots,
    with_room,
)
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import AcrossSpec


class State(NamedTuple):
    """The arrays of the operator."""

    slots: npt.NDArray[Any]  # records of type SLOT, by object and stream
    front: Ints  # COLUMNS of the k-skyband's points [0, SIZE), in no order
    score: Floats  # the scores of these points
    points: Ints  # scratch space: one object's staircase, latest first
    scores: Floats  # scratch space: its scores
    top: Ints  # time and position of the objects of the top, best first
    numbers: Ints  # see the names in `kernels`


class Config(NamedTuple):
    """The query, as the loop needs it."""

    k: int
    emit: int
    each: bool  # is an answer due after each row?
    sweep_after: int  # the loop stops for pruning after this many rows


class Staircase(StepDriver):
    """The operator. Between two prunings at least `patience` rows come."""

    _s: State
    _repeated = REPEATED
    _kernel = staticmethod(kernels.execute)

    def __init__(self, spec: AcrossSpec, *, patience: int = 1024) -> None:
        super().__init__(spec)
        self._patience = patience
        self._held = 0  # after the last pruning
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[CLOCK] = numbers[LATEST] = START
        numbers[OLDEST] = numbers[NEXT_FALL] = kernels.AFTER_ALL
        room = 64 + 4 * spec.streams
        self._s = State(
            new_slots(0, spec.streams),
            np.zeros((COLUMNS, room), np.int64),
            np.zeros(room),
            np.zeros((4, spec.streams), np.int64),
            np.zeros((2, spec.streams)),
            np.zeros((2, 0), np.int64),
            numbers,
        )

    def _prepare(self) -> None:
        if self._s.numbers[SINCE_SWEEP] >= max(self._patience, self._held):
            self._prune()
        if self._s.numbers[SIZE] + self.spec.streams > len(self._s.score):
            self._widen(2 * len(self._s.score))

    def _config(self, each: bool) -> Config:
        return Config(self.spec.k, self.spec.emit, each, max(self._patience, self._held))

    def _grow(self, codes: int) -> None:
        self._s = self._s._replace(slots=with_room(self._s.slots, codes))
        entries = len(self._shown.code)
        if entries > self._s.top.shape[1]:
            self._s = self._s._replace(top=np.zeros((2, entries), np.int64))
            self._s.numbers[STALE] = 1

    def _widen(self, room: int) -> None:
        front, score, size = np.zeros((COLUMNS, room), np.int64), np.zeros(room), self._s.numbers[SIZE]
        front[:, :size], score[:size] = self._s.front[:, :size], self._s.score[:size]
        self._s = self._s._replace(front=front, score=score)

    def _rank_now(self, clock: int) -> int:
        kernels.expire(self._s.front, self._s.score, self._s.numbers, max(clock, int(self._s.numbers[CLOCK])))
        return int(kernels.rank(self._s, self.spec.k, self._shown))

    def _prune(self) -> tuple[Ints, Floats, int]:
        """Drop every dominated instance. Returns the staircase that decided it: moments, scores, number of stairs."""
        front, size = self._s.front, int(self._s.numbers[SIZE])
        order = np.argsort(-front[LAST, :size], kind="stable")
        k = min(self.spec.k, size + 1)
        last, score = np.empty(size + 1, np.int64), np.empty(size + 1)
        stairs = kernels.build_stairs(
            front, self._s.score, size, order, k, last, score, np.empty(k, np.int64), np.empty(k)
        )
        self._held = int(kernels.sweep(self._s.slots, self._s.numbers, last, score, stairs, self._scoring))
        return last, score, stairs

    def _rows_kept(self) -> int:
        self._prune()
        return self._held

    def _live(self) -> npt.NDArray[np.bool_]:
        self._prune()
        live: npt.NDArray[np.bool_] = (
            (self._s.slots["held"] != 0) & (self._s.slots["last"] >= self._s.numbers[CLOCK])
        ).any(axis=1)
        return live

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        size = self._s.numbers[SIZE]
        self._s.front[CODE, :size] = code_of[self._s.front[CODE, :size]]
        found = self._s.numbers[FOUND]
        self._shown.top_code[:found] = code_of[self._shown.top_code[:found]]
        self._s = self._s._replace(slots=np.ascontiguousarray(self._s.slots[kept]))

    def _in_use(self) -> Arrays:
        s, size = self._s, self._s.numbers[SIZE]
        return {"slots": s.slots, "numbers": s.numbers, "front": s.front[:, :size], "score": s.score[:size]}

    def _state(self) -> Arrays:
        return super()._state() | {"held": np.array([self._held], np.int64)}

    def _make_room_for(self, saved: Arrays) -> None:
        self._widen(len(saved["score"]) + 64 + 4 * self.spec.streams)

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        size, numbers, front = len(saved["own_score"]), saved["own_numbers"], saved["own_front"]
        saved.length(NUMBERS, "own_numbers")
        saved.length(1, "held")
        saved.counts("held", saved["held"])
        saved.shape("own_front", COLUMNS, size)
        saved.promise(numbers[SIZE] == size, f"'own_numbers' counts {numbers[SIZE]} points, not {size}")
        saved.counts("own_numbers", numbers[[REPEATED, SINCE_SWEEP]])
        saved.numbers("own_score", saved["own_score"])
        saved.indices("own_front", front[CODE], len(saved["own_slots"]))
        saved.counts("own_front", front[DOMINATORS])

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        self._s.numbers[STALE], self._s.numbers[FOUND] = 1, 0  # the top is not saved
        self._held = int(state["held"][0])

    def _clock(self) -> int:
        return int(self._s.numbers[CLOCK])

    # -- invariants ---------------------------------------------------------------------------------------------------

    def instances(self) -> set[tuple[int, int]]:
        """Prune, and return the instances that are held, as (object, last moment)."""
        self._prune()
        slots, clock = self._s.slots, self._s.numbers[CLOCK]
        code, stream = np.nonzero((slots["held"] != 0) & (slots["last"] >= clock))
        return set(zip(code.tolist(), slots["last"][code, stream].tolist(), strict=True))

    def check(self) -> None:
        slots, clock, k = self._s.slots, int(self._s.numbers[CLOCK]), self.spec.k
        size = int(self._s.numbers[SIZE])
        front = self._s.front
        known = {code for code, _ in self.instances()}
        alive = (slots["last"] >= clock).any(axis=1)
        assert set(np.flatnonzero(alive).tolist()) == known, "an object is remembered while an instance of it is held"
        assert self.repeated or (front[DOMINATORS, :size] < k).all(), "no point of the front has k dominators"
        if self.repeated:
            return
        sure = {code: self._sure(code, clock) for code in known}
        points = {
            (code, last): (score, *self._recency(code, clock)) for code, steps in sure.items() for last, score in steps
        }
        found = {
            (int(front[CODE, e]), int(front[LAST, e])): (self._s.score[e], front[TIME, e], front[POSITION, e])
            for e in range(size)
            if front[LAST, e] >= clock
        }
        for (code, last), key in points.items():
            beaten_by = sum(
                any(end >= last and points[other, end] > key for end, _ in sure[other])
                for other in known
                if other != code
            )
            assert ((code, last) in found) == (beaten_by < k), "the front is the k-skyband of what is sure"
            if beaten_by < k:
                assert found[code, last] == key, "a point of the front is what its object is sure to score"
        for code, last in self.instances():
            best = best_score(slots, code, last, self._scoring)
            beaten_by = sum(
                max((score for end, score in sure[other] if end >= last), default=-np.inf) > best
                for other in known
                if other != code
            )
            assert beaten_by < k, "an instance that k others outlive and outscore is not held"

    def _sure(self, code: int, clock: int) -> list[tuple[int, float]]:
        moments = sorted({int(last) for last in self._s.slots["last"][code] if last >= clock and last != EARLIEST})
        return [(last, float(current_score(self._s.slots, code, last, self._scoring))) for last in moments]

    def _recency(self, code: int, clock: int) -> tuple[int, int]:
        rows = self._s.slots[code]
        return max((int(row["time"]), int(row["position"])) for row in rows if row["last"] >= clock)
