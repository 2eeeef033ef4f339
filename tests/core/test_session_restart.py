"""Restart tests: a session saved and opened again after every batch says what an undisturbed one says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tables import ALGORITHMS

import skyband as sb
from skyband.core.registry import find
from skyband.core.session import Session
from skyband.problems.rows.codec import RowsCodec
from skyband.problems.rows.operator import RowAlgorithm
from skyband.problems.rows.planning import specify

SCHEMA = pa.schema(
    {
        "t": pa.int64(),
        "v": pa.float64(),
        "g": pa.dictionary(pa.int32(), pa.string()),
        "h": pa.int64(),
        "name": pa.large_string(),
    }
)

WINDOWS: dict[str, sb.Window] = {
    "sliding by value": sb.sliding(25, every=10, on="t"),
    "tumbling by value": sb.tumbling(10, on="t"),
    "landmark by value": sb.landmark(every=10, on="t"),
    "each arrival by value": sb.sliding(12, on="t"),
    "sliding by count": sb.sliding(9, every=4),
    "each arrival by count": sb.sliding(9),
    "landmark, each arrival": sb.landmark(),
}


def stream(seed: int, batches: int = 12) -> list[pa.RecordBatch]:
    """Small batches, some empty, with ties, rows out of order, nulls everywhere, and groups that come and go."""
    random = np.random.default_rng(seed)
    made, now = [], 0
    for i in range(batches):
        n = int(random.choice([0, 1, 3, 12]))
        times = now + np.cumsum(random.integers(-3, 6, n))
        now = int(times.max(initial=now))
        made.append(
            pa.record_batch(
                [
                    pa.array(times, mask=random.random(n) < 0.05),
                    pa.array(random.integers(0, 6, n).astype(float), mask=random.random(n) < 0.1),
                    pa.array(
                        random.choice([f"early {i // 4}", "always"], n), mask=random.random(n) < 0.1
                    ).dictionary_encode(),
                    pa.array(random.integers(0, 2, n), mask=random.random(n) < 0.1),
                    pa.array([f"{i}.{j}" for j in range(n)], pa.large_string()),
                ],
                schema=SCHEMA,
            )
        )
    return made


def emits(window: sb.Window) -> list[Any]:
    return ["changes", "entries"] if window.every is None else ["windows", "changes", "entries"]


CASES = [
    (algorithm, window)
    for algorithm in (find(name, "rows") for name in ALGORITHMS)
    for window in WINDOWS
    if not algorithm.refuses(specify(sb.TopK(k=2, by="v", window=WINDOWS[window]), SCHEMA))
]


@pytest.mark.parametrize("per", [(), ("g",), ("h", "g")], ids=["global", "per g", "per h and g"])
@pytest.mark.parametrize(
    ("algorithm", "window"), CASES, ids=[f"{algorithm.name}, {window}" for algorithm, window in CASES]
)
def test_restart_after_every_batch(algorithm: RowAlgorithm, window: str, per: tuple[str, ...]) -> None:
    for emit in emits(WINDOWS[window]):
        lateness = 4 if "sliding by value" in window else None
        query = sb.TopK(
            k=2, by="v", window=WINDOWS[window], per=per, emit=emit, lateness=lateness, algorithm=algorithm.name
        )
        undisturbed, restarted = query.open(SCHEMA), query.open(SCHEMA)
        for batch in stream(seed=len(per)):
            restarted = query.open(SCHEMA, restarted.snapshot())
            assert restarted.push(batch).to_pylist() == undisturbed.push(batch).to_pylist()
            assert restarted.stats() == undisturbed.stats()
            assert restarted.next_close() == undisturbed.next_close()
            assert restarted.top().to_pylist() == undisturbed.top().to_pylist()
            restarted.check()
        restarted = query.open(SCHEMA, restarted.snapshot())
        assert restarted.finish().to_pylist() == undisturbed.finish().to_pylist()


def test_restart_with_an_external_clock() -> None:
    query = sb.TopK(k=2, by="v", window=WINDOWS["sliding by value"], per="g")
    undisturbed, restarted = (Session(RowsCodec(query, SCHEMA, external_clock=True)) for _ in range(2))
    for i, batch in enumerate(stream(seed=9)):
        restarted = Session(RowsCodec(query, SCHEMA, external_clock=True), restarted.snapshot())
        assert restarted.push(batch).to_pylist() == undisturbed.push(batch).to_pylist() == []
        assert restarted.advance(5 * i).to_pylist() == undisturbed.advance(5 * i).to_pylist()
        assert restarted.stats() == undisturbed.stats()


def test_a_snapshot_is_not_changed_by_what_comes_after() -> None:
    query = sb.TopK(k=2, by="v", window=WINDOWS["sliding by value"], per="g")
    first, *others = stream(seed=4)
    session = query.open(SCHEMA)
    session.push(first)
    state = session.snapshot()
    copies = [query.open(SCHEMA, state) for _ in range(2)]
    said = [[copy.push(batch).to_pylist() for batch in others] for copy in copies]
    assert said[0] == said[1]
    assert query.open(SCHEMA, query.open(SCHEMA, state).snapshot()).stats() == query.open(SCHEMA, state).stats()
