"""Feeds events to an operator the way an engine does: in any cut into batches, and with a restart wherever wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from oracle import Advance

from skyband.core.ad_hoc import NEXT_WINDOW, top_many
from skyband.core.validation import Saved

SpecT = TypeVar("SpecT")
RowT = TypeVar("RowT")
LineT = TypeVar("LineT")


class Feeder(ABC, Generic[SpecT, RowT, LineT]):
    """One operator. `lines` is all it has said so far, as the oracle of its problem says it."""

    def __init__(self, spec: SpecT, open_operator: Callable[[SpecT], Any]) -> None:
        self.spec = spec
        self.operator = open_operator(spec)
        self.lines: list[LineT] = []
        self.position = 0  # rows taken
        self.events_taken = 0  # rows, clock ticks and whatever else happens
        self._open = open_operator

    @abstractmethod
    def batch(self, rows: Sequence[RowT]) -> Any:
        """Rows, of which the first has `position`, as the operator takes them."""

    @abstractmethod
    def read(self, answer: Any) -> list[LineT]:
        """An answer, as the oracle says it."""

    @abstractmethod
    def compact(self) -> None:
        """Give the codes of what is live anew, and forget the others, as a session does when there are many others."""

    def push(self, rows: Sequence[RowT]) -> None:
        self.say(self.operator.push(self.batch(rows)))
        self.position += len(rows)
        self.events_taken += len(rows)

    def advance(self, watermark: int) -> None:
        self.say(self.operator.advance(watermark))
        self.events_taken += 1

    def finish(self) -> None:
        self.say(self.operator.finish())

    def say(self, answer: Any) -> None:
        self.lines += self.read(answer)

    def fresh(self) -> Any:
        """Another operator of the same kind, which knows nothing."""
        return self._open(self.spec)

    def restart(self) -> None:
        """Go on with another operator that knows only the state of this one."""
        state = {name: array.copy() for name, array in self.operator.state().items()}
        self.operator = self.fresh()
        self.operator.validate(Saved(state))  # what it promises of its arrays holds of every state it gives away
        self.operator.restore(state)

    def top(self, k: int, size: int | None = None) -> list[LineT]:
        return self.read(self.operator.top(k, size))

    def top_many(self, questions: Sequence[tuple[int, int | None]]) -> list[list[LineT]]:
        """The answer to each question about (k, size), all asked at once."""
        k = np.array([k for k, _ in questions], np.int64)
        size = np.array([size or NEXT_WINDOW for _, size in questions], np.int64)
        answer, ends = top_many(self.operator, k, size)
        lines = self.read(answer)
        assert ends[0] == 0
        assert ends[-1] == len(lines)
        return [lines[a:b] for a, b in pairwise(ends.tolist())]

    def is_row(self, event: Any) -> bool:
        return not isinstance(event, Advance)

    def happens(self, event: Any) -> None:
        """Of what is no row: it happens between two batches."""
        self.advance(event.watermark)

    def run(
        self,
        events: Iterable[Any],
        batch_sizes: Iterable[int] = (),
        after_each: Callable[[], None] = lambda: None,
    ) -> None:
        """Feed all events, in batches of the given sizes (what is no row ends one; what is left over is one)."""
        sizes = iter(batch_sizes)
        rows: list[RowT] = []
        wanted = next(sizes, None)
        for event in events:
            while wanted is not None and len(rows) == wanted:
                self.push(rows)
                after_each()
                rows, wanted = [], next(sizes, None)
            if self.is_row(event):
                rows.append(event)
                continue
            self.push(rows)
            after_each()
            rows = []
            self.happens(event)
            after_each()
        self.push(rows)
        after_each()
