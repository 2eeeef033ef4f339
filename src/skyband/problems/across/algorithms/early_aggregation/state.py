"""What `early_aggregation` holds.

The paper asks for dominators that end later; here they may end at the same moment, which with a slide is common. It
counts scores strictly between the old one and the new; those equal to the old one have to be counted too. And it does
not say what is known of an object without instances: it is forgotten.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.algorithms.early_aggregation import kernels
from skyband.problems.across.algorithms.early_aggregation.kernels import (
    BEST,
    CLOCK,
    CURRENT,
    LISTS,
    NUMBERS,
    REPEATED,
    SIZE,
    TIME,
)
from skyband.problems.across.drivers.kernels.slots import START, best_score, current_score, new_slots, with_room
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import AcrossSpec


class State(NamedTuple):
    slots: npt.NDArray[Any]  # SLOT, by object and stream
    score: Floats  # by instance: CURRENT and BEST
    dominators: Ints  # by instance: how many objects dominate it
    who: Codes  # by instance: which these are, ranks [0, dominators)
    keys: Floats  # of the lists CURRENT and BEST, [0, SIZE): ascending
    moments: Ints  # of the list TIME, [0, SIZE): ascending
    lists: Ints  # the instances of each, in the order of its keys
    gone: Ints  # scratch: instances that k objects have come to dominate
    top: Ints  # time and position of the objects of the top, best first
    numbers: Ints  # single numbers, by the names in `kernels`


class EarlyAggregation(StepDriver):
    _s: State
    _kernel = staticmethod(kernels.execute)

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec)
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[CLOCK] = START
        self._s = State(
            new_slots(0, spec.streams),
            np.zeros((2, 0)),
            np.zeros(0, np.int64),
            np.zeros((0, 0), np.int32),
            np.zeros((2, 64)),
            np.zeros(64, np.int64),
            np.zeros((LISTS, 64), np.int64),
            np.zeros(64, np.int64),
            np.zeros((2, 0), np.int64),
            numbers,
        )

    @property
    def repeated(self) -> int:
        return int(self._s.numbers[REPEATED])

    def _prepare(self) -> None:
        if self._s.numbers[SIZE] == len(self._s.moments):
            self._widen(2 * len(self._s.moments))

    def _grow(self, codes: int) -> None:
        streams, known = self.spec.streams, len(self._s.slots)
        score, dominators = np.zeros((2, codes * streams)), np.zeros(codes * streams, np.int64)
        score[:, : known * streams], dominators[: known * streams] = self._s.score, self._s.dominators
        who = np.zeros((codes * streams, min(self.spec.k, codes)), np.int32)
        who[: known * streams, : self._s.who.shape[1]] = self._s.who
        top = np.zeros((2, len(self._shown.code)), np.int64)
        self._s = self._s._replace(
            slots=with_room(self._s.slots, codes), score=score, dominators=dominators, who=who, top=top
        )

    def _widen(self, room: int) -> None:
        size = self._s.numbers[SIZE]
        keys, moments = np.zeros((2, room)), np.zeros(room, np.int64)
        lists, gone = np.zeros((LISTS, room), np.int64), np.zeros(room, np.int64)
        keys[:, :size], moments[:size] = self._s.keys[:, :size], self._s.moments[:size]
        lists[:, :size] = self._s.lists[:, :size]
        self._s = self._s._replace(keys=keys, moments=moments, lists=lists, gone=gone)

    def _rank_now(self, clock: int) -> int:
        kernels.expire(self._s, max(clock, int(self._s.numbers[CLOCK])))
        return int(kernels.rank(self._s, self.spec.k, self._shown))

    def _rows_kept(self) -> int:
        return int(self._s.numbers[SIZE])

    # -- state --------------------------------------------------------------------------------------------------------

    def _live(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._s.slots["held"] != 0).any(axis=1))

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        streams, size = self.spec.streams, self._s.numbers[SIZE]
        instances = (kept[:, np.newaxis] * streams + np.arange(streams)).ravel()
        lists = self._s.lists
        lists[:, :size] = code_of[lists[:, :size] // streams].astype(np.int64) * streams + lists[:, :size] % streams
        who = self._s.who[instances, : len(kept)]
        # What is dominated by an object that is gone is gone too; other entries are left over from others.
        who = np.maximum(code_of[np.minimum(who, len(code_of) - 1)], 0).astype(np.int32)
        self._s = self._s._replace(
            slots=np.ascontiguousarray(self._s.slots[kept]),
            score=np.ascontiguousarray(self._s.score[:, instances]),
            dominators=self._s.dominators[instances],
            who=np.ascontiguousarray(who),
        )

    def _in_use(self) -> Arrays:
        size = self._s.numbers[SIZE]
        of_objects = {name: getattr(self._s, name) for name in ("numbers", "slots", "score", "dominators", "who")}
        of_lists = {name: getattr(self._s, name)[..., :size] for name in ("keys", "moments", "lists")}
        return of_objects | of_lists

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        slots, size, lists = saved["own_slots"], len(saved["own_moments"]), saved["own_lists"]
        places, codes = slots.size, len(slots)
        saved.length(NUMBERS, "own_numbers")
        saved.promise(saved["own_numbers"][SIZE] == size, "'own_numbers' counts other instances than there are")
        saved.counts("own_numbers", saved["own_numbers"][[REPEATED]])
        saved.shape("own_score", 2, places)
        saved.shape("own_who", places, min(self.spec.k, codes))
        saved.length(places, "own_dominators")
        saved.shape("own_keys", 2, size)
        saved.shape("own_lists", LISTS, size)
        saved.indices("own_who", saved["own_who"], codes)
        saved.within("own_dominators", saved["own_dominators"], 0, saved["own_who"].shape[1])
        held, keys = np.flatnonzero(slots["held"].ravel()), [*saved["own_keys"], saved["own_moments"]]
        true = [*saved["own_score"], slots["last"].ravel()]
        for which in range(LISTS):
            saved.promise(np.array_equal(np.sort(lists[which]), held), "'own_lists' has not every instance once")
            saved.numbers("own_keys", keys[which])
            saved.ascends("own_keys", keys[which])
            same = np.array_equal(true[which][lists[which]], keys[which])
            saved.promise(same, "'own_keys' are not those of the instances")
        # Whoever dominates an instance is known once: otherwise there would be more of them than room.
        known = np.arange(saved["own_who"].shape[1]) < saved["own_dominators"][:, None]
        who = np.sort(np.where(known, saved["own_who"], -1 - np.arange(known.shape[1])), axis=1)
        saved.promise(bool((np.diff(who, axis=1) != 0).all()), "'own_who' names an object twice")

    def _make_room_for(self, saved: Arrays) -> None:
        self._widen(max(64, 2 * len(saved["moments"])))

    # -- invariants ---------------------------------------------------------------------------------------------------

    def instances(self) -> set[tuple[int, int]]:
        """The instances held, as (object, last moment)."""
        code, stream = np.nonzero(self._s.slots["held"])
        return set(zip(code.tolist(), self._s.slots["last"][code, stream].tolist(), strict=True))

    def check(self) -> None:
        slots, clock, size, streams = self._s.slots, self._s.numbers[CLOCK], self._s.numbers[SIZE], self.spec.streams
        held = np.flatnonzero(slots["held"].ravel())
        for which in range(LISTS):
            assert sorted(self._s.lists[which, :size].tolist()) == held.tolist(), "each list has every instance held"
        if self.repeated:
            return
        for keys in (self._s.keys[CURRENT, :size], self._s.keys[BEST, :size], self._s.moments[:size]):
            assert (keys[1:] >= keys[:-1]).all(), "lists are sorted"
        moments = {int(i): int(slots["last"][i // streams, i % streams]) for i in held}
        sure = {i: current_score(slots, i // streams, last, self._scoring) for i, last in moments.items()}
        best = {i: best_score(slots, i // streams, last, self._scoring) for i, last in moments.items()}
        for i, last in moments.items():
            assert last >= clock, "what has ended is not held"
            assert (self._s.score[CURRENT, i], self._s.score[BEST, i]) == (sure[i], best[i]), "scores are known"
            by = {j // streams for j, end in moments.items() if end >= last and sure[j] > best[i]} - {i // streams}
            assert len(by) < self.spec.k, "fewer than k objects dominate an instance that is held"
            known = set(self._s.who[i, : self._s.dominators[i]].tolist())
            assert by == known, "and it is known which they are"
        for which, lists in ((TIME, self._s.moments), (CURRENT, self._s.keys[CURRENT]), (BEST, self._s.keys[BEST])):
            found = {TIME: moments, CURRENT: sure, BEST: best}[which]
            assert [found[int(i)] for i in self._s.lists[which, :size]] == lists[:size].tolist(), "keys are true"
