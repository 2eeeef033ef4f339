"""What a statement comes down to: a query, the rows it is asked of, and the columns that are shown of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skyband.queries import TopK


@dataclass(frozen=True)
class Rows:
    """An input as a query takes it."""

    name: str  # what it was given as
    where: str | None = None  # only rows that meet this
    columns: tuple[str, ...] | None = None  # only these; None: all


@dataclass(frozen=True)
class Shown:
    """A column of the answer: an expression over the columns that the query gives."""

    name: str
    text: str
    is_plain: bool  # just a column


@dataclass(frozen=True)
class Asked:
    """A query in place of a statement."""

    query: TopK
    rows: Mapping[str, Rows]  # by what the query calls its inputs
    shown: tuple[Shown, ...] | None  # None: the columns as they come
