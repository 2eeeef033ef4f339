"""The one protocol of all operators: flat arrays in, flat arrays out.

An operator sees scores, times, group codes and arrival positions, never rows: the engine keeps the rows whose positions
the operator holds, and looks them up when they are answered.
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
    """What became known: one entry per row shown, in the order in which it became known.

    What becomes known at once is ordered by group, then leaving before entering, then rank.
    """

    at: Ints  # by value: the window's end, or now; by count: arrivals so far (of the group)
    group: Codes
    rank: Codes  # 1 is best; of a row that leaves, the rank it had
    score: Floats
    position: Ints  # the row's arrival
    change: npt.NDArray[np.int8]  # ENTER or LEAVE

    @classmethod
    def of(cls, records: npt.NDArray[Any]) -> Answer:
        """An answer from records of type ANSWER, which may be written over afterwards."""
        if len(records) < MANY_RECORDS:
            return cls(*(records[name].copy() for name in cls._fields))
        columns = [np.empty(len(records), records.dtype[name]) for name in cls._fields]
        copy_columns(records, *columns)
        return cls(*columns)

    @classmethod
    def joined(cls, answers: Sequence[Answer]) -> Answer:
        """Answers one after the other."""
        if len(answers) == 1:
            return answers[0]
        if not answers:
            return cls.of(np.empty(0, ANSWER))
        return cls(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))

    def take(self, which: Any) -> Answer:
        """These of its entries, in this order."""
        return Answer._make(column[which] for column in self)


MANY_RECORDS = 1_000  # worth a loop that is compiled: it reads each record once, and not once for each of its fields


@kernel
def copy_columns(records, at, group, rank, score, position, change):  # type: ignore[no-untyped-def]
    for i in range(len(records)):
        record = records[i]
        at[i], group[i], rank[i] = record.at, record.group, record.rank
        score[i], position[i], change[i] = record.score, record.position, record.change


# An answer while it is being written.
ANSWER = np.dtype(
    [
        ("at", np.int64),
        ("group", np.int32),
        ("rank", np.int32),
        ("score", np.float64),
        ("position", np.int64),
        ("order", np.int64),  # the batch's row that made it known, where that is not the order of writing
        ("change", np.int8),
    ],
    align=True,
)


B = TypeVar("B", contravariant=True)
A = TypeVar("A", covariant=True)
K = TypeVar("K", contravariant=True)


class Operator(Protocol[B, A, K]):
    """One algorithm of any problem, running: it takes batches B in and gives answers A.

    Windows, lateness and ties are as in docs/reference/semantics.md, for every algorithm alike.
    """

    @property
    def late(self) -> int:
        """Rows dropped so far because every window that would hold them had closed."""
        ...

    @property
    def unranked(self) -> int:
        """Rows so far that took their place in a window but have no score."""
        ...

    def push(self, batch: B) -> A:
        """Take rows in; answer what they make known."""
        ...

    def advance(self, watermark: int) -> A:
        """By value, with a slide: no row before `watermark` is waited for any more."""
        ...

    def next_close(self) -> int | None:
        """By value, with a slide: the end of the earliest open window that has something to show."""
        ...

    def finish(self) -> A:
        """The input is over: by value, close every window that holds a row. By count there is nothing to close."""
        ...

    def top(self, k: int, size: int | None) -> A:
        """The k best of the last `size` right now, for each group; None: of the window that closes next."""
        ...

    def held(self) -> Ints:
        """The positions of the rows whose columns an answer may still show, ascending; none, if it shows no rows."""
        ...

    def rows_held(self) -> int:
        """How many rows are kept because they may still matter, or a little more: without counting them one by one."""
        ...

    def compact(self, kept: K) -> None:
        """Codes of groups, objects, colours, cells or queries are given anew: kept[i] becomes i, others are gone."""
        ...

    def state(self) -> Arrays:
        """Everything needed to go on elsewhere, as flat arrays; shares no memory with the operator."""
        ...

    def validate(self, saved: Saved) -> None:
        """State what the arrays promise that `restore` takes, and refuse them if they break it."""
        ...

    def restore(self, state: Arrays) -> None:
        """Become what `state` describes."""
        ...

    def check(self) -> None:
        """Assert every invariant of the algorithm, in words."""
        ...


class ShowsNoRows:
    """Of operators whose answers are made of numbers alone: there are no rows to keep for them."""

    def held(self) -> Ints:
        return np.empty(0, np.int64)


@runtime_checkable
class AnswersMany(Protocol):
    """An operator that answers many ad-hoc questions at once for less than one by one."""

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        """As `top` for each k[i] and size[i]; size 0: of the window that closes next.

        The answers one after the other, and where each starts among their rows and the last one ends.
        """
        ...
