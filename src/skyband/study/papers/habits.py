"""Streams with habits: how they share objects, and which values they bring, also when that changes all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

At = Callable[[float], float]  # by how much of the stream is over, from 0 to 1


class Rows(NamedTuple):
    """In order of arrival."""

    stream: npt.NDArray[np.int32]
    ids: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


class Habit(NamedTuple):
    """How likely a row is about an object of another stream; which values there are; and which stream is silent."""

    sharing: At = lambda _: 0.5
    largest: At = lambda _: 1.0
    smallest: At = lambda _: 0.0
    silent: At = lambda _: -1.0
    favourite: float = 0.0  # how likely a row is about one and the same object, whichever its stream
    tail: float = 1.0  # values are random numbers to this power: the larger, the fewer of them are large


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
    "heavy-tailed": Habit(tail=8.0),
    "ids never repeat": Habit(sharing=lambda _: 0.0),
    "one id everywhere": Habit(favourite=0.3),
}


def made(habit: Habit, window: int, streams: int, seed: int, windows: int = 10) -> Rows:
    """As the paper's streams are made, with habits that change; an object comes again after a window, if at all."""
    random, n, recent = np.random.default_rng(seed), windows * window, max(window // 20, 1)
    ids, stream, values = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n)
    latest: list[list[int]] = [[] for _ in range(streams)]
    came: dict[tuple[int, int], int] = {}  # when an object came last in a stream
    fresh = 1
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
        values[i] = habit.smallest(t) + random.random() ** habit.tail * (habit.largest(t) - habit.smallest(t))
    return Rows(stream, ids, np.clip(values, 0.0, 1.0))
