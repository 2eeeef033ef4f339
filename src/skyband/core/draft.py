"""A query on its way to a plan: what the planner knows about its inputs, and the steps so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from skyband.core.plan import Plan


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
