"""An operator for algorithms that take one row after another: what they share beside their compiled loop.

An algorithm is a `kind`, a named tuple of its settings, whose type says what it does with a row (stepwise_kernels.py);
the fields it keeps of each group; and how many lists of rows a group has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.ad_hoc import NEXT_WINDOW, Asked
from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Codes, Ints
from skyband.errors import InvalidQuery
from skyband.kernels import slabs
from skyband.kernels.codes import order_by_code
from skyband.kernels.compiling import read_only
from skyband.kernels.ranking import Rows, best_first
from skyband.problems.rows.drivers import step_kernels as kernels
from skyband.problems.rows.drivers.row_driver import NEED, NEVER, NO_ORDER, NOW, Arriving, Input, running_maximum
from skyband.problems.rows.operator import Spec
from skyband.windows import FOREVER


class Stepwise(Arriving):
    """`fields`: of each group, beside those all have, with their values at the start. Rows may be in several lists.

    `room`: pool entries that a step may take, and how many more for each row of the group's lists.
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
        window = spec.window
        every = window.every if window.by_count else 0
        ahead = every > 0 and not spec.ad_hoc
        # Unless it is known better: every row moves to another list, and every list moves.
        room = room or (8 * lists * (2 * spec.k + 8), 8 * lists)
        self._rule = kernels.Rule(
            spec.k, window.size, window.by_count, every, window.every == 0, ahead, spec.emit, *room
        )
        self._kind = kind
        self._repeats = lists > 1  # may a row be in several lists?
        # Those all have come last: of two records numba takes one that begins like the other for a kind of it.
        self._fields = {**(fields or {}), "arrivals": 0, "oldest": NEVER}
        types = {int: np.int64, float: np.float64}
        self._group = np.dtype([(name, types[type(value)]) for name, value in self._fields.items()])
        self._state = kernels.State(
            np.zeros(0, self._group),
            np.zeros((lists, 0), kernels.LIST),
            np.zeros(0, kernels.LIST),
            self._clock,
            np.empty(spec.k, np.int64),
        )
        self._know_groups(1)

    # -- the protocol ---------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        state = self._state
        shown = int(state.shown["length"].sum()) if takes_back(self.spec.emit) else 0
        return int(state.lists["length"].sum()) + shown + len(self._pending)

    def live_groups(self) -> npt.NDArray[np.bool_]:
        state = self._state
        live: npt.NDArray[np.bool_] = (
            (state.lists["length"] > 0).any(axis=0) | (state.shown["length"] > 0) | (state.groups["arrivals"] > 0)
        )
        live[self._pending["group"]] = True
        return live

    def compact(self, kept: Ints) -> None:
        saved = self.state()
        code = np.full(len(self._state.groups), slabs.NONE, np.int64)
        code[kept] = np.arange(len(kept))
        saved["groups"] = saved["groups"][kept]
        for name in self._list_names():
            owner = np.repeat(np.arange(len(code)), saved[f"{name}_length"])
            saved[f"{name}_rows"] = saved[f"{name}_rows"][code[owner] != slabs.NONE]
            saved[f"{name}_length"] = saved[f"{name}_length"][kept]
        saved["pending"]["group"] = code[saved["pending"]["group"]]
        self.restore(saved)

    def state(self) -> Arrays:
        saved: Arrays = {
            "clock": self._saved_clock(),
            "groups": self._state.groups.copy(),
            "pending": self._pending.copy(),
        }
        for name, headers in zip(self._list_names(), self._all_lists(), strict=True):
            saved[f"{name}_length"] = headers["length"].copy()
            saved[f"{name}_rows"] = slabs.pack(self._pool, headers)
        return saved

    def restore(self, state: Arrays) -> None:
        groups, names = self._new_groups(len(state["groups"])), self._list_names()
        for name in state["groups"].dtype.names or ():  # a field that is newer than the snapshot keeps its first value
            groups[name] = state["groups"][name]
        headers = np.zeros((len(names), len(groups)), kernels.LIST)
        self._pool = slabs.new_pool(sum(slabs.room_for(state[f"{name}_length"]) for name in names))
        for i, name in enumerate(names):
            headers[i]["length"] = state[f"{name}_length"]
            slabs.unpack(self._pool, headers[i], state[f"{name}_rows"])
        self._state = kernels.State(groups, headers[:-1].copy(), headers[-1].copy(), self._clock, self._state.latest)
        self._restore_clock(state)

    def check(self) -> None:
        """What holds of every such algorithm; each adds its own."""
        for g in range(len(self._state.groups)):
            answer = self._list(0, g)
            assert (best_first(answer) == np.arange(len(answer))).all(), "the first list is ranked, best first"
            assert not np.isnan(answer["score"]).any(), "a row without a score is never held"
            assert len(np.unique(answer["position"])) == len(answer), "no row is twice in a list"

    # -- for an algorithm's check ---------------------------------------------------------------------------------

    def _list(self, i: int, g: int) -> Rows:
        """The rows of list i of group g."""
        header = self._state.lists[i, g]
        start = int(header["offset"] + header["gap"])
        return self._pool.rows[start : start + int(header["length"])].copy()

    def _window_start(self, g: int) -> int:
        """Rows of group g before this have left the window, as far as it knows."""
        rule = self._rule
        now = int(self._state.groups["arrivals"][g]) - 1 if rule.by_count else int(self._clock[NOW])
        return int(kernels.window_start(now, rule))

    # -- inside ---------------------------------------------------------------------------------------------------

    def _new_groups(self, count: int) -> npt.NDArray[Any]:
        return np.full(count, np.array(tuple(self._fields.values()), self._group))

    def _know_groups(self, count: int) -> None:
        known = len(self._state.groups)
        if count > known:
            count = max(count, 2 * known)
            groups = self._new_groups(count)
            groups[:known] = self._state.groups
            lists = np.zeros((len(self._state.lists), count), kernels.LIST)
            lists[:, :known] = self._state.lists
            self._state = kernels.State(
                groups, lists, slabs.grown(self._state.shown, count), self._clock, self._state.latest
            )

    def _take(
        self, score: npt.NDArray[np.float64], time: Ints, group: Codes | Ints, first: int, position: Ints
    ) -> None:
        # One kind of array, so that the loop is compiled once: what comes from Arrow cannot be written to.
        time = time if time.flags.writeable else time.copy()
        rule, groups = self._rule, self._state.groups
        now = NO_ORDER if rule.by_count else running_maximum(time, self._clock[NOW])
        order, start = NO_ORDER, np.array([0, len(score)])
        if self.spec.grouped:
            order, start = order_by_code(group, len(groups))
        decides_late = rule.each and not rule.by_count
        size = rule.size if decides_late else FOREVER
        score, time = read_only(score), read_only(time)
        prepared = kernels.prepare(score, time, now, order, size, rule.by_count, self._clock)
        # The scores group after group; NaN: late or without a score.
        rows = Input(prepared, time, now, position, first, order, start)
        g, j = 0, 0
        while True:
            g, j = kernels.push(g, j, rows, rule, self._kind, self._pool, self._state, self._out)
            if g == len(groups):
                break
            self._make_room()
        if len(now):
            self._clock[NOW] = now[-1]

    def _end(self, end: int) -> None:
        g = 0
        while True:
            g = kernels.end_window(end, g, self._rule, self._kind, self._pool, self._state, self._out)
            if g == len(self._state.groups):
                break
            self._make_room()

    def _make_room(self) -> None:
        need = int(self._clock[NEED])
        if need:
            self._pool = slabs.grown_pool(self._pool, need)
        else:
            self._out = slabs.grown(self._out, 2 * len(self._out) + 2 * self.spec.k)

    def _all_lists(self) -> list[slabs.Headers]:
        """Every list of rows, and the rows shown, as plain lists without a gap before the first row."""
        found = []
        for headers in (*self._state.lists, self._state.shown):
            plain = headers.copy()
            plain["offset"] += plain["gap"]
            found.append(plain)
        return found

    def _list_names(self) -> list[str]:
        return [*(f"list{i}" for i in range(len(self._state.lists))), "shown"]

    def _lists(self) -> list[slabs.Headers]:
        return self._all_lists()[:-1]

    def _taken(self) -> tuple[Ints, Rows]:
        group, rows = super()._taken()
        if self._repeats:
            once = np.unique(rows["position"], return_index=True)[1]
            group, rows = group[once], rows[once]
        return group, rows

    def _shown(self) -> slabs.Headers:
        return self._all_lists()[-1]

    def _arrivals(self) -> Ints:
        arrivals: Ints = self._state.groups["arrivals"]
        return arrivals

    def _asked(self, groups: Ints, size: Ints) -> Asked:
        if self._rule.ahead:
            self._refuse(size)
        return super()._asked(groups, size)

    def _refuse(self, size: Ints) -> None:
        """Refuse sizes that reach back before what is kept, of any group, if it has rows left or not."""
        now = self._arrivals()[self._arrivals() > 0]
        kept = (now // self._rule.every + 1) * self._rule.every - self._rule.size
        start = now[:, np.newaxis] - size
        refused = np.argwhere((start < kept[:, np.newaxis]) & (size != NEXT_WINDOW))
        if len(refused):
            g, q = refused[0]
            raise InvalidQuery(
                f"size={size[q]} reaches back to {start[g, q]}, before the window that closes next: what only closed "
                "windows held is not kept. Ask without a size for the window as it stands, or make the query with "
                "ad_hoc=True to ask for any size."
            )
