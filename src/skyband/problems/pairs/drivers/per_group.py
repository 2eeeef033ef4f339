"""One operator for each group: with `per`, pairs are made and ranked within each group by itself.

By count every group counts its own rows, so its operator needs to know of no other. By value all groups share one
clock: their operators leave the watermark to it, and those that have something to show are told when a window closes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from skyband.core.clock import LATEST, Driver, WindowClock
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.pairs.operator import ANSWER, PAIR, Answer, Batch, PairOperator, Pairs, Spec
from skyband.windows import NEVER

FEW_ARRIVALS = 64  # of a group: so many are kept before it is worth asking which of them are needed


@dataclass
class Group:
    """An operator numbers the rows of its group from 0; here is when each of them arrived."""

    operator: PairOperator
    arrivals: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of its rows, from number `base` on
    base: int = 0
    trim_at: int = FEW_ARRIVALS

    @property
    def rows(self) -> int:
        """How many it has had."""
        return self.base + len(self.arrivals)

    def when(self, numbers: Ints) -> Ints:
        found: Ints = self.arrivals[numbers - self.base]
        return found

    def trim(self) -> None:
        """Forget when rows arrived that are not needed any more, once there are many."""
        if len(self.arrivals) >= self.trim_at:
            gone = int(self.operator.held().min(initial=self.rows)) - self.base
            self.arrivals, self.base = self.arrivals[gone:].copy(), self.base + gone
            self.trim_at = max(FEW_ARRIVALS, 2 * len(self.arrivals))


class PerGroup(Driver[Answer]):
    """The protocol of `PairOperator`; batches say of which group each row is, and answers of which each pair is."""

    def __init__(self, spec: Spec, open_one: Callable[[Spec], PairOperator]) -> None:
        super().__init__(WindowClock(spec.window))
        assert not spec.window.moves_by_value, "no row of one group changes the answers of others"
        self.spec = spec
        waits = self._windows.waits
        self._one = replace(spec, window=spec.window.with_outside_watermark()) if waits else spec
        self._open_one = open_one
        self._none = open_one(self._one).state()  # what the state of an operator has
        self._groups: list[Group] = []  # by code
        self._due = np.empty(0, np.int64)  # by code: `next_close` of its operator; LATEST: it has nothing to show
        self._latest = np.empty(0, np.int64)  # by code, by value: the largest time of its rows; -NEVER: it has none
        self._written: list[Answer] = []

    # -- rows and time ------------------------------------------------------------------------------------------------

    def push(self, batch: Batch) -> Answer:
        if not batch.columns.shape[1]:
            return self._take_answer()
        if not self.spec.scoring.may_raise:
            return self._push(batch)
        before = self.state()
        try:
            return self._push(batch)
        except Exception:
            # A user's function failed on some pair: nothing of the batch was taken, by no group.
            self.restore(before)
            raise

    def _push(self, batch: Batch) -> Answer:
        assert batch.group is not None, "with groups, a batch says of which each row is"
        self._make_groups(int(batch.group.max()) + 1)
        clock, count = self._windows, batch.columns.shape[1]
        if not clock.waits:
            clock.move_to(clock.now, arrivals=count)
            return self._in_turn(self._give(batch, np.arange(count)))
        now = clock.now_after(batch.time)
        closed = clock.closed_after(now)
        clock.arrivals += count
        in_time = clock.in_time(batch.time, closed)
        clock.move_to(int(now[-1]))
        for first, end, until in clock.runs(closed):
            self._close_until(until)
            which = np.arange(first, end)
            which = which if in_time is None else which[in_time[first:end]]
            clock.begin(batch.time[which])
            self._written += [answer for answer, _ in self._give(batch, which)]
        return self._take_answer()

    def _make_groups(self, count: int) -> None:
        more = max(0, count - len(self._groups))
        self._groups += [Group(self._open_one(self._one)) for _ in range(more)]
        self._due = np.append(self._due, np.full(more, LATEST))
        self._latest = np.append(self._latest, np.full(more, -NEVER))

    def _give(self, batch: Batch, which: Ints) -> list[tuple[Answer, Ints]]:
        """Give these rows to the operators of their groups; of each its answer, and the arrivals that made it known."""
        if not len(which):
            return []
        assert batch.group is not None
        which = which[np.argsort(batch.group[which], kind="stable")]
        codes = batch.group[which]
        found = []
        for begin, end in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
            code, mine = int(codes[begin]), which[begin:end]
            group = self._groups[code]
            if self._windows.waits:
                group.operator.advance(self._windows.closed)  # where it had nothing to show, it was not told
                self._latest[code] = max(self._latest[code], batch.time[mine].max())
            time = batch.time[mine] if len(batch.time) else batch.time
            part = Batch(
                np.ascontiguousarray(batch.columns[:, mine]), np.ascontiguousarray(batch.colours[:, mine]),
                time, group.rows,
            )  # fmt: skip
            group.arrivals = np.append(group.arrivals, batch.first + mine)
            answer = group.operator.push(part)
            # By count, an answer is called as many arrivals of its group as it is about.
            known = np.empty(0, np.int64) if self._windows.waits else group.when(answer.at - 1)
            found.append((self._named(code, answer), known))
            group.trim()
            self._look(code)
        return found

    def _in_turn(self, answers: list[tuple[Answer, Ints]]) -> Answer:
        """By count: answers in the order in which they became known."""
        order = np.argsort(np.concatenate([np.empty(0, np.int64), *(known for _, known in answers)]), kind="stable")
        self._written += [answer for answer, _ in answers]
        return self._take_answer().take(order)

    def _named(self, code: int, answer: Answer) -> Answer:
        """A group's answer, with the arrivals of its rows among all."""
        group = self._groups[code]
        codes = np.full(len(answer.at), code, np.int32)
        return answer._replace(a=group.when(answer.a), b=group.when(answer.b), group=codes)

    def _look(self, code: int) -> None:
        due = self._groups[code].operator.next_close()
        self._due[code] = LATEST if due is None else due

    def _worth_closing(self) -> int | None:
        first = int(self._due.min(initial=LATEST))
        return None if first == LATEST else max(first, self._windows.next_end)

    def _close_window(self, end: int) -> None:
        for code in np.flatnonzero(self._due <= end).tolist():
            self._written.append(self._named(code, self._groups[code].operator.advance(end)))
            self._look(code)

    def _forget_silent(self) -> None:
        """By value: of a group whose last row is in no window any more, nothing is kept."""
        silent = (self._due == LATEST) & (self._latest < self._windows.live_from) & (self._latest > -NEVER)
        for code in np.flatnonzero(silent).tolist():
            self._groups[code] = Group(self._open_one(self._one))
            self._latest[code] = -NEVER

    def _take_answer(self) -> Answer:
        if self._windows.waits:
            self._forget_silent()
        written, self._written = self._written, []
        if written:
            return Answer.joined(written)
        return Answer.of(np.empty(0, ANSWER))._replace(group=np.empty(0, np.int32))

    # -- right now ----------------------------------------------------------------------------------------------------

    def top(self, k: int, size: int | None) -> Answer:
        answers = []
        ends = [group.operator.next_held() for group in self._groups]
        first = min((end for end in ends if end is not None), default=None)
        for code, group in enumerate(self._groups):
            if not self._windows.waits:
                answers.append(self._named(code, group.operator.top(k, size)))
            elif size is None and ends[code] == first is not None:
                answers.append(self._named(code, group.operator.top(k, None)))
            elif size is not None and (left := size - (self._windows.now - int(self._latest[code]))) > 0:
                # The last rows of all: the group's own last one may have come before the others'.
                answer = self._named(code, group.operator.top(k, left))
                answers.append(answer._replace(at=np.full(len(answer.at), self._windows.now)))
        self._written = answers
        return self._take_answer()

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        answers = [self.top(int(each), int(ticks) or None) for each, ticks in zip(k, size, strict=True)]
        ends = np.cumsum([0, *(len(answer.at) for answer in answers)])
        self._written = answers
        return self._take_answer(), ends

    # -- what is held -------------------------------------------------------------------------------------------------

    def held(self) -> Ints:
        parts = [group.when(group.operator.held()) for group in self._groups]
        return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def rows_held(self) -> int:
        return sum(group.operator.rows_held() for group in self._groups)

    def pairs_held(self) -> Pairs:
        parts = [np.empty(0, PAIR)]
        for group in self._groups:
            held = group.operator.pairs_held().copy()
            for position in ("a_position", "b_position"):
                held[position] = group.when(held[position])
            parts.append(held)
        return np.concatenate(parts)

    def live_groups(self) -> npt.NDArray[np.bool_]:
        """By code: is anything known of the group? By count a group's next row depends on those before."""
        return np.asarray(self._latest > -NEVER) | self._windows.numbered

    def compact_groups(self, kept: Ints) -> None:
        self._groups = [self._groups[code] for code in kept.tolist()]
        self._due, self._latest = self._due[kept], self._latest[kept]

    def live_codes(self, which: int) -> npt.NDArray[np.bool_]:
        parts = [group.operator.live_codes(which) for group in self._groups]
        live = np.zeros(max(map(len, parts), default=0), np.bool_)
        for part in parts:
            live[: len(part)] |= part
        return live

    def compact(self, kept: Ints, which: int = 0) -> None:
        for group in self._groups:
            group.operator.compact(kept, which)

    def live_values(self, which: int) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *(each.operator.live_values(which) for each in self._groups)])

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        for group in self._groups:
            group.operator.relabel(which, old, new)

    # -- state: each array of the operators is one, of all groups one after the other ---------------------------------

    def state(self) -> Arrays:
        states = [group.operator.state() for group in self._groups]
        saved: Arrays = {
            "group_clock": self._windows.state(),
            "group_arrivals": np.concatenate([np.empty(0, np.int64), *(group.arrivals for group in self._groups)]),
            "group_known": np.array([len(group.arrivals) for group in self._groups], np.int64),
            "group_base": np.array([group.base for group in self._groups], np.int64),
            "group_latest": self._latest.copy(),
        }
        for name, none in self._none.items():
            parts = [state[name] for state in states]
            saved[name] = np.concatenate([np.empty(0, none.dtype), *(part.ravel() for part in parts)])
            shapes = np.array([part.shape for part in parts], np.int64)
            saved[f"{name}_shapes"] = shapes.reshape(len(parts), none.ndim)
        return saved

    def validate(self, saved: Saved) -> None:
        self._windows.validate(saved, "group_clock", saved["group_clock"])
        groups = len(saved["group_known"])
        saved.length(groups, "group_base", "group_latest")
        saved.lists("group_known", "group_arrivals")
        saved.counts("group_base", saved["group_base"])
        saved.counts("group_arrivals", saved["group_arrivals"])
        saved.within("group_latest", saved["group_latest"], -FARTHEST, FARTHEST)
        for name, none in self._none.items():
            shapes = saved[f"{name}_shapes"]
            saved.shape(f"{name}_shapes", groups, none.ndim)
            saved.within(f"{name}_shapes", shapes, 0, FARTHEST)
            sizes = np.prod(shapes.astype(np.float64), axis=1)  # of whole numbers, products could wrap around
            saved.promise(bool(sizes.sum() == len(saved[name])), f"'{name}_shapes' are not those of {name!r}")
        ends = np.cumsum(saved["group_known"])
        for code, state in enumerate(self.states(dict(saved))):
            one = self._open_one(self._one)
            one.validate(Saved(state))
            one.restore(state)
            mine = saved["group_arrivals"][ends[code] - saved["group_known"][code] : ends[code]]
            saved.ascends("group_arrivals", mine, strictly=True)
            held, base = one.held(), int(saved["group_base"][code])
            inside = not len(held) or (base <= held.min() and held.max() < base + len(mine))
            saved.promise(inside, "'group_arrivals' does not say when each row held arrived")

    def states(self, saved: Arrays) -> list[Arrays]:
        """The state of each group's operator."""
        states: list[Arrays] = [{} for _ in saved["group_known"]]
        for name in self._none:
            shapes = saved[f"{name}_shapes"]
            ends = np.cumsum(np.prod(shapes, axis=1))
            for state, shape, end in zip(states, shapes.tolist(), ends.tolist(), strict=True):
                state[name] = saved[name][end - int(np.prod(shape)) : end].reshape(shape)
        return states

    def restore(self, state: Arrays) -> None:
        self._windows.restore(state["group_clock"])
        self._groups, self._written = [], []
        self._due, self._latest = np.empty(0, np.int64), np.empty(0, np.int64)
        self._make_groups(len(state["group_known"]))
        ends = np.cumsum(state["group_known"])
        for code, (group, of_it) in enumerate(zip(self._groups, self.states(state), strict=True)):
            group.operator.restore(of_it)
            group.arrivals = state["group_arrivals"][ends[code] - state["group_known"][code] : ends[code]].copy()
            group.base = int(state["group_base"][code])
            self._look(code)
        self._latest[:] = state["group_latest"]

    def check(self) -> None:
        for code, group in enumerate(self._groups):
            group.operator.check()
            assert group.operator.late == 0, "a row that is late for all groups is given to none"
            held = group.operator.held()
            assert not len(held) or held.min() >= group.base, "it is known when each row held arrived"
            due = group.operator.next_close()
            assert self._due[code] == (LATEST if due is None else due), "it is known when each group is due"
