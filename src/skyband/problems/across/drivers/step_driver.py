"""The driver of algorithms across streams: it turns batches into steps, and steps into answers.

An algorithm adds its state and a kernel that executes steps: see `clock.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import Driver, WindowClock
from skyband.core.emit import ENTER
from skyband.core.operator import Arrays, Codes, Ints, ShowsNoRows
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.across.drivers.clock import StepClock, Steps
from skyband.problems.across.drivers.kernels.emit import Out, Shown, new_out, new_shown
from skyband.problems.across.drivers.kernels.scoring import scoring_of
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec

CHUNK = 1 << 16  # the most steps of one call of the kernel; in between the driver makes room
_SHOWN = ("code", "score", "time", "values")  # the columns of the last answer that are saved


class Config(NamedTuple):
    """The query, as a kernel needs it."""

    k: int
    emit: int
    each: bool  # is an answer due after each row?


class StepDriver(ShowsNoRows, Driver[AcrossAnswer]):
    """The protocol except for the abstract methods, which an algorithm implements."""

    wants_keys = False
    recall = 1.0
    _s: Any  # the algorithm's state: a named tuple of arrays
    _repeated: int  # which of its `numbers` counts the rows that broke the promise of how often an object comes
    _kernel: Callable[..., tuple[int, int]]  # executes steps

    def __init__(self, spec: AcrossSpec) -> None:
        super().__init__(WindowClock(spec.window, streams=spec.streams, idle_after=spec.idle_after))
        self.spec = spec
        self._steps = StepClock(spec, self._windows)
        self._scoring = scoring_of(spec)
        self._codes = 0  # how many objects there is room for
        self._shown = new_shown(0, 0, spec.streams)
        self._out = new_out(1024, spec.streams)
        self._written = 0  # the entries of `_out` that are written
        self._done: list[AcrossAnswer] = []  # earlier entries, from when `_out` was full

    @property
    def _places(self) -> int:
        """The number of slots of an object."""
        return self.spec.streams

    @property
    def repeated(self) -> int:
        return int(self._s.numbers[self._repeated])

    # -- an algorithm implements these --------------------------------------------------------------------------------

    @abstractmethod
    def _grow(self, codes: int) -> None:
        """Make room for this many objects."""

    @abstractmethod
    def _rank_now(self, clock: int) -> int:
        """Write the best objects at `clock`, the clock of the last step, to the top. Returns their number."""

    @abstractmethod
    def _rows_kept(self) -> int: ...

    @abstractmethod
    def _live(self) -> npt.NDArray[np.bool_]:
        """For each object: does the algorithm still need it?"""

    @abstractmethod
    def _compact(self, kept: Ints, code_of: Codes) -> None:
        """Renumber objects: kept[i] becomes i. `code_of` maps the old codes to the new ones."""

    @abstractmethod
    def _in_use(self) -> Arrays:
        """The part of each array of the state that is in use."""

    @abstractmethod
    def check(self) -> None: ...

    def _reserve(self, rows: int) -> None:
        """Make room for this many more rows."""
        return

    def _prepare(self) -> None:
        """Before steps are executed, make room for one of them."""
        return

    def _config(self, each: bool) -> Any:
        return Config(self.spec.k, self.spec.emit, each)

    def _make_room_for(self, saved: Arrays) -> None:
        """Make room in a new state for arrays that `_in_use` returned."""
        return

    # -- the protocol -------------------------------------------------------------------------------------------------

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        self._run(self._steps.push(batch))
        return self._take_answer()

    def top(self, k: int, size: int | None = None) -> AcrossAnswer:
        asked, now = self, self._steps.now()
        if self.spec.window.slides:
            # The window that closes next needs rows that still wait, so a copy takes them.
            asked = type(self)(self.spec)
            asked.restore(self.state())
            asked._run(asked._steps.until_now())
        found = min(asked._rank_now(now), k)
        return _top_of(asked._shown, found, now, asked.recall)

    def rows_held(self) -> int:
        return self._rows_kept() + self._steps.rows_waiting()

    def live_codes(self) -> npt.NDArray[np.bool_]:
        live = self._live()
        live[self._steps.codes()] = True
        live[self._shown.code[: self._shown.number[0]]] = True
        return live

    def compact(self, kept: Ints) -> None:
        code_of = np.full(self._codes, -1, np.int32)
        code_of[kept] = np.arange(len(kept), dtype=np.int32)
        self._steps.compact(code_of)
        self._compact(kept, code_of)
        self._codes = len(kept)
        count = self._shown.number[0]
        self._shown.code[:count] = code_of[self._shown.code[:count]]
        self._shown = self._shown._replace(mark=np.zeros(len(kept), np.int8))

    def state(self) -> Arrays:
        count = self._shown.number[0]
        return {
            **self._steps.state(),
            "codes": np.array([self._codes], np.int64),
            **{f"shown_{name}": getattr(self._shown, name)[:count].copy() for name in _SHOWN},
            **self._state(),
        }

    def validate(self, saved: Saved) -> None:
        saved.length(1, "codes")
        codes, shown = int(saved["codes"][0]), len(saved["shown_code"])
        # It must equal the length of the arrays by object, so that a number alone cannot ask for memory.
        saved.promise(codes == self._codes_in(saved), f"'codes' says that there is room for {codes} objects")
        self._steps.validate(saved, codes)
        saved.within("shown_code", np.array([shown]), 0, min(self.spec.k, codes))
        saved.length(shown, *(f"shown_{name}" for name in _SHOWN))
        saved.shape("shown_values", shown, self.spec.streams)
        saved.indices("shown_code", saved["shown_code"], codes)
        saved.distinct("shown_code", saved["shown_code"])

    def _codes_in(self, saved: Saved) -> int:
        """Check the arrays by object, and return their length. This is for algorithms with slots."""
        slots = saved["own_slots"]
        saved.shape("own_slots", len(slots), self._places)
        saved.numbers("own_slots.value", slots["value"])
        saved.within("own_slots.time", slots["time"], -FARTHEST, FARTHEST)
        saved.counts("own_slots.position", slots["position"])
        saved.within("own_slots.held", slots["held"], 0, 1)
        return len(slots)

    def restore(self, state: Arrays) -> None:
        self._steps.restore(state)
        self._make_room(int(state["codes"][0]))
        count = self._shown.number[0] = len(state["shown_code"])
        for name in _SHOWN:
            getattr(self._shown, name)[:count] = state[f"shown_{name}"]
        self._restore(state)

    def _state(self) -> Arrays:
        """Copy the algorithm's state."""
        return {f"own_{name}": array.copy() for name, array in self._in_use().items()}

    def _restore(self, state: Arrays) -> None:
        saved = {name: state[f"own_{name}"] for name in self._s._fields if f"own_{name}" in state}
        self._make_room_for(saved)
        for name, array in saved.items():
            getattr(self._s, name)[tuple(slice(length) for length in array.shape)] = array

    # -- inside -------------------------------------------------------------------------------------------------------

    def _make_room(self, codes: int) -> None:
        if codes <= self._codes:
            return
        room = max(codes, 2 * self._codes, 16)
        entries = min(self.spec.k, room)
        if entries > len(self._shown.code):
            before, self._shown = self._shown, new_shown(entries, room, self.spec.streams)
            count = self._shown.number[0] = before.number[0]
            for name in _SHOWN:
                getattr(self._shown, name)[:count] = getattr(before, name)[:count]
        self._shown = self._shown._replace(mark=np.zeros(room, np.int8))
        self._grow(room)
        self._codes = room

    def _worth_closing(self) -> int | None:
        return self._steps.worth_closing()

    def next_held(self) -> int | None:
        return self._steps.next_held() if self._windows.waits else None

    def _close_until(self, until: int) -> None:
        self._run(self._steps.close(until))

    def _run(self, steps: Steps) -> None:
        steps = steps._replace(rows=steps.rows.map(_writable), clock=_writable(steps.clock))
        self._reserve(len(steps.rows.code))
        step, total = 0, len(steps.row)
        while step < total:
            self._reserve_out(2 * len(self._shown.code))
            step, self._written = self._execute(steps, step, min(step + CHUNK, total), self._written)

    def _reserve_out(self, room: int) -> None:
        """Make room for this many more entries of the output."""
        if self._written + room > len(self._out.at):
            self._done.append(_copied(self._out, self._written))
            self._written = 0
        if len(self._out.at) < room:
            self._out = new_out(max(4 * room, 1024), self.spec.streams)

    def _take_answer(self) -> AcrossAnswer:
        answers = [*self._done, _copied(self._out, self._written)]
        self._done, self._written = [], 0
        joined: list[Any] = [np.concatenate(columns) for columns in zip(*answers, strict=True)]
        return AcrossAnswer(*joined)

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        """Execute steps [step, end) while there is room. Returns the first step not executed, and the number of entries
        written."""
        self._prepare()
        what = self._config(steps.each), self._scoring, steps.rows, steps.clock, steps.row
        return self._kernel(*what, step, end, self._s, self._shown, self._out, written)


def _writable(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy a read-only array, because numba would compile the kernels a second time for it."""
    return column if column.flags.writeable else column.copy()


def _copied(out: Out, written: int) -> AcrossAnswer:
    columns: list[Any] = [column[:written].copy() for column in out]
    return AcrossAnswer(*columns)


def _top_of(shown: Shown, found: int, at: int, recall: float) -> AcrossAnswer:
    return AcrossAnswer(
        np.full(found, at),
        np.arange(1, found + 1, dtype=np.int32),
        shown.top_score[:found].copy(),
        shown.top_code[:found].copy(),
        np.full(found, ENTER),
        shown.top_time[:found].copy(),
        shown.top_values[:found].copy(),
        np.full(found, recall),
    )
