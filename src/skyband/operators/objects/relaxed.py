"""Relaxed k-skyband: exact top-k at every arrival, with lazy pruning.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 4.2 (RA).
Invariant:  every row that fewer than k better rows outlive is held, the k best of them in front; some others may be
            held too.
Cost:       push about three comparisons a row and O(log s) for a row that k later rows of its block do not outrank;
            state s is at most twice the k-skyband, which has k (1 + ln(n/k)) rows on random order, and `slack` rows.
Choose it:  the answer is wanted with each arrival, or `top(k, size)` for any size.

Instead of pruning one row at a time, rows are looked through in blocks, from the end: see relaxed_kernels.py.
With a slide by value, rows that belong to a later window than the next one to close wait in `_pending`.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from skyband.operators.objects import relaxed_kernels as kernels
from skyband.operators.objects.asking import best_of
from skyband.operators.objects.relaxed_kernels import LATE, NEED, NOW, UNRANKED
from skyband.operators.objects.showing import OUT
from skyband.operators.protocol import ANSWER, CHANGES, Answer, Arrays, Batch, Codes, Ints, Spec
from skyband.structures import slabs
from skyband.structures.codes import order_by_code
from skyband.structures.ranking import ROW, Rows, best_first
from skyband.windows import FOREVER

NAME = "relaxed"
NEVER = FOREVER

# A row that waits for its window, and its group.
PENDING = np.dtype([*ROW.descr, ("group", np.int64)])
_NO_ORDER = np.empty(0, np.int64)


def refuses(spec: Spec) -> str | None:
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The k-skyband of n rows in random order has k (1 + H_n - H_k) rows, about k (1 + ln(n/k))."""
    if spec.window.size == FOREVER:
        return min(spec.k, window_rows)
    return min(window_rows, spec.k * (1 + math.log(max(1.0, window_rows / spec.k))))


def open(spec: Spec) -> Relaxed:
    return Relaxed(spec)


class Relaxed:
    def __init__(self, spec: Spec, *, block: int = 32768, slack: int = 64, initial_room: int = 1024) -> None:
        """Rows are taken `block` at a time; a group of s rows is pruned again when it holds 2 s + `slack`."""
        self.spec = spec
        window = spec.window
        self._slides_by_value = window.every > 0 and not window.by_count
        self._rule = kernels.Rule(
            spec.k,
            window.size,
            window.by_count,
            window.every if window.by_count else 0,
            window.every == 0,
            spec.emit,
            block,
            slack,
        )
        self._pool = slabs.new_pool(initial_room)
        self._state = kernels.State(
            np.zeros(1, kernels.GROUP),
            np.zeros(1, kernels.LIST),
            np.zeros(1, kernels.LIST),
            np.zeros(kernels.CLOCKS, np.int64),
        )
        self._state.clock[NOW] = -NEVER
        self._out = np.zeros(initial_room, ANSWER)
        self._work = kernels.new_work(self._rule, block)
        self._late = 0  # by value with a slide: windows decide what is late, not times
        self._unranked = 0  # by value with a slide: rows without a score are not taken in
        self._seen = -NEVER  # by value with a slide: the largest time seen; the clock's NOW is that of rows taken in
        self._closed = -NEVER  # windows with a smaller index have closed
        self._due = -NEVER  # landmark: the last window that has a row which no earlier one had
        self._pending = np.empty(0, PENDING)

    @property
    def late(self) -> int:
        return self._late + int(self._state.clock[LATE])

    @property
    def unranked(self) -> int:
        return self._unranked + int(self._state.clock[UNRANKED])

    # -- the protocol ---------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if len(batch.group):
            self._know_groups(int(batch.group.max()) + 1)
        if self._slides_by_value:
            self._push_and_close(batch)
        else:
            self._take(batch.score, batch.time, batch.group, first=batch.first)
        return self._take_answer()

    def advance(self, watermark: int) -> Answer:
        self._close_before(watermark // self.spec.window.every)
        return self._take_answer()

    def next_close(self) -> int | None:
        window = self._next_window() if self._slides_by_value else None
        return None if window is None else (window + 1) * self.spec.window.every

    def finish(self) -> Answer:
        if self._slides_by_value:
            last = self._last_window(self._rows()[1]["time"]).max(initial=-NEVER)
            self._close_before((self._due if self.spec.window.size == FOREVER else int(last)) + 1)
        return self._take_answer()

    def top(self, k: int, size: int | None) -> Answer:
        group, rows = self._rows()
        return best_of(group, rows, k, {int(g): self._asked(int(g), size) for g in np.unique(group)})

    def held(self) -> Ints:
        positions = self._rows()[1]["position"]
        if self.spec.emit == CHANGES:
            positions = np.concatenate([positions, slabs.pack(self._pool, self._state.shown)["position"]])
        return np.unique(positions)

    def rows_held(self) -> int:
        state = self._state
        # A row that was shown and has left since is held until that is said; most of those shown are counted twice.
        lists = (state.groups, state.recent, state.shown) if self.spec.emit == CHANGES else (state.groups, state.recent)
        return sum(int(headers["length"].sum()) for headers in lists) + len(self._pending)

    def live_groups(self) -> npt.NDArray[np.bool_]:
        state = self._state
        live: npt.NDArray[np.bool_] = (
            (state.groups["length"] > 0) | (state.shown["length"] > 0) | (state.groups["arrivals"] > 0)
        )
        live[self._pending["group"]] = True
        return live

    def regroup(self, kept: Ints) -> None:
        saved = self.state()
        code = np.full(len(self._state.groups), slabs.NONE, np.int64)
        code[kept] = np.arange(len(kept))
        for name in ("band", "recent", "shown"):
            owner = np.repeat(np.arange(len(code)), saved[f"{name}_length"])
            saved[f"{name}_rows"] = saved[f"{name}_rows"][code[owner] != slabs.NONE]
            saved[f"{name}_length"] = saved[f"{name}_length"][kept]
        saved["arrivals"], saved["pruned"] = saved["arrivals"][kept], saved["pruned"][kept]
        saved["pending"]["group"] = code[saved["pending"]["group"]]
        self.restore(saved)

    def state(self) -> Arrays:
        state = self._state
        return {
            "clock": np.array(
                [state.clock[NOW], self.late, self.unranked, self._seen, self._closed, self._due], np.int64
            ),
            "arrivals": state.groups["arrivals"].copy(),
            "pruned": state.groups["pruned"].copy(),
            "band_length": state.groups["length"].copy(),
            "recent_length": state.recent["length"].copy(),
            "shown_length": state.shown["length"].copy(),
            "band_rows": slabs.pack(self._pool, self._bands()),
            "recent_rows": slabs.pack(self._pool, state.recent),
            "shown_rows": slabs.pack(self._pool, state.shown),
            "pending": self._pending.copy(),
        }

    def restore(self, state: Arrays) -> None:
        n = len(state["arrivals"])
        groups, recent, shown = np.zeros(n, kernels.GROUP), np.zeros(n, kernels.LIST), np.zeros(n, kernels.LIST)
        self._pool = slabs.new_pool(
            sum(slabs.room_for(state[f"{name}_length"]) for name in ("band", "recent", "shown"))
        )
        for name, headers in (("band", groups), ("recent", recent), ("shown", shown)):
            headers["length"] = state[f"{name}_length"]
            slabs.unpack(self._pool, headers, state[f"{name}_rows"])
        groups["arrivals"], groups["pruned"] = state["arrivals"], state["pruned"]
        kernels.find_oldest(groups, self._rule.k, self._pool)
        clock = np.zeros(kernels.CLOCKS, np.int64)
        clock[NOW], self._late, self._unranked, self._seen, self._closed, self._due = (int(x) for x in state["clock"])
        self._state = kernels.State(groups, recent, shown, clock)
        self._pending = state["pending"].copy()

    def check(self) -> None:
        saved, k = self.state(), self.spec.k
        rows = self._rows()[1]
        assert len(np.unique(rows["position"])) == len(rows), "no row is held twice"
        assert not np.isnan(rows["score"]).any(), "a row without a score is never held"
        bands, recents = _split(saved, "band"), _split(saved, "recent")
        for g, (band, recent) in enumerate(zip(bands, recents, strict=True)):
            assert (best_first(band) == np.arange(len(band))).all(), "a band is sorted, best first"
            assert (np.diff(recent["time"]) >= 0).all(), "recent rows are in order of time"
            limit = 2 * int(self._state.groups["pruned"][g]) + self._rule.slack
            assert len(band) + len(recent) <= limit, "a group is pruned before it has twice the rows of the last time"
            alive = recent[recent["time"] > self._expired(g)]
            if len(band) >= k and len(alive):
                first = np.concatenate([band[k - 1 : k], alive])
                assert best_first(first)[0] == 0, "no recent row ranks before the worst of the first k"

    # -- inside ---------------------------------------------------------------------------------------------------

    def _expired(self, g: int) -> int:
        """Rows of group g with this time or an earlier one have left the window."""
        by_count = self.spec.window.by_count
        now = int(self._state.groups["arrivals"][g]) - 1 if by_count else int(self._state.clock[NOW])
        return int(kernels.expired_at(now, self.spec.window.size))

    def _know_groups(self, count: int) -> None:
        known = len(self._state.groups)
        if count > known:
            count = max(count, 2 * known)
            groups, recent, shown, clock = self._state
            self._state = kernels.State(
                slabs.grown(groups, count), slabs.grown(recent, count), slabs.grown(shown, count), clock
            )

    def _take(
        self,
        score: npt.NDArray[np.float64],
        time: Ints,
        group: Codes | Ints,
        *,
        first: int = 0,
        position: Ints = _NO_ORDER,
    ) -> None:
        """Take rows in, in this order, moving the clock with them by value."""
        groups, clock = self._state.groups, self._state.clock
        now = _NO_ORDER if self._rule.by_count else kernels.running_maximum(time, clock[NOW])
        order, start = _NO_ORDER, np.array([0, len(score)])
        if self.spec.grouped:
            order, start = order_by_code(group, 0, len(group), len(groups))
        rows = kernels.Input(score, time, now, position, first, order, start)
        g, j = 0, 0
        while True:
            self._fit_work()
            g, j = kernels.push(g, j, rows, self._rule, self._pool, self._state, self._work, self._out)
            if g == len(groups):
                break
            self._make_room()
        if len(now):
            clock[NOW] = now[-1]

    def _make_room(self) -> None:
        need = int(self._state.clock[NEED])
        if need:
            self._pool = slabs.grown_pool(self._pool, need)
        else:
            self._out = slabs.grown(self._out, 2 * len(self._out) + 2 * self.spec.k)

    def _fit_work(self) -> None:
        """Make the scratch long enough for a block and the recent rows of any group before it."""
        carried = int(self._state.recent["length"].max(initial=0))
        if len(self._work.score) < self._rule.block + carried:
            self._work = kernels.new_work(self._rule, 2 * carried)

    # -- windows by value that slide ----------------------------------------------------------------------------------

    def _push_and_close(self, batch: Batch) -> None:
        """Cut the batch where windows close; between two closings, rows of the next window go in, later ones wait."""
        if not len(batch.score):
            return
        window = self.spec.window
        seen = kernels.running_maximum(batch.time, self._seen)
        self._seen = int(seen[-1])
        closed = (
            np.maximum((seen - window.lateness) // window.every, self._closed) if window.lateness != FOREVER else None
        )
        cuts = [0, len(seen)] if closed is None else [0, *(np.flatnonzero(np.diff(closed)) + 1).tolist(), len(seen)]
        group = batch.group if self.spec.grouped else np.zeros(len(seen), np.int64)
        for a, b in pairwise(cuts):
            if closed is not None:
                self._close_before(int(closed[a]))
            late = self._last_window(batch.time[a:b]) < self._closed
            self._late += int(late.sum())
            rows = np.zeros(b - a, PENDING)
            rows["score"], rows["time"], rows["group"] = batch.score[a:b], batch.time[a:b], group[a:b]
            rows["position"] = np.arange(batch.first + a, batch.first + b)
            unranked = ~late & np.isnan(rows["score"])
            self._unranked += int(unranked.sum())
            rows = rows[~late & ~unranked]
            if len(rows):
                self._due = max(self._due, self._closed, int(rows["time"].max()) // window.every)
            self._take_due(rows, self._closed)

    def _take_due(self, rows: npt.NDArray[np.void], window: int) -> None:
        """Take in the rows that belong to this window or an earlier one; the others wait for theirs to be next."""
        due = rows["time"] // self.spec.window.every <= window
        self._pending = np.concatenate([self._pending, rows[~due]])
        if due.any():
            score, time, position, group = (
                np.ascontiguousarray(rows[name][due]) for name in ("score", "time", "position", "group")
            )
            self._take(score, time, group, position=position)

    def _last_window(self, time: Ints) -> Ints:
        every, size = self.spec.window.every, self.spec.window.size
        return np.full(len(time), NEVER) if size == FOREVER else (time + size) // every - 1

    def _next_window(self) -> int | None:
        """The earliest open window that has something to show."""
        if self.spec.emit == CHANGES and self._state.shown["length"].any():
            return self._closed
        time = self._rows()[1]["time"]
        live = time[self._last_window(time) >= self._closed]
        return max(self._closed, int(live.min()) // self.spec.window.every) if len(live) else None

    def _close_before(self, window: int) -> None:
        """Close every window with a smaller index."""
        while (following := self._next_window()) is not None and following < window:
            self._close(following)
        self._closed = max(self._closed, window)

    def _close(self, window: int) -> None:
        pending, self._pending = self._pending, np.empty(0, PENDING)
        self._take_due(pending[np.lexsort((pending["position"], pending["time"]))], window)
        end = (window + 1) * self.spec.window.every
        for step, argument in (
            (kernels.expire_all, int(kernels.expired_at(end - 1, self.spec.window.size))),
            (kernels.show_all, end),
        ):
            g = 0
            self._fit_work()
            while True:
                last = self._work if step is kernels.expire_all else self._out
                g = step(argument, g, self._rule, self._pool, self._state, last)
                if g == len(self._state.groups):
                    break
                self._make_room()
        self._closed = max(self._closed, window + 1)

    # -- looking at the state -----------------------------------------------------------------------------------------

    def _bands(self) -> slabs.Headers:
        """Headers of the bands as plain lists."""
        headers = np.zeros(len(self._state.groups), kernels.LIST)
        headers["offset"] = self._state.groups["offset"] + self._state.groups["gap"]
        headers["length"] = self._state.groups["length"]
        return headers

    def _rows(self) -> tuple[Ints, Rows]:
        """Every live row held, and its group."""
        state, codes = self._state, np.arange(len(self._state.groups))
        group = [
            np.repeat(codes, state.groups["length"]),
            np.repeat(codes, state.recent["length"]),
            self._pending["group"],
        ]
        pending = np.zeros(len(self._pending), ROW)
        for name in ROW.names or ():
            pending[name] = self._pending[name]
        rows = [slabs.pack(self._pool, self._bands()), slabs.pack(self._pool, state.recent), pending]
        return np.concatenate(group), np.concatenate(rows)

    def _asked(self, group: int, size: int | None) -> tuple[int, int, int]:
        """What an ad-hoc question covers, as times [start, end), and what to call it."""
        window = self.spec.window
        if window.by_count:
            now = int(self._state.groups["arrivals"][group])
        else:
            now = self._seen if self._slides_by_value else int(self._state.clock[NOW])
        if size is None and window.every:
            end = (now // window.every + 1) * window.every if window.by_count else self.next_close()
            return (0, 0, 0) if end is None else (end - window.size, end, end)
        size = window.size if size is None else size
        return (now - size, now, now) if window.by_count else (now - size + 1, now + 1, now)

    def _take_answer(self) -> Answer:
        clock = self._state.clock
        written = self._out[: clock[OUT]]
        clock[OUT] = 0
        if self.spec.grouped and not self._slides_by_value:
            # Groups were taken one after another; their answers came about in the order of the rows.
            written = written[np.argsort(written["order"], kind="stable")]
        return Answer.of(written)


def _split(saved: Arrays, name: str) -> list[Rows]:
    """The rows of each group."""
    ends = np.cumsum(saved[f"{name}_length"])
    return [saved[f"{name}_rows"][end - n : end] for n, end in zip(saved[f"{name}_length"], ends, strict=True)]
