"""Oracle tests: sums are exact, whatever numbers come and go, and however the room for them has to grow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from conformance.joins.strategies import SIMILAR, plans_for
from conformance.suite import examples
from hypothesis import example, given
from hypothesis import strategies as st

import skyband as sb
from skyband.problems.joins.algorithms import plans
from skyband.problems.joins.algorithms.plans.config import Term, moved
from skyband.problems.joins.algorithms.plans.kernels.sums import BITS, MASK, ONE_LIMB, as_float, mean_digits
from skyband.problems.joins.operator import COUNT, SUM, Aggregate, Batch, Cells, Input, Rows, Spec
from skyband.windows import FOREVER

# Numbers of few bits, as prices have, and of many; each kind alone, so that all widths of a sum are met.
KINDS = (
    st.integers(-8, 8).map(float),
    st.integers(-64, 64).map(lambda n: n / 16),
    st.integers(-(2**20), 2**20).map(lambda n: n / 2**10),
    *(st.builds(math.ldexp, st.integers(-(2**53), 2**53), st.integers(low, low + 9)) for low in range(-90, -30, 10)),
    st.floats(-1e9, 1e9),
    st.floats(allow_nan=False, allow_infinity=False),
)
# Few numbers at a time, and many: so a sum has had room for more rows than there are when finer numbers come.
RUNS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.builds(
        lambda run, times: run * times, st.lists(kind, min_size=1, max_size=4), st.sampled_from([1, 1, 40])
    )
)
GAPS = st.sampled_from([0, 0, 5, 15])  # between runs
NUMBERS = st.lists(st.tuples(GAPS, RUNS), max_size=10)


def nearest(exact: Fraction | int) -> float:
    """The float64 nearest to a number; beyond all of them, an infinity. (`math.fsum` gives up on its way there.)"""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@pytest.mark.parametrize("plan", ["late", "early", "multiply"])
@examples(60)
@given(NUMBERS, st.integers(1, 12), st.booleans())
@example([(0, [4.0, 8.0]), (0, [0.25])], 9, True)  # a finer number made room below, and lost what was there
def test_a_sum_is_that_of_the_live_rows(
    plan: str, runs: list[tuple[int, list[float]]], size: int, restarts: bool
) -> None:
    query = sb.JoinAggregate(inputs=sb.sliding(size, every=1, on="t"), aggregates={"s": "SUM(x)"}, plan=plan)
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    session, found, live, time = query.open(schema), [], list[tuple[int, float]](), 0
    for gap, values in runs:
        time += gap
        times = list(range(time, time + len(values)))
        live += zip(times, values, strict=True)
        time += len(values)
        found.append(session.push(pa.table([times, values], schema=schema)))
        session.check()
        if restarts:  # a restored sum has room for the live rows, no more
            session = query.open(schema, session.snapshot())
    found.append(session.finish())
    for row in pa.concat_tables(found).to_pylist():
        end = row["window_end"]
        assert row["s"] == nearest(sum(Fraction(x) for t, x in live if end - size <= t < end))


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
        assert row["a"] == nearest(Fraction(sum(live), len(live)))


def test_numbers_that_are_a_little_finer_than_those_before() -> None:
    """Limbs that many rows once needed have to move up with the others when finer numbers come."""
    b = pa.table({
        "t": [3, 5, 15, 16, 27],
        "g": list("babbb"),
        "v": [85766244.26860814, -54012829.95706492, 25e6, -0.75, -0.325280289545942],
    })  # fmt: skip
    a = pa.table({"t": [3, 8, 10, 11, 11, 13, 16, 16, 18], "g": list("babaacbcc")})
    for plan in ("late", "early:a", "early:b", "early:a,b", "multiply"):
        answer = sb.join_aggregate(
            {"a": a, "b": b},
            inputs={"a": sb.sliding(3, on="t"), "b": sb.sliding(6, on="t")},
            on="a.g = b.g",
            aggregates={"s": "SUM(b.v)"},
            every=2,
            plan=plan,
        )
        assert answer.to_pylist() == [
            {"window_end": 4, "s": 85766244.26860814},
            {"window_end": 6, "s": 85766244.26860814},
            {"window_end": 10, "s": -54012829.95706492},
            {"window_end": 18, "s": 24999999.25},
        ]


def written(number: Fraction, term: Term) -> list[int]:
    """A number in the limbs of a term."""
    whole = number / Fraction(2) ** term.low
    assert whole.denominator == 1
    limbs, rest = [], int(whole)
    for _ in range(term.limbs - 1):
        limbs.append(rest & MASK)
        rest >>= BITS
    return [*limbs, rest]


@examples(200)
@given(st.lists(st.tuples(st.lists(SIMILAR, min_size=1, max_size=3), st.integers(0, 40)), min_size=2, max_size=6))
def test_a_sum_stays_the_same_when_room_is_made(steps: list[tuple[list[float], int]]) -> None:
    """Numbers count 2**times, as each does that matches so many rows; then all but the last of them go."""
    term, left = Term(0, 0, is_float=True, is_summed=True, limbs=1), Fraction(0)
    sums = np.zeros((1, 1 + term.width), np.int64)
    for values, times in steps:
        numbers = np.array(values).view(np.int64)
        before, row_bits = term, (1 + len(values)).bit_length() + times
        term = before.fitting(numbers, np.ones(len(numbers), np.int64), row_bits)
        sums = moved(sums, [before], [term])
        assert sums[0, 1 + term.plain :].tolist() == (written(left, term) if left else [0] * term.limbs)
        total = left + sum(map(Fraction, values)) * 2**times
        assert not total or -(2**63) <= written(total, term)[-1] < 2**63, "there is room for all that can come"
        left = Fraction(values[-1])
        sums[0, 1 + term.plain :] = written(left, term) if left else 0


COUNTS = st.one_of(st.integers(1, 9), st.integers(1, 2**31 + 2), st.integers(1, 2**62 - 1))
WHOLE = st.one_of(st.integers(-99, 99), st.integers(-(2**62), 2**62), st.integers(-(2**150), 2**150))


@examples(300)
@given(WHOLE, st.integers(0, 2), COUNTS, st.sampled_from([0, 1, 2, 9, 10, 18, 38]))
@example(2**53 + 1, 0, 1, 0)  # halfway between two floats
@example(2**54 + 3, 0, 2, 0)
@example((2**53 + 1) * 3 + 1, 0, 3, 0)  # a little more than halfway
@example(10**18 - 1, 0, 10**18, 0)
def test_a_mean_is_rounded_once(number: int, spare: int, count: int, scale: int) -> None:
    found = mean_of(number, 0, spare, count, scale)
    assert found == nearest(Fraction(number, count * 10**scale))


@examples(200)
@given(WHOLE, st.integers(-1074, 960), COUNTS)
@example(3, -1074, 2)  # halfway between the two smallest floats
@example(1, -1074, 2)
@example(1, -1074, 3)
@example(2**53 - 1, -1074, 2)
@example(2**120, 960, 2**62 - 1)  # the sum is beyond all floats, its mean is not
def test_a_mean_of_floats_is_rounded_once(number: int, low: int, count: int) -> None:
    assert mean_of(number, low, 0, count, 0) == nearest(number * Fraction(2) ** low / count)


def mean_of(number: int, low: int, spare: int, count: int, scale: int) -> float:
    """The kernel's mean of a number in units of 2**low, with so many limbs more than it needs."""
    bits = max(abs(number).bit_length(), 1)
    limbs = (1 if bits <= ONE_LIMB else -(-(bits + 2) // BITS)) + spare
    digits, rest = [], number
    for _ in range(limbs - 1):
        digits.append(rest & MASK)
        rest >>= BITS
    numbers, scratch = np.array([[*digits, rest]]), np.full(mean_digits(limbs, scale) + 1, 7)
    try:
        found = float(as_float(numbers, 0, 0, limbs, low, np.int64(count), scale, scratch, 0))
    except OverflowError:  # of Python's `ldexp`; that of a compiled loop gives an infinity
        found = math.copysign(math.inf, number)
    assert scratch[-1] == 7, "scratch is as long as it has to be"
    return found


WEIGHTS = st.lists(st.one_of(st.integers(1, 9), st.integers(2**14, 2**28)), min_size=1, max_size=3)


def rows_of_one_cell(weight: list[int], values: list[float] | None = None) -> Rows:
    n = len(weight)
    arguments = np.zeros((n, 0), np.int64) if values is None else np.array(values).view(np.int64)[:, None]
    return Rows(np.zeros(n, np.int64), np.zeros(n, np.int32), arguments, np.ones(n, np.int64), np.array(weight))


@examples(60)
@given(st.lists(SIMILAR, min_size=1, max_size=8), WEIGHTS, WEIGHTS, st.data())
def test_a_number_counts_once_for_each_combination_of_other_rows(
    values: list[float], b: list[int], c: list[int], data: st.DataObject
) -> None:
    """Rows of b and c stand for so many that 32 bits cannot say how often a number counts."""
    values = [value + 0.0 for value in values]  # of the two zeros one
    inputs = (Input(FOREVER, (0,), floats=(True,)), Input(FOREVER, (0,)), Input(FOREVER, (0,)))
    spec = Spec(inputs, (Aggregate(SUM, 0, 0), Aggregate(COUNT)), every=1)
    operator = plans.open(spec, data.draw(st.sampled_from(plans_for(spec))))
    cells = Cells(np.zeros((1, 1), np.int32), np.zeros(1, np.int32), np.zeros((1, 0), np.int32))
    rows = rows_of_one_cell([1] * len(values), values), rows_of_one_cell(b), rows_of_one_cell(c)
    pushed = operator.push(Batch(rows, (cells,) * 3))
    answer = operator.finish()
    operator.check()
    total, count = np.concatenate([pushed.values, answer.values])[0]
    combinations = sum(b) * sum(c)
    assert total.view(np.float64) == nearest(sum(map(Fraction, values)) * combinations)
    assert count == len(values) * combinations


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
