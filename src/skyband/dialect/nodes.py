"""Nodes of a statement that SQL does not have: windows on streams, EMIT, WITH ERROR and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from sqlglot import exp


class Span(exp.Expression):
    """`10 MINUTES`, `1000 ROWS`, or a plain number of the window's column."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": False}


class StreamWindow(exp.Expression):
    """`WINDOW 1 HOUR EVERY 1 MINUTE ON ts`; without a size, UNTIL NOW; with one a query, `q.size UP TO 1 HOUR`; so with
    EVERY, `q.often DOWN TO 1 MINUTE`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": False,
        "column": False,
        "often": False,
        "every": False,
        "on": False,
        "order": False,
        "lateness": False,
        "forget": False,
        "per": False,  # of SESSION: the columns that tell apart whose sessions they are
    }


class Stream(exp.Expression):
    """An input with a window of its own; `function`: TUMBLE, HOP or window, where the window was written as one."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "window": True, "function": False}


WHOLE_TABLE: Final = "the whole table"  # the column that a window of all rows measures, and what EXPLAIN calls it
BOUNDS: Final = ("window_start", "window_end")  # the columns that every answer has of its window
# Of these functions, the bounds of windows that are columns of the rows: see `carried_windows`.
CARRIED: Final[Mapping[str, tuple[str, ...]]] = {"CUMULATE": BOUNDS[:1], "SESSION": BOUNDS}
TABLE_FUNCTIONS: Final = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class TableFunction(exp.Expression):
    """`TUMBLE(bid, ts, INTERVAL 10 SECONDS) AS b` in FROM; `per`: the columns behind PARTITION BY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "alias": False, "per": False}


class Continuous(exp.Expression):
    """A statement, with what stands in front of it and behind it."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "window": False,
        "emit": False,
        "error": False,
        "recall": False,
        "bounds": False,
        "explain": False,
    }
