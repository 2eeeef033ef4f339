"""An experiment as a picture: a line for each algorithm, a panel for each thing measured. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from skyband.bench.papers.experiments import Outcome
from skyband.bench.papers.points import MOST_HELD

# Each algorithm looks the same in every figure, wherever it comes in the list.
_KNOWN: Final = (
    "mintopk",
    "relaxed",
    "strict",
    "sma",
    "probabilistic",
    "relaxed+probabilistic",
    "pretopk",
    "partitioned",
    "staircase",
    "tma",
    "relaxed(gamma=0.2)",
    "strict+strict",
    "strict+relaxed",
    "strict+probabilistic",
    "relaxed+strict",
    "relaxed+relaxed",
    "relaxed+probabilistic, longest buffer",
    "hybrid",
    "staircase, all at once",
    "relaxed, row by row",
)
_MARKERS: Final = "osD^vP*X<>"


def draw(outcome: Outcome, folder: Path) -> Path | None:
    """A PNG named for the experiment; None if nothing was measured."""
    measures = [measure for measure in outcome.readings.measures if measure != MOST_HELD]
    if not measures:
        return None
    width = 4.6 * len(measures) + 2.6
    figure = Figure(figsize=(width, 4.8), layout="constrained")
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    lines: dict[str, Line2D] = {}
    for panel, measure in zip(panels, measures, strict=True):
        lines |= _panel(panel, outcome, measure)
    experiment = outcome.experiment
    figure.suptitle(
        f"{fill(experiment.title, int(width * 9))}\n{experiment.source}", fontsize=11, x=0.01, ha="left", wrap=True
    )
    figure.legend(list(lines.values()), list(lines), loc="outside right upper", fontsize=8, frameon=False)
    path = folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=130)
    return path


def _panel(panel: Axes, outcome: Outcome, measure: str) -> dict[str, Line2D]:
    readings, axis = outcome.readings, outcome.readings.axis
    lines = {}
    largest, smallest = 0.0, float("inf")
    for algorithm in readings.algorithms(measure):
        curve = readings.curve(measure, algorithm)
        (lines[algorithm],) = panel.plot(list(curve), list(curve.values()), markersize=5, **_style(algorithm))
        largest, smallest = max(largest, *curve.values()), min(smallest, *curve.values())
    panel.set_title(measure, fontsize=10)
    panel.set_xlabel(axis.label)
    places = sorted({reading.x for reading in readings.readings})
    if axis.log and min(places) > 0:
        panel.set_xscale("log")
    panel.set_xticks(places, [axis.show(x) for x in places], fontsize=8, rotation=30 if axis.names else 0)
    panel.minorticks_off()
    if outcome.experiment.log and smallest > 0 and largest > 4 * smallest:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)
    return lines


def _style(algorithm: str) -> dict[str, Any]:
    if algorithm not in _KNOWN:  # a bound, or what is expected
        return {"color": "black", "linestyle": "--", "marker": "."}
    place = _KNOWN.index(algorithm)
    colours = list(colormaps["tab10"].colors)  # type: ignore[attr-defined]
    return {
        "color": colours[place % 10],
        "linestyle": "-" if place < 10 else ":",
        "marker": _MARKERS[(place + place // 10) % len(_MARKERS)],
    }


def draw_all(outcomes: list[Outcome], folder: Path) -> Iterator[Path]:
    """The figures of all experiments, in a folder that is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        path = draw(outcome, folder)
        if path is not None:
            yield path
