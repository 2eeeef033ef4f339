"""The state of `partitioned`: each group has a short ranked list and a store of partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.emit import takes_back
from skyband.core.operator import Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.errors import InvalidQuery
from skyband.kernels import slabs
from skyband.kernels.ranking import Rows, best_first
from skyband.problems.rows.algorithms.partitioned.kernels.arrays import EXPIRY, FIELDS, PARTS, RANKED, STORE
from skyband.problems.rows.algorithms.partitioned.kernels.steps import Partitions
from skyband.problems.rows.drivers.row_driver import Change, rescored
from skyband.problems.rows.drivers.step_driver import StepDriver
from skyband.problems.rows.operator import Spec
from skyband.windows import NEVER


class Partitioned(StepDriver):
    """The operator. Rows below the threshold wait in partitions, which are sorted once they are full."""

    def __init__(self, spec: Spec, *, partition: int = 64, slack: int = 64, initial_room: int = 1024) -> None:
        """A partition has at least `partition` rows. Besides the best k rows, about `slack` more are kept ranked."""
        forgets = not spec.window.endless
        kind = Partitions(forgets or spec.ad_hoc, forgets, max(slack, 1), partition, np.empty(spec.k, np.float64))
        fields = {**FIELDS, "partition": partition}
        # In one step the store and the list of partitions may each move once, to a slab of four times their size. The
        # ranked rows and their queue stay short: k + 2 slack rows, whatever the window has.
        room = 64 * (spec.k + max(slack, 1) + 8), 8
        super().__init__(spec, kind, lists=4, fields=fields, room=room, initial_room=initial_room)

    def rows_held(self) -> int:
        lists, shown = self._state.lists["length"], self._state.shown["length"]
        held = int(lists[[RANKED, STORE]].sum()) + len(self._pending)
        return held + int(shown.sum()) if takes_back(self.spec.emit) else held

    def rescore(self, change: Change) -> None:
        self.restore(rescored(self.state(), change, other=(f"list{PARTS}_rows",)))

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        ranked, expiry, store, parts = (f"list{i}" for i in (RANKED, EXPIRY, STORE, PARTS))
        saved.same_rows(f"{ranked}_length", f"{ranked}_rows", f"{expiry}_length", f"{expiry}_rows")
        groups, entries, owner = saved["groups"], saved[f"{parts}_rows"], saved.owners(f"{parts}_length")
        stored = saved[f"{store}_length"]
        saved.counts("groups.partition", groups["partition"])
        saved.counts("groups.came", groups["came"])
        saved.promise(bool((groups["closed"] <= stored).all()), "'groups.closed' is more than there is in the store")
        saved.within(f"{parts}.flag", entries["flag"], 0, len(saved[f"{store}_rows"]))
        taken = np.bincount(owner, entries["flag"], len(groups)).astype(np.int64)
        saved.promise(np.array_equal(taken, groups["closed"]), "partitions are not what is closed of the store")
        saved.within(f"{parts}.score", entries["score"], 0, FARTHEST)
        # Rows cut from a partition are in the gap behind the others, and may have been at or before the threshold.
        for low, high in (("position", "flag"), ("last", "flag")):
            inside = (entries[low] >= 0) & (entries[low] <= entries[high])
            saved.promise(bool(inside.all()), f"{parts}.{low} is not from 0 to {high!r}")
        self._validate_store(saved, entries, owner)

    def _validate_store(self, saved: Saved, parts: Rows, owner: Ints) -> None:
        """Check that no row is in two partitions: merging these would never end."""
        stored, groups = saved[f"list{STORE}_length"], saved["groups"]
        begin = (np.cumsum(stored) - stored)[owner]
        before = np.cumsum(parts["flag"]) - parts["flag"]
        first = np.full(len(groups), NEVER)
        np.minimum.at(first, owner, before)
        begin = begin + before - first[owner]
        filling, begins = stored - groups["closed"], np.cumsum(stored) - stored + groups["closed"]
        length = np.concatenate([parts["last"], filling])
        index = np.repeat(np.concatenate([begin, begins]) - (np.cumsum(length) - length), length) + np.arange(
            length.sum()
        )
        rows, of = saved[f"list{STORE}_rows"][index], np.repeat(np.concatenate([owner, np.arange(len(groups))]), length)
        saved.distinct(f"list{STORE}_rows", rows["position"], of)

    def check(self) -> None:
        super().check()
        for g, group in enumerate(self._state.groups):
            ranked, expiry, store = self._list(RANKED, g), self._list(EXPIRY, g), self._list(STORE, g)
            assert (np.diff(expiry["time"]) >= 0).all(), "the queue of ranked rows is in order of time"
            assert len(ranked) == len(expiry), "it is as long as the ranked list"
            same = np.sort(ranked["position"]) == np.sort(expiry["position"])
            assert np.all(same), "it holds each ranked row, and no other"
            assert len(ranked) <= self.spec.k + 2 * self._kind.slack, "the ranked list is short"
            assert (ranked["time"] >= group["limit"]).all(), "no ranked row is expired"
            assert self._reach(ranked, group).all(), "ranked rows are at or before the threshold"
            assert len(ranked) >= self.spec.k or self._reach(store, group).all(), "if few, every row is"
            for section in self._sections(g):
                assert (best_first(section) == np.arange(len(section))).all(), "a closed partition is sorted"
                self._check_ranked(section, g)
            filling = store[group["closed"] :]
            assert (np.diff(filling["time"]) >= 0).all(), "the partition that is filling is in order of time"
            assert len(filling) < max(1, group["partition"]), "a full partition is closed"
            self._check_ranked(filling, g)
            after = filling[~self._reach(filling, group) & (filling["time"] >= group["limit"])]
            assert (after["score"] <= group["best"]).all(), (
                "none of its live rows after the threshold is above its bound"
            )

    def _check_ranked(self, rows: Rows, g: int) -> None:
        group = self._state.groups[g]
        due = rows[self._reach(rows, group) & (rows["time"] >= group["limit"])]
        ranked = self._list(RANKED, g)["position"]
        assert np.isin(due["position"], ranked).all(), "every live row at or before the threshold is ranked"

    def _reach(self, rows: Rows, group: Any) -> npt.NDArray[np.bool_]:
        """For each of these rows: does it rank at or before the threshold?"""
        at = (group["threshold"], group["threshold_time"], group["threshold_position"])
        keys = zip(rows["score"], rows["time"], rows["position"], strict=True)
        return np.array([key >= at for key in keys], bool)

    def _sections(self, g: int) -> list[Rows]:
        """The rows of each closed partition."""
        store, parts = self._list(STORE, g), self._list(PARTS, g)
        starts = np.cumsum(parts["flag"]) - parts["flag"]
        assert parts["flag"].sum() == self._state.groups["closed"][g], "closed partitions lie one behind the other"
        return [store[start : start + n] for start, n in zip(starts, parts["last"], strict=True)]

    def _lists(self) -> list[slabs.Headers]:
        lists = self._all_lists()
        return [lists[f"list{i}"] for i in (RANKED, STORE)]

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        if len(groups) and not self._kind.stores and (size != NEXT_WINDOW).any():
            raise InvalidQuery(
                f"size={size[size != NEXT_WINDOW][0]} asks for the last rows of a window that nothing leaves, and the "
                "session keeps only the best rows of all. Leave out size, or open the query with ad_hoc=True for any "
                "size."
            )
        return super()._spans(groups, size)
