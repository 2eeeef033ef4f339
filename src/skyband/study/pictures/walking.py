"""How a call walks through the packages, as `skyband.study.walks` traced it: it draws one picture for each walk."""

from __future__ import annotations

from collections import Counter
from typing import Final

from skyband.study.pictures.drawing import (
    BLUE,
    FAINT,
    PALE_BLUE,
    PALE_GREEN,
    PALE_ORANGE,
    SHADE,
    SOFT,
    Point,
    Sheet,
    width_of,
)
from skyband.study.walks import Walk, room

# A room stands in the first row that names it, or the folder that it is in.
ROWS: Final = (
    (("api.py", "pipelines", "sql", "accessors.py"), SHADE),
    (("engines", "dialect"), PALE_BLUE),
    (("problems",), PALE_ORANGE),
    (("core", "expressions"), PALE_GREEN),
    (("kernels", "windows.py", "errors.py", "streams"), SHADE),
)
WIDTH, TOP, BOX, GAP, STEP = 940, 92, 58, 16, 128
OFTEN: Final = 10  # calls between two packages, from which on the line is thick


def draw(title: str, walk: Walk) -> str:
    """The packages of a walk as boxes, with the files entered and the calls between them as lines."""
    files, calls = Counter(map(room, walk.files)), walk.by_room().edges
    rows = [[place for place in files if _row(place) == number] for number in range(len(ROWS))]
    rows = [line for row in rows for line in _lines(row)]
    sheet = Sheet(WIDTH, TOP + STEP * len(rows) - 30, title)
    sheet.text(40, 40, title, size=20, bold=True)
    counted = f"{len(walk.files)} files, {walk.switches} calls from one file to another"
    sheet.text(40, 64, f"{counted}; thick line: {OFTEN} calls or more", size=14, colour=SOFT)
    places = {name: place for number, row in enumerate(rows) for name, place in _places(row, number).items()}
    called, between = Counter[str](), Counter[tuple[str, ...]]()
    for (caller, name), count in calls.items():
        called[name] += count
        between[tuple(sorted((caller, name)))] += count
    # Lines first, so that boxes cover them, and thick lines after the others.
    for pair, count in sorted(between.items(), key=lambda each: each[1]):
        often = count >= OFTEN
        sheet.line([places[name] for name in pair], colour=BLUE if often else FAINT, width=3 if often else 1.5)
    for name, (x, y) in places.items():
        width = _width(name)
        fill = ROWS[_row(name)][1]
        counts = [(files[name], "file"), (called[name], "call")]
        counted = ", ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count)
        sheet.card(x - width / 2, y - BOX / 2, width, [_label(name), counted], fill=fill)
    return sheet.svg()


def _row(place: str) -> int:
    return next((number for number, (names, _) in enumerate(ROWS) if place.split("/")[0] in names), len(ROWS) - 1)


def _lines(row: list[str]) -> list[list[str]]:
    """The rooms of a row, on as many lines as they need."""
    lines: list[list[str]] = []
    room_left = 0.0
    for name in row:
        needed = _width(name) + GAP
        if needed > room_left:
            lines.append([])
            room_left = WIDTH - 2.0 * GAP
        lines[-1].append(name)
        room_left -= needed
    return lines


def _places(row: list[str], number: int) -> dict[str, Point]:
    """Where the middle of each room is: the row is centred."""
    x = (WIDTH - sum(map(_width, row)) - GAP * (len(row) - 1)) / 2
    places = {}
    for name in row:
        places[name] = (x + _width(name) / 2, TOP + BOX / 2 + STEP * number)
        x += _width(name) + GAP
    return places


def _label(place: str) -> str:
    return place.removeprefix("problems/").removesuffix(".py")


def _width(place: str) -> float:
    return max(width_of(_label(place), 15), width_of("99 files, 999 calls", 13)) + 24
