"""Oracle tests of a k far above the number of rows: the answer is all rows, and memory follows them, not k."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conformance.rows.algorithms import every_algorithm
from conformance.rows.driver import Driver
from conformance.rows.random_streams import random_case
from conformance.rows.strategies import kinds
from oracle import answers, by_group

import skyband as sb
from skyband.core.registry import every_algorithm_of
from skyband.kernels.panes import shape_of
from skyband.kernels.sieve import Sieve
from skyband.problems.rows.operator import Growing, RowAlgorithm, Spec

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.float64(), "g": pa.int64()})
ROWS = pa.table({"t": [1, 2, 30], "v": [1.0, 0.5, 0.25], "g": [1, 2, 1]}, schema=SCHEMA)
WINDOWS = [
    sb.sliding(4, every=2),
    sb.sliding(2),
    sb.sliding(20, every=10, on="t"),
    sb.sliding(5, on="t"),
    sb.landmark(every=10, on="t"),
]
MOST = 2**31 - 1
MEGABYTE = 1 << 20


def rows_query(algorithm: str, k: int, window: sb.Window, per: tuple[str, ...] = ()) -> Any:
    ties: Any = "rank" if algorithm == "tied" else None
    return sb.TopK(k=k, by="v", window=window, per=per, ties=ties, algorithm=algorithm)


def pairs_query(algorithm: str, k: int, window: sb.Window) -> Any:
    return sb.TopKPairs(k=min(k, 1_000_000), by="abs(a.v - b.v)", window=window, algorithm=algorithm, ascending=True)


def across_query(algorithm: str, k: int, window: sb.Window) -> Any:
    recall = {} if every_algorithm_of("across")[algorithm].exact else {"recall": 0.9}
    return sb.TopKAcross(k=k, id="g", value="v", streams=["s"], window=window, algorithm=algorithm, **recall)


def many_query(algorithm: str, k: int, window: sb.Window) -> Any:
    queries = pa.table({"id": [1, 2], "k": [min(k, 10**7), 2], "w": [1.0, 2.0]})
    return sb.TopKForEach(k="q.k", by="v * q.w", window=window, algorithm=algorithm, queries=queries, key="id")


def array_bytes(thing: Any, seen: set[int]) -> int:
    """The size of all arrays that an operator has."""
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, dict):
        return sum(array_bytes(each, seen) for each in thing.values())
    if isinstance(thing, (list, tuple)):
        return sum(array_bytes(each, seen) for each in thing)
    if type(thing).__module__.startswith(("skyband.core", "skyband.problems", "skyband.study.baselines")):
        return array_bytes(vars(thing), seen) if hasattr(thing, "__dict__") else 0
    return 0


def asked(query: Any) -> tuple[list[Any], int, int]:
    """All that it says of a few rows, with a restart between; the bytes of its snapshot and of its arrays."""
    session = query.open(SCHEMA)
    said = session.push(ROWS.slice(0, 2)).to_pylist()
    state = session.snapshot()
    session = query.open(SCHEMA, state)
    said += session.push(ROWS.slice(2)).to_pylist() + session.finish().to_pylist() + session.top().to_pylist()
    session.check()
    return said, len(state), array_bytes(session._operator, set())


SMALL_K = ("naive", "basic", "staircase_published", "threshold_published")  # of pairs: they refuse a large k by name

CASES = [
    *((rows_query, name) for name in every_algorithm_of("rows")),
    *((pairs_query, name) for name, each in every_algorithm_of("pairs").items() if each.exact and name not in SMALL_K),
    *((across_query, name) for name in every_algorithm_of("across") if name != "early_aggregation"),
    *(
        (many_query, name)
        for name in every_algorithm_of("subscriptions")
        if name in ("relaxed", "scan", "boxes", "cells", "shared")
    ),
]


@pytest.mark.parametrize(("make", "algorithm"), CASES, ids=[f"{make.__name__}, {name}" for make, name in CASES])
def test_memory_follows_rows_not_k(make: Any, algorithm: str) -> None:
    taken = 0
    for window in WINDOWS:
        try:
            expected, size, _ = asked(make(algorithm, 5, window))
        except sb.InvalidQuery:
            continue  # this algorithm is not for such windows
        found, large, held = asked(make(algorithm, MOST, window))
        assert found == expected
        assert large <= size + 500, "a snapshot has the rows, and no room for k"
        if make not in (pairs_query, many_query):  # of theirs, pages that are not written to take no memory
            assert held < 100 * MEGABYTE
        taken += 1
    assert taken, "it takes some windows"


@pytest.mark.parametrize("algorithm", SMALL_K[1:])
def test_baselines_without_room_for_a_large_k_refuse_it(algorithm: str) -> None:
    with pytest.raises(sb.InvalidQuery, match="k is above 10,000"):
        pairs_query(algorithm, MOST, WINDOWS[0]).open(SCHEMA)


@every_algorithm
@pytest.mark.parametrize("seed", range(2))
def test_a_k_that_grows_changes_nothing(algorithm: RowAlgorithm, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        case = random_case(kinds(algorithm), draw)
        question = case.question._replace(k=draw.choice([45, 60, 1_000]))
        small = draw.choice([17, 20, 40])  # above SMALL, as in use: up to there some keep rows in another way

        def open_growing(spec: Spec, small: int = small) -> Growing:
            return Growing(spec, algorithm.open, small=small)

        driver = Driver(replace(case.spec, k=question.k), open_growing)

        def after_each(driver: Driver = driver) -> None:
            if draw.random() < 0.2:
                driver.restart()
            driver.operator.check()

        driver.run(case.events, [draw.choice([0, 1, 2, 3, 7, 20]) for _ in range(100)], after_each)
        driver.finish()
        assert by_group(driver.lines) == by_group(answers(question, case.events)), case


def test_a_join_ranked_by_a_large_k() -> None:
    asked = {"inputs": {"a": sb.sliding(20, on="t")}, "group_by": "a.g", "aggregates": {"n": "COUNT(*)"}, "every": 10}
    few, most = (sb.join_aggregate({"a": ROWS}, **asked, order_by="n DESC", k=k) for k in (9, MOST))
    assert most.equals(few)
    assert most.num_rows > 2


def test_a_sieve_for_a_large_k() -> None:
    sieve = Sieve(MOST, shape_of(20, 10))
    assert sieve.keep(np.arange(90_000), np.arange(90_000.0)).all()
    assert sieve._scratch.nbytes + sum(array.nbytes for array in sieve._nodes) < 100 * MEGABYTE


def test_naive_keeps_k_of_something_for_each_row_and_refuses_a_large_one() -> None:
    with pytest.raises(sb.InvalidQuery, match="k is above 10,000"):
        pairs_query("naive", 10_001, WINDOWS[0]).open(SCHEMA)


def test_for_each_of_many_queries_a_large_k_is_refused() -> None:
    queries = pa.table({"id": [1], "k": [10**7 + 1]})
    query = sb.TopKForEach(k="q.k", by="v", window=WINDOWS[0], queries=queries, key="id")
    with pytest.raises(sb.InvalidQuery, match="at most 10,000,000 for each subscription; got 10,000,001"):
        query.open(SCHEMA)
    with pytest.raises(sb.InvalidQuery, match="at most 10,000,000 for each subscription, got 10,000,001"):
        sb.TopKForEach(k=10**7 + 1, by="v", window=WINDOWS[0], queries=queries, key="id")
