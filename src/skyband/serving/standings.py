"""The answer that changes add up to: who stands where after rows have entered and left.

A row that enters comes with the rank that it has from then on, so it is put in that place. A row that leaves is found
by what it shows. Groups of a join are upserted and deleted by their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

_OF_CHANGES: Final = ("at", "change")


class Standing:
    """Who is listed now, by group, best first."""

    def __init__(self, schema: pa.Schema, groups: Sequence[str]) -> None:
        """`schema` is that of changes; `groups` are the columns that have a ranking for each of their values."""
        self._names = [name for name in schema.names if name not in _OF_CHANGES]
        self._schema = pa.schema([schema.field(name) for name in self._names])
        self._is_ranked = "rank" in self._names
        self._groups = [name for name in groups if name in self._names]
        self._listed: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}  # rows without their rank
        self._upserted: dict[tuple[Any, ...], dict[str, Any]] = {}

    def apply(self, changes: pa.Table) -> pa.Table:
        """The answer after `changes`, which are in the order in which they happened."""
        for row in changes.to_pylist():
            change = row["change"]
            if change in ("upsert", "delete"):
                self._put(row, change)
            else:
                self._move(row, change)
        return self.table()

    def table(self) -> pa.Table:
        """The answer now."""
        rows: list[dict[str, Any]] = [*self._upserted.values()]
        for listed in self._listed.values():
            for number, values in enumerate(listed, 1):
                row = dict(zip(self._unranked, values, strict=True))
                rows.append({**row, "rank": number} if self._is_ranked else row)
        return pa.Table.from_pylist(rows, self._schema)

    @property
    def _unranked(self) -> list[str]:
        return [name for name in self._names if name != "rank"]

    def _put(self, row: dict[str, Any], change: str) -> None:
        key = tuple(row[name] for name in self._groups)
        if change == "delete":
            self._upserted.pop(key, None)
        else:
            self._upserted[key] = {name: row[name] for name in self._names}

    def _move(self, row: dict[str, Any], change: str) -> None:
        values = tuple(row[name] for name in self._unranked)
        listed = self._listed.setdefault(tuple(row[name] for name in self._groups), [])
        rank = row["rank"] if self._is_ranked else len(listed) + 1
        if change == "enter":
            listed.insert(rank - 1, values)
            return
        same = [place for place, other in enumerate(listed) if other == values]
        if same:  # of rows that show the same, the one nearest to the rank that it had
            del listed[min(same, key=lambda place: abs(place - rank + 1))]
