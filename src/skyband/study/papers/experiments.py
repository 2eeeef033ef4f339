"""What an experiment of a paper is: what varies, what is measured, what the paper says of it, and whether that holds.

Everything measured is a `Reading`: so much, of one algorithm, at one place on the axis. Tables, figures, JSON and
verdicts are made of readings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Effort:
    quick: bool = False  # fewer places on each axis
    turn_seconds: float = 0.25  # one algorithm, one pass, one place on the axis
    passes: int = 3  # of which the best counts
    fill_seconds: float = 8.0  # then an algorithm is measured even if its window is not full yet
    error_rows: int = 4_000_000  # the stream in which an approximate algorithm may err
    error_runs: int = 1  # over how many streams the errors of many queries are averaged
    questions: int = 1000
    size_samples: int = 400  # of the number of rows held, where that is what is measured
    shrink: int = 1  # windows, slides and buffers are so many times smaller than the paper's; for tests

    def rows(self, paper_rows: float) -> int:
        """As many rows as the paper has, or fewer in a test."""
        return max(1, int(paper_rows) // self.shrink)


FULL: Final = Effort(error_runs=200)  # as many as the paper
QUICK: Final = Effort(
    quick=True, turn_seconds=0.04, passes=2, fill_seconds=1.5, error_rows=1_000_000, questions=200, size_samples=100
)


@dataclass(frozen=True, slots=True)
class Reading:
    measure: str  # with its unit: "ns per row"
    algorithm: str  # or what it is compared with, such as a bound
    x: float
    value: float


@dataclass(frozen=True, slots=True)
class Axis:
    """What varies. With `names`, x is an index of them."""

    label: str
    values: tuple[float, ...]
    quick: tuple[float, ...] = ()  # fewer of them, for a quick look; none: all
    log: bool = True
    names: tuple[str, ...] = ()

    def at(self, effort: Effort) -> tuple[float, ...]:
        return self.quick if effort.quick and self.quick else self.values

    def show(self, x: float) -> str:
        return self.names[int(x)] if self.names else f"{x:,.10g}"


@dataclass(slots=True)
class Findings:
    """What came of an experiment, while it runs."""

    readings: list[Reading] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)  # an algorithm that was wanted, and why it was not measured
    notes: list[str] = field(default_factory=list)

    def add(self, measure: str, algorithm: str, x: float, value: float) -> None:
        self.readings.append(Reading(measure, algorithm, x, value))


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of one experiment, to look up."""

    axis: Axis
    readings: tuple[Reading, ...]

    @property
    def measures(self) -> list[str]:
        return list(dict.fromkeys(reading.measure for reading in self.readings))

    def algorithms(self, measure: str) -> list[str]:
        return list(dict.fromkeys(reading.algorithm for reading in self.readings if reading.measure == measure))

    def curve(self, measure: str, algorithm: str) -> dict[float, float]:
        """The values by x, x ascending; empty if it was not measured."""
        found = {r.x: r.value for r in self.readings if (r.measure, r.algorithm) == (measure, algorithm)}
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Verdict:
    holds: bool | None  # None: what it speaks of was not measured
    because: str  # the figures behind it


@dataclass(frozen=True, slots=True)
class Claim:
    paper: str  # what the paper shows, in our words
    judge: Callable[[Readings], Verdict]


# Measures the algorithms at these places of the axis.
Measure = Callable[[Sequence[float], Sequence[str], Effort, Say], Findings]


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    source: str  # the paper, and which of its figures
    title: str  # what is compared with what
    axis: Axis
    algorithms: tuple[str, ...]
    measure: Measure
    claims: tuple[Claim, ...]
    log: bool = True  # the measured values are drawn on a log axis
    left_out: str = ""  # of what the title says, by a quick run; beside places of the axis


@dataclass(frozen=True, slots=True)
class Judged:
    paper: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    experiment: Experiment
    places: tuple[float, ...]  # of its axis, that were measured
    readings: Readings
    missing: dict[str, str]
    notes: tuple[str, ...]
    claims: tuple[Judged, ...]


def missing_of(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Every algorithm that some experiment wanted and did not get, and why."""
    return {name: why for outcome in outcomes for name, why in outcome.missing.items()}
