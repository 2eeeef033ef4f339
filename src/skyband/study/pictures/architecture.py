"""The packages as layers: each imports only what stands below it, as `make check` sees to."""

from __future__ import annotations

from typing import Final

from skyband.core import registry
from skyband.study.pictures.drawing import PALE_BLUE, PALE_GREEN, PALE_ORANGE, PAPER, SHADE, Sheet

LAYERS: Final = (
    ("cli, demo, study", "commands and measurements", SHADE),
    ("pipelines, spark, serving", "pipeline files, run on Spark; answers over HTTP, and the console", SHADE),
    ("api, sql", "what users call: a function or a statement becomes one query", PALE_BLUE),
    ("problems", "", PALE_ORANGE),
    ("engines", "read rows and return answers: in one process, or on Spark", PALE_GREEN),
    ("core", "clock, session, chooser, EXPLAIN: written once, for all problems", PALE_GREEN),
    ("kernels, expressions, dialect", "compiled loops over flat arrays; scores; SQL as a tree", SHADE),
    ("windows, errors", "windows as users write them, checked once; the error classes", SHADE),
)
LEFT, TOP, WIDTH = 40, 60, 860


def draw() -> str:
    """Eight layers; the problems, as the registry finds them, with how many algorithms each has."""
    sheet = Sheet(940, 652, "The architecture of Skyband")
    sheet.text(LEFT, 40, "Imports go one way: downwards", size=20, bold=True)
    y = float(TOP)
    for name, says, fill in LAYERS:
        height = 126 if name == "problems" else 56
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
        sheet.card(x, top + 52, width, [name, f"{len(packages)} algorithm folders"], fill=PAPER)
