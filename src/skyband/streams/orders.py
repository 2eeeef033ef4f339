"""Scores in random order, the case of the papers' bounds, and in others, where candidates are few or pile up.

Each is like `uniform`: a score, an id (the row's number or, with `ids`, one of so many, at random), and a time: 0, 1, …
"""

from __future__ import annotations

from typing import Final, Unpack

import numpy as np
import pyarrow as pa

from skyband.streams.batches import Floats, Ints, Options, check_count, check_number, generated

SCHEMA: Final = pa.schema([("score", pa.float64()), ("id", pa.int64()), ("time", pa.int64())])


def uniform(rows: int, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """`rows` rows with a score from [0, 1), an id and a time: 0, 1, 2, ….

    The id is the row's number or, with `ids`, one of so many, at random.
    """
    return generated(SCHEMA, lambda random, time: [random.random(len(time))], rows, **options)


def rising(rows: int, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """Each score is above the one before it: only the k newest rows are candidates."""
    return generated(SCHEMA, lambda random, time: [_climb(random, time)], rows, **options)


def falling(rows: int, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """Each score is below the one before it: every row of the window is a candidate, the worst case."""
    return generated(SCHEMA, lambda random, time: [-_climb(random, time)], rows, **options)


def _climb(random: np.random.Generator, time: Ints) -> Floats:
    # Half a unit at most is added, so that rounding cannot make two neighbours equal.
    return time + random.random(len(time)) / 2


def random_walk(rows: int, *, step: float = 1.0, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """Each score is the one before it and a normal change, of standard deviation `step`."""
    check_number("step", step, at_least=0)
    level = 0.0  # the last score of the block before

    def values(random: np.random.Generator, time: Ints) -> list[Floats]:
        nonlocal level
        score = level + np.cumsum(random.normal(0, step, len(time)))
        level = float(score[-1])
        return [score]

    return generated(SCHEMA, values, rows, **options)


def daily_cycle(
    rows: int, *, period: int = 86_400, noise: float = 0.1, **options: Unpack[Options]
) -> pa.RecordBatchReader:
    """A sine from -1 to 1 that returns every `period` units of time, and normal noise, of standard deviation `noise`.

    If a row is a second, the period is a day unless told otherwise.
    """
    check_count("period", period, at_least=1)
    check_number("noise", noise, at_least=0)

    def values(random: np.random.Generator, time: Ints) -> list[Floats]:
        return [np.sin(2 * np.pi / period * (time % period)) + random.normal(0, noise, len(time))]

    return generated(SCHEMA, values, rows, **options)


def bursty(rows: int, *, every: int = 50_000, length: int = 1_000, **options: Unpack[Options]) -> pa.RecordBatchReader:
    """Random scores from [0, 1) and, about once in `every` rows, a burst: `length` scores that fall from 2 to 1.

    In a burst each row is a candidate, as long as the window holds it. A burst may begin while another lasts, which it
    then ends.
    """
    check_count("every", every, at_least=1)
    check_count("length", length, at_least=1)
    last = -length  # when the last burst of the blocks before began

    def values(random: np.random.Generator, time: Ints) -> list[Floats]:
        nonlocal last
        score = random.random(len(time))
        began = np.maximum.accumulate(np.where(random.random(len(time)) < 1 / every, time, last))
        last = int(began[-1])
        place = time - began  # in the burst, from 0
        return [np.where(place < length, 2 - (place + score / 2) / length, score)]

    return generated(SCHEMA, values, rows, **options)
