"""`recall=0.95` of top-k across streams: is what is promised found, and is what is said of it true?

On the streams of Haghani, Michel, Aberer, CIKM 2009, from never in step (xi = 0.1) to nearly always (0.9), of two to
eight streams: means over fifty streams each, from the third window on, when what there is to learn was first learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.streams.incomplete import incomplete
from skyband.study.papers.effort import Effort
from skyband.study.papers.experiments import Axis, Claim, Experiment, Findings, Readings, Say, Verdict
from skyband.windows import Ticks

PROMISED: Final = 0.95
WITHIN: Final = 0.02
STREAMS: Final = (2, 3, 4, 6, 8)
FOUND: Final = "recall found"
SAID: Final = "recall said"
VARIES: Final = "standard deviation of the recall found"
HELD: Final = "items held"


class Rows(NamedTuple):
    """In order of arrival."""

    stream: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Outcome(NamedTuple):
    """Means over answers, from the third window on."""

    found: float
    said: float
    held: float


def generated(streams: int, xi: float, seed: int, window: int = 1000, windows: int = 6) -> Rows:
    """Objects come to other streams within a twentieth of the window's rows of each."""
    made = incomplete(windows * window, streams=streams, xi=xi, recent=max(window // 20, 1), seed=seed)
    stream = np.arange(windows * window, dtype=np.int32) % np.int32(streams)  # they take turns
    return Rows(stream, made["id"].to_numpy().copy(), made["value"].to_numpy().copy())


def outcome(name: str, rows: Rows, streams: int, *, window: int, k: int = 10, recall: float = PROMISED) -> Outcome:
    """What an algorithm finds of what an exact one shows, asked forty times a window."""
    _, numbered = np.unique(rows.ids, return_inverse=True)
    code, codes = numbered.astype(np.int32), int(numbered.max()) + 1
    combine, high = Combine(ADD, (1.0,) * streams), float(rows.value.max())
    ticks = Ticks(window, 0, 0, by_count=True)
    spec = AcrossSpec(k, ticks, CHANGES, combine, (0.0,) * streams, (high,) * streams, recall=recall)
    operator, exact = algorithms_of("across")[name].open(spec), algorithms_of("across")["totals"].open(spec)
    found, said, held = [], [], []
    step = max(window // 40, 1)
    for first in range(0, len(code), step):
        some = slice(first, first + step)
        batch = AcrossBatch(
            rows.stream[some], code[some], rows.value[some], np.empty(0, np.int64), first, codes, rows.ids[some]
        )
        for each in (operator, exact):
            each.push(batch)
        if first >= 2 * window:
            true, shown = exact.top(k), operator.top(k)
            found.append(len(np.intersect1d(true.code, shown.code)) / len(true.code))
            said.append(float(shown.recall[0]))
            held.append(operator.rows_held())
    operator.check()
    return Outcome(float(np.mean(found)), float(np.mean(said)), float(np.mean(held)))


def _measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings, window = Findings(), effort.rows(1000)
    for streams in STREAMS[:2] if effort.quick else STREAMS:
        for xi in values:
            say(f"{streams} streams at {xi:g}")
            outcomes = np.array(
                [
                    outcome("learned", generated(streams, xi, seed, window), streams, window=window)
                    for seed in range(1000, 1003 if effort.quick else 1050)  # which nothing was chosen by
                ]
            )
            means = (*outcomes.mean(axis=0), outcomes[:, 0].std())
            for what, value in zip((FOUND, SAID, HELD, VARIES), means, strict=True):
                findings.add(what, f"{streams} streams", xi, float(value))
    return findings


def _differ(readings: Readings, measure: str, promised: bool) -> Verdict:
    """By how much what is found differs from `measure`, or from what was promised, in the worst case."""
    worst, at = 0.0, "nowhere"
    for streams in STREAMS:
        found = readings.curve(FOUND, f"{streams} streams")
        said = readings.curve(measure, f"{streams} streams")
        for x, value in found.items():
            off = value - (PROMISED if promised else said[x])
            off = min(off, 0.0) if promised else off  # more than was promised is as well
            if abs(off) > abs(worst):
                worst, at = off, f"{streams} streams, xi = {x:g}"
    return Verdict(abs(worst) <= WITHIN, f"{worst:+.3f} at worst: {at}; allowed: {WITHIN}")


EXPERIMENTS: Final = (
    Experiment(
        "across-promise",
        "ours",
        "Recall found and said, and items held, with recall=0.95, by how much streams are in step (xi): window 1,000",
        Axis("xi", (0.1, 0.3, 0.5, 0.7, 0.9), quick=(0.5, 0.9), log=False),
        (),
        _measure,
        (
            Claim("Ours: what is promised is found.", lambda readings: _differ(readings, FOUND, promised=True)),
            Claim("Ours: what is said is found.", lambda readings: _differ(readings, SAID, promised=False)),
        ),
    ),
)
