"""Options of algorithms. An algorithm's `open` declares them: the type of an argument declares its range.

    def open(spec: Spec, *, block: Count = 32768, gamma: Growth | None = None) -> Relaxed: ...

`registry.find` reads a text such as "relaxed(gamma=0.5)", and checks its options with this module. Queries declare
their own options: see `core/query.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from skyband.errors import InvalidQuery


class Range(NamedTuple):
    """From `least` to `most`, both included."""

    least: float
    most: float


# Counts of rows or entries. The limit is far beyond what is useful, and memory for it is still cheap.
Count = Annotated[int, Range(1, 1_000_000)]
CountOrNone = Annotated[int, Range(0, 1_000_000)]  # 0: none, or the algorithm chooses
# In arrivals, or in ticks of the window's column. 0: the algorithm chooses.
TickSpan = Annotated[int, Range(0, 2**62)]
Parts = Annotated[int, Range(1, 512)]  # into how many parts an algorithm cuts the values of a column
PartsOrBest = Annotated[int, Range(0, 512)]  # 0: the algorithm chooses
Growth = Annotated[float, Range(0, 1_000)]  # how much longer a list may become, as a share of it
Deviations = Annotated[float, Range(0, 100)]
Chance = Annotated[float, Range(1e-9, 0.5)]


class AlgorithmOption(NamedTuple):
    """The name, type and range of one option of an algorithm."""

    name: str
    kind: type  # int or float
    range: Range

    @property
    def possible(self) -> str:
        what = "a whole number" if self.kind is int else "a number"
        least, most = (f"{bound:,}" if abs(bound) >= 1 else f"{bound:g}" for bound in self.range)
        return f"{what} from {least} to {most}"

    def read(self, text: str, algorithm: str) -> int | float:
        """Parse a number, always in this option's type, so that kernels are compiled for one type only."""
        try:
            number = self.kind(text)
        except ValueError:
            number = math.nan
        if not self.range.least <= number <= self.range.most:
            raise InvalidQuery(f"{algorithm!r}: {self.name} must be {self.possible}, got {text}.")
        return number


def declared(open: Callable[..., Any]) -> dict[str, AlgorithmOption]:
    """Read an algorithm's options from the annotations of the keyword-only arguments of its `open`."""
    types = get_type_hints(open, include_extras=True)
    arguments = inspect.signature(open).parameters.values()
    names = [each.name for each in arguments if each.kind is inspect.Parameter.KEYWORD_ONLY]
    return {name: _declared(name, types[name]) for name in names}


def _declared(name: str, annotation: Any) -> AlgorithmOption:
    for each in (annotation, *get_args(annotation)):  # an option that may be None is annotated with a union
        if get_origin(each) is Annotated:
            kind, *said = get_args(each)
            if ranges := [about for about in said if isinstance(about, Range)]:
                return AlgorithmOption(name, kind, ranges[0])
    raise TypeError(f"Option {name!r} is {annotation}: declare its range, as in Annotated[int, Range(1, 100)].")
