"""A query whose answers are served, wherever it runs: what it is, as JSON, and how its answers get on its board."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from skyband.core.explain import Explanation, explain, readable
from skyband.core.picture import Picture
from skyband.core.registry import problem_of
from skyband.serving.boards import Board, latest_of_groups, windows_of
from skyband.serving.standings import Standing


class Served(ABC):
    """One query, as readers see it."""

    can_be_asked = False  # can `top` be asked, for any k and size that the query allows?
    picture: Picture | None = None  # what runs in this process can be looked at
    is_whole = True  # False: the answer lacks rows that entered before a restart

    def __init__(self, name: str, query: Any, statement: str | None) -> None:
        self.name, self.statement, self.board = name, statement, Board(name)
        self._query, self._problem = query, problem_of(query)
        self._groups = self._problem.groups(query)
        self._standing: Standing | None = None  # what changes add up to
        self._by_group: pa.Table | None = None  # the last window of each group, where they have their own
        self.state = "running"
        self.problem: str | None = None  # why it stopped, if something went wrong

    @property
    @abstractmethod
    def output_schema(self) -> pa.Schema | None:
        """The columns of answers; None: they are not known yet."""

    @abstractmethod
    def top(self, k: int | None, size: str | int | None) -> pa.Table:
        """The answer right now."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """How it is doing, as JSON."""

    def explanation(self) -> Explanation:
        """What runs and why."""
        return explain(self._query)

    def describe(self) -> dict[str, Any]:
        """What the query is, as JSON."""
        query, schema = self._query, self.output_schema
        window = getattr(query, "window", None)
        title, _, conditions = readable(self._problem.title(query)).partition("; ")
        return {
            "name": self.name,
            "title": title,
            "conditions": conditions,
            "problem": self._problem.name,
            "summary": self._problem.summary(query),
            "statement": self.statement,
            "k": getattr(query, "k", None),
            "ascending": bool(getattr(query, "ascending", False)),
            "groups": list(self._groups),
            "identity": identity_of(query),
            "emit": query.emit,
            "window": None if window is None else str(window),
            "ad_hoc": self.can_be_asked,
            "picture": None if self.picture is None else self.picture.describe(),
            "columns": [] if schema is None else [{"name": each.name, "type": str(each.type)} for each in schema],
            "state": self.state,
            "problem_text": self.problem,
            "is_whole": self.is_whole,
        }

    # -- for those that run the query --------------------------------------------------------------------------------

    def _say(self, table: pa.Table) -> None:
        """Publish what the query gave. Changes add up to one answer, and each window is an answer of its own."""
        if not table.num_rows:
            return
        if "change" in table.schema.names:
            self._standing = self._standing or Standing(table.schema, key_columns(self._query))
            self._publish(self._shown(self._standing.apply(table)))
            return
        table = self._shown(table)
        if "window_end" not in table.schema.names:
            self._publish(table)
        elif self._has_own_windows(table):
            self._by_group = latest_of_groups(self._by_group, table, self._groups)
            self._publish(self._by_group)
        else:
            for end, rows in windows_of(table):
                self._publish(rows, at=end)

    @abstractmethod
    def _publish(self, table: pa.Table, at: Any = None) -> None:
        """Put an answer on the board, with where it is from."""

    def _shown(self, table: pa.Table) -> pa.Table:
        """What readers see of an answer."""
        return table

    def _has_own_windows(self, table: pa.Table) -> bool:
        """Does each group count its own arrivals?"""
        apart = bool(self._groups) and not self._query.window.is_same_for_groups
        return apart and set(self._groups) <= set(table.schema.names)


def key_columns(query: Any) -> tuple[str, ...]:
    """The columns that tell rankings apart, or the groups of a join."""
    return tuple(name for name in problem_of(query).key(query) if name not in ("window_end", "rank"))


def identity_of(query: Any) -> list[str]:
    """The columns by which a row of one answer is found in the next; none: it is what it shows, without its rank."""
    id = getattr(query, "id", None)
    return [id] if isinstance(id, str) else list(key_columns(query)) if getattr(query, "by", None) is None else []
