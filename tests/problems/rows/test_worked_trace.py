"""Golden test: the worked trace of Pripužić, Podnar Žarko and Aberer (TODS 2015), figures as in GOLDEN.md.

The best of the last 6 rows after each arrival; the lower score is the better.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from tables import ALGORITHMS, shows

import skyband as sb

SCORES = [4, 1, 2, 7, 5, 10, 3, 7.5, 6, 11, 9]
ROWS = pa.table({"score_of": pa.array(SCORES, pa.float64()), "object": [f"o{i}" for i in range(1, 12)]})
BEST = ["o1", "o2", "o2", "o2", "o2", "o2", "o2", "o3", "o7", "o7", "o7"]

able = pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "mintopk"])


@able
def test_changes_of_the_best(algorithm: str) -> None:
    assert shows(
        sb.top_k(ROWS, k=1, by="score_of", window=sb.sliding(6), ascending=True, emit="changes", algorithm=algorithm),
        """
        at  change  rank  score  object
        1   enter   1     4      o1
        2   leave   1     4      o1
        2   enter   1     1      o2
        8   leave   1     1      o2
        8   enter   1     2      o3
        9   leave   1     2      o3
        9   enter   1     3      o7
        """,
    )


@able
def test_the_best_after_each_arrival(algorithm: str) -> None:
    query = sb.TopK(k=1, by="score_of", window=sb.sliding(6), ascending=True, algorithm=algorithm)
    session = query.open(ROWS.schema)
    found = []
    for batch in ROWS.to_batches(max_chunksize=1):
        session.push(batch)
        session.check()
        found += session.top()["object"].to_pylist()
    assert found == BEST


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_as_windows_that_slide_by_one(algorithm: str) -> None:
    window = sb.sliding(6, every=1)
    result = sb.top_k(ROWS, k=1, by="score_of", window=window, ascending=True, algorithm=algorithm)
    assert result["object"].to_pylist() == BEST
    assert result["window_end"].to_pylist() == list(range(1, 12))


@able
def test_each_row_that_was_ever_the_best_once(algorithm: str) -> None:
    result = sb.top_k(
        ROWS, k=1, by="score_of", window=sb.sliding(6), ascending=True, emit="entries", algorithm=algorithm
    )
    assert list(zip(result["at"].to_pylist(), result["object"].to_pylist(), strict=True)) == [
        (1, "o1"),
        (2, "o2"),
        (8, "o3"),
        (9, "o7"),
    ]
