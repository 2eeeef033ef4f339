"""Oracle tests: what the sketches say of streams is near the truth, and `estimated` misses little and holds less."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.streams.incomplete import incomplete
from skyband.study.baselines.across.estimated.sketches import SelfJoins, Sketches

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


@pytest.mark.parametrize("often", [1, 4, 16])
def test_self_join_sizes_are_near_the_true_ones(often: int) -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 4_000 // often, 12_000)
    joins = SelfJoins(1, 4_000)
    joins.add(np.zeros(12_000, np.int32), ids, np.arange(12_000))
    window = ids[8_000:]
    true = float((np.unique(window, return_counts=True)[1] ** 2).sum())
    assert joins.size(0, 8_000) == pytest.approx(true, rel=0.3)
    assert joins.often(8_000)[0] == pytest.approx(true / 4_000, rel=0.3)


def asked(algorithm: str, **others: object) -> sb.TopKAcross:
    asks = {"k": 10, "id": "id", "value": "value", "stream": "stream", "streams": STREAMS} | others
    return sb.TopKAcross(window=sb.sliding(1_000), algorithm=algorithm, **asks)


def again() -> pa.Table:
    """Flows whose packets come a few times in each stream."""
    rng = np.random.default_rng(1)
    rows = 4_000
    ids = np.arange(rows) // 8 + rng.integers(0, 20, rows)
    names = pa.array(STREAMS).take(pa.array(rng.integers(0, 3, rows)))
    return pa.table({"stream": names, "id": ids, "value": rng.random(rows) ** 3, "time": np.arange(rows)})


@pytest.mark.parametrize("repeat", ["max", "sum"])
def test_misses_little_of_what_comes_again(repeat: str) -> None:
    made, more = again(), {"repeat": repeat, "max_repeats": 16, "bounds": (0, 1)}
    exact, estimated = (asked(name, **more).open(made.schema) for name in ("early_aggregation", "estimated"))
    restarted = asked("estimated", **more).open(made.schema)
    hits, held = [], []
    for first in range(0, 4_000, 100):
        for session in (exact, estimated):
            session.push(made.slice(first, 100))
        restarted.push(made.slice(first, 100))
        if first >= 1_000:
            true = set(exact.top()["id"].to_pylist())
            hits.append(len(true & set(estimated.top()["id"].to_pylist())) / len(true))
            held.append(estimated.stats().rows_held / exact.stats().rows_held)
            assert restarted.top().equals(estimated.top())
            restarted = asked("estimated", **more).open(made.schema, restarted.snapshot())
    estimated.check()
    assert np.mean(hits) >= 0.7
    assert np.mean(held) <= 0.8


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
