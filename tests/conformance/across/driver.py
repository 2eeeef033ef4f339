"""Runs an operator across streams the way an engine does, and writes its answers down as the oracle does."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from across_oracle import Row, Shown
from conformance.feeding import Feeder

from skyband.core.emit import LEAVE
from skyband.problems.across.operator import NO_KEYS, AcrossAnswer, AcrossBatch, AcrossOperator, AcrossSpec


class Driver(Feeder[AcrossSpec, Row, Shown]):
    """An operator across streams, and the numbers of its objects."""

    def __init__(self, spec: AcrossSpec, open_operator: Callable[[AcrossSpec], AcrossOperator]) -> None:
        super().__init__(spec, open_operator)
        self._codes: dict[Hashable, int] = {}

    def batch(self, rows: Sequence[Row]) -> AcrossBatch:
        batch = AcrossBatch(
            np.array([row.stream for row in rows], np.int32),
            np.array([self._codes.setdefault(row.object, len(self._codes)) for row in rows], np.int32),
            np.array([np.nan if row.value is None else row.value for row in rows], np.float64),
            np.array([] if self.spec.window.by_count else [row.time for row in rows], np.int64),
            self.position,
            len(self._codes),
            np.array([hash(row.object) for row in rows], np.int64) if self.operator.wants_keys else NO_KEYS,
        )
        for column in batch[:4]:
            column.flags.writeable = False  # as Arrow's are
        return batch

    def read(self, answer: AcrossAnswer) -> list[Shown]:
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

    def compact(self) -> None:
        live = np.flatnonzero(self.operator.live_codes())
        self.operator.compact(live)
        code_of = {int(old): new for new, old in enumerate(live)}
        self._codes = {name: code_of[code] for name, code in self._codes.items() if code in code_of}
