"""Oracle tests: a minimum of values that rise costs no more than one of values that fall, and is as exact."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

ROWS, WINDOW = 20_000, 8_000
TIMES = np.arange(ROWS)
SINGLE: dict[str, Any] = {"window": sb.sliding(WINDOW, on="t"), "aggregates": {"m": "MIN(v)"}}
JOINED: dict[str, Any] = {
    "inputs": {"a": sb.sliding(WINDOW, on="t"), "b": sb.sliding(WINDOW, on="t")},
    "on": "a.k = b.k",
    "aggregates": {"m": "MIN(b.v)"},
    "plan": "early",
}


def table(values: Any) -> pa.Table:
    return pa.table({"t": TIMES, "k": np.zeros(ROWS, np.int64), "v": values})


def cpu_time(data: pa.Table | Mapping[str, pa.Table], query: dict[str, Any]) -> float:
    """The least of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        sb.join_aggregate(data, **query)
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize("every", [None, 1])
def test_the_cost_of_one_window(every: int | None) -> None:
    query = SINGLE | {"window": sb.sliding(WINDOW, every=every, on="t")}
    assert cpu_time(table(TIMES), query) < 5 * cpu_time(table(-TIMES), query)


@pytest.mark.parametrize("every", [None, 10])
def test_the_cost_of_a_join(every: int | None) -> None:
    query = JOINED | {"every": every}
    rising, falling = ({"a": table(TIMES), "b": table(values)} for values in (TIMES, -TIMES))
    assert cpu_time(rising, query) < 5 * cpu_time(falling, query)


def test_the_first_time_of_a_window() -> None:
    shown = sb.join_aggregate(table(TIMES), **SINGLE | {"aggregates": {"m": "MIN(v)", "n": "COUNT(*)"}})
    assert shown["m"].to_pylist() == np.maximum(0, TIMES - WINDOW + 1).tolist()
