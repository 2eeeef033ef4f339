"""`recall=0.95` of top-k across streams: is what is promised found, is what is said of it true, and what does it cost?

On the streams of Haghani, Michel, Aberer, CIKM 2009, from never in step (xi = 0.1) to nearly always (0.9), of two to
eight streams; and on streams whose habits change, in windows of 100 to 40,000 rows, beside an exact answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.core.emit import CHANGES
from skyband.core.registry import every_algorithm_of
from skyband.problems.across.algorithms import recorded, staircase
from skyband.problems.across.combining import ADD, Combine
from skyband.problems.across.operator import AcrossBatch, AcrossSpec
from skyband.problems.across.query import TopKAcross
from skyband.problems.across.session import AcrossSession
from skyband.streams.incomplete import incomplete
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Readings, Say, Verdict
from skyband.study.papers.habits import HABITS, Rows, made
from skyband.windows import Ticks, sliding

PROMISED: Final = 0.95
MOST_TIME: Final = 5.0  # times that of an exact answer
STREAMS: Final = (2, 3, 4, 6, 8)
FOUND: Final = "recall found"
SAID: Final = "recall said"
HELD: Final = "rows held"
HELD_OF_EXACT: Final = "rows held, of an exact answer's"
BYTES_OF_EXACT: Final = "bytes, of an exact answer's"
TIME_OF_EXACT: Final = "time, of an exact answer's"


class Outcome(NamedTuple):
    """Means over answers."""

    found: float
    said: float
    held: float


class Cost(NamedTuple):
    """Beside an exact answer."""

    found: float
    said: float
    held: float
    bytes: float
    time: float


def generated(streams: int, xi: float, seed: int, window: int = 1000, windows: int = 6) -> Rows:
    """Objects come to other streams within a twentieth of the window's rows of each."""
    made = incomplete(windows * window, streams=streams, xi=xi, recent=max(window // 20, 1), seed=seed)
    stream = np.arange(windows * window, dtype=np.int32) % np.int32(streams)  # they take turns
    return Rows(stream, made["id"].to_numpy().copy(), made["value"].to_numpy().copy())


def outcome(name: str, rows: Rows, streams: int, *, window: int, k: int = 10, recall: float = PROMISED) -> Outcome:
    """What an algorithm finds of what an exact one shows, asked forty times a window, from the third window on."""
    _, numbered = np.unique(rows.ids, return_inverse=True)
    code, codes = numbered.astype(np.int32), int(numbered.max()) + 1
    combine, high = Combine(ADD, (1.0,) * streams), float(rows.value.max())
    ticks = Ticks(window, 0, 0, by_count=True)
    spec = AcrossSpec(k, ticks, CHANGES, combine, (0.0,) * streams, (high,) * streams, recall=recall)
    operator, exact = every_algorithm_of("across")[name].open(spec), every_algorithm_of("across")["totals"].open(spec)
    found, said, held = [], [], []
    step = max(window // 40, 1)
    for first in range(0, len(code), step):
        some = slice(first, first + step)
        batch = AcrossBatch(
            rows.stream[some], code[some], rows.value[some], np.empty(0, np.int64), first, codes, rows.ids[some]
        )
        for each in (operator, exact):
            each.push(batch)
        if first >= 2 * window:
            true, shown = exact.top(k), operator.top(k)
            found.append(len(np.intersect1d(true.code, shown.code)) / len(true.code))
            said.append(float(shown.recall[0]))
            held.append(operator.rows_held())
    operator.check()
    return Outcome(float(np.mean(found)), float(np.mean(said)), float(np.mean(held)))


def cost(rows: Rows, streams: int, window: int, *, k: int = 10, passes: int = 3) -> Cost:
    """Sessions with and without `recall`, fed in turns, asked twenty times a window; of times, the best pass counts."""
    names = [f"r{s + 1}" for s in range(streams)]
    table = pa.table({"stream": pa.array(names).take(pa.array(rows.stream)), "id": rows.ids, "value": rows.value})
    asked: dict[str, Any] = {"k": k, "id": "id", "value": "value", "stream": "stream", "streams": names}
    queries = (
        TopKAcross(window=sliding(window), **asked, recall=PROMISED),
        TopKAcross(window=sliding(window), **asked, algorithm=staircase.NAME),
    )
    step, best, seen = max(window // 20, 1), [math.inf, math.inf], []
    for number in range(passes):
        sessions = [query.open(table.schema) for query in queries]
        spent = [0.0, 0.0]
        for first in range(0, len(rows.value), step):
            for i, session in enumerate(sessions):
                started = time.perf_counter()
                session.push(table.slice(first, step))
                spent[i] += time.perf_counter() - started
            if number == 0:
                seen.append(_compared(*sessions))
        best = [min(pair) for pair in zip(best, spent, strict=True)]
    found, said, *sizes = np.mean(seen, axis=0).tolist()
    return Cost(found, said, sizes[0] / sizes[1], sizes[2] / sizes[3], best[0] / best[1])


def _compared(ours: AcrossSession, exact: AcrossSession) -> tuple[float, ...]:
    shown, true = ours.top(), set(exact.top()["id"].to_pylist())
    found = len(true & set(shown["id"].to_pylist())) / len(true)
    held = [float(session.stats().rows_held) for session in (ours, exact)]
    return found, float(shown["recall"][0].as_py()), *held, *(_bytes(session._codec) for session in (ours, exact))


def _bytes(codec: Any) -> float:
    """The size of all arrays, and of the ids: as many as have a number."""
    return _array_bytes(codec._operator) + float(codec._objects.keys.nbytes)


def _array_bytes(thing: Any) -> float:
    if isinstance(thing, np.ndarray):
        return float(thing.nbytes)
    parts = thing if isinstance(thing, tuple) else vars(thing).values() if hasattr(thing, "__dict__") else ()
    return sum(_array_bytes(part) for part in parts)


def _measure(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings, window = Findings(), effort.rows(1000)
    for streams in STREAMS[:2] if effort.quick else STREAMS:
        for xi in values:
            say(f"{streams} streams at {xi:g}")
            outcomes = np.array(
                [
                    outcome(recorded.NAME, generated(streams, xi, seed, window), streams, window=window)
                    for seed in range(1000, 1003 if effort.quick else 1020)
                ]
            )
            for what, value in zip((FOUND, SAID, HELD), outcomes.mean(axis=0), strict=True):
                findings.add(what, f"{streams} streams", xi, float(value))
    return findings


def _measure_habits(values: Sequence[float], algorithms: Sequence[str], effort: Effort, say: Say) -> Findings:
    findings = Findings()
    for x in values:
        window = effort.rows(x)
        for name, habit in HABITS.items():
            say(f"{name}, window {window:,}")
            found = cost(made(habit, window, 3, seed=1000, windows=6), 3, window, passes=effort.passes)
            for what, value in zip((FOUND, SAID, HELD_OF_EXACT, BYTES_OF_EXACT, TIME_OF_EXACT), found, strict=True):
                findings.add(what, name, x, value)
    return findings


def _is_found(readings: Readings) -> Verdict:
    """What is found, at worst, beside what was promised."""
    worst, where = _worst(readings, FOUND, largest=False)
    return Verdict(worst >= PROMISED, f"{worst:.3f} at worst: {where}; promised: {PROMISED}")


def _is_true(readings: Readings) -> Verdict:
    """By how much more is said than found, at worst."""
    off = 0.0
    for name in readings.algorithms(FOUND):
        found, said = readings.curve(FOUND, name), readings.curve(SAID, name)
        off = max(off, *(said[x] - found[x] for x in found))
    return Verdict(off <= 0, f"{off:.4f} too much, at worst")


def _is_fast(readings: Readings) -> Verdict:
    worst, where = _worst(readings, TIME_OF_EXACT, largest=True)
    return Verdict(worst <= MOST_TIME, f"{worst:.2f} times as long, at worst: {where}; allowed: {MOST_TIME:g}")


def _is_small(readings: Readings) -> Verdict:
    worst, where = _worst(readings, HELD_OF_EXACT, largest=True)
    return Verdict(worst < 1, f"{worst:.2f} of the rows, at worst: {where}")


def _worst(readings: Readings, measure: str, *, largest: bool) -> tuple[float, str]:
    all_of_them = (
        (value, f"{name}, {readings.axis.label} {readings.axis.show(x)}")
        for name in readings.algorithms(measure)
        for x, value in readings.curve(measure, name).items()
    )
    return max(all_of_them) if largest else min(all_of_them)


_FOUND: Final = Claim("Ours: what is promised is found.", _is_found)
_TRUE: Final = Claim("Ours: no more is said than is found.", _is_true)

EXPERIMENTS: Final = (
    Experiment(
        "across-promise",
        "ours",
        "Recall found and said, and rows held, with recall=0.95, by how much streams are in step (xi): window 1,000",
        Axis("xi", (0.1, 0.3, 0.5, 0.7, 0.9), quick=(0.5, 0.9), log=False),
        (),
        _measure,
        (_FOUND, _TRUE),
    ),
    Experiment(
        "across-habits",
        "ours",
        "Recall found and said, and the cost beside an exact answer, with recall=0.95, by window: 3 streams, k = 10",
        Axis("window in rows", (100, 1000, 10_000, 40_000), quick=(100, 1000)),
        (),
        _measure_habits,
        (
            _FOUND,
            _TRUE,
            Claim("Ours: it holds fewer rows than an exact answer.", _is_small),
            Claim("Ours: it takes at most five times as long as an exact answer.", _is_fast),
        ),
    ),
)
