"""The driver of algorithms that take one row after another.

Such an algorithm has a `kind`, a named tuple of its settings, whose type decides what the compiled loop does with a row
(step_kernels.py). It also declares the fields of a group, and how many lists of rows a group has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Spans
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import Saved
from skyband.errors import InvalidQuery
from skyband.kernels import slabs
from skyband.kernels.ranking import Rows, best_first
from skyband.problems.rows.drivers import step_kernels as kernels
from skyband.problems.rows.drivers.row_kernels import Input
from skyband.problems.rows.drivers.window_driver import LIST, SHOWN, WindowDriver
from skyband.problems.rows.operator import RECENT, Spec
from skyband.windows import NEVER


class StepDriver(WindowDriver):
    """The driver. `fields` are those of a group with their initial values, besides the ones that all algorithms have.

    `room` is the number of pool entries that a step may take, and how many more for each row of the group's lists. A
    row may be in several lists.
    """

    def __init__(
        self,
        spec: Spec,
        kind: Any,
        *,
        lists: int = 1,
        fields: dict[str, int | float] | None = None,
        room: tuple[int, int] | None = None,
        initial_room: int,
    ) -> None:
        super().__init__(spec, initial_room)
        clock, every = self._windows, spec.window.every if self._numbered else 0
        moves, ahead = not (clock.endless or clock.waits), every > 0 and not spec.ad_hoc
        # The default is the worst case: every row moves to another list, and every list moves.
        room = room or (8 * lists * (2 * spec.k + 8), 8 * lists)
        self._config = kernels.Config(
            spec.k,
            spec.window.size,
            moves,
            self._numbered,
            every,
            not clock.slides,
            ahead,
            spec.emit,
            *room,
            spec.ties != RECENT,
        )
        self._kind = kind
        self._repeats = lists > 1  # may a row be in several lists?
        # `arrivals`: rows so far, if they are numbered. `oldest`: the group drops nothing while the window starts there
        # or before. They come last, because numba treats a record that begins like another one as a kind of it.
        self._fields = {**(fields or {}), "arrivals": 0, "oldest": NEVER}
        types = {int: np.int64, float: np.float64}
        self._group = np.dtype([(name, types[type(value)]) for name, value in self._fields.items()])
        self._state = kernels.State(
            np.zeros(0, self._group),
            np.zeros((lists, 0), LIST),
            np.zeros(0, LIST),
            self._clock,
            np.empty(spec.k, np.int64),
        )
        self._know_groups(1)

    # -- the protocol ---------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        state = self._state
        shown = int(state.shown["length"].sum()) if takes_back(self.spec.emit) else 0
        return int(state.lists["length"].sum()) + shown + len(self._pending)

    def live_codes(self) -> npt.NDArray[np.bool_]:
        state = self._state
        live: npt.NDArray[np.bool_] = (
            (state.lists["length"] > 0).any(axis=0) | (state.shown["length"] > 0) | (state.groups["arrivals"] > 0)
        )
        live[self._pending["group"]] = True
        return live

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        groups = saved["groups"]
        for name, first in self._fields.items():
            check = saved.numbers if isinstance(first, float) else saved.moments
            check(f"groups.{name}", groups[name])
        saved.counts("groups.arrivals", groups["arrivals"])
        saved.best_first("list0_length", "list0_rows")

    def check(self) -> None:
        """The invariants of every such algorithm; each adds its own."""
        for g in range(len(self._state.groups)):
            answer = self._list(0, g)
            assert (best_first(answer) == np.arange(len(answer))).all(), "the first list is ranked, best first"
            assert not np.isnan(answer["score"]).any(), "a row without a score is never held"
            assert len(np.unique(answer["position"])) == len(answer), "no row is twice in a list"

    def _list(self, i: int, g: int) -> Rows:
        """The rows of list i of group g, for checks."""
        header = self._state.lists[i, g]
        start = int(header["offset"] + header["gap"])
        return self._pool.rows[start : start + int(header["length"])].copy()

    # -- inside ---------------------------------------------------------------------------------------------------

    def _new_groups(self, count: int) -> npt.NDArray[Any]:
        return np.full(count, np.array(tuple(self._fields.values()), self._group))

    def _know_groups(self, count: int) -> None:
        known = len(self._state.groups)
        if count > known:
            count = max(count, 2 * known)
            groups = self._new_groups(count)
            groups[:known] = self._state.groups
            lists = np.zeros((len(self._state.lists), count), LIST)
            lists[:, :known] = self._state.lists
            shown = slabs.grown(self._state.shown, count)
            self._state = self._state._replace(groups=groups, lists=lists, shown=shown)

    def _take(self, rows: Input) -> None:
        # The scores, group after group; NaN for rows that are late or have no score.
        rows = rows._replace(score=kernels.prepare(rows, self._config, self._clock))
        g, j = 0, 0
        while True:
            g, j = kernels.push(g, j, rows, self._config, self._kind, self._pool, self._state, self._out)
            if g == len(self._state.groups):
                return
            self._make_room()

    def _end(self, end: int) -> None:
        g, first = 0, self._windows.start_of(end)
        while True:
            g = kernels.end_window(end, first, g, self._config, self._kind, self._pool, self._state, self._out)
            if g == len(self._state.groups):
                return
            self._make_room()

    def _all_lists(self) -> dict[str, slabs.Headers]:
        found = {}
        for i, headers in enumerate((*self._state.lists, self._state.shown)):
            plain = headers.copy()
            plain["offset"] += plain["gap"]
            found[f"list{i}" if i < len(self._state.lists) else SHOWN] = plain
        return found

    def _by_group(self) -> Arrays:
        return {"groups": self._state.groups.copy()}

    def _restore_groups(self, state: Arrays, lists: dict[str, slabs.Headers]) -> None:
        groups = state["groups"].copy()
        *others, shown = lists.values()
        self._state = self._state._replace(groups=groups, lists=np.stack(others), shown=shown)

    def _taken(self) -> tuple[Ints, Rows]:
        group, rows = super()._taken()
        if self._repeats:
            once = np.unique(rows["position"], return_index=True)[1]
            group, rows = group[once], rows[once]
        return group, rows

    def _spans(self, groups: Ints, size: Ints) -> Spans:
        if self._config.ahead:
            self._refuse(size)
        return super()._spans(groups, size)

    def _refuse(self, size: Ints) -> None:
        """Refuse sizes that reach back before the rows that are kept, for any group, even one without rows."""
        start, closed = self._windows.reach(size, self._arrivals())
        refused = np.argwhere((start < closed + (self._config.every - self._config.size)) & (size != NEXT_WINDOW))
        if len(refused):
            g, q = refused[0]
            raise InvalidQuery(
                f"size={size[q]} reaches back to {start[g, q]}, before the window that closes next. The session has "
                "dropped the rows of closed windows. Leave out size for the current window, or open the query with "
                "ad_hoc=True for any size."
            )
