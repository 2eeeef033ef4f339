"""What every line of the campaign has in common: seeds, what counts as a failure, how to see one again, and how a run
of hours goes on where it was stopped."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PROGRESS = Path(__file__).parents[2] / ".torture"  # of runs of hours that have not come to their end
PARTS = 50  # of such a run, after each of which it says how far it has come


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

    number: str  # of the table; an s behind it: under Spark
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


def resumed(line: Line, commit: str) -> tuple[Result, float]:
    """All seeds of a run of hours. One that was stopped goes on, if nothing was committed since."""
    place = PROGRESS / f"{line.number}.json"
    saved = json.loads(place.read_text()) if place.exists() else {}
    if saved.get("commit") != commit:
        saved = {"commit": commit, "next": 0, "seconds": 0.0, "tried": {}, "failures": []}
    failures = [(seed, wrong) for seed, wrong in saved["failures"]]
    result, seconds, seed = Result(Counter(saved["tried"]), failures), saved["seconds"], saved["next"]
    while seed < line.long:
        count = min(max(1, line.long // PARTS), line.long - seed)
        part, took = timed(line, seed, count)
        result.tried.update(part.tried)
        result.failures += part.failures
        seed, seconds = seed + count, seconds + took
        now = {"commit": commit, "next": seed, "seconds": seconds, "tried": result.tried, "failures": result.failures}
        PROGRESS.mkdir(exist_ok=True)
        place.write_text(json.dumps(now))
        print(f"  {seed:,} of {line.long:,}, {len(result.failures)} failures, {seconds:.0f} s", flush=True)
    place.unlink(missing_ok=True)
    return result, seconds
