"""The packages as layers: each imports only what stands below it, as `make check` sees to."""

from __future__ import annotations

from typing import Final

from skyband.core import registry
from skyband.study.pictures.drawing import PALE_BLUE, PALE_GREEN, PALE_ORANGE, SHADE, Sheet

LAYERS: Final = (
    ("cli, demo, study", "commands and measurements", SHADE),
    ("pipelines, spark, serving", "files of statements run on Spark; sessions checked; answers over HTTP", SHADE),
    ("api, sql", "what users call: functions and statements become one frozen query", PALE_BLUE),
    ("problems", "", PALE_ORANGE),
    ("engines", "where rows come from and go to: one process, or Spark", PALE_GREEN),
    ("core", "clock, emit, session, chooser, EXPLAIN, registry: written once for all problems", PALE_GREEN),
    ("kernels, expressions, dialect", "compiled loops over flat arrays; scores; SQL as a tree", SHADE),
    ("windows, errors", "what a user says, checked once", SHADE),
)
LEFT, TOP, WIDTH = 40, 60, 860


def draw() -> str:
    """Eight layers; the problems, as the registry finds them, with how many algorithms each has."""
    sheet = Sheet(940, 676, "The architecture of Skyband")
    sheet.text(LEFT, 40, "Imports go one way: downwards", size=20, bold=True)
    y = float(TOP)
    for name, says, fill in LAYERS:
        height = 150 if name == "problems" else 56
        sheet.box(LEFT, y, WIDTH, height, fill=fill)
        sheet.text(LEFT + 18, y + 34, name, bold=True, size=16)
        if name == "problems":
            _problems(sheet, y)
        else:
            sheet.text(LEFT + 296, y + 34, says, size=14)
        y += height + 8
    return sheet.svg()


def _problems(sheet: Sheet, top: float) -> None:
    sheet.text(LEFT + 296, top + 34, "five kinds of question, each a package with the same files", size=14)
    names = registry.problems()
    width = (WIDTH - 36 - 12 * (len(names) - 1)) / len(names)
    for i, name in enumerate(names):
        packages = list(registry.packages_of(name))
        x = LEFT + 18 + i * (width + 12)
        lines = [name, "query, codec, planning", f"{len(packages)} algorithm folders"]
        sheet.card(x, top + 52, width, lines, fill="#ffffff")
