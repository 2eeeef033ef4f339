"""What every line of the campaign has in common: seeds, what counts as a failure, and how to see one again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Result:
    """What a run of a line found."""

    tried: Counter[str] = field(default_factory=Counter)  # by what came of it
    failures: list[tuple[int, str]] = field(default_factory=list)  # the seed, and what was wrong

    def note(self, seed: int, outcome: str, wrong: str | None = None) -> None:
        self.tried[outcome] += 1
        if wrong is not None:
            self.failures.append((seed, wrong))


@dataclass(frozen=True)
class Line:
    """One line of the scorecard. `run(first, count)` tries the seeds first, first + 1, …"""

    number: int
    what: str
    target: str
    short: int  # seeds of a run of minutes
    long: int  # and of hours
    run: Callable[[int, int], Result]

    def repeat(self, seed: int) -> str:
        return f'make torture ARGS="--line {self.number} --seed {seed} --count 1"'


def timed(line: Line, first: int, count: int) -> tuple[Result, float]:
    began = time.perf_counter()
    result = line.run(first, count)
    return result, time.perf_counter() - began
