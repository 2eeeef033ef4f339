"""The input and output of operators for pairs: flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skyband.core.emit import WHOLE_CODE
from skyband.core.operator import Codes, Floats, Ints, Operator
from skyband.core.registry import Algorithm
from skyband.problems.pairs.drivers.scoring import Scoring
from skyband.windows import Ticks


class View(NamedTuple):
    """What one of several queries sees of the pairs that are kept for all of them."""

    k: int
    size: int


@dataclass(frozen=True, slots=True)
class Spec:
    """A query in numbers."""

    k: int
    window: Ticks
    scoring: Scoring
    emit: int = WHOLE_CODE
    views: tuple[View, ...] = ()  # of several queries over one skyband; `k` and `window` are the largest of theirs


class Batch(NamedTuple):
    """Rows in arrival order. Row i is the arrival at position `first + i`."""

    columns: Floats  # by column that the score reads, then by row: floats, or the bits of whole numbers and labels
    colours: Floats  # by colour that the score compares (same=, different=), then by row: a small whole number each
    time: Ints  # what the window measures, within ±2**62; empty in a window of arrivals
    first: int
    group: Codes | None = None  # with `per`: of which group each row is


class Answer(NamedTuple):
    """What became known: one entry per pair shown, in the order in which it became known.

    What becomes known at once is ordered by group, then leaving before entering, then by rank.
    """

    at: Ints  # by value: the window's end, or now; by count: arrivals so far (of the group)
    rank: Codes  # 1 is best; of a pair that leaves, the rank it had
    score: Floats
    a: Ints  # the arrival of the earlier row
    b: Ints  # the arrival of the later one
    change: npt.NDArray[np.int8]  # ENTER or LEAVE
    view: Codes | None = None  # where there are several: which of them it is for
    group: Codes | None = None  # with `per`: of which group its rows are

    @classmethod
    def of(cls, records: npt.NDArray[Any], view: Codes | None = None) -> Answer:
        """An answer from records of type ANSWER, which may be written over afterwards."""
        return cls(**{name: records[name].copy() for name in ANSWER.names or ()}, view=view)

    @classmethod
    def joined(cls, answers: Sequence[Answer]) -> Answer:
        """Answers, none of them to a view, one after the other."""
        columns = {name: np.concatenate([getattr(answer, name) for answer in answers]) for name in ANSWER.names or ()}
        groups = [answer.group for answer in answers if answer.group is not None]
        return cls(**columns, group=np.concatenate(groups) if groups else None)

    def take(self, which: Any) -> Answer:
        """These of its entries, in this order."""
        columns: list[Any] = [None if column is None else column[which] for column in self]
        return Answer(*columns)


# An answer while it is being written.
ANSWER = np.dtype(
    [
        ("at", np.int64),
        ("score", np.float64),
        ("a", np.int64),
        ("b", np.int64),
        ("rank", np.int32),
        ("change", np.int8),
    ],
    align=True,
)

# A pair that an operator holds. Rows are numbered in their order: by time, then by arrival.
PAIR = np.dtype(
    [
        ("score", np.float64),  # never NaN
        ("a", np.int64),  # the number of the older row: the pair leaves the window with it
        ("b", np.int64),  # the number of the younger one
        ("a_position", np.int64),  # their arrivals
        ("b_position", np.int64),
        ("flag", np.int64),  # with entries: it has been shown
    ]
)
Pairs = npt.NDArray[Any]  # of dtype PAIR


class PairOperator(Operator[Batch, Answer, Ints], Protocol):
    """An algorithm for the k best pairs, running."""

    def top_many(self, k: Ints, size: Ints) -> tuple[Answer, Ints]:
        """As `top` for each k[i] and size[i]; size 0: of the window that closes next.

        The answers one after the other, and where each starts among their pairs and the last one ends.
        """
        ...

    def pairs_held(self) -> Pairs:
        """The pairs that are held because an answer may still show them; none, if rows alone are held."""
        ...

    def live_codes(self, which: int) -> npt.NDArray[np.bool_]:
        """By code of one of the colours: does a live row have it?"""
        ...

    def compact(self, kept: Ints, which: int = 0) -> None:
        """In one of the colours, code kept[i] becomes code i; the others are forgotten."""
        ...

    def live_values(self, which: int) -> Ints:
        """What live rows have in one of the columns, as whole numbers."""
        ...

    def relabel(self, which: int, old: Ints, new: Ints) -> None:
        """In one of the columns, which has labels of strings, label old[i], ascending, becomes new[i]."""
        ...


def relabelled(labels: Ints, old: Ints, new: Ints) -> Ints:
    """Labels of strings of which old[i], ascending, becomes new[i]; others stay."""
    place = np.minimum(np.searchsorted(old, labels), len(old) - 1)
    return np.where(old[place] == labels, new[place], labels)


def best_first(pairs: Pairs) -> npt.NDArray[np.intp]:
    """The order of pairs by rank: the higher score; of equal scores the younger older row, then the younger other."""
    return np.lexsort((-pairs["b"], -pairs["a"], -pairs["score"]))


PairAlgorithm = Algorithm[Spec, PairOperator]
