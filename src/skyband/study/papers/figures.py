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

from skyband.study.papers.experiments import Outcome
from skyband.study.papers.points import MOST_HELD

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
_MARKS: Final = {True: "✓ holds:", False: "✗ does not hold:", None: "– not judged:"}


def draw(outcome: Outcome, folder: Path) -> Path | None:
    """A PNG named for the experiment; None if nothing was measured."""
    measures = [measure for measure in outcome.readings.measures if measure != MOST_HELD]
    if not measures:
        return None
    across = 2 if len(measures) == 4 else min(len(measures), 3)
    down = -(-len(measures) // across)
    width = 4.6 * across + 2.8
    figure = Figure(figsize=(width, 4.3 * down + 0.5 + 0.2 * len(outcome.claims)), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten()
    lines: dict[str, Line2D] = {}
    for panel, measure in zip(panels, measures, strict=False):
        lines |= _panel(panel, outcome, measure)
    for unused in panels[len(measures) :]:
        unused.axis("off")
    experiment = outcome.experiment
    title = f"{fill(experiment.title, int(width * 10))}\n{experiment.source}"
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.legend(list(lines.values()), list(lines), loc="outside right upper", fontsize=8, frameon=False)
    claims = [f"{_MARKS[claim.verdict.holds]}  {claim.paper}" for claim in outcome.claims]
    figure.supxlabel("\n".join(claims), fontsize=8, x=0.01, ha="left")
    path = folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=130)
    return path


def _panel(panel: Axes, outcome: Outcome, measure: str) -> dict[str, Line2D]:
    readings, axis = outcome.readings, outcome.readings.axis
    places = sorted({reading.x for reading in readings.readings})
    where = {x: float(place) if axis.names else x for place, x in enumerate(places)}
    lines = {}
    values: list[float] = []
    for number, algorithm in enumerate(readings.algorithms(measure)):
        curve = readings.curve(measure, algorithm)
        style = _style(algorithm, number) | (
            {"linestyle": ""} if axis.names else {}
        )  # between two names there is nothing
        (lines[algorithm],) = panel.plot([where[x] for x in curve], list(curve.values()), markersize=5, **style)
        values += curve.values()
    panel.set_title(measure, fontsize=10)
    panel.set_xlabel(axis.label)
    if axis.log and min(places) > 0:
        panel.set_xscale("log")
    panel.set_xticks(list(where.values()), [axis.show(x) for x in places], fontsize=8)
    panel.minorticks_off()
    if outcome.experiment.log and min(values) > 0 and max(values) > 4 * min(values):
        panel.set_yscale("log")
        wide = max(values) > 1000 * min(values)
        panel.yaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(0, 1.1 * max(values) or 1)
    panel.grid(alpha=0.3)
    return lines


def _style(algorithm: str, number: int) -> dict[str, Any]:
    if algorithm not in _KNOWN:  # a bound, or what is expected
        return {
            "color": ("black", "dimgray", "darkgray")[number % 3],
            "linestyle": ("--", ":", "-.")[number % 3],
            "marker": ".",
        }
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
