"""Streams whose habits change: what was learnt of them is wrong all at once, or little by little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.study.papers.recall import Rows
from skyband.windows import Ticks

At = Callable[[float], float]  # by how much of the stream is over, from 0 to 1
WINDOWS: Final = 10


class Habit(NamedTuple):
    """How likely a row is about an object of another stream; which values there are; and which stream is silent."""

    sharing: At = lambda _: 0.5
    largest: At = lambda _: 1.0
    smallest: At = lambda _: 0.0
    silent: At = lambda _: -1.0
    favourite: float = 0.0  # how likely a row is about one and the same object, whichever its stream


HABITS: Final = {
    "steady": Habit(),
    "sharing rises": Habit(sharing=lambda t: 0.1 if t < 0.5 else 0.9),
    "sharing begins": Habit(sharing=lambda t: 0.0 if t < 0.5 else 0.9),
    "sharing falls": Habit(sharing=lambda t: 0.9 if t < 0.5 else 0.1),
    "sharing changes twice": Habit(sharing=lambda t: 0.9 if 1 / 3 < t < 2 / 3 else 0.1),
    "scores fall": Habit(largest=lambda t: 1.0 - 0.7 * t, smallest=lambda t: 0.7 - 0.7 * t),
    "scores shrink": Habit(largest=lambda t: 1.0 - t),
    "scores fall again": Habit(largest=lambda t: 1 - 3.3 * t % 1, smallest=lambda t: 0.9 - 0.9 * (3.3 * t % 1)),
    "scores rise": Habit(largest=lambda t: 0.3 + 0.7 * t, smallest=lambda t: 0.7 * t),
    "bursts": Habit(largest=lambda t: 1.0 if int(40 * t) % 7 == 0 else 0.4),
    "a step down": Habit(largest=lambda t: 1.0 if t < 0.5 else 0.3),
    "one falls silent": Habit(silent=lambda t: 0.0 if t > 0.5 else -1.0),
    "ids never repeat": Habit(sharing=lambda _: 0.0),
    "one id everywhere": Habit(favourite=0.3),
}


def made(habit: Habit, window: int, streams: int, seed: int) -> Rows:
    """As the paper's streams are made, with habits that change; an object comes again after a window, if at all."""
    random, n, recent = np.random.default_rng(seed), WINDOWS * window, max(window // 20, 1)
    ids, stream = np.empty(n, np.int64), np.empty(n, np.int32)
    values, latest, came, fresh = np.empty(n), [[] for _ in range(streams)], {}, 1
    for i in range(n):
        t, s = i / n, i % streams
        s = (s + 1) % streams if s == int(habit.silent(t)) else s
        found = -1
        if random.random() < habit.favourite:
            found = 0
        elif streams > 1 and random.random() < habit.sharing(t):
            other = (s + int(random.integers(1, streams))) % streams
            among = latest[other][-recent:]
            found = among[int(random.integers(len(among)))] if among else -1
        if found < 0 or i - came.get((found, s), -n) < 2 * window:
            found, fresh = fresh, fresh + 1
        ids[i], stream[i], came[found, s] = found, s, i
        latest[s].append(found)
        values[i] = habit.smallest(t) + random.random() * (habit.largest(t) - habit.smallest(t))
    return Rows(stream, ids, np.clip(values, 0.0, 1.0))


class Course(NamedTuple):
    """By answer: what was found, what was said, and what was held."""

    found: npt.NDArray[np.float64]
    said: npt.NDArray[np.float64]
    held: npt.NDArray[np.float64]

    def most_said_too_much(self, answers: int = 50) -> float:
        """By how much more is said than found, on average over so many consecutive answers, where it is most."""
        return float(np.convolve(self.said - self.found, np.full(answers, 1 / answers), "valid").max())


def course(
    rows: Rows, streams: int, window: int, *, k: int = 10, ticks: Ticks | None = None, asked: int = 40
) -> Course:
    """What `learned` does, beside an exact answer; it is asked so many times a window."""
    _, numbered = np.unique(rows.ids, return_inverse=True)
    code, codes = numbered.astype(np.int32), int(numbered.max()) + 1
    ticks = ticks or Ticks(window, 0, 0, by_count=True)
    combine = Combine(ADD, (1.0,) * streams)
    spec = AcrossSpec(k, ticks, CHANGES, combine, (0.0,) * streams, (1.0,) * streams, recall=0.95)
    operator, exact = algorithms_of("across")["learned"].open(spec), algorithms_of("across")["totals"].open(spec)
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
