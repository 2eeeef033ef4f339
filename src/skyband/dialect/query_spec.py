"""The result of understanding a statement: a query, the rows it reads, and the output columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from skyband import expressions

ONLY = ""  # what a query calls its input if it has only one
LINES = "lines"  # what the lines of an answer are called, where they are the rows of another query


@dataclass(frozen=True)
class View:
    """Other rows in place of an input's, made of one row at a time: those that meet a condition, with these columns."""

    where: str | None
    columns: tuple[tuple[str, str], ...]  # their names, and a column or an expression over the columns before
    schema: pa.Schema
    is_plain: bool  # its columns are some of those before, under their own names


@dataclass(frozen=True)
class Lookup:
    """Rows of an input with what a table says of each: its rows that have the same keys."""

    how: str  # "inner" or "left": with its columns, once for each; "semi" and "anti": rows that have one, or none
    table: Rows  # which is there from the start, and read once
    on: tuple[tuple[str, str], ...]  # the keys: a column before, and one of the table; null is like nothing
    added: tuple[tuple[str, str], ...]  # columns of the table, and what they are called from now on: (name, column)
    schema: pa.Schema

    def __str__(self) -> str:
        keys = " AND ".join(f"{mine} = {self.table.name}.{its}" for mine, its in self.on)
        return f"{self.how} join {self.table.name} ON {keys}"


@dataclass(frozen=True)
class Sessions:
    """Rows with the session that each is in, as sessions end: with a pause."""

    on: str  # the column of their time
    gap: int  # in its unit: no session has a longer pause between two rows
    by: tuple[str, ...]  # the columns that tell apart whose sessions they are
    clock: str  # a column for when its session ends, as a whole number
    schema: pa.Schema  # the columns before, the bounds of the session, and `clock`

    def __str__(self) -> str:
        return f"sessions on {self.on}, gap {self.gap:,}" + (f", for each {', '.join(self.by)}" if self.by else "")


@dataclass(frozen=True)
class OverLines:
    """Lines with aggregates of the lines that have the same values in some columns: null is like null."""

    by: tuple[str, ...]
    clock: str  # a column that the query below reads, and that is 0 in each line
    query: Any  # whose groups are these columns, in one window
    schema: pa.Schema  # the columns before, and the aggregates


RowStep = View | Lookup | Sessions | OverLines


@dataclass(frozen=True)
class Rows:
    """An input as a query takes it."""

    name: str  # what it was given as
    where: str | None = None  # only rows that meet this
    columns: tuple[str, ...] | None = None  # only these; None: all
    renamed: tuple[tuple[str, str], ...] = ()  # and these, under another name: (name, column)
    views: tuple[RowStep, ...] = ()  # what becomes of its rows before all this, one after the other

    @property
    def names(self) -> tuple[str, ...]:
        """All that is read: the input, and tables that say something of its rows."""
        return self.name, *(name for view in self.views if isinstance(view, Lookup) for name in view.table.names)

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The columns that `where`, `columns` and `renamed` are about; `given` are those of the input."""
        return self.views[-1].schema if self.views else given

    def taken(self, whole: pa.Schema) -> tuple[list[tuple[str, str]], pa.Schema]:
        """The columns that the query gets of these, by name and column, and their types."""
        names = whole.names if self.columns is None else self.columns
        taken = [*((name, name) for name in names), *self.renamed]
        return taken, pa.schema([whole.field(column).with_name(name) for name, column in taken])


@dataclass(frozen=True)
class Shown:
    """A column of the answer: an expression over the columns that the query gives."""

    name: str
    text: str
    is_plain: bool  # just a column


def shown_schema(shown: tuple[Shown, ...], answer: pa.Schema) -> pa.Schema:
    """The columns that are shown of an answer with these."""
    return pa.schema(
        [
            answer.field(one.text).with_name(one.name)
            if one.is_plain
            else pa.field(one.name, expressions.bind_value(one.text, answer).type)
            for one in shown
        ]
    )


@dataclass(frozen=True)
class Turn:
    """Of a pair: row a becomes the one with the smaller value of a column; or, not ascending, with the larger."""

    column: str
    ascending: bool


@dataclass(frozen=True)
class QuerySpec:
    """A query in place of a statement."""

    query: Any  # of one of the problems
    rows: Mapping[str, Rows]  # by what the query calls its inputs
    shown: tuple[Shown, ...]
    turn: Turn | None = None
    kept: str | None = None  # only these lines of the answer are shown: a condition on the columns that the query gives
    repeated: str | None = None  # how often each line is shown: a column that the query gives
    queries: Rows | None = None  # the input that has the queries to be answered
    then: QuerySpec | None = None  # what is asked of the lines that each window shows: they are its rows

    is_about_tables: bool = False  # is there one answer, about all rows? Then an aggregate of no rows has a value

    @property
    def last(self) -> QuerySpec:
        """The one whose answer is shown."""
        return self if self.then is None else self.then.last

    def with_last(self, last: QuerySpec) -> QuerySpec:
        """The same with another in its place."""
        return last if self.then is None else replace(self, then=self.then.with_last(last))

    def of(self, queries: Any) -> QuerySpec:
        """The same with these queries."""
        return replace(self, query=self.query.of(queries))
