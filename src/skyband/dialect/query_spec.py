"""The result of understanding a statement: a query, the rows it reads, and the output columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

ONLY = ""  # what a query calls its input if it has only one


@dataclass(frozen=True)
class View:
    """Other rows in place of an input's, made of one row at a time: those that meet a condition, with these columns."""

    where: str | None
    columns: tuple[tuple[str, str], ...]  # their names, and a column or an expression over the columns before
    schema: pa.Schema
    is_plain: bool  # its columns are some of those before, under their own names


@dataclass(frozen=True)
class Rows:
    """An input as a query takes it."""

    name: str  # what it was given as
    where: str | None = None  # only rows that meet this
    columns: tuple[str, ...] | None = None  # only these; None: all
    renamed: tuple[tuple[str, str], ...] = ()  # and these, under another name: (name, column)
    views: tuple[View, ...] = ()  # what becomes of its rows before all this, one after the other

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The columns that `where`, `columns` and `renamed` are about; `given` are those of the input."""
        return self.views[-1].schema if self.views else given


@dataclass(frozen=True)
class Shown:
    """A column of the answer: an expression over the columns that the query gives."""

    name: str
    text: str
    is_plain: bool  # just a column


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
    queries: Rows | None = None  # the input that has the queries to be answered

    def of(self, queries: Any) -> QuerySpec:
        """The same with these queries."""
        return replace(self, query=self.query.of(queries))
