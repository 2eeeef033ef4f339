"""What an algorithm does on streams whose habits change, beside an exact answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.problems.across.planning import plan
from skyband.study.papers.habits import Rows
from skyband.windows import Ticks


class Course(NamedTuple):
    """By answer: what was found, what was said, and what was held."""

    found: npt.NDArray[np.float64]
    said: npt.NDArray[np.float64]
    held: npt.NDArray[np.float64]

    def most_said_too_much(self, answers: int = 50) -> float:
        """By how much more is said than found, on average over so many consecutive answers, where it is most."""
        return float(np.convolve(self.said - self.found, np.full(answers, 1 / answers), "valid").max())


def course(
    rows: Rows,
    streams: int,
    window: int,
    *,
    k: int = 10,
    ticks: Ticks | None = None,
    asked: int = 40,
    recall: float = 0.95,
) -> Course:
    """What the planner's choice for `recall` does, beside an exact answer; it is asked so many times a window."""
    _, numbered = np.unique(rows.ids, return_inverse=True)
    code, codes = numbered.astype(np.int32), int(numbered.max()) + 1
    ticks = ticks or Ticks(window, 0, 0, by_count=True)
    combine = Combine(ADD, (1.0,) * streams)
    spec = AcrossSpec(k, ticks, CHANGES, combine, (0.0,) * streams, (1.0,) * streams, recall=recall)
    chosen = algorithms_of("across")[plan(spec, window_rows=window).algorithm]
    operator, exact = chosen.open(spec), algorithms_of("across")["totals"].open(spec)
    seen, step = [], max(window // asked, 1)
    for first in range(0, len(code), step):
        some = slice(first, first + step)
        time = np.empty(0, np.int64) if ticks.by_count else np.arange(first, min(first + step, len(code)))
        batch = AcrossBatch(rows.stream[some], code[some], rows.value[some], time, first, codes, rows.ids[some])
        operator.push(batch)
        exact.push(batch)
        true, shown = exact.top(k), operator.top(k)
        if len(true.code):
            found = len(np.intersect1d(true.code, shown.code)) / len(true.code)
            seen.append((found, float(shown.recall[0]) if len(shown.recall) else 1.0, operator.rows_held()))
    operator.check()
    return Course(*np.array(seen).T)
