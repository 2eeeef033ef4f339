"""The state of `basic`: that of the published K-skyband, with counters for a staircase."""

from __future__ import annotations

from skyband.core.operator import Arrays, Floats
from skyband.study.baselines.pairs.basic import kernels
from skyband.study.baselines.pairs.staircase_published.state import PublishedSkyband


class Basic(PublishedSkyband):
    def _undominated(self, score: Floats, at: int) -> int:
        window, found = self._rows, (self._row, self._other, self._reached)
        return int(kernels.undominated(self._band, self.spec.k, score, window.head, at, window.base, *found))

    def _update(self, candidates: int) -> int:
        window, found = self._rows, (self._row, self._other, self._reached)
        return int(kernels.take(self._band, self._tree, self.spec.k, *found, candidates, window.base, window.position))

    def _restored(self, state: Arrays) -> None:
        super()._restored(state)
        kernels.count_all(self._band, len(state["band"]))

    def check(self) -> None:
        super().check()
        pairs, counted = self._candidates(), self._band.dominators[self._held_slots()]
        for r, pair in enumerate(pairs):
            assert counted[r] == (pairs["a"][:r] >= pair["a"]).sum(), "a pair's counter says how many dominate it"

    def _check_staircase(self) -> None:
        """There is none."""
