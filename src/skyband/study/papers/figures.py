"""An experiment as a picture: a line for each algorithm, a panel for each thing measured. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Final
from zlib import crc32

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from skyband.study.papers.experiments import Outcome
from skyband.study.papers.points import MOST_HELD
from skyband.study.papers.printed import subject

MOST_LINES: Final = 8  # of algorithms in a panel; those that are more have another panel
DECADE: Final = 8.0  # values that span so many times the least are drawn on a log axis
_MARKS: Final = {True: "✓ holds:", False: "✗ does not hold:", None: "– not judged:"}


def draw(outcome: Outcome, folder: Path, *, quick: bool = False) -> Path | None:
    """A PNG named for the experiment; None if nothing was measured."""
    panels = list(_panels(outcome))
    if not panels:
        return None
    across = 2 if len(panels) == 4 else min(len(panels), 3)
    down = -(-len(panels) // across)
    width = max(7.5, 5.4 * across)
    claims = [fill(f"{_MARKS[claim.verdict.holds]}  {claim.paper}", int(width * 14)) for claim in outcome.claims]
    lines = sum(claim.count("\n") + 1 for claim in claims)
    figure = Figure(figsize=(width, 4.9 * down + 0.6 + 0.17 * lines), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).flatten()
    for panel, (title, measure, labels) in zip(axes, panels, strict=False):
        _draw_panel(panel, outcome, title, measure, labels)
    for unused in axes[len(panels) :]:
        unused.axis("off")
    experiment = outcome.experiment
    left_out = ", ".join(["fewer places, shorter turns", *filter(None, [experiment.left_out])])
    left_out = f" (quick: {left_out})" if quick else ""
    title = "\n".join(fill(line, int(width * 11)) for line in (experiment.title, experiment.source + left_out))
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel("\n".join(claims), fontsize=8, x=0.01, ha="left")
    path = folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=110)
    return path


def _panels(outcome: Outcome) -> Iterator[tuple[str, str, list[str]]]:
    """A title, what was measured, and of whom: at most MOST_LINES algorithms, each with its references."""
    readings = outcome.readings
    for measure in readings.measures:
        if measure == MOST_HELD or (len(readings.measures) > 1 and _is_nothing(outcome, measure)):
            continue
        labels = readings.algorithms(measure)
        ours = [label for label in labels if subject(label) is None and not is_reference(label)]
        references = [label for label in labels if label not in ours]
        panels = -(-len(ours) // MOST_LINES) or 1
        most = -(-len(ours) // panels) or 1  # as many in each of them
        parts = [ours[first : first + most] for first in range(0, max(1, len(ours)), most)]
        for number, part in enumerate(parts):
            title = measure if len(parts) == 1 else f"{measure} ({number + 1} of {len(parts)})"
            beside = [label for label in references if subject(label) in (None, *part)]
            yield title, measure, [*beside, *part]


def _is_nothing(outcome: Outcome, measure: str) -> bool:
    """Is all of it 0, as the errors of who made none?"""
    return not any(reading.value for reading in outcome.readings.readings if reading.measure == measure)


def _draw_panel(panel: Axes, outcome: Outcome, title: str, measure: str, labels: Sequence[str]) -> None:
    readings, axis = outcome.readings, outcome.readings.axis
    places = sorted({reading.x for reading in readings.readings})
    where = {x: float(place) if axis.names else x for place, x in enumerate(places)}
    for label in labels:
        curve = readings.curve(measure, label)
        look, aside = {"markersize": 5} | style(label), 0.0
        if axis.names:  # between two names there is nothing, and beside each of them is room for all
            look["linestyle"] = ""
            aside = 0.5 * ((labels.index(label) + 0.5) / len(labels) - 0.5)
        panel.plot([where[x] + aside for x in curve], list(curve.values()), label=label, **look)
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(axis.label)
    if axis.log and min(places) > 0:
        panel.set_xscale("log")
    panel.set_xticks(list(where.values()), [axis.show(x) for x in places], fontsize=8)
    panel.minorticks_off()
    _scale(panel, [reading.value for reading in readings.readings if reading.measure == measure])
    panel.grid(alpha=0.3)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=7.5, frameon=False)


def _scale(panel: Axes, values: Sequence[float]) -> None:
    """The same axis for all panels of a measure, whose values these are."""
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    some = min((value for value in values if value > 0), default=0.0)
    if min(values) == 0 and max(values) > DECADE**2 * some > 0:
        panel.set_yscale("symlog", linthresh=some)
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        panel.set_ylim(-0.2 * some, 2 * max(values))
    elif min(values) > 0 and max(values) > DECADE * min(values):
        panel.set_yscale("log")
        panel.set_ylim(min(values) / 1.3, max(values) * 1.3)
        wide = max(values) > 1000 * min(values)
        panel.yaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(min(0.0, 1.1 * min(values)), 1.1 * max(values) or 1)


def draw_all(outcomes: Sequence[Outcome], folder: Path, *, quick: bool = False) -> Iterator[Path]:
    """The figures of all experiments, in a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        path = draw(outcome, folder, quick=quick)
        if path is not None:
            yield path


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
