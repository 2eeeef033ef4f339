"""What a person sees of a running session beside its answer: a picture of its rows, and why something is where it is.

Each problem draws a picture of its own kind (`problems/<name>/picture.py`); the console, the widget and the HTTP API
show it. A picture hears of the rows that are pushed, and remembers the latest of them (`core/seen.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from skyband.core.codec import question
from skyband.core.operator import Floats, Ints
from skyband.core.seen import SeenRows

if TYPE_CHECKING:
    from skyband.core.session import Session

MOST_DOTS: Final = 1_500  # of what is not held, in a picture
MOST_HELD: Final = 3_000
MOST_LIVE: Final = 20_000  # rows that are looked through for one answer

Plain = Callable[[Any], Any]  # a value as JSON has it
Found = dict[str, Any]


class Picture(ABC):
    """The picture of one session."""

    form: ClassVar[str]  # what the page draws it with: dots, pairs or lanes
    title: ClassVar[str]
    caption: ClassVar[str]  # how to read it
    legend: ClassVar[tuple[str, ...]]  # what is lit most, what is lit, what is grey, and what the line is
    seen: SeenRows  # the rows of its input; a picture of several inputs has one for each, and says otherwise below

    def __init__(self, session: Session) -> None:
        self.session = session

    def describe(self) -> Found:
        return {"form": self.form, "title": self.title, "caption": self.caption, "legend": list(self.legend)}

    def take(self, first: int, batch: pa.RecordBatch, source: Any) -> None:
        """Remember rows, of which the first is arrival `first`; called by the thread that pushes them."""
        self.seen.take(first, batch)

    @abstractmethod
    def draw(self) -> Found:
        """What is drawn: columns of dots, and the window."""

    @abstractmethod
    def why(self, id: str) -> Found | None:
        """Why something is in the answer, or is not; None: nothing is known of it."""

    @abstractmethod
    def find(self, where: str, most: int = 20) -> list[Found]:
        """The newest things that meet a condition on rows, each with the `id` that `why` takes."""

    @abstractmethod
    def id_of(self, row: Mapping[str, Any], plain: Plain) -> str | None:
        """What a row of the answer shows, whose values are as JSON has them."""

    def rows_in_window(self) -> int | None:
        """How many rows the window has; None: nobody counts them."""
        return self.seen.rows_in_window()

    def step(self, now: Any, score: float) -> None:
        """The k-th score is this from now on; `now` is None as long as the window's column has not been seen."""
        return

    def show(self, answer: pa.Table) -> None:
        """This is the answer from now on."""
        return

    def answer_now(self) -> Any:
        """What the session's `top()` gives, in the operator's numbers."""
        session = self.session
        with session._turn:
            session.held()  # raises if the session has failed
            most, ticks = question(session._codec, None, None)
            session._at_once(session._codec.settle)
            return session._operator.top(most, ticks)


def window_of(seen: SeenRows) -> Found:
    """The window that slides over a picture."""
    return {
        "kind": "arrivals" if seen.window.on is None else "time" if seen.is_time else "number",
        "on": seen.window.on,
        "now": seen.now(),
        "size": seen.size(),
        "every": seen.every(),
    }


def leaves(seen: SeenRows, place: float) -> Found | None:
    """When the window moves past a row; None: never."""
    ends = float(seen.ends(np.array([place]))[0])
    if np.isinf(ends):
        return None
    return {"at": ends, "in": ends - seen.now(), "unit": unit_of(seen)}


def unit_of(seen: SeenRows) -> str:
    return "s" if seen.is_time else "rows" if seen.window.on is None else ""


def sample(which: Ints, id: Ints, most: int = MOST_DOTS) -> Ints:
    """Some of these, the same from one picture to the next: by a number that is made of each one's own."""
    if len(which) <= most:
        return which
    mixed = (id[which].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return which[mixed < np.uint64(int(most / len(which) * 2**24))]


def found(id: str, score: Any, row: Mapping[str, Any], **more: Any) -> Found:
    """A line that can be clicked: what it is, its score, and what it shows."""
    return {"id": id, "score": score, "row": dict(row), **more}


def unranked(id: str, verdict: str, row: Mapping[str, Any], k: Any, facts: Sequence[Any] = ()) -> Found:
    """Why something has no rank now."""
    told = {"id": id, "kind": "", "verdict": verdict, "row": dict(row), "k": k, "facts": [*facts]}
    return told | {"score": None, "rank": None, "leaves": None, "better": []}


def is_better(count: int, what: str) -> str:
    """How many come before a listed one, in words.

    >>> is_better(0, "row"), is_better(1, "row"), is_better(2, "pair")
    ('no row is better', '1 row is better', '2 pairs are better')
    """
    return f"{count:,} {what}s are better" if count > 1 else f"{count or 'no'} {what} is better"


def scattered(id: Ints) -> Floats:
    """A height in [0, 1) for each dot that has none of its own: always the same, and like that of no neighbour."""
    mixed = id.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return (mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(40)) / 2.0**24
