"""Example and restart tests: equal rows ranked together, by `ties=`."""

from __future__ import annotations

import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.rows.query import Ties

ROWS = pa.table({"t": range(8), "g": list("aabbabab"), "v": [3.0, -0.0, 0.0, 3.0, float("nan"), None, 2.0, 3.0]})


def ranked(answer: pa.Table) -> list[tuple[int, int, int]]:
    return [(row["window_end"], row["rank"], row["t"]) for row in answer.to_pylist()]


@pytest.mark.parametrize(
    ("ties", "expected"),
    [
        ("rank", [(4, 1, 3), (4, 1, 0), (8, 1, 7), (8, 2, 6)]),
        ("dense", [(4, 1, 3), (4, 1, 0), (4, 2, 2), (4, 2, 1), (8, 1, 7), (8, 2, 6)]),
    ],
)
def test_equal_rows_share_a_rank_the_more_recent_first(ties: Ties, expected: list[object]) -> None:
    """The two zeros are equal; what has no score is never ranked."""
    assert ranked(sb.top_k(ROWS, k=2, by="v", window=sb.tumbling(4, on="t"), ties=ties)) == expected


def test_whole_numbers_beyond_floats_are_not_equal() -> None:
    rows = pa.table({"t": range(3), "v": [2**53, 2**53 + 1, 2**53 + 1]})
    assert ranked(sb.top_k(rows, k=1, by="v", window=sb.tumbling(3, on="t"), ties="rank")) == [(3, 1, 2), (3, 1, 1)]


def test_a_window_of_equal_rows_is_shown_whole() -> None:
    rows = pa.table({"t": range(5000), "v": [1] * 5000})
    answer = sb.top_k(rows, k=1, by="v", window=sb.sliding(2000, every=1000, on="t"), ties="dense")
    assert [(end["window_end"], end["rank"]) for end in answer.to_pylist()[:2]] == [(1000, 1), (1000, 1)]
    assert answer.num_rows == 1000 + 4 * 2000 + 1000


def test_restarts_between_any_two_rows_change_nothing() -> None:
    query = sb.TopK(k=2, by=["v % 3", "g"], window=sb.sliding(4), per="g", ties="dense")
    rows = pa.table({"g": list("aabbabababab"), "v": [3, 3, 1, 4, 4, 0, 6, 7, 7, 1, 1, 1]})
    session, parts = query.open(rows.schema), []
    for i in range(len(rows)):
        parts.append(session.push(rows.slice(i, 1)))
        session = query.open(rows.schema, session.snapshot())
    assert pa.concat_tables(parts) == query.open(rows.schema).push(rows)


def test_asked_now_equal_rows_share_a_rank_too() -> None:
    session = sb.TopK(k=2, by="v", window=sb.sliding(8), ties="rank").open(ROWS.schema)
    session.push(ROWS)
    assert [(row["rank"], row["t"]) for row in session.top(1).to_pylist()] == [(1, 7), (1, 3), (1, 0)]
    many = session.top_many([(2, 4), (1, 2)]).to_pylist()
    assert [(row["question"], row["rank"], row["t"]) for row in many] == [(0, 1, 7), (0, 2, 6), (1, 1, 7)]


def test_other_algorithms_and_other_words_are_refused() -> None:
    window = sb.sliding(4, every=2)
    with pytest.raises(sb.InvalidQuery, match=r"more may share the k-th rank\. Possible here: tied"):
        sb.TopK(k=2, by="v", window=window, ties="rank", algorithm="relaxed").open(ROWS.schema)
    with pytest.raises(sb.InvalidQuery, match="it is for equal rows that share a rank"):
        sb.TopK(k=2, by="v", window=window, algorithm="tied").open(ROWS.schema)
    with pytest.raises(sb.InvalidQuery, match="ties must be one of rank, dense, or None; got 'first'"):
        sb.TopK(k=2, by="v", window=window, ties="first")  # type: ignore[arg-type]
