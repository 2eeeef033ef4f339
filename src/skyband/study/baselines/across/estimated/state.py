"""What `estimated` holds: as the exact algorithms, and sketches from which it learns what objects may still get."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.drivers.kernels.slots import START
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.study.baselines.across.early_aggregation.kernels import SIZE
from skyband.study.baselines.across.early_aggregation.state import EarlyAggregation
from skyband.study.baselines.across.estimated.sketches import SelfJoins, Sketches

MOST_STREAMS = 10  # every set of streams has chances of its own


class Learning(StepDriver):
    """Learns the chances that an object comes to a stream. `patience`: rows between two estimates, at least."""

    wants_keys = True
    _patience: int
    _sketches: Sketches

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        """In short pieces: chances are those of the rows before."""
        answers = []
        for first in range(0, max(len(batch.value), 1), self._patience):
            part = batch.part(first, first + self._patience)
            times = self._steps.measured(part)
            answers.append(super().push(part))
            if len(times):
                key = part.key if len(part.key) else part.code.astype(np.int64)
                self._learn(part, key, times, max(self._steps.live_from(), int(START)))
        joined = [np.concatenate(columns) for columns in zip(*answers, strict=True)]
        return AcrossAnswer(*joined)

    def _learn(self, batch: AcrossBatch, key: Ints, times: Ints, since: int) -> None:
        says = ~np.isnan(batch.value)
        self._sketches.add(batch.stream[says], key[says], times[says])
        self._scoring = self._scoring._replace(chance=self._sketches.chances(since))

    def _state(self) -> Arrays:
        return {**super()._state(), "sketches": self._sketches.clocks.copy(), "chance": self._scoring.chance.copy()}

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        sets, streams = self._scoring_sets(saved["chance"]), self.spec.streams
        saved.shape("sketches", *self._sketches.clocks.shape)
        saved.promise(sets in (1, 1 << streams), "'chance' is not by set of streams")
        saved.within("chance", saved["chance"], 0, 1)

    def _scoring_sets(self, chance: Floats) -> int:
        return len(chance) if chance.ndim == 2 and chance.shape[1] == self.spec.streams else 0

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        self._sketches.clocks[:] = state["sketches"].reshape(self._sketches.clocks.shape)
        self._scoring = self._scoring._replace(chance=state["chance"].reshape(-1, self.spec.streams).copy())


class Estimated(Learning, Staircase):
    """Of objects that come once in each stream."""

    def __init__(self, spec: AcrossSpec, *, patience: int = 64) -> None:
        Staircase.__init__(self, spec, patience=patience)
        self._sketches = Sketches(spec.streams)

    def check(self) -> None:
        """What is held is not what a definition says, since chances change: only that objects are remembered."""
        slots, clock = self._s.slots, self._clock()
        known = {code for code, _ in self.instances()}
        alive = set(np.flatnonzero((slots["last"] >= clock).any(axis=1)).tolist())
        assert alive == known, "an object is remembered while an instance of it is held"


class EstimatedRepeats(Learning, EarlyAggregation):
    """Of objects that come again (section 5): how often, it learns as well."""

    def __init__(self, spec: AcrossSpec, *, patience: int = 64) -> None:
        EarlyAggregation.__init__(self, spec)
        self._patience = patience
        self._sketches = Sketches(spec.streams)
        self._joins = SelfJoins(spec.streams, spec.window.size)

    def _learn(self, batch: AcrossBatch, key: Ints, times: Ints, since: int) -> None:
        super()._learn(batch, key, times, since)
        says = ~np.isnan(batch.value)
        self._joins.add(batch.stream[says], key[says], times[says])
        self._s.often[:] = self._joins.often(since)

    def _state(self) -> Arrays:
        joins = self._joins
        return {
            **super()._state(),
            "signs": joins.counters.copy(),
            "signs_rows": joins.rows.copy(),
            "signs_stamps": joins.stamps.copy(),
            "often": self._s.often.copy(),
        }

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        for name, mine in (("signs", self._joins.counters), ("signs_rows", self._joins.rows)):
            saved.shape(name, *mine.shape)
        saved.shape("signs_stamps", *self._joins.stamps.shape)
        saved.counts("signs_rows", saved["signs_rows"])
        saved.length(self.spec.streams, "often")
        saved.promise(bool((saved["often"] >= 1).all()), "'often' is less than once")

    def _restore(self, state: Arrays) -> None:
        super()._restore(state)
        self._joins.counters[:] = state["signs"].reshape(self._joins.counters.shape)
        self._joins.rows[:] = state["signs_rows"].reshape(self._joins.rows.shape)
        self._joins.stamps[:], self._s.often[:] = state["signs_stamps"], state["often"]

    def check(self) -> None:
        """As above: what is held follows from estimates that change; but lists are in order, and have all of it."""
        size = self._s.numbers[SIZE]
        held = np.flatnonzero(self._s.slots["held"].ravel())
        for keys, instances in zip(self._s.keys[:, :size], self._s.lists[:, :size], strict=False):
            assert (keys[1:] >= keys[:-1]).all(), "a list is sorted"
            assert sorted(instances.tolist()) == held.tolist(), "it has every instance held"
