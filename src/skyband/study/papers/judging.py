"""From what was measured to what holds: the readings, the paper's own numbers beside them, and the verdicts."""

from __future__ import annotations

from skyband.study.papers.effort import Effort
from skyband.study.papers.experiments import Experiment, Findings, Judged, Outcome, Readings, Say
from skyband.study.papers.printed import printed_for


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
