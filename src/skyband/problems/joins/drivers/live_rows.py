"""The base of a join's clocks: the live and the waiting rows of all inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from skyband.core.clock import LATEST
from skyband.core.operator import Arrays, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.joins.drivers.lifetimes import Coming, ExpiryQueue, NumberPool, nothing
from skyband.problems.joins.operator import BEFORE, UNMATCHED, Batch, Rows, Spec


class Moves(NamedTuple):
    """The rows of each input that come and leave, and the moments at which they do."""

    coming: tuple[Coming, ...]
    slots: tuple[Ints, ...]  # their slots
    comes: tuple[Ints, ...]  # the number of the moment at which each comes
    going: tuple[Ints, ...]  # the slots of the rows that leave
    goes: tuple[Ints, ...]  # the number of the moment at which each leaves
    now: Ints  # [moment, input]: rows with a smaller `last` have left
    at: Ints  # by moment: its time in answers
    silent: bool = False  # does nothing of it appear in an answer?


class LiveRows(ABC):
    """Rows in slots, by input. A subclass decides when they come and leave."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.late = 0
        self.slots = NumberPool()
        self.queues = tuple(ExpiryQueue() for _ in spec.inputs)
        self._waiting = [nothing(len(source.floats)) for source in spec.inputs]  # in order of `start`

    @property
    @abstractmethod
    def closed(self) -> int:
        """The end of the last closed window; with each arrival, now."""

    @abstractmethod
    def now(self) -> Ints:
        """For each input: rows with a smaller `last` have left."""

    @abstractmethod
    def take(self, batch: Batch) -> Moves | None:
        """Take rows of streams. Returns the rows that come and leave; None if no answer is due."""

    @abstractmethod
    def close(self, watermark: int) -> Moves | None:
        """Close the windows that end at the watermark or before. Returns the rows that come and leave; None if no
        window closes."""

    @abstractmethod
    def next_close(self) -> int | None:
        """The end of the earliest open window that may have something to show when the watermark reaches it."""

    @abstractmethod
    def last_end(self) -> int:
        """The end of the last window that closes if the input ends now."""

    def load(self, source: int, rows: Rows) -> Moves:
        """Take rows of a relation, which are live for ever."""
        kept = np.flatnonzero(rows.cell != UNMATCHED)
        loaded = as_coming(np.full(len(kept), BEFORE), np.full(len(kept), LATEST), rows, kept)
        return self.revive(
            [loaded if i == source else nothing(len(each.floats)) for i, each in enumerate(self._spec.inputs)]
        )

    def revive(self, live: list[Coming]) -> Moves:
        """Take rows that are live already, after a restart."""
        slots = self._enter(live)
        none = tuple(np.zeros(0, np.int64) for _ in live)
        comes = tuple(np.zeros(len(rows.start), np.int64) for rows in live)
        return Moves(tuple(live), slots, comes, none, none, self.now()[None], np.array([self.closed]), silent=True)

    def _come(self, target: int) -> list[Coming]:
        """Remove the waiting rows that are live at this moment, and return them."""
        coming = []
        for source, waiting in enumerate(self._waiting):
            n = int(np.searchsorted(waiting.start, target, side="right"))
            coming.append(waiting.take(slice(0, n)))
            self._waiting[source] = waiting.take(slice(n, None))
        return coming

    def _enter(self, coming: list[Coming]) -> tuple[Ints, ...]:
        slots = []
        for queue, rows in zip(self.queues, coming, strict=True):
            slots.append(self.slots.take(len(rows.start)))
            queue.add(rows.last, slots[-1])
        return tuple(slots)

    def _leave(self, before: Ints) -> tuple[tuple[Ints, ...], list[Ints]]:
        """Remove the rows of each input that leave before its moment, and free their slots. Returns the slots, and the
        `last` of each row."""
        left = [queue.pop(int(moment)) for queue, moment in zip(self.queues, before, strict=True)]
        for _, slots in left:
            self.slots.give(slots)
        return tuple(slots for _, slots in left), [last for last, _ in left]

    @property
    def rows_held(self) -> int:
        return sum(len(queue) for queue in self.queues) + sum(len(waiting.start) for waiting in self._waiting)

    @property
    def waiting(self) -> tuple[Coming, ...]:
        return tuple(self._waiting)

    def state(self) -> Arrays:
        arrays: Arrays = {}
        for source, waiting in enumerate(self._waiting):
            arrays |= {f"waiting {source} {name}": column.copy() for name, column in waiting._asdict().items()}
        return arrays

    def restore(self, state: Arrays) -> None:
        for source in range(len(self._waiting)):
            self._waiting[source] = Coming(*(state[f"waiting {source} {name}"] for name in Coming._fields))

    @abstractmethod
    def validate(self, saved: Saved) -> None:
        """Check what `restore` relies on."""

    def _validate_rows(self, source: int, rows: Saved) -> None:
        """Check waiting or live rows: arrays of one length, with numbers that can be added up."""
        n, arguments = len(rows["last"]), len(self._spec.inputs[source].floats)
        rows.length(n, "cell", "valid", "weight", "arguments")
        rows.shape("arguments", n, arguments)
        rows.moments("last", rows["last"])
        rows.within("valid", rows["valid"], 0, (1 << arguments) - 1)
        rows.within("weight", rows["weight"], 1, FARTHEST)
        rows.promise(float(rows["weight"].astype(np.float64).sum()) < FARTHEST, "'weight' adds up to too much")


def as_coming(start: Ints, last: Ints, rows: Rows, kept: Ints) -> Coming:
    """The kept rows, with the first and last moments at which they are live."""
    weight = np.ones(len(kept), np.int64) if rows.weight is None else rows.weight[kept]
    return Coming(start, last, rows.cell[kept].astype(np.int64), rows.arguments[kept], rows.valid[kept], weight)


def input_of_each(batch: Batch) -> Ints:
    """The input of each arrival."""
    if batch.order is not None:
        return batch.order.astype(np.int64)
    counts = [0 if rows is None else len(rows.time) for rows in batch.rows]
    return np.repeat(np.arange(len(counts)), counts)
