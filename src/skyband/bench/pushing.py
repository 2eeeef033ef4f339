"""What a row costs an operator: scores in some order, pushed in batches, timed after the window has filled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.operators.protocol import CHANGES, WINDOWS, Batch, ObjectOperator, Spec
from skyband.windows import Ticks

Floats = npt.NDArray[np.float64]

_NO_TIMES: Final = np.empty(0, np.int64)
_NO_GROUPS: Final = np.empty(0, np.int32)


def _bursty(rows: int) -> Floats:
    """Random, but every 20,000 rows a thousand come that are better than all others, each worse than the one before."""
    scores = np.random.default_rng(4).random(rows)
    place = np.arange(rows) % 20_000
    return np.where(place < 1_000, 2 - place / 1_000, scores)


SCORES: Final[dict[str, Callable[[int], Floats]]] = {
    "random": lambda rows: np.random.default_rng(1).random(rows),
    "rising": lambda rows: np.arange(rows, dtype=np.float64),
    "falling": lambda rows: -np.arange(rows, dtype=np.float64),
    "bursty": _bursty,
}


class Cost(NamedTuple):
    ns_per_row: float
    rows_held: int


def setting(k: int, window_rows: int, slides: int, *, by_count: bool = True, error: float = 0.0) -> Spec:
    """A window that slides so many times until it is another one; 0: with each arrival. By value, a row has a tick."""
    if slides == 0:
        return Spec(k, Ticks(window_rows, 0, 0, by_count), CHANGES, error=error)
    return Spec(k, Ticks(window_rows, window_rows // slides, 0, by_count), WINDOWS, error=error)


def cost(open_operator: Callable[[Spec], ObjectOperator], spec: Spec, scores: Floats, *, seconds: float) -> Cost:
    """What a row costs after the window is full: the median batch of so many seconds, and of five batches at least.

    An operator so slow that the window does not fill in five times the time is judged by what it did until then.
    """
    operator, size = open_operator(spec), spec.window.size
    batch = max(1, min(len(scores), 100_000, size))
    first, spent, full, started = 0, 0.0, False, time.perf_counter()
    batches: list[float] = []
    while spent < seconds or (len(batches) < 5 and spent < 5 * seconds):
        rows = scores[first % len(scores) :][:batch]
        times = _NO_TIMES if spec.window.by_count else np.arange(first, first + len(rows))
        begun = time.perf_counter()
        operator.push(Batch(rows, times, _NO_GROUPS, first))
        took = time.perf_counter() - begun
        first += len(rows)
        if full or begun + took - started > 5 * seconds:
            batches.append(1e9 * took / len(rows))
            spent, full = spent + took, True
        elif first > 2 * size:
            full = True
        batch = _next_batch(batch, took, seconds, size)
    return Cost(float(np.median(batches)), operator.rows_held())


def _next_batch(batch: int, took: float, seconds: float, size: int) -> int:
    """Smaller batches for slow operators, so that one of them does not take longer than all of it may."""
    if took > seconds / 2 and batch > 100:
        return max(100, batch // 8)
    if took < seconds / 16 and batch < min(100_000, 4 * size):
        return 2 * batch
    return batch
