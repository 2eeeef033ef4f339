"""What `sorted_lists` holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.drivers.kernels.slots import EARLIEST, START, new_slots, with_room
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import LAST, MAX, SUM, AcrossSpec
from skyband.study.baselines.across.early_aggregation.kernels import current_score
from skyband.study.baselines.across.sorted_lists import kernels
from skyband.study.baselines.across.sorted_lists.kernels import (
    CLOCK,
    CODE,
    LIVE,
    NUMBERS,
    RECOMPUTED,
    REPEAT,
    REPEATED,
    ROWS,
    VIEW,
)


class State(NamedTuple):
    slots: npt.NDArray[Any]  # SLOT, by object and place: as many for each stream as an object may come there
    entry: Floats  # likewise: what is in the stream's list for it
    keys: Floats  # by stream, [0, sizes): its entries, ascending
    codes: Ints  # by stream: whose they are, in that order
    sizes: Ints  # by stream: how many
    moments: Ints  # of all rows, ascending: when they end
    instances: Ints  # of these: object times places plus place
    best: Ints  # the view: the best objects, as far as they are known, best first
    scores: Floats  # theirs, [0, VIEW)
    numbers: Ints  # single numbers, by the names in `kernels`


class SortedLists(StepDriver):
    _s: State
    _kernel = staticmethod(kernels.execute)

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(spec)
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[CLOCK], numbers[REPEAT] = START, spec.repeat
        self._s = State(
            new_slots(0, self._places),
            np.zeros((0, self._places)),
            np.zeros((spec.streams, 0)),
            np.zeros((spec.streams, 0), np.int64),
            np.zeros(spec.streams, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros((3, 0), np.int64),
            np.zeros(0),
            numbers,
        )

    @property
    def _places(self) -> int:
        return self.spec.streams * (self.spec.max_repeats if self.spec.repeat in (MAX, SUM) else 1)

    @property
    def repeated(self) -> int:
        return int(self._s.numbers[REPEATED]) if self.spec.repeat != LAST else 0

    def _grow(self, codes: int) -> None:
        room, n = 2 * len(self._shown.code), self._s.numbers[VIEW]
        view, scores = np.zeros((3, room), np.int64), np.zeros(room)
        view[:, :n], scores[:n] = self._s.best[:, :n], self._s.scores[:n]
        entry = np.zeros((codes, self._places))
        entry[: len(self._s.entry)] = self._s.entry
        self._s = self._s._replace(slots=with_room(self._s.slots, codes), entry=entry, best=view, scores=scores)

    def _reserve(self, rows: int) -> None:
        n = int(self._s.numbers[ROWS])
        if n + rows <= len(self._s.moments):
            return
        room = n + rows + n // 2
        keys, codes = np.zeros((self.spec.streams, room)), np.zeros((self.spec.streams, room), np.int64)
        known = self._s.keys.shape[1]
        keys[:, :known], codes[:, :known] = self._s.keys, self._s.codes
        moments, instances = np.zeros(room, np.int64), np.zeros(room, np.int64)
        moments[:n], instances[:n] = self._s.moments[:n], self._s.instances[:n]
        self._s = self._s._replace(keys=keys, codes=codes, moments=moments, instances=instances)

    def _rank_now(self, clock: int) -> int:
        kernels.expire(self._s, max(clock, int(self._s.numbers[CLOCK])), self._scoring)
        return int(kernels.rank(self._s, self.spec.k, self._shown, self._scoring))

    def _rows_kept(self) -> int:
        return int(self._s.numbers[ROWS])

    # -- state --------------------------------------------------------------------------------------------------------

    def _live(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._s.slots["last"] != EARLIEST).any(axis=1))

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        places, n = self._places, self._s.numbers[ROWS]
        for s in range(self.spec.streams):
            some = self._s.codes[s, : self._s.sizes[s]]
            some[:] = code_of[some]
        # A row whose place another has taken may be of an object that is gone: it is as good as any other.
        instances = self._s.instances[:n]
        instances[:] = np.maximum(code_of[instances // places], 0) * places + instances % places
        view = self._s.best[CODE, : self._s.numbers[VIEW]]
        view[:] = code_of[view]
        slots, entry = (np.ascontiguousarray(each[kept]) for each in (self._s.slots, self._s.entry))
        self._s = self._s._replace(slots=slots, entry=entry)

    def _in_use(self) -> Arrays:
        n = self._s.numbers[ROWS]
        longest = int(self._s.sizes.max(initial=0))
        return {
            "numbers": self._s.numbers,
            "slots": self._s.slots,
            "entry": self._s.entry,
            "sizes": self._s.sizes,
            "keys": self._s.keys[:, :longest],
            "codes": self._s.codes[:, :longest],
            "moments": self._s.moments[:n],
            "instances": self._s.instances[:n],
        }

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        slots, n, streams = saved["own_slots"], len(saved["own_moments"]), self.spec.streams
        numbers, sizes, keys, codes = (saved[f"own_{name}"] for name in ("numbers", "sizes", "keys", "codes"))
        saved.length(NUMBERS, "own_numbers")
        saved.length(streams, "own_sizes", "own_keys", "own_codes")
        saved.length(n, "own_instances")
        saved.shape("own_entry", len(slots), self._places)
        saved.promise(numbers[REPEAT] == self.spec.repeat, "'own_numbers' puts values together in another way")
        saved.promise(numbers[ROWS] == n, f"'own_numbers' counts {numbers[ROWS]} rows, not {n}")
        saved.counts("own_numbers", numbers[[REPEATED, RECOMPUTED]])
        saved.indices("own_instances", saved["own_instances"], slots.size)
        saved.ascends("own_moments", saved["own_moments"])
        saved.within("own_sizes", sizes, 0, min(keys.shape[1], codes.shape[1]))
        saved.promise(keys.shape == codes.shape, "'own_keys' and 'own_codes' are not as many")
        known = slots["last"] != EARLIEST
        times = self._places // streams
        for s, size in enumerate(sizes.tolist()):
            live, place = np.nonzero(known[:, s * times : (s + 1) * times])
            saved.ascends("own_keys", keys[s, :size])
            there = _in_turn(codes[s, :size], keys[s, :size])
            same = np.array_equal(there, _in_turn(live, saved["own_entry"][live, s * times + place]))
            saved.promise(same, "'own_codes' and 'own_keys' are not the entries of a stream")
        live_objects = int(known.any(axis=1).sum())
        saved.promise(numbers[LIVE] == live_objects, "'own_numbers' counts other objects than live")
        # A row that lives leaves when its moment has passed; one that no moment is kept of would stay for ever.
        kept = np.zeros(slots.size, np.bool_)
        ends = slots["last"].ravel()[saved["own_instances"]] == saved["own_moments"]
        kept[saved["own_instances"][ends]] = True
        saved.promise(np.array_equal(kept, known.ravel()), "'own_moments' has not every row that lives")

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        self._s.numbers[VIEW] = 0  # it follows from the lists, and the next answer fills it

    def _make_room_for(self, saved: Arrays) -> None:
        self._reserve(max(len(saved["moments"]), saved["keys"].shape[1]))

    # -- invariants ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        slots, numbers, clock = self._s.slots, self._s.numbers, self._s.numbers[CLOCK]
        for s in range(self.spec.streams):
            size, times = self._s.sizes[s], self._places // self.spec.streams
            keys, codes = self._s.keys[s, :size], self._s.codes[s, :size]
            assert (keys[1:] >= keys[:-1]).all(), "a stream's list is sorted"
            live, place = np.nonzero(slots["last"][:, s * times : (s + 1) * times] != EARLIEST)
            entries = self._s.entry[live, s * times + place]
            assert np.array_equal(_in_turn(codes, keys), _in_turn(live, entries)), "it has an entry for every row"
        ranked = []
        for code in np.flatnonzero(self._live()).tolist():
            latest = max((int(slot["time"]), int(slot["position"])) for slot in slots[code] if slot["last"] != EARLIEST)
            ranked.append((current_score(slots, code, clock, self._scoring, self.spec.repeat), latest, code))
        assert len(ranked) == numbers[LIVE], "objects are counted"
        best = [code for *_, code in sorted(ranked, reverse=True)]
        assert self._s.best[CODE, : numbers[VIEW]].tolist() == best[: numbers[VIEW]], "the view holds the best of all"


def _in_turn(codes: Ints, keys: Floats) -> Floats:
    """Entries in one order, whatever theirs is."""
    order = np.lexsort((codes, keys))
    return np.array([codes[order], keys[order]], np.float64)
