"""How long to measure: the full experiments, and shorter ones for a quick look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


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
    quick=True,
    turn_seconds=0.04,
    passes=2,
    fill_seconds=1.5,
    error_rows=1_000_000,
    questions=200,
    size_samples=100,
)
