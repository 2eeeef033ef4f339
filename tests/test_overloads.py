"""Example tests: the kind of data that goes in comes out, and mypy knows it: this file is part of its run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

import pandas as pd
import polars as pl
import pyarrow as pa

import skyband as sb

ROWS = pa.table({"t": [1, 2, 7], "v": [1.0, 3.0, 2.0], "id": ["a", "b", "a"]})
WINDOW = sb.tumbling(5, on="t")


def test_pandas() -> None:
    frame: pd.DataFrame = ROWS.to_pandas()
    rows = sb.top_k(frame, k=1, by="v", window=WINDOW)
    assert_type(rows, pd.DataFrame)
    pairs = sb.top_k_pairs(frame, k=1, by="abs(a.v - b.v)", window=WINDOW)
    assert_type(pairs, pd.DataFrame)
    across = sb.top_k_across({"v": frame}, k=1, id="id", value="v", window=WINDOW, bounds=(0, 9))
    assert_type(across, pd.DataFrame)
    groups = sb.join_aggregate(frame, window=WINDOW, group_by="id", aggregates={"n": "COUNT(*)"})
    assert_type(groups, pd.DataFrame)
    for answer in (rows, pairs, across, groups):
        assert isinstance(answer, pd.DataFrame)


def test_polars() -> None:
    frame = pl.DataFrame(ROWS)
    rows = sb.top_k(frame, k=1, by="v", window=WINDOW)
    assert_type(rows, pl.DataFrame)
    pairs = sb.top_k_pairs(frame, k=1, by="abs(a.v - b.v)", window=WINDOW)
    assert_type(pairs, pl.DataFrame)
    across = sb.top_k_across(frame, k=1, id="id", value="v", window=WINDOW, bounds=(0, 9))
    assert_type(across, pl.DataFrame)
    groups = sb.join_aggregate({"s": frame}, inputs={"s": WINDOW}, group_by="id", aggregates={"n": "COUNT(*)"})
    assert_type(groups, pl.DataFrame)
    for answer in (rows, pairs, across, groups):
        assert isinstance(answer, pl.DataFrame)


def test_polars_that_is_lazy() -> None:
    answer = sb.top_k(pl.DataFrame(ROWS).lazy(), k=1, by="v", window=WINDOW)
    assert_type(answer, pl.LazyFrame)
    assert answer.collect()["score"].to_list() == [3.0, 2.0]


def test_streams() -> None:
    """pyarrow has no types of its own: of its classes mypy knows nothing, of an iterator that a reader comes out."""
    batches: Iterator[pa.RecordBatch] = iter(ROWS.to_batches())
    answer = sb.top_k(batches, k=1, by="v", window=WINDOW)
    assert isinstance(answer, pa.RecordBatchReader)
