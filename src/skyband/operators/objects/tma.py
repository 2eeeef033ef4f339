"""TMA: the whole window, and its k best rows until one of them expires.

Paper:      Mouratidis, Bakiras, Papadias, SIGMOD 2006, section 4 (Top-k Monitoring Algorithm), on one score.
Invariant:  every row of the window is held; the list has the k best of these and of the rows that expired since the
            last answer. If none of the listed is expired, they are the answer; else the window is looked through.
Cost:       push one comparison a row, O(k) for one that enters the list; an answer O(n + k log k) if a listed row
            expired, which on random order is k times a window; state n + k rows.
Choose it:  to compare others with; `mintopk` and `relaxed` never look through a window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.operators.objects.stepwise import Stepwise
from skyband.operators.objects.window_kernels import TOP, WINDOW, WINDOW_FIELDS, Tma
from skyband.operators.protocol import Spec
from skyband.structures import slabs
from skyband.structures.ranking import best_first

NAME = "tma"


class WholeWindow(Stepwise):
    """The window, in order of time, and a list from which answers are taken, made from it when it has not enough."""

    def __init__(self, spec: Spec, kind: Any, *, fields: dict[str, int | float], initial_room: int) -> None:
        # The window may move, and lists of a few k rows.
        room = (32 * spec.k + 256, 4)
        super().__init__(spec, kind, lists=2, fields=fields, room=room, initial_room=initial_room)
        self._repeats = False

    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            top, window, group = self._list(TOP, g), self._list(WINDOW, g), self._state.groups[g]
            order = np.lexsort((window["position"], window["time"]))
            assert (order == np.arange(len(window))).all(), "the window is in order of time, then of arrival"
            assert (window["time"] >= group["limit"]).all(), "no expired row is in the window"
            live = top[top["time"] >= group["limit"]]
            assert np.isin(live["position"], window["position"]).all(), "a listed row is expired or in the window"
            assert top["time"].min(initial=group["expires"]) == group["expires"], "no listed row expires sooner"

    def _lists(self) -> list[slabs.Headers]:
        return [self._all_lists()[WINDOW]]


class TopKMonitoring(WholeWindow):
    def check(self) -> None:
        super().check()
        for g in range(len(self._state.groups)):
            top, window = self._list(TOP, g), self._list(WINDOW, g)
            assert len(top) <= self.spec.k, "the list has at most k rows"
            known = np.concatenate([window, top[~np.isin(top["position"], window["position"])]])
            best = known[best_first(known)[: self.spec.k]]
            assert (best["position"] == top["position"]).all(), "it has the best of the window and of its expired rows"


def expected_rows(spec: Spec, window_rows: float) -> float:
    return window_rows


def refuses(spec: Spec) -> str | None:
    return None


def open(spec: Spec, *, initial_room: int = 1024) -> TopKMonitoring:
    return TopKMonitoring(spec, Tma(spec.k), fields=WINDOW_FIELDS, initial_room=initial_room)
