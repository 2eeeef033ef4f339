"""The values of planning: what is known about a query's inputs, the steps so far, and the plan.

Draft ── one rule after another (core/rules.py) ── Draft with Steps and a Plan ── EXPLAIN
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from skyband.kernels.panes import shape_of
from skyband.windows import Window

TOOK_SNAPSHOT = "it took the snapshot"


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm, or a plan of a join, that the chooser considered."""

    algorithm: str
    refused: str | None = None  # why it cannot answer the query
    rows: float = math.nan  # rows that it will hold per group if scores come in random order; NaN: unknown, or refused
    ns: float = math.nan  # nanoseconds that a row will cost; NaN: unknown, or refused


@dataclass(frozen=True, slots=True)
class Plan:
    """The algorithm that will run, and what else was considered."""

    algorithm: str
    why: str
    rows: float
    ns: float
    window_rows: float
    assumed: bool  # is `window_rows`, or what the inputs are like, a default that nobody has given?
    consider: Callable[[], tuple[Choice, ...]] = field(default=tuple, compare=False, repr=False)

    @classmethod
    def fixed(cls, algorithm: str, why: str) -> Plan:
        """A plan without alternatives."""
        return cls(algorithm, why, math.nan, math.nan, math.nan, False)

    @property
    def considered(self) -> tuple[Choice, ...]:
        """All candidates, the cheapest first. A query runs without them, so they are computed when somebody asks."""
        return self.consider()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without `considered`: Spark sends plans to its workers, where nobody reads it."""
        return Plan, (self.algorithm, self.why, self.rows, self.ns, self.window_rows, self.assumed)

    @property
    def base(self) -> str:
        """The algorithm without its options."""
        return self.algorithm.partition("(")[0].strip()

    @property
    def assumption(self) -> str:
        """A remark to put behind a number that is a default."""
        return " (assumed)" if self.assumed else ""


class Query(Protocol):
    """What planning asks of a query."""

    @property
    def emit(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One decision of the planner, as EXPLAIN prints it, with its details."""

    name: str
    said: str = ""
    parts: tuple[Step, ...] = ()

    def lines(self, indent: int = 2) -> Iterator[str]:
        yield f"{'':{indent}}{self.name:<10} {self.said}".rstrip()
        for part in self.parts:
            yield from part.lines(indent + 2)


@dataclass(frozen=True, slots=True)
class Read:
    """The columns that a query reads from an input, and the condition that its rows must meet."""

    name: str
    schema: pa.Schema
    columns: tuple[str, ...]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a run, for EXPLAIN ANALYZE."""

    rows_in: int
    rows_late: int
    rows_out: int
    seconds: float
    ns: float  # per row, in the median batch
    held_most: float  # rows; NaN if the engine cannot see it
    held_mean: float
    rows_missed: int = 0  # with `error`


@dataclass(frozen=True, slots=True)
class Draft:
    """A query on its way to a plan."""

    query: Query
    reads: tuple[Read, ...] = ()  # empty: the inputs are not known
    on_spark: bool | None = None  # None: not known
    sieve: str | None = None  # where Spark drops rows before the shuffle; None: not known
    window_rows: float | None = None
    statistics: Mapping[str, Any] | None = None  # of each input, by its name, in the form of its problem
    measured: Measured | None = None
    plan: Plan | None = None
    steps: tuple[Step, ...] = ()
    then: tuple[str, ...] = ()  # in words: what a statement asks about the answer of each window

    @property
    def schemas(self) -> Mapping[str, pa.Schema] | None:
        """The schemas of the inputs, by name; None if they are not known."""
        return {read.name: read.schema for read in self.reads} or None

    @property
    def schema(self) -> pa.Schema | None:
        """The schema of the only input; None if it is not known or there are several inputs."""
        return self.reads[0].schema if len(self.reads) == 1 else None

    def with_step(self, step: Step, **found: Any) -> Draft:
        return replace(self, steps=(*self.steps, step), **found)


def in_panes(window: Window) -> str:
    """Describe the window and the number of its panes. All rows of a pane are in the same windows."""
    ticks = window.planned()
    if not ticks.slides or ticks.endless:
        return str(window)
    shape = shape_of(ticks.size, ticks.every)
    if shape.rest:
        return f"{window}: {2 * shape.whole + 1} panes, two a slide"
    return f"{window}: {shape.whole} pane{'s' * (shape.whole > 1)}"
