"""What algorithms that execute steps have in common: batches become steps, steps become answers.

An algorithm adds its state and a kernel that executes steps; see `schedule.py` for what these are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import ENTER
from skyband.core.operator import Arrays, Codes, Ints, ShowsNoRows
from skyband.problems.across.drivers.clock import Schedule, Steps
from skyband.problems.across.drivers.kernels.emit import Out, Shown, new_out, new_shown
from skyband.problems.across.drivers.kernels.scoring import scoring_of
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec

CHUNK = 1 << 16  # steps between two looks at the state from outside


class Config(NamedTuple):
    """What a step has to know of the query, for algorithms that need no more."""

    k: int
    emit: int
    each: bool  # an answer is due after each row


class Stepping(ShowsNoRows, ABC):
    """An operator, but for what an algorithm keeps and does at each step."""

    repeated = 0
    wants_keys = False
    recall = 1.0

    def __init__(self, spec: AcrossSpec) -> None:
        self.spec = spec
        self._schedule = Schedule(spec)
        self._scoring = scoring_of(spec)
        self._codes = 0  # objects there is room for
        self._shown = new_shown(0, 0, spec.streams)
        self._out = new_out(1024, spec.streams)

    # -- what an algorithm says ---------------------------------------------------------------------------------------

    @abstractmethod
    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        """Execute steps [step, end) as far as there is room; return the first not executed, and how much is written."""

    @abstractmethod
    def _grow(self, codes: int) -> None:
        """Make room for so many objects."""

    @abstractmethod
    def _reserve(self, rows: int) -> None:
        """Make room for so many rows more."""

    @abstractmethod
    def _rank_now(self, clock: int) -> int:
        """Write the best objects at `clock`, where the last step was, to the top; return how many there are."""

    @abstractmethod
    def _live(self) -> npt.NDArray[np.bool_]:
        """By object: is something kept of it?"""

    @abstractmethod
    def _recode(self, kept: Ints, code_of: Codes) -> None:
        """Object kept[i] becomes object i; code_of says it the other way round."""

    @abstractmethod
    def _state(self) -> Arrays: ...

    @abstractmethod
    def _restore(self, state: Arrays) -> None: ...

    @abstractmethod
    def check(self) -> None: ...

    @abstractmethod
    def rows_held(self) -> int: ...

    # -- the protocol -------------------------------------------------------------------------------------------------

    @property
    def late(self) -> int:
        return self._schedule.late

    @property
    def unranked(self) -> int:
        return self._schedule.unranked

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        return self._run(self._schedule.push(batch))

    def advance(self, watermark: int) -> AcrossAnswer:
        return self._run(self._schedule.advance(watermark))

    def next_close(self) -> int | None:
        return self._schedule.next_close()

    def finish(self) -> AcrossAnswer:
        return self._run(self._schedule.finish())

    def top(self, k: int, size: int | None = None) -> AcrossAnswer:
        if self._schedule.rows_waiting() or self.spec.window.every:
            # Rows of the window that closes next may be outlived by an earlier window: ask a copy.
            copy = type(self)(self.spec)
            copy.restore(self.state())
            copy._run(copy._schedule.until_now())
            found = copy._rank_now(self._schedule.now())
            return _top_of(copy._shown, min(found, k), self._schedule.now(), copy.recall)
        found = self._rank_now(self._schedule.now())
        return _top_of(self._shown, min(found, k), self._schedule.now(), self.recall)

    def live_codes(self) -> npt.NDArray[np.bool_]:
        live = self._live()
        live[self._schedule.codes()] = True
        live[self._shown.code[: self._shown.number[0]]] = True
        return live

    def compact(self, kept: Ints) -> None:
        code_of = np.full(self._codes, -1, np.int32)
        code_of[kept] = np.arange(len(kept), dtype=np.int32)
        self._schedule.recode(code_of)
        self._recode(kept, code_of)
        self._codes = len(kept)
        count = self._shown.number[0]
        self._shown.code[:count] = code_of[self._shown.code[:count]]
        self._shown = self._shown._replace(mark=np.zeros(len(kept), np.int8))

    def state(self) -> Arrays:
        count = self._shown.number[0]
        return {
            **self._schedule.state(),
            "codes": np.array([self._codes, self.repeated], np.int64),
            "shown_code": self._shown.code[:count].copy(),
            "shown_score": self._shown.score[:count].copy(),
            "shown_time": self._shown.time[:count].copy(),
            "shown_values": self._shown.values[:count].copy(),
            **self._state(),
        }

    def restore(self, state: Arrays) -> None:
        self._schedule.restore(state)
        codes, self.repeated = (int(number) for number in state["codes"])
        self._make_room(codes)
        count = len(state["shown_code"])
        self._shown.number[0] = count
        self._shown.code[:count] = state["shown_code"]
        self._shown.score[:count], self._shown.time[:count] = state["shown_score"], state["shown_time"]
        self._shown.values[:count] = state["shown_values"].reshape(count, self.spec.streams)
        self._restore(state)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _make_room(self, codes: int) -> None:
        if codes <= self._codes:
            return
        room = max(codes, 2 * self._codes, 16)
        entries = min(self.spec.k, room)
        if entries > len(self._shown.code):
            before, self._shown = self._shown, new_shown(entries, room, self.spec.streams)
            count = self._shown.number[0] = before.number[0]
            for name in ("code", "score", "time", "values"):
                getattr(self._shown, name)[:count] = getattr(before, name)[:count]
        self._shown = self._shown._replace(mark=np.zeros(room, np.int8))
        self._grow(room)
        self._codes = room

    def _run(self, steps: Steps) -> AcrossAnswer:
        steps = steps._replace(rows=steps.rows.map(_writable), clock=_writable(steps.clock))
        self._reserve(len(steps.rows.code))
        step, written, total = 0, 0, len(steps.row)
        answers = []
        while step < total:
            room = 2 * len(self._shown.code)
            if len(self._out.at) < room:
                self._out = new_out(max(4 * room, 1024), self.spec.streams)
            step, written = self._execute(steps, step, min(step + CHUNK, total), written)
            if written + room > len(self._out.at):
                answers.append(_copied(self._out, written))
                written = 0
        answers.append(_copied(self._out, written))
        joined: list[Any] = [np.concatenate(columns) for columns in zip(*answers, strict=True)]
        return AcrossAnswer(*joined)


def _writable(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Kernels would be compiled a second time for arrays that cannot be written to."""
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
