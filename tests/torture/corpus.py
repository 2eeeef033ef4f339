"""Sessions of every problem and every algorithm, each with rows that have come and rows that will."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.core import registry
from skyband.errors import SkybandError

ROWS, BATCH = 120, 20
SCHEMA = pa.schema(
    {"t": pa.int64(), "g": pa.string(), "v": pa.float64(), "n": pa.int64(), "s": pa.string(), "x": pa.float64()}
)
QUERIES = pa.table({"id": list("abcd"), "w": [1.0, -2.0, 0.5, 3.0], "g": ["a", "b", "c", "a"], "k": [1, 2, 3, 2]})


@dataclass(frozen=True)
class Case:
    """A query, and what is pushed to its session: batches, each with the options of `push`."""

    name: str
    problem: str
    query: Any
    schema: Any
    pushes: tuple[tuple[pa.RecordBatch, dict[str, Any]], ...]

    def open(self, state: bytes | None = None) -> Any:
        return self.query.open(self.schema, state)

    def snapshot(self, batches: int) -> bytes:
        """After so many batches."""
        session = self.open()
        for batch, options in self.pushes[:batches]:
            session.push(batch, **options)
        return session.snapshot()


def stream(seed: int, rows: int = ROWS) -> pa.Table:
    """Rows out of order, with ties, nulls, equal times and large numbers."""
    rng = np.random.default_rng(seed)
    time = np.maximum(np.arange(rows) + rng.integers(-4, 4, rows), 0)
    value = [None if x == 0 else float(x % 37) / 4 for x in rng.integers(0, 200, rows)]
    columns = {
        "t": time,
        "g": rng.choice(list("abcde"), rows),
        "v": value,
        "n": 2**60 + rng.integers(0, 50, rows),
        "s": rng.choice(["r1", "r2"], rows),
        "x": rng.random(rows),
    }
    return pa.table([pa.array(column, SCHEMA.field(name).type) for name, column in columns.items()], schema=SCHEMA)


def pushed(seed: int, **options: Any) -> list[tuple[pa.RecordBatch, dict[str, Any]]]:
    return [(batch, options) for batch in stream(seed).combine_chunks().to_batches(BATCH)]


TIME = sb.sliding(30, every=10, on="t")
WINDOWS: dict[str, dict[str, Any]] = {
    "time": {"window": TIME, "lateness": 3},
    "time, changes": {"window": TIME, "emit": "changes"},
    "time, entries": {"window": sb.sliding(25, every=10, on="t"), "emit": "entries"},
    "count": {"window": sb.sliding(12, every=4)},
    "count, changes": {"window": sb.sliding(12, every=4), "emit": "changes"},
    "each row": {"window": sb.sliding(15, on="t")},
    "each arrival": {"window": sb.sliding(9)},
    "each arrival, entries": {"window": sb.sliding(9), "emit": "entries"},
    "landmark": {"window": sb.landmark(every=10, on="t")},
}


Made = Iterator[tuple[str, Any, dict[str, Any]]]  # what it is called, the query's class, its options
FEW = ("time, changes", "count", "each arrival, entries")


def _rows(algorithm: str) -> Made:
    for name, window in WINDOWS.items():
        yield name, sb.TopK, {"k": 3, "by": "v", **window, **({} if name in FEW[2:] else {"per": "g"})}
    yield "ties", sb.TopK, {"k": 3, "by": "v", "window": TIME, "per": "g", "ties": "rank"}
    yield "ad hoc", sb.TopK, {"k": 3, "by": "n", "window": TIME, "ad_hoc": True}
    yield "large k", sb.TopK, {"k": 5000, "by": "v", "window": sb.sliding(40, every=10), "per": "g"}
    yield "error", sb.TopK, {"k": 3, "by": "v", "window": sb.sliding(40), "per": "g", "error": 0.2}


def _pairs(algorithm: str) -> Made:
    for name, window in WINDOWS.items():
        yield name, sb.TopKPairs, {"k": 3, "by": "abs(a.v - b.v)", **window}
    text = {"where": "a.g <= b.g", "same": "s", "different": "n"}
    yield "colours and labels", sb.TopKPairs, {"k": 3, "by": "a.v + b.x", "window": TIME, **text}


def _across(algorithm: str) -> Made:
    common: dict[str, Any] = {"k": 3, "id": "g", "value": "x", "stream": "s", "streams": ["r1", "r2"]}
    if algorithm in ("recorded", "estimated"):
        common["recall"] = 0.9
    for name, window in WINDOWS.items():
        yield name, sb.TopKAcross, {**common, "bounds": (0, 1), **window, "id": "t" if window["window"].on else "x"}
    for repeat in ("last", "sum", "max"):
        yield repeat, sb.TopKAcross, {**common, "window": TIME, "repeat": repeat}
        yield f"{repeat}, count", sb.TopKAcross, {**common, "window": sb.sliding(12), "repeat": repeat}
    yield "idle", sb.TopKAcross, {**common, "id": "t", "bounds": (0, 1), "window": TIME, "idle_after": 5}


def _subscriptions(algorithm: str) -> Made:
    common: dict[str, Any] = {"queries": QUERIES, "key": "id"}
    own = algorithm not in registry.every_algorithm_of("rows") or algorithm == "recompute"
    for name in WINDOWS if own else FEW:  # an algorithm for rows, once for each query
        yield name, sb.TopKForEach, {"k": 2, "by": "v * q.w", **common, **WINDOWS[name]}
    if own:
        for name in FEW:
            options = {**common, **WINDOWS[name]}
            yield f"{name}, seen", sb.TopKForEach, {"k": "q.k", "by": "v", "where": "g = q.g", **options}


def _joins(algorithm: str) -> Made:
    two = {"a": sb.sliding(30, on="t"), "b": sb.sliding(20, on="t")}
    common: dict[str, Any] = {"inputs": two, "on": "a.g = b.g", "aggregates": {"n": "COUNT(*)", "total": "SUM(b.v)"}}
    ranked = {"order_by": "n", "k": 2}
    yield "windows", sb.JoinAggregate, {**common, "every": 10, "group_by": "a.g", "lateness": 3}
    yield "parts", sb.JoinAggregate, {**common, "every": 10, "group_by": ["a.g", "b.s"]}
    yield "each row", sb.JoinAggregate, {**common, "group_by": "a.g"}
    yield "ranked", sb.JoinAggregate, {**common, **ranked, "every": 10, "group_by": ["a.g", "b.s"]}
    yield "ranked changes", sb.JoinAggregate, {**common, **ranked, "group_by": "a.g"}
    yield "extremes", sb.JoinAggregate, {**common, "every": 10, "group_by": "b.s", "aggregates": {"low": "MIN(a.v)"}}
    counted = {"inputs": {"a": sb.sliding(30), "b": sb.sliding(20)}, "group_by": "b.s"}
    yield "arrivals", sb.JoinAggregate, {**common, **counted, "every": 7}
    yield "arrivals, extremes", sb.JoinAggregate, {**common, **counted, "aggregates": {"low": "MIN(a.v)"}}
    one = {"inputs": {"a": sb.sliding(30, on="t")}, "group_by": "g", "aggregates": {"n": "COUNT(*)", "x": "SUM(x)"}}
    yield "one stream", sb.JoinAggregate, {**one, "every": 10}


MADE = {"rows": _rows, "pairs": _pairs, "across": _across, "subscriptions": _subscriptions, "joins": _joins}


@cache
def cases(prefix: str = "") -> dict[str, Case]:
    """Every case that its algorithm does not refuse, by name; those whose names start like this."""
    found = {}
    for problem, made in MADE.items():
        for algorithm in registry.every_algorithm_of(problem):
            for name, kind, options in made(algorithm):
                called = f"{problem}/{algorithm}/{name}"
                case = _case(called, problem, kind, algorithm, options) if called.startswith(prefix) else None
                if case is not None:
                    found[called] = case
    return found


def _case(name: str, problem: str, kind: Any, algorithm: str, options: dict[str, Any]) -> Case | None:
    schema, pushes = SCHEMA, pushed(1)
    if problem == "joins":
        inputs = list(options["inputs"])
        schema = dict.fromkeys(inputs, SCHEMA)
        each = [pushed(seed, input=name) for seed, name in enumerate(inputs, 1)]
        pushes = [push for together in zip(*each, strict=True) for push in together]
    asked = {"plan" if problem == "joins" else "algorithm": algorithm}
    try:
        case = Case(name, problem, kind(**options, **asked), schema, tuple(pushes))
        case.open()
    except SkybandError:
        return None
    return case
