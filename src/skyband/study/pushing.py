"""What a row costs an operator: scores in some order, pushed in batches, timed after the window has filled."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.emit import CHANGES, WINDOWS
from skyband.problems.rows.operator import Batch, RowOperator, Spec
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


STREAM_ROWS: Final = 8_000_000  # enough not to start anew while it is measured: scores that rise would fall then


class Cost(NamedTuple):
    ns_per_row: float  # of CPU time, so that other work on the machine counts little
    rows_held: int
    is_steady: bool  # measured with a full window; False: filling it took too long


def setting(
    k: int, window_rows: int, slides: int, *, by_count: bool = True, whole: bool = True, error: float = 0.0
) -> Spec:
    """A window that slides so many times until it is another one; 0: with each arrival. By value, a row has a tick.

    `whole`: each slide shows its whole answer; else, as with each arrival, what changes.
    """
    if slides == 0:
        return Spec(k, Ticks(window_rows, 0, 0, by_count), CHANGES, error=error)
    return Spec(k, Ticks(window_rows, window_rows // slides, 0, by_count), WINDOWS if whole else CHANGES, error=error)


BATCH_ROWS = 5_000  # whatever the window and the operator: what a push costs by itself counts the same
MOST = 20  # times the measurement itself, for the rows of one round
BATCH_SHOWN = 500_000  # rows of answers: beyond that a batch is smaller, or memory is what costs
FILLED = 1.25  # windows pushed until what a row costs has settled
PATIENCE = 200  # times the measurement itself, for filling the window


def cost(
    open_operator: Callable[[Spec], RowOperator],
    spec: Spec,
    scores: Floats,
    *,
    seconds: float,
    rounds: int = 1,
    hopeless_ns: float = math.inf,
) -> Cost:
    """What a row costs once the window is full: the best of some rounds of so many seconds, a slide each at least.

    A round has a window's rows, unless that takes too long, and all its batches count: an operator puts its lists in
    order now and then, some once a window, and closes windows.
    An operator so slow that the window takes too long to fill is judged by what it did until then. Otherwise the rows
    that fill the window say nothing: an operator may take twenty times as long for them, since its arrays grow. One
    round is enough for an operator that takes more than `hopeless_ns` a row.
    """
    operator, window = open_operator(spec), spec.window
    shown = spec.k / window.every if window.every and spec.emit == WINDOWS else 0.0
    batch = min(len(scores), BATCH_ROWS, max(1, int(BATCH_SHOWN / max(shown, 1.0))))
    first = 0

    def push() -> float:
        nonlocal first
        rows = scores[first % len(scores) :][:batch]
        times = _NO_TIMES if window.by_count else np.arange(first, first + len(rows))
        begun = time.thread_time()
        operator.push(Batch(rows, times, _NO_GROUPS, first))
        took = time.thread_time() - begun
        first += len(rows)
        return took

    filling = 0.0
    while first <= FILLED * window.size:
        filling += push()
        if filling > PATIENCE * seconds:
            return Cost(1e9 * filling / first, operator.rows_held(), is_steady=False)
    best = math.inf
    for _ in range(rounds):
        begun, spent = first, 0.0
        enough = max(window.every, 5 * batch, window.size)
        while spent < seconds or (first - begun < enough and spent < MOST * seconds):
            spent += push()
        best = min(best, 1e9 * spent / (first - begun))
        if best > hopeless_ns:
            break
    return Cost(best, operator.rows_held(), is_steady=True)
