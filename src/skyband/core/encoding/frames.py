"""The user's data frames and other tables: conversion to Arrow, and of an answer back to the same type.

The name of its class identifies a type of data, so that Skyband imports nothing that the user has not imported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from skyband.errors import InvalidInput

Kind = Literal["table", "pandas", "polars", "lazy polars"]
COUNTS = b"skyband"  # in the metadata of an answer: what became of the rows, as JSON


@dataclass(frozen=True)
class Like:
    """The kind of data in which an answer is given back: that of the rows it is about."""

    kind: Kind = "table"
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)  # of pandas: what it noted down about its columns

    def give(self, answer: pa.Table) -> Any:
        """The answer as the user's kind of table."""
        if self.kind == "table":
            return answer
        if self.kind == "pandas":
            return self._as_pandas(answer)
        import polars as pl

        frame = pl.from_arrow(answer)
        assert isinstance(frame, pl.DataFrame)
        return frame.lazy() if self.kind == "lazy polars" else frame

    def _as_pandas(self, answer: pa.Table) -> Any:
        counts = (answer.schema.metadata or {}).get(COUNTS)
        noted = {
            "index_columns": [],
            "column_indexes": [],
            "columns": [self.columns[name] for name in answer.column_names if name in self.columns],
        }
        # With what pandas noted down, columns of its own types, such as Int64, get them back.
        frame = answer.replace_schema_metadata({"pandas": json.dumps(noted)}).to_pandas()
        if counts is not None:
            frame.attrs[COUNTS.decode()] = json.loads(counts)
        return frame


TABLE = Like()


def common(likes: Sequence[Like]) -> Like:
    """Of rows of several kinds, the answer is a pyarrow Table."""
    if len({like.kind for like in likes}) != 1:
        return TABLE
    return Like(likes[0].kind, {name: each for like in reversed(likes) for name, each in like.columns.items()})


def is_a(data: object, name: str, package: str) -> bool:
    """Is its class, or one that it derives from, called so in this package?"""
    return any(base.__name__ == name and base.__module__.partition(".")[0] == package for base in type(data).__mro__)


def is_pandas(data: object) -> bool:
    return is_a(data, "DataFrame", "pandas")


def from_pandas(frame: Any, schema: pa.Schema | None = None) -> pa.Table:
    """The columns of a frame, without its index; as those of `schema`, if they are called so."""
    if schema is not None and list(frame.columns) != schema.names:
        schema = None
    try:
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidInput(f"Cannot read this {type(frame).__name__} as Arrow data: {error}") from error


def like_pandas(table: pa.Table) -> Like:
    noted = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    return Like("pandas", {str(each["name"]): each for each in noted.get("columns", ())})


def check_polars(frame: Any) -> None:
    """Raise if a column has Python objects: polars would give their addresses."""
    import polars as pl

    objects = [name for name, kind in frame.schema.items() if kind == pl.Object]
    if objects:
        raise InvalidInput(
            f"Column {objects[0]!r} has Python objects, which Arrow cannot hold. Leave it out, or give it a type of "
            "polars' own."
        )


def from_lazy(frame: Any) -> Any:
    """A polars LazyFrame, collected."""
    import polars as pl

    try:
        return frame.collect()
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"polars cannot collect this LazyFrame: {error}") from error
