"""Oracle tests: sums are exact, whatever numbers come and go, and however the room for them has to grow."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from conformance.algorithms import examples
from hypothesis import example, given
from hypothesis import strategies as st

import skyband as sb

# Numbers of few bits, as prices have, and of many; each kind alone, so that all widths of a sum are met.
KINDS = (
    st.integers(-8, 8).map(float),
    st.integers(-64, 64).map(lambda n: n / 16),
    st.integers(-(2**20), 2**20).map(lambda n: n / 2**10),
    st.floats(-1e9, 1e9),
    st.floats(allow_nan=False, allow_infinity=False),
)
NUMBERS = st.lists(st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, min_size=1, max_size=6)), max_size=8)


def answers(x: list[float], size: int, sizes: list[int], plan: str) -> list[tuple[int, float]]:
    query = sb.JoinAggregate(inputs=sb.sliding(size, every=1, on="t"), aggregates={"s": "SUM(x)"}, plan=plan)
    table = pa.table({"t": pa.array(range(len(x)), pa.int64()), "x": pa.array(x, pa.float64())})
    session, found, at = query.open(table.schema), [], 0
    for n in (*sizes, len(x)):
        found.append(session.push(table.slice(at, n)))
        session.check()
        session = query.open(table.schema, session.snapshot())
        at += n
    found.append(session.finish())
    return [(row["window_end"], row["s"]) for row in pa.concat_tables(found).to_pylist()]


@pytest.mark.parametrize("plan", ["late", "early", "multiply"])
@examples(60)
@given(NUMBERS, st.integers(1, 12))
@example([[4.0, 8.0], [0.25]], 9)  # a number that is finer than all before made room below, and lost what was there
def test_a_sum_is_that_of_the_live_rows(plan: str, runs: list[list[float]], size: int) -> None:
    x = [value for run in runs for value in run]
    for end, total in answers(x, size, [len(run) for run in runs], plan):
        live = x[max(0, end - size) : end]
        try:
            expected = math.fsum(live)
        except OverflowError:
            assert math.isinf(total)
            continue
        assert total == expected


@pytest.mark.parametrize("plan", ["late", "early", "multiply"])
@examples(40)
@given(st.lists(st.one_of(st.integers(-9, 9), st.integers(-(2**58), 2**58)), max_size=24), st.integers(1, 12))
def test_a_sum_of_whole_numbers_is_exact(plan: str, x: list[int], size: int) -> None:
    table = pa.table({"t": pa.array(range(len(x)), pa.int64()), "x": pa.array(x, pa.int64())})
    answer = sb.join_aggregate(
        table, window=sb.sliding(size, every=1, on="t"), aggregates={"s": "SUM(x)", "a": "AVG(x)"}, plan=plan
    )
    for row in answer.to_pylist():
        live = x[max(0, row["window_end"] - size) : row["window_end"]]
        assert row["s"] == sum(live)
        assert row["a"] == float(sum(live)) / len(live)


def test_ten_million_updates_leave_nothing_behind() -> None:
    """Five million rows come and go, of sizes that no float holds together; the last are summed as if alone."""
    rng = np.random.default_rng(9)
    n, size = 5_000_000, 1_000
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 12, n)
    query = sb.JoinAggregate(inputs=sb.sliding(size, every=size, on="t"), aggregates={"s": "SUM(x)"})
    session = query.open(pa.schema([("t", pa.int64()), ("x", pa.float64())]))
    for start in range(0, n, n // 10):
        part = slice(start, start + n // 10)
        answer = session.push(pa.table({"t": np.arange(part.start, part.stop), "x": x[part]}))
        last = answer.slice(answer.num_rows - 1).to_pylist()[0]
        assert last["s"] == math.fsum(x[last["window_end"] - size : last["window_end"]])
