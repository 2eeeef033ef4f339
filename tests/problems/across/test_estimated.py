"""Oracle tests: what the sketches say of streams is near the truth, and `estimated` misses little and holds less."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.streams.incomplete import incomplete
from skyband.study.baselines.across.estimated.sketches import Sketches

STREAMS = ["r1", "r2", "r3"]


def numbers(made: pa.Table) -> np.ndarray:
    return np.array([STREAMS.index(name) for name in made["stream"].to_pylist()], np.int32)


@pytest.mark.parametrize("xi", [0.1, 0.5, 0.9])
def test_chances_are_near_true_frequencies(xi: float) -> None:
    made = incomplete(12_000, xi=xi, recent=500)
    stream, ids, clock = numbers(made), made["id"].to_numpy(), made["time"].to_numpy()
    sketches = Sketches(3)
    sketches.add(stream, ids.copy(), clock.copy())
    since = 12_000 - 6_000
    window = clock >= since
    seen = [set(ids[window & (stream == s)].tolist()) for s in range(3)]
    chances = sketches.chances(since)
    for some, s in product(range(1, 8), range(3)):
        if some >> s & 1:
            continue
        came = set.intersection(*(seen[i] for i in range(3) if some >> i & 1))
        if len(came) > 300:
            true = len(came & seen[s]) / len(came)
            assert chances[some, s] == pytest.approx(true, abs=0.15)


def asked(algorithm: str, **others: object) -> sb.TopKAcross:
    return sb.TopKAcross(
        k=10, id="id", value="value", stream="stream", streams=STREAMS, window=sb.sliding(1_000), algorithm=algorithm
    )


def test_misses_little_and_holds_less() -> None:
    made = incomplete(4_000, recent=100)
    exact, estimated = (asked(name).open(made.schema) for name in ("staircase", "estimated"))
    hits, held = [], []
    for first in range(0, 4_000, 100):
        for session in (exact, estimated):
            session.push(made.slice(first, 100))
        if first >= 1_000:
            true = set(exact.top()["id"].to_pylist())
            hits.append(len(true & set(estimated.top()["id"].to_pylist())) / len(true))
            held.append(estimated.stats().rows_held / exact.stats().rows_held)
    estimated.check()
    assert np.mean(hits) >= 0.7
    assert np.mean(held) <= 0.5


def test_goes_on_elsewhere() -> None:
    made = incomplete(1_500, recent=50)
    query = asked("estimated")
    session, restarted = query.open(made.schema), query.open(made.schema)
    for first in range(0, 1_500, 150):
        part = made.slice(first, 150)
        expected = session.push(part)
        assert restarted.push(part).equals(expected)
        restarted = query.open(made.schema, restarted.snapshot())


def test_is_never_chosen_by_itself() -> None:
    query = sb.TopKAcross(k=10, id="id", value="value", streams=STREAMS, window=sb.sliding(1_000))
    assert "estimated" not in str(sb.explain(query))
    assert "-> estimated" in str(sb.explain(asked("estimated")))
