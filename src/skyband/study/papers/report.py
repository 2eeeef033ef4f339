"""An experiment as tables for people, and all of them as JSON for later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skyband.study.papers.experiments import (
    Effort,
    Experiment,
    Findings,
    Judged,
    Outcome,
    Reading,
    Readings,
    Say,
    missing_of,
)
from skyband.study.papers.printed import printed_for, subject
from skyband.study.results import machine

MARKS: Final = {True: ("✓ holds", "green"), False: ("✗ does not hold", "bold red"), None: ("– not judged", "yellow")}


def shown(outcome: Outcome) -> Group:
    """What was measured, and what the paper says of it."""
    experiment = outcome.experiment
    parts: list[RenderableType] = [
        Text.assemble((experiment.title, "bold"), (f"\n{experiment.name}: {experiment.source}", "dim"))
    ]
    parts += [_table(outcome, measure) for measure in outcome.readings.measures]
    if outcome.missing:
        missing = "; ".join(f"{name} ({why})" for name, why in outcome.missing.items())
        parts.append(Text(f"  Not measured: {missing}", "yellow"))
    parts += [Text(f"  {note}", "yellow") for note in outcome.notes]
    parts += [_claim(claim) for claim in outcome.claims]
    return Group(*parts, "")


def summary(outcomes: Sequence[Outcome], *, quick: bool) -> Group:
    """How many claims hold, and which do not."""
    counted = Table(
        title="What the papers claim, here" + (" (quick: short measurements, fewer points)" if quick else ""),
        title_style="bold",
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    counted.add_column("experiment")
    for holds in (True, False, None):
        counted.add_column(MARKS[holds][0], justify="right")
    for outcome in outcomes:
        verdicts = [claim.verdict.holds for claim in outcome.claims]
        counted.add_row(outcome.experiment.name, *(str(verdicts.count(holds) or "") for holds in (True, False, None)))
    verdicts = [claim.verdict.holds for outcome in outcomes for claim in outcome.claims]
    counted.add_section()
    counted.add_row("all", *(str(verdicts.count(holds)) for holds in (True, False, None)))
    parts: list[RenderableType] = [counted]
    if missing := missing_of(outcomes):
        parts.append(Text(f"Not measured in some or all experiments: {', '.join(missing)}.", "yellow"))
    return Group(*parts)


def write(outcomes: Sequence[Outcome], path: Path, *, effort: Effort) -> None:
    """Everything that was measured and judged, with what it was measured on."""
    described = {
        "effort": asdict(effort),
        "machine": machine(),
        "experiments": [_described(outcome) for outcome in outcomes],
    }
    path.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read(experiment: Experiment, path: Path, *, effort: Effort) -> Outcome | None:
    """What an earlier run measured, judged anew; None: nothing that this effort, places and algorithms would measure.

    A file that cannot be read is that of a run that was stopped while it wrote.
    """
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        (found,) = described["experiments"]
        asked = {"places": list(experiment.axis.at(effort)), "algorithms": list(experiment.algorithms)}
        if described["effort"] != asdict(effort) or found["asked"] != asked:
            return None
        readings = [Reading(**reading) for reading in found["readings"]]
        return outcome_of(experiment, Findings(readings, found["missing"], found["notes"]), effort)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _described(outcome: Outcome) -> dict[str, object]:
    experiment = outcome.experiment
    return {
        "name": experiment.name,
        "source": experiment.source,
        "title": experiment.title,
        "axis": {"label": experiment.axis.label, "names": experiment.axis.names},
        "asked": {"places": outcome.places, "algorithms": experiment.algorithms},
        "missing": outcome.missing,
        "notes": outcome.notes,
        "readings": [asdict(reading) for reading in outcome.readings.readings if subject(reading.algorithm) is None],
        "printed": [asdict(each) for each in printed_for(experiment.name)],
        "claims": [{"paper": claim.paper} | asdict(claim.verdict) for claim in outcome.claims],
    }


def _table(outcome: Outcome, measure: str) -> Padding:
    readings = outcome.readings
    algorithms = readings.algorithms(measure)
    places = sorted({reading.x for reading in readings.readings if reading.measure == measure})
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(Text.assemble((measure, "bold"), (f"   by {readings.axis.label}", "dim")))
    for x in places:
        table.add_column(readings.axis.show(x), justify="right", no_wrap=True)
    for algorithm in algorithms:
        curve = readings.curve(measure, algorithm)
        table.add_row(algorithm, *(number(curve.get(x)) for x in places))
    return Padding(table, (0, 0, 1, 2))


def _claim(claim: Judged) -> Padding:
    mark, style = MARKS[claim.verdict.holds]
    return Padding(Text.assemble((mark, style), f"  {claim.paper}\n", (claim.verdict.because, "dim")), (0, 0, 0, 2))


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def run(experiment: Experiment, effort: Effort, say: Say) -> Outcome:
    """Measure, and judge what the paper says by what was measured."""
    findings = experiment.measure(experiment.axis.at(effort), experiment.algorithms, effort, say)
    return outcome_of(experiment, findings, effort)


def outcome_of(experiment: Experiment, findings: Findings, effort: Effort) -> Outcome:
    places = experiment.axis.at(effort)
    theirs = [reading for each in printed_for(experiment.name) for reading in each.readings(places)]
    readings = Readings(experiment.axis, (*findings.readings, *theirs))
    judged = tuple(Judged(claim.paper, claim.judge(readings)) for claim in experiment.claims)
    return Outcome(experiment, places, readings, findings.missing, tuple(findings.notes), judged)
