"""Runs an operator across streams the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from across_oracle import Event, Row, Shown

from skyband.operators.across.protocol import AcrossAnswer, AcrossBatch, AcrossOperator, AcrossSpec
from skyband.operators.protocol import LEAVE


class Driver:
    """One operator and the numbers of its objects. `lines` is all it has said so far."""

    def __init__(self, spec: AcrossSpec, open_operator: Callable[[AcrossSpec], AcrossOperator]) -> None:
        self.spec = spec
        self.operator = open_operator(spec)
        self.lines: list[Shown] = []
        self.events_taken = 0
        self._open = open_operator
        self._codes: dict[Hashable, int] = {}
        self._position = 0

    def push(self, rows: Sequence[Row]) -> None:
        batch = AcrossBatch(
            np.array([row.stream for row in rows], np.int32),
            np.array([self._codes.setdefault(row.object, len(self._codes)) for row in rows], np.int32),
            np.array([np.nan if row.value is None else row.value for row in rows], np.float64),
            np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64),
            self._position,
            len(self._codes),
        )
        for column in batch[:4]:
            column.flags.writeable = False  # as Arrow's are
        self._say(self.operator.push(batch))
        self._position += len(rows)
        self.events_taken += len(rows)

    def advance(self, watermark: int) -> None:
        self._say(self.operator.advance(watermark))
        self.events_taken += 1

    def finish(self) -> None:
        self._say(self.operator.finish())

    def top(self, k: int) -> list[Shown]:
        return self._read(self.operator.top(k))

    def restart(self) -> None:
        """Go on with another operator that knows only the state of this one."""
        state = {name: array.copy() for name, array in self.operator.state().items()}
        self.operator = self._open(self.spec)
        self.operator.restore(state)

    def forget_objects(self) -> None:
        """Keep the numbers of objects that something is known of, as a session does when there are many others."""
        live = np.flatnonzero(self.operator.live_codes())
        self.operator.recode(live)
        code_of = {int(old): new for new, old in enumerate(live)}
        self._codes = {name: code_of[code] for name, code in self._codes.items() if code in code_of}

    def run(
        self, events: Iterable[Event], batch_sizes: Iterable[int] = (), after_each: Callable[[], None] | None = None
    ) -> None:
        """Feed all events, in batches of the given sizes (a clock tick ends one; what is left over is one)."""
        sizes = iter(batch_sizes)
        rows: list[Row] = []
        wanted = next(sizes, None)
        for event in events:
            while wanted is not None and len(rows) == wanted:
                self._push_and(rows, after_each)
                rows, wanted = [], next(sizes, None)
            if isinstance(event, Row):
                rows.append(event)
            else:
                self._push_and(rows, after_each)
                rows = []
                self.advance(event.watermark)
                if after_each:
                    after_each()
        self._push_and(rows, after_each)

    def _push_and(self, rows: list[Row], after_each: Callable[[], None] | None) -> None:
        self.push(rows)
        if after_each:
            after_each()

    def _say(self, answer: AcrossAnswer) -> None:
        self.lines += self._read(answer)

    def _read(self, answer: AcrossAnswer) -> list[Shown]:
        names = {code: name for name, code in self._codes.items()}
        return [
            Shown(
                at,
                "leave" if change == LEAVE else "enter",
                rank,
                score,
                names[code],
                time,
                tuple(None if value != value else value for value in values),
            )
            for at, rank, score, code, change, time, values, _ in zip(
                *(column.tolist() for column in answer), strict=True
            )
        ]
