"""The whole report as one page: what the papers claim, whether it holds here, and each figure with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from skyband.study.papers.experiments import Effort, Judged, Outcome
from skyband.study.papers.printed import needs_of, printed_for
from skyband.study.papers.report import MARKS, number
from skyband.study.results import machine

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1rem; }
img { max-width: 100%; } table { border-collapse: collapse; margin: .5rem 0; }
td, th { padding: .2rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid #eee; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.holds { color: #1a7f37; } .fails { color: #b00020; font-weight: 600; } .open { color: #8a6d00; }
td.holds, td.fails, td.open { white-space: nowrap; } th.paper { padding-top: 1.5rem; }
.small { color: #666; font-size: 13px; } code { background: #f4f4f4; padding: .1rem .3rem; }
"""
_CLASSES: Final = {True: "holds", False: "fails", None: "open"}


def write_page(outcomes: Sequence[Outcome], folder: Path, *, effort: Effort) -> Path:
    """index.html, beside the figures and the numbers that it links."""
    path = folder / "index.html"
    title = "The papers' experiments, here"
    parts = [
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{_STYLE}</style>",
        f"<h1>{title}</h1>",
        *_introduction(outcomes, effort),
        *_claims(outcomes),
        *(part for outcome in outcomes for part in _experiment(outcome, folder, effort)),
    ]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def _introduction(outcomes: Sequence[Outcome], effort: Effort) -> Iterator[str]:
    verdicts = [claim.verdict.holds for outcome in outcomes for claim in outcome.claims]
    counts = ", ".join(
        f"<span class='{_CLASSES[holds]}'>{verdicts.count(holds)} {escape(MARKS[holds][0])}</span>"
        for holds in (True, False, None)
    )
    yield f"<p>{len(outcomes)} experiments, {len(verdicts)} claims: {counts}.</p>"
    if effort.quick:
        yield (
            "<p><b>A quick run.</b> It leaves out some places of each axis, measures each for a shorter time, and "
            "measures a slow algorithm before its window is full.</p>"
        )
    yield f"<p class='small'>{escape(', '.join(f'{name}: {value}' for name, value in machine().items()))}</p>"


def _claims(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "<h2 id='claims'>What the papers claim</h2>"
    yield "<p class='small'>What a claim would need is said with figures of a quick run, of November 2026.</p><table>"
    yield "<tr><th>claim</th><th>here</th><th>why</th><th>figure</th></tr>"
    last = ""
    for outcome in outcomes:
        name = outcome.experiment.name
        paper = ", ".join(outcome.experiment.source.split(", ")[:2])
        if paper != last:
            yield f"<tr><th class='paper' colspan='4'>{escape(paper)}</th></tr>"
        last = paper
        for claim in outcome.claims:
            holds = claim.verdict.holds
            yield (
                f"<tr><td>{escape(claim.paper)}</td><td class='{_CLASSES[holds]}'>{escape(MARKS[holds][0])}</td>"
                f"<td class='small'>{_why(name, claim)}</td><td><a href='#{name}'>{name}</a></td></tr>"
            )
    yield "</table>"


def _why(name: str, claim: Judged) -> str:
    """The figures behind a verdict; if the claim does not hold, also what would have to be true."""
    needs = needs_of(name, claim.paper) if claim.verdict.holds is False else ""
    return escape(claim.verdict.because) + (f"<br><b>It would hold</b> {escape(needs)}" if needs else "")


def _experiment(outcome: Outcome, folder: Path, effort: Effort) -> Iterator[str]:
    experiment = outcome.experiment
    name, quick = experiment.name, " --quick" if effort.quick else ""
    yield f"<h2 id='{name}'>{escape(experiment.title)}</h2><p class='small'>{escape(experiment.source)}</p>"
    if effort.quick and experiment.left_out:
        yield f"<p class='small'><b>Quick:</b> {escape(experiment.left_out)}.</p>"
    if (folder / f"{name}.png").exists():
        yield f"<a href='{name}.png'><img src='{name}.png' alt='{escape(experiment.title)}' loading='lazy'></a>"
    yield "<table>"
    for claim in outcome.claims:
        holds = claim.verdict.holds
        yield (
            f"<tr><td class='{_CLASSES[holds]}'>{escape(MARKS[holds][0])}</td><td>{escape(claim.paper)}"
            f"<br><span class='small'>{_why(name, claim)}</span></td></tr>"
        )
    yield "</table>"
    for measure in outcome.readings.measures:
        yield from _numbers(outcome, measure)
    notes = [f"{label}: not measured ({why})." for label, why in outcome.missing.items()]
    notes += [*outcome.notes, *dict.fromkeys(f"{each.source}. {each.note}".strip() for each in printed_for(name))]
    for note in notes:
        yield f"<p class='small'>{escape(note)}</p>"
    yield (
        f"<p class='small'><a href='results/{name}.json'>numbers</a> · "
        f"<code>skyband bench papers all{quick} --only {name}</code></p>"
    )


def _numbers(outcome: Outcome, measure: str) -> Iterator[str]:
    readings = outcome.readings
    places = sorted({reading.x for reading in readings.readings if reading.measure == measure})
    heads = "".join(f"<th class='n'>{escape(readings.axis.show(x))}</th>" for x in places)
    yield f"<details><summary>{escape(measure)}, by {escape(readings.axis.label)}</summary>"
    yield f"<table><tr><th></th>{heads}</tr>"
    for algorithm in readings.algorithms(measure):
        curve = readings.curve(measure, algorithm)
        cells = "".join(f"<td class='n'>{number(curve.get(x))}</td>" for x in places)
        yield f"<tr><td>{escape(algorithm)}</td>{cells}</tr>"
    yield "</table></details>"
