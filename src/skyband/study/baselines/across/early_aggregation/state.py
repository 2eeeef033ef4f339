"""What `early_aggregation` holds.

The paper asks for dominators that end later; here they may end at the same moment, which with a slide is common. It
counts scores strictly between the old one and the new; those equal to the old one have to be counted too. And it does
not say what is known of an object without instances. Here its values are remembered while they live: if it comes in
another stream, more is known about its best score, and without that more than the k-dominance set would be held.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.drivers.kernels.slots import EARLIEST, START, new_slots, with_room
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import ONCE, AcrossSpec
from skyband.study.baselines.across.early_aggregation import kernels
from skyband.study.baselines.across.early_aggregation.kernels import (
    BEST,
    CLOCK,
    CURRENT,
    LISTS,
    NUMBERS,
    REPEAT,
    REPEATED,
    ROWS,
    SIZE,
    TIME,
)


class State(NamedTuple):
    slots: npt.NDArray[Any]  # SLOT, by object and place: as many for each stream as an object may come there
    score: Floats  # by instance: CURRENT and BEST
    dominators: Ints  # by instance: how many objects dominate it
    who: Codes  # by instance: which these are, ranks [0, dominators)
    keys: Floats  # of the lists CURRENT and BEST, [0, SIZE): ascending
    moments: Ints  # of the list TIME, [0, ROWS): ascending
    lists: Ints  # the instances of each, in the order of its keys; of TIME, all rows that live
    gone: Ints  # scratch: instances that k objects have come to dominate, or whose rows have ended
    top: Ints  # time and position of the objects of the top, best first
    often: Floats  # by stream: how often an object comes there, at most; infinite: as often as there is room for
    numbers: Ints  # single numbers, by the names in `kernels`


class EarlyAggregation(StepDriver):
    _s: State
    _repeated = REPEATED
    _kernel = staticmethod(kernels.execute)

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec)
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[CLOCK], numbers[REPEAT] = START, spec.repeat
        self._s = State(
            new_slots(0, self._places),
            np.zeros((2, 0)),
            np.zeros(0, np.int64),
            np.zeros((0, 0), np.int32),
            np.zeros((2, 64)),
            np.zeros(64, np.int64),
            np.zeros((LISTS, 64), np.int64),
            np.zeros(64, np.int64),
            np.zeros((2, 0), np.int64),
            np.full(spec.streams, np.inf),
            numbers,
        )

    @property
    def _places(self) -> int:
        return self.spec.streams * (1 if self.spec.repeat == ONCE else self.spec.max_repeats)

    def _prepare(self) -> None:
        if self._s.numbers[ROWS] == len(self._s.moments):
            self._widen(2 * len(self._s.moments))

    def _grow(self, codes: int) -> None:
        room, known = codes * self._places, len(self._s.slots) * self._places
        score, dominators = np.zeros((2, room)), np.zeros(room, np.int64)
        score[:, :known], dominators[:known] = self._s.score, self._s.dominators
        who = np.zeros((room, min(self.spec.k, codes)), np.int32)
        who[:known, : self._s.who.shape[1]] = self._s.who
        top = np.zeros((2, len(self._shown.code)), np.int64)
        self._s = self._s._replace(
            slots=with_room(self._s.slots, codes), score=score, dominators=dominators, who=who, top=top
        )

    def _widen(self, room: int) -> None:
        rows = self._s.numbers[ROWS]
        keys, moments = np.zeros((2, room)), np.zeros(room, np.int64)
        lists, gone = np.zeros((LISTS, room), np.int64), np.zeros(room, np.int64)
        keys[:, :rows], moments[:rows] = self._s.keys[:, :rows], self._s.moments[:rows]
        lists[:, :rows] = self._s.lists[:, :rows]
        self._s = self._s._replace(keys=keys, moments=moments, lists=lists, gone=gone)

    def _rank_now(self, clock: int) -> int:
        kernels.expire(self._s, max(clock, int(self._s.numbers[CLOCK])))
        return int(kernels.rank(self._s, self.spec.k, self._shown))

    def _rows_kept(self) -> int:
        return int(self._s.numbers[SIZE])

    # -- state --------------------------------------------------------------------------------------------------------

    def _live(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._s.slots["last"] != EARLIEST).any(axis=1))

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        places, numbers = self._places, self._s.numbers
        instances = (kept[:, np.newaxis] * places + np.arange(places)).ravel()
        for some, size in zip(self._s.lists, numbers[[SIZE, SIZE, ROWS]], strict=True):
            some[:size] = code_of[some[:size] // places].astype(np.int64) * places + some[:size] % places
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
        size, rows = self._s.numbers[[SIZE, ROWS]]
        of_objects = {name: getattr(self._s, name) for name in ("numbers", "slots", "score", "dominators", "who")}
        lists = self._s.lists[:, :rows].copy()
        lists[:TIME, size:] = 0
        return of_objects | {"keys": self._s.keys[:, :size], "moments": self._s.moments[:rows], "lists": lists}

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        slots, rows, lists = saved["own_slots"], len(saved["own_moments"]), saved["own_lists"]
        places, codes = slots.size, len(slots)
        saved.length(NUMBERS, "own_numbers")
        numbers, size = saved["own_numbers"], saved["own_keys"].shape[-1]
        saved.promise(numbers[SIZE] == size, "'own_numbers' counts other instances than there are")
        saved.promise(numbers[ROWS] == rows, "'own_numbers' counts other rows than there are")
        saved.promise(numbers[REPEAT] == self.spec.repeat, "'own_numbers' puts values together in another way")
        saved.counts("own_numbers", numbers[[REPEATED]])
        saved.shape("own_score", 2, places)
        saved.shape("own_who", places, min(self.spec.k, codes))
        saved.length(places, "own_dominators")
        saved.shape("own_keys", 2, size)
        saved.shape("own_lists", LISTS, rows)
        saved.promise(size <= rows, "'own_keys' has more instances than there are rows")
        saved.indices("own_who", saved["own_who"], codes)
        saved.within("own_dominators", saved["own_dominators"], 0, saved["own_who"].shape[1])
        held, live = np.flatnonzero(slots["held"].ravel()), np.flatnonzero(slots["last"].ravel() >= numbers[CLOCK])
        saved.promise(bool(np.isin(held, live).all()), "'own_slots' holds instances that are over")
        keys, true = [*saved["own_keys"], saved["own_moments"]], [*saved["own_score"], slots["last"].ravel()]
        for which, there in enumerate((held, held, live)):
            some = lists[which, : len(keys[which])]
            saved.promise(np.array_equal(np.sort(some), there), "'own_lists' has not every instance once")
            saved.numbers("own_keys", keys[which])
            saved.ascends("own_keys", keys[which])
            saved.promise(np.array_equal(true[which][some], keys[which]), "'own_keys' are not those of the instances")
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
        slots, numbers, places = self._s.slots, self._s.numbers, self._places
        held, live = np.flatnonzero(slots["held"].ravel()), np.flatnonzero(slots["last"].ravel() >= numbers[CLOCK])
        for which, there, size in zip(range(LISTS), (held, held, live), numbers[[SIZE, SIZE, ROWS]], strict=True):
            found = sorted(self._s.lists[which, :size].tolist())
            assert found == there.tolist(), "lists of scores have every instance held, that of times every row"
        if self.repeated:
            return
        size, rows = numbers[[SIZE, ROWS]]
        for keys in (self._s.keys[CURRENT, :size], self._s.keys[BEST, :size], self._s.moments[:rows]):
            assert (keys[1:] >= keys[:-1]).all(), "lists are sorted"
        moments = {int(i): int(slots["last"].ravel()[i]) for i in live}
        of = self._scoring, self.spec.repeat
        sure = {int(i): kernels.current_score(slots, i // places, moments[int(i)], *of) for i in held}
        best = {int(i): kernels.best_score(slots, i // places, moments[int(i)], *of, self._s.often) for i in held}
        for i in sure:
            assert (self._s.score[CURRENT, i], self._s.score[BEST, i]) == (sure[i], best[i]), "scores are known"
            by = {j // places for j in sure if moments[j] >= moments[i] and sure[j] > best[i]} - {i // places}
            assert len(by) < self.spec.k, "fewer than k objects dominate an instance that is held"
            known = set(self._s.who[i, : self._s.dominators[i]].tolist())
            assert by == known, "and it is known which they are"
        for which, keys in ((TIME, self._s.moments), (CURRENT, self._s.keys[CURRENT]), (BEST, self._s.keys[BEST])):
            true, n = {TIME: (moments, rows), CURRENT: (sure, size), BEST: (best, size)}[which]
            assert [true[int(i)] for i in self._s.lists[which, :n]] == keys[:n].tolist(), "keys are true"
