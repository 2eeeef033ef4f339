"""Options of algorithms. An algorithm's `open` declares them: the type of an argument says what it may be.

    def open(spec: Spec, *, block: Count = 32768, gamma: Growth | None = None) -> Relaxed: ...

`registry.find` finds an algorithm by its text, and reads and checks the options in the text here, and nowhere else.
Options of queries are declared by the queries: see `core.query`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from skyband.errors import InvalidQuery


class Range(NamedTuple):
    """From the least to the most; both are allowed."""

    least: float
    most: float


# Rows, entries and the like. The most is far more than is of use, and still cheap to make room for.
Count = Annotated[int, Range(1, 1_000_000)]
CountOrNone = Annotated[int, Range(0, 1_000_000)]  # 0: none, or as many as is best
Span = Annotated[
    int, Range(0, 2**62)
]  # in arrivals, or in ticks of the window's column; 0: what the algorithm finds best
Parts = Annotated[int, Range(1, 512)]  # of the values of a column
PartsOrBest = Annotated[int, Range(0, 512)]
Growth = Annotated[float, Range(0, 1_000)]  # how much longer a list may become, as a share of it
Deviations = Annotated[float, Range(0, 100)]
Chance = Annotated[float, Range(1e-9, 0.5)]


class AlgorithmOption(NamedTuple):
    """What an algorithm takes under a name."""

    name: str
    kind: type  # int or float
    range: Range

    @property
    def possible(self) -> str:
        what = "a whole number" if self.kind is int else "a number"
        least, most = (f"{bound:,}" if abs(bound) >= 1 else f"{bound:g}" for bound in self.range)
        return f"{what} from {least} to {most}"

    def read(self, text: str, algorithm: str) -> int | float:
        """The number in a text as Python reads it, in this option's type, so that compiled code sees one type only."""
        try:
            number = self.kind(text)
        except ValueError:
            number = math.nan
        if not self.range.least <= number <= self.range.most:
            raise InvalidQuery(f"{algorithm!r}: {self.name} must be {self.possible}, got {text}.")
        return number


def declared(open: Callable[..., Any]) -> dict[str, AlgorithmOption]:
    """The options of an algorithm, from the types of the arguments that its `open` takes by keyword only."""
    types = get_type_hints(open, include_extras=True)
    arguments = inspect.signature(open).parameters.values()
    names = [each.name for each in arguments if each.kind is inspect.Parameter.KEYWORD_ONLY]
    return {name: _declared(name, types[name]) for name in names}


def _declared(name: str, annotation: Any) -> AlgorithmOption:
    for each in (annotation, *get_args(annotation)):  # one that may be None is a union of two
        if get_origin(each) is Annotated:
            kind, *said = get_args(each)
            if ranges := [about for about in said if isinstance(about, Range)]:
                return AlgorithmOption(name, kind, ranges[0])
    raise TypeError(f"Option {name!r} is {annotation}: declare its range, as in Annotated[int, Range(1, 100)].")
