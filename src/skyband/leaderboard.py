"""A ranking on the terminal that changes in place: who stands where, who moved, and by how much they lead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

_LONGEST_BAR: Final = 30

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of the board, and how its values are written."""

    name: str
    write: Callable[[Any], str | Text]
    heading: str | None = None  # if it is not the name
    is_number: bool = False
    width: int = 0  # at least


class Leaderboard:
    """The rows of an answer, with what moved since the answer before."""

    def __init__(self, title: str, columns: Sequence[Column], *, identity: Sequence[str] = (), rows: int = 0) -> None:
        """`identity`: the columns by which a row is found again; none: all but its rank and its window. `rows`: lines
        that are kept free, so that the board does not jump."""
        self._title, self._columns, self._identity, self._rows = title, columns, tuple(identity), rows
        self._where = ""
        self._answer: list[Row] = []
        self._ranks_before: dict[tuple[object, ...], int] | None = None

    def show(self, answer: list[Row], where: str) -> None:
        """The next answer, best first; `where` says which one it is."""
        ranks = {self._key(row): _rank(row, place) for place, row in enumerate(self._answer)}
        self._ranks_before = ranks if self._answer else None
        self._answer, self._where = answer, where

    def render(self, width: int) -> Table:
        """The board, in at most so many columns of the terminal; what is left of them has a bar for each score."""
        title = Text.assemble((self._title, "bold"), "\n", self._where)
        table = Table(title=title, box=SIMPLE_HEAD, title_style="", title_justify="left")
        table.add_column("", justify="right", min_width=2)
        table.add_column("", min_width=3)
        for each in self._columns:
            heading = Text(each.name if each.heading is None else each.heading)
            table.add_column(heading, justify="right" if each.is_number else "left", min_width=each.width)
        cells = [[each.write(row[each.name]) for each in self._columns] for row in self._answer]
        bars = self._bars(width - self._width_of(cells))
        if bars:
            table.add_column("")
        for place, (row, written) in enumerate(zip(self._answer, cells, strict=True)):
            rank = _rank(row, place)
            table.add_row(Text(str(rank), "bold"), self._movement(row, rank), *written, *bars[place : place + 1])
        for _ in range(self._rows - len(self._answer)):
            table.add_row()
        return table

    def _width_of(self, cells: list[list[str | Text]]) -> int:
        """What the columns take up, with the rank, the arrow and what is between columns, but without the bar."""
        widths = [max(each.width, len(each.name if each.heading is None else each.heading)) for each in self._columns]
        for written in cells:
            widths = [max(width, len(value)) for width, value in zip(widths, written, strict=True)]
        return sum(widths) + 2 + 3 + 3 * (len(widths) + 3) + 1

    def _bars(self, width: int) -> list[Text]:
        """How each score compares with the best; none where scores are no positive numbers, or there is no room."""
        scores = [row.get("score") for row in self._answer]
        numbers = [float(score) for score in scores if isinstance(score, (int, float)) and score >= 0]
        longest = min(width, _LONGEST_BAR)
        if len(numbers) < len(scores) or longest < 4 or not max(numbers, default=0.0) < float("inf"):
            return []
        best = max(numbers, default=0.0) or 1.0
        return [Text("━" * round(longest * number / best), "green") for number in numbers]

    def _movement(self, row: Row, rank: int) -> Text:
        """How the row moved since the answer before."""
        if self._ranks_before is None:
            return Text("")
        before = self._ranks_before.get(self._key(row))
        if before is None:
            return Text("new", "bold yellow")
        if before == rank:
            return Text("=", "dim")
        return Text(f"▲{before - rank}", "green") if before > rank else Text(f"▼{rank - before}", "red")

    def _key(self, row: Row) -> tuple[object, ...]:
        names = self._identity or [name for name in row if name not in _CHANGING]
        return tuple(repr(row.get(name)) for name in names)


_CHANGING: Final = frozenset({"window_start", "window_end", "at", "rank"})


def _rank(row: Row, place: int) -> int:
    """Of its group, where rows have ranks; else its place in the answer."""
    return int(row.get("rank", place + 1))
