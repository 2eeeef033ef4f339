"""Oracle tests of rows that come and go together and are kept as one."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.drivers.kernels import SAMPLE
from skyband.problems.joins.drivers.lifetimes import Coming, coalesced, one_for_each_pane, windows_of
from skyband.problems.joins.operator import ADDED, HIGHEST, HIGHEST_FLOAT, LOWEST, LOWEST_FLOAT, Rows
from skyband.windows import FOREVER


def some_rows(kinds: int, n: int, largest: int = 100) -> Coming:
    random = np.random.default_rng(kinds)
    kind = random.integers(0, kinds, n)
    return Coming(
        10 * (kind % 3),
        10 * (kind % 3) + 100 + kind % 2,
        kind // 3,
        random.integers(-largest, largest, (n, 2)),
        kind % 4,
        random.integers(1, 4, n),
    )


@pytest.mark.parametrize(("kinds", "n"), [(1, 2), (3, 50), (40, 5 * SAMPLE), (2000, 10 * SAMPLE)])
def test_kinds_of_rows_become_a_row_each(kinds: int, n: int) -> None:
    rows = some_rows(kinds, n)
    expected: dict[tuple[int, ...], list[int]] = {}
    for start, last, cell, (a, b), valid, weight in zip(*(column.tolist() for column in rows), strict=True):
        sums = expected.setdefault((start, last, cell, valid), [0, b, 0])
        sums[:] = [sums[0] + a, max(sums[1], b), sums[2] + weight]
    found = coalesced(rows, (ADDED, HIGHEST))
    keys = zip(*(column.tolist() for column in (found.start, found.last, found.cell, found.valid)), strict=True)
    sums = np.column_stack([found.arguments, found.weight]).tolist()
    assert list(zip(keys, sums, strict=True)) == list(expected.items())  # in the order in which kinds first come


@pytest.mark.parametrize("values", [[1.5, -2.5, 0.0, -0.0], [-3.0, -math.inf, 5e-324], [math.inf, 7.0], [-1.0, -2.0]])
def test_the_lowest_and_the_highest_of_floats(values: list[float]) -> None:
    alike = np.zeros(len(values), np.int64)
    bits = np.array(values).view(np.int64)
    rows = Coming(alike, alike, alike, np.column_stack([bits, bits, bits]), alike + 7, alike + 1)
    found = coalesced(rows, (LOWEST_FLOAT, HIGHEST_FLOAT, LOWEST)).arguments[0]
    assert found[:2].view(np.float64).tolist() == [min(values), max(values)]
    assert found[2] == bits.min()


def test_rows_that_differ_stay_as_they_are() -> None:
    rows = some_rows(10**9, 3 * SAMPLE)
    assert coalesced(rows, (ADDED, LOWEST)) is rows


def test_values_whose_sum_may_not_fit_stay_apart() -> None:
    rows = some_rows(2, 100, largest=2**60)
    assert coalesced(rows, (ADDED, LOWEST)) is rows


@pytest.mark.parametrize("size", [10, 25, FOREVER])
def test_a_row_for_each_pane_stays_in_its_windows(size: int) -> None:
    random = np.random.default_rng(size % 7)
    time, cell = random.integers(-60, 60, 300), random.integers(0, 3, 300).astype(np.int32)
    value = random.integers(-9, 9, (300, 1))
    expected: dict[tuple[int, ...], list[int]] = {}
    for first, last, c, v in zip(*windows_of(time, size, 10), cell.tolist(), value[:, 0].tolist(), strict=True):
        sums = expected.setdefault((first, last, c), [0, 0])
        sums[:] = sums[0] + v, sums[1] + 1
    found = one_for_each_pane(Rows(time, cell, value.copy(), np.ones(300, np.int64)), (ADDED,), size, 10)
    assert found.weight is not None
    keys = zip(*windows_of(found.time, size, 10), found.cell.tolist(), strict=True)
    assert dict(zip(keys, np.column_stack([found.arguments, found.weight]).tolist(), strict=True)) == expected
    assert len(found.time) == len(expected)


def test_state_is_a_row_for_each_cell_and_pane_not_for_each_row() -> None:
    query = sb.JoinAggregate(
        inputs=sb.sliding(400, every=100, on="t"), group_by="g", aggregates={"n": "COUNT(*)", "sum": "SUM(x)"}
    )
    at = np.arange(2000)
    table = pa.table({"t": at, "g": at % 5, "x": at})
    session = query.open(table.schema)
    for batch in table.to_batches(max_chunksize=500):
        session.push(batch)
    assert session.stats().rows_held <= 5 * (4 + 5)  # five groups; four panes are live, and five at most wait
