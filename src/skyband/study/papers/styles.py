"""How each algorithm looks in every figure: its colour, its marker and its line, wherever it comes in the list."""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from skyband.study.papers.printed import subject

FORMULA: Final = "formula of "  # before the name of an algorithm
_COLOURS: Final = (
    "#1f77b4",
    "#d62728",
    "#2ca02c",
    "#9467bd",
    "#ff7f0e",
    "#8c564b",
    "#17becf",
    "#e377c2",
    "#bcbd22",
    "#393b79",
)
_MARKERS: Final = "osD^vP*X<>"
_LINES: Final = ("-", "--", ":")

# Those that meet in a figure differ in colour; a variant has the colour of its algorithm, and another line. Plans of
# joins are never beside the others of their family, and have places with a whole line.
_FAMILIES: Final = (
    ("mintopk", "mintopk_published", "cells", "LAP", "totals", "supreme", "supreme++"),
    (
        "relaxed", "rapf_grid", "rapf_grid, longest buffer", "EAP10", "relaxed(gamma=0.2)", "relaxed, row by row",
        "EAP100", "recorded",
    ),
    (
        "sma", "strict+strict", "early_aggregation", "EAP01", "naive", "cpmw", "EAP010", "naive++",
        "sma, grid over all attributes",
    ),
    ("tma", "strict+probabilistic", "scan", "EAP11", "EAP001", "sma, cut back after each answer"),
    ("strict", "strict+relaxed", "snn", "EAP110", "sorted_lists", "basic"),
    ("pretopk", "sasf_grid", "relaxed+strict", "EAP101", "threshold", "threshold_published"),
    (
        "probabilistic", "pa_grid", "relaxed+probabilistic", "EAP011", "relaxed+probabilistic, longest buffer",
        "estimated",
    ),
    ("staircase", "staircase, all at once", "one by one", "EAP111", "all at once", "staircase_published"),
    ("partitioned", "relaxed+relaxed", "boxes", "multiply", "snapshot"),
    ("hybrid", "linear", "continuous", "probabilistic_published"),
)  # fmt: skip
# What is no algorithm: a bound, a formula, what is expected.
_REFERENCES: Final = {
    "printed": ("gray", "-", "o"),
    "formula": ("black", "--", "."),
    "sum of chances": ("darkred", ":", "x"),
    "2K (ln N - ln sqrt K)": ("black", "--", "."),
    "the rows themselves": ("gray", ":", "."),
    "k ln(n/k), as printed": ("gray", "-", "o"),
}
_PLACES: Final = {
    name: (colour, variant) for colour, names in enumerate(_FAMILIES) for variant, name in enumerate(names)
}


def style(label: str) -> dict[str, Any]:
    """The options of a line for this label. The paper's own curve of an algorithm, and its formula, are a pale, wide
    line in the algorithm's colour."""
    of = label.removeprefix(FORMULA) if label.startswith(FORMULA) else None
    if (algorithm := subject(label) or of) is not None:
        return style(algorithm) | {"alpha": 0.35, "linestyle": "-", "linewidth": 5, "markersize": 9, "zorder": 1}
    if is_reference(label):
        return dict(zip(("color", "linestyle", "marker"), _REFERENCES.get(label, ("black", "--", ".")), strict=True))
    colour, variant = _PLACES.get(label) or _drawn(label)
    return {
        "color": _COLOURS[colour % len(_COLOURS)],
        "marker": _MARKERS[(colour + 3 * variant) % len(_MARKERS)],
        "linestyle": _LINES[variant % len(_LINES)],
    }


def is_reference(label: str) -> bool:
    return label in _REFERENCES or any(
        sign in label for sign in ("bound", "expected", "formula", "sum of", " H_", "ln(")
    )


def _drawn(label: str) -> tuple[int, int]:
    """A place for a name not seen before: the same in each figure and each run."""
    number = crc32(label.encode())
    return number % len(_COLOURS), number // len(_COLOURS) % len(_MARKERS)
