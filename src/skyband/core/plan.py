"""Planning a query: what is known of its inputs, the steps so far, the plan that comes of them, and its windows.

Draft ── a rule after the other (core/rules.py) ── Draft with Steps and a Plan ── EXPLAIN, a session
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

import pyarrow as pa

from skyband.kernels.panes import shape_of
from skyband.windows import FOREVER, Ticks, Window

TOOK_SNAPSHOT = "it took the snapshot"


@dataclass(frozen=True, slots=True)
class Choice:
    """One algorithm, or one plan of a join, considered."""

    algorithm: str
    refused: str | None = None  # why it cannot answer the query
    rows: float = math.nan  # expected to be held per group, on random order; NaN if it cannot, or if nobody knows
    ns: float = math.nan  # expected to be spent on a row; NaN if it cannot, or if nobody knows


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run, and what else was considered."""

    algorithm: str
    why: str
    rows: float
    ns: float
    window_rows: float
    assumed: bool  # nobody said how many rows a window holds, or what the inputs are like
    consider: Callable[[], tuple[Choice, ...]] = field(default=tuple, compare=False, repr=False)

    @classmethod
    def fixed(cls, algorithm: str, why: str) -> Plan:
        """Where nothing else can be considered."""
        return cls(algorithm, why, math.nan, math.nan, math.nan, False)

    @property
    def considered(self) -> tuple[Choice, ...]:
        """What could have been chosen, the cheapest first. A query runs without it, so it is made when it is read."""
        return self.consider()

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was considered: Spark sends plans to its workers, and nobody reads it there."""
        return Plan, (self.algorithm, self.why, self.rows, self.ns, self.window_rows, self.assumed)

    @property
    def base(self) -> str:
        """The algorithm without its options."""
        return self.algorithm.partition("(")[0].strip()

    @property
    def assumption(self) -> str:
        """Behind a number in words, that nobody has said it."""
        return " (assumed)" if self.assumed else ""


class Query(Protocol):
    """What a user describes: a frozen dataclass of its problem."""

    @property
    def emit(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was decided, and what belongs to it."""

    name: str
    said: str = ""
    parts: tuple[Step, ...] = ()

    def lines(self, indent: int = 2) -> Iterator[str]:
        yield f"{'':{indent}}{self.name:<10} {self.said}".rstrip()
        for part in self.parts:
            yield from part.lines(indent + 2)


@dataclass(frozen=True, slots=True)
class Read:
    """What is read of an input: some of its columns, of some of its rows."""

    name: str
    schema: pa.Schema
    columns: tuple[str, ...]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a query did when it ran."""

    rows_in: int
    rows_late: int
    rows_out: int
    seconds: float
    ns: float  # a row: half of the batches took no more
    held_most: float  # NaN where nobody can see it
    held_mean: float
    rows_missed: int = 0  # with `error`


@dataclass(frozen=True, slots=True)
class Draft:
    """A query on its way to a plan."""

    query: Query
    reads: tuple[Read, ...] = ()  # empty: nothing is known of the inputs
    on_spark: bool | None = None  # None: nobody said
    sieve: str | None = None  # where Spark rules rows out before the shuffle; None: nobody said
    window_rows: float | None = None
    statistics: Mapping[str, Any] | None = None  # what each input is like, by its name, as its problem describes it
    measured: Measured | None = None
    plan: Plan | None = None
    steps: tuple[Step, ...] = ()
    then: tuple[str, ...] = ()  # what is asked of the lines of each window, in words

    @property
    def schemas(self) -> Mapping[str, pa.Schema] | None:
        """The columns of the inputs, by name; None: they are not known."""
        return {read.name: read.schema for read in self.reads} or None

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of the only input; None: they are not known, or there are several."""
        return self.reads[0].schema if len(self.reads) == 1 else None

    def with_step(self, step: Step, **found: Any) -> Draft:
        return replace(self, steps=(*self.steps, step), **found)


def ticks_of(window: Window) -> Ticks:
    """A window in numbers before its column is known. The planner only compares them with each other, so durations and
    numbers mean the same to it."""
    size = FOREVER if window.size is None else _number(window.size)
    return Ticks(size, 0 if window.every is None else _number(window.every), 0, window.by_count)


def in_panes(window: Window) -> str:
    """The window in words, and how many panes it is cut into. All rows of a pane are in the same windows."""
    ticks = ticks_of(window)
    if not ticks.slides or ticks.endless:
        return str(window)
    shape = shape_of(ticks.size, ticks.every)
    if shape.rest:
        return f"{window}: {2 * shape.whole + 1} panes, two a slide"
    return f"{window}: {shape.whole} pane{'s' * (shape.whole > 1)}"


def _number(span: int | timedelta) -> int:
    return span if isinstance(span, int) else int(span.total_seconds() * 1_000_000)
