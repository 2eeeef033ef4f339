"""The one protocol of all operators: flat arrays in, flat arrays out.

An operator sees scores, times, group codes and arrival positions, never rows. The session keeps the rows whose
positions the operator holds, and looks them up when an answer shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import kernel

if TYPE_CHECKING:
    from skyband.core.validation import Saved

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Arrays = dict[str, npt.NDArray[Any]]


class Answer(NamedTuple):
    """The rows that an operator shows, one entry each, in the order in which it found them.

    Entries of the same moment are ordered by group, then leaving before entering, then rank.
    """

    at: Ints  # by value: the window's end, or now; by count: the arrivals so far (of the group)
    group: Codes
    rank: Codes  # 1 is best; a row that leaves has the rank that it had
    score: Floats
    position: Ints  # the row's arrival
    change: npt.NDArray[np.int8]  # ENTER or LEAVE

    @classmethod
    def of(cls, records: npt.NDArray[Any]) -> Answer:
        """Copy records of type ANSWER into an answer; the caller may overwrite them afterwards."""
        if len(records) < MANY_RECORDS:
            return cls(*(records[name].copy() for name in cls._fields))
        columns = [np.empty(len(records), records.dtype[name]) for name in cls._fields]
        copy_columns(records, *columns)
        return cls(*columns)

    @classmethod
    def joined(cls, answers: Sequence[Answer]) -> Answer:
        """Concatenate answers."""
        if len(answers) == 1:
            return answers[0]
        if not answers:
            return cls.of(np.empty(0, ANSWER))
        return cls(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))

    def take(self, which: Any) -> Answer:
        """Select these entries, in this order."""
        return Answer._make(column[which] for column in self)


MANY_RECORDS = 1_000  # from here on a compiled loop is faster: it reads each record once, numpy once for each field


@kernel
def copy_columns(records, at, group, rank, score, position, change):  # type: ignore[no-untyped-def]
    for i in range(len(records)):
        record = records[i]
        at[i], group[i], rank[i] = record.at, record.group, record.rank
        score[i], position[i], change[i] = record.score, record.position, record.change


# One entry of an answer, as the compiled loops write it.
ANSWER = np.dtype(
    [
        ("at", np.int64),
        ("group", np.int32),
        ("rank", np.int32),
        ("score", np.float64),
        ("position", np.int64),
        ("order", np.int64),  # the batch's row that caused the entry, if entries are not written in that order
        ("change", np.int8),
    ],
    align=True,
)


B = TypeVar("B", contravariant=True)
A = TypeVar("A", covariant=True)
K = TypeVar("K", contravariant=True)


class Operator(Protocol[B, A, K]):
    """A running algorithm of any problem: it takes batches B and returns answers A.

    Every algorithm treats windows, lateness and ties as docs/reference/semantics.md describes.
    """

    @property
    def late(self) -> int:
        """How many rows it has dropped because every window that would hold them had closed."""
        ...

    @property
    def unranked(self) -> int:
        """How many rows have taken their place in a window but have no score."""
        ...

    def push(self, batch: B) -> A:
        """Take rows, and return the answers that become due with them."""
        ...

    def advance(self, watermark: int) -> A:
        """By value, with a slide: stop waiting for rows before `watermark`, and close the windows that end there."""
        ...

    def next_close(self) -> int | None:
        """By value, with a slide: the end of the earliest open window that has something to show; None if none has."""
        ...

    def next_held(self) -> int | None:
        """By value, with a slide: the end of the earliest open window that holds a row, which `top` is about."""
        ...

    def finish(self) -> A:
        """End the input: by value, close every window that holds a row. By count, no window closes."""
        ...

    def top(self, k: int, size: int | None) -> A:
        """Rank the k best rows of the last `size` now, for each group; None: of the window `next_held`."""
        ...

    def held(self) -> Ints:
        """The positions, ascending, of the rows that an answer may still show; empty if its answers show no rows."""
        ...

    def rows_held(self) -> int:
        """How many rows it keeps, or a few more. This is cheap: it counts no rows one by one."""
        ...

    def compact(self, kept: K) -> None:
        """Renumber codes (of groups, objects, colours, cells or queries): kept[i] becomes i, and all others go."""
        ...

    def state(self) -> Arrays:
        """Copy everything that `restore` needs into flat arrays, which share no memory with the operator."""
        ...

    def validate(self, saved: Saved) -> None:
        """Check that saved arrays keep the promises that `restore` relies on; raise if they break one."""
        ...

    def restore(self, state: Arrays) -> None:
        """Continue from arrays that `state` returned."""
        ...

    def check(self) -> None:
        """Assert every invariant of the algorithm, in words."""
        ...


class ShowsNoRows:
    """Mixin for operators whose answers have only numbers, so that the session keeps no rows for them."""

    def held(self) -> Ints:
        return np.empty(0, np.int64)


@runtime_checkable
class KnowsTheLatest(Protocol):
    """An operator that knows how far the rows of a window by value have come."""

    @property
    def latest(self) -> int:
        """The largest time so far; -NEVER before the first row."""
        ...


@runtime_checkable
class AnswersMany(Protocol):
    """An operator that can answer many ad-hoc questions at once, which is cheaper than one by one."""

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        """Answer `top(k[i], size[i])` for every i; size 0 means the window that closes next.

        Returns the answers one after the other, and the offsets at which each begins and the last one ends.
        """
        ...
