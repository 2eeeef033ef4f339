"""What `estimated` holds."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.drivers.kernels.slots import START
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec
from skyband.study.baselines.across.estimated.sketches import Sketches

MOST_STREAMS = 10  # every set of streams has chances of its own


class Estimated(Staircase):
    """`patience`: rows between two estimates, and between two prunings, at least."""

    wants_keys = True

    def __init__(self, spec: AcrossSpec, *, patience: int = 64) -> None:
        super().__init__(spec, patience=patience)
        self._sketches = Sketches(spec.streams)

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        """In short pieces: chances are those of the rows before."""
        answers = []
        for first in range(0, max(len(batch.value), 1), self._patience):
            part = batch.part(first, first + self._patience)
            times = self._steps.measured(part)
            answers.append(super().push(part))
            if len(times):
                self._learn(part, times)
        joined = [np.concatenate(columns) for columns in zip(*answers, strict=True)]
        return AcrossAnswer(*joined)

    def _learn(self, batch: AcrossBatch, times: Ints) -> None:
        key = batch.key if len(batch.key) else batch.code.astype(np.int64)
        says = ~np.isnan(batch.value)
        self._sketches.add(batch.stream[says], key[says], times[says])
        since = max(self._steps.live_from(), int(START))
        self._scoring = self._scoring._replace(chance=self._sketches.chances(since))

    def _state(self) -> Arrays:
        return {
            **super()._state(),
            "sketches": self._sketches.clocks.copy(),
            "chance": self._scoring.chance.copy(),
        }

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

    def check(self) -> None:
        """What is held is not what a definition says, since chances change: only that objects are remembered."""
        slots, clock = self._s.slots, self._clock()
        known = {code for code, _ in self.instances()}
        alive = set(np.flatnonzero((slots["last"] >= clock).any(axis=1)).tolist())
        assert alive == known, "an object is remembered while an instance of it is held"
