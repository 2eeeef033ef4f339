"""Example tests: what users ask, as a small table in and a small table out."""

from __future__ import annotations

import pytest
from tables import ALGORITHMS, shows, table

import skyband as sb

READINGS = table("""
    t   v   id
    1   5   a
    3   2   b
    4   8   c
    7   5   d
    11  1   e
    12  9   f
    26  4   g
""")


def test_tumbling_by_value() -> None:
    """Half-open: t = 10 would be in the second window. Windows without rows, like [20, 25), give nothing."""
    assert shows(
        sb.top_k(READINGS, k=2, by="v", window=sb.tumbling(5, on="t")),
        """
        window_start  window_end  rank  score  t   id
        0             5           1     8      4   c
        0             5           2     5      1   a
        5             10          1     5      7   d
        10            15          1     9      12  f
        10            15          2     1      11  e
        25            30          1     4      26  g
        """,
    )


def test_sliding_by_value_when_size_is_no_multiple_of_every() -> None:
    assert shows(
        sb.top_k(READINGS.slice(0, 5), k=1, by="v", window=sb.sliding(7, every=5, on="t")),
        """
        window_start  window_end  rank  score  t   id
        -2            5           1     8      4   c
        3             10          1     8      4   c
        8             15          1     1      11  e
        """,
    )


def test_sliding_by_count() -> None:
    """The last 4 arrivals after each 2; the seventh arrival completes no slide."""
    assert shows(
        sb.top_k(READINGS, k=2, by="v", window=sb.sliding(4, every=2)),
        """
        window_start  window_end  rank  score  t   id
        0             2           1     5      1   a
        0             2           2     2      3   b
        0             4           1     8      4   c
        0             4           2     5      7   d
        2             6           1     9      12  f
        2             6           2     8      4   c
        """,
    )


def test_equal_scores_the_more_recent_first() -> None:
    ties = table("""
        t  v  id
        2  5  a
        1  5  b
        2  5  c
        2  4  d
    """)
    assert shows(
        sb.top_k(ties, k=4, by="v", window=sb.tumbling(10, on="t")),
        """
        window_start  window_end  rank  score  t  id
        0             10          1     5      2  c
        0             10          2     5      2  a
        0             10          3     5      1  b
        0             10          4     4      2  d
        """,
    )


def test_landmark() -> None:
    """From the start until each end: a null where a start would be, and the best so far again and again."""
    assert shows(
        sb.top_k(READINGS, k=1, by="v", window=sb.landmark(every=10, on="t")),
        """
        window_start  window_end  rank  score  t   id
        -             10          1     8      4   c
        -             20          1     9      12  f
        -             30          1     9      12  f
        """,
    )
    assert shows(
        sb.top_k(READINGS, k=1, by="v", window=sb.landmark(every=3)),
        """
        window_start  window_end  rank  score  t   id
        0             3           1     8      4   c
        0             6           1     9      12  f
        """,
    )


TRADES = table("""
    t   symbol  price
    1   A       10
    2   B       20
    3   A       11
    4   A       9
    5   B       21
    16  C       7
""")


def test_per_group_by_value_all_groups_share_the_windows() -> None:
    result = sb.top_k(TRADES, k=1, by="price", window=sb.tumbling(4, on="t"), per="symbol")
    assert shows(
        result.sort_by([("window_end", "ascending"), ("symbol", "ascending")]),
        """
        window_start  window_end  symbol  rank  score  t
        0             4           A       1     11     3
        0             4           B       1     20     2
        4             8           A       1     9      4
        4             8           B       1     21     5
        16            20          C       1     7      16
        """,
    )


def test_per_group_by_count_each_group_counts_its_own() -> None:
    assert shows(
        sb.top_k(TRADES, k=1, by="price", window=sb.sliding(2, every=2), per="symbol", ascending=True),
        """
        window_start  window_end  symbol  rank  score  t
        0             2           A       1     10     1
        0             2           B       1     20     2
        """,
    )


def test_changes_with_each_arrival() -> None:
    """The last 3 arrivals, top 2: a row leaves with the rank it had, and enters with the rank it gets."""
    assert shows(
        sb.top_k(READINGS.select(["v", "id"]), k=2, by="v", window=sb.sliding(3)),
        """
        at  change  rank  score  id
        1   enter   1     5      a
        2   enter   2     2      b
        3   leave   2     2      b
        3   enter   1     8      c
        4   leave   2     5      a
        4   enter   2     5      d
        6   leave   1     8      c
        6   enter   1     9      f
        7   leave   2     5      d
        7   enter   2     4      g
        """,
    )


def test_changes_by_value_now_is_the_largest_time_seen() -> None:
    """Later than now - 5. The row at 2 comes late, but inside the window; the row at 4 comes when now - 5 is 7."""
    rows = table("""
        t   v  id
        3   5  a
        6   3  b
        2   9  c
        12  1  d
        4   8  e
    """)
    with pytest.warns(sb.LateRows, match="1 of 5 rows"):
        answer = sb.top_k(rows.to_reader(), k=1, by="v", window=sb.sliding(5, on="t")).read_all()
    assert shows(
        answer,
        """
        at  change  rank  score  t   id
        3   enter   1     5      3   a
        6   leave   1     5      3   a
        6   enter   1     9      2   c
        12  leave   1     9      2   c
        12  enter   1     1      12  d
        """,
    )


def test_changes_of_closed_windows_and_of_an_empty_one() -> None:
    """The window that ends at 20 holds nothing, so what was shown leaves."""
    assert shows(
        sb.top_k(READINGS, k=1, by="v", window=sb.tumbling(5, on="t"), emit="changes"),
        """
        at  change  rank  score  t   id
        5   enter   1     8      4   c
        10  leave   1     8      4   c
        10  enter   1     5      7   d
        15  leave   1     5      7   d
        15  enter   1     9      12  f
        20  leave   1     9      12  f
        30  enter   1     4      26  g
        """,
    )


def test_entries_each_row_once() -> None:
    """d is shown in the windows that end at 10 and 15, and c in those that end at 5 and 10."""
    assert shows(
        sb.top_k(READINGS, k=2, by="v", window=sb.sliding(10, every=5, on="t"), emit="entries"),
        """
        at  rank  score  t   id
        5   1     8      4   c
        5   2     5      1   a
        10  2     5      7   d
        15  1     9      12  f
        20  2     1      11  e
        30  1     4      26  g
        """,
    )


LATE_ROWS = table("""
    t   v  id
    4   1  a
    12  2  b
    8   7  c
    9   5  d
    21  3  e
    8   9  f
""")


def test_rows_out_of_order_within_the_lateness_give_the_exact_answer() -> None:
    with pytest.warns(sb.LateRows, match="1 of 6 rows"):
        answer = sb.top_k(LATE_ROWS.to_reader(), k=1, by="v", window=sb.tumbling(10, on="t"), lateness=5).read_all()
    assert shows(
        answer,
        """
        window_start  window_end  rank  score  t   id
        0             10          1     7      8   c
        10            20          1     2      12  b
        20            30          1     3      21  e
        """,
    )


def test_a_late_row_counts_in_the_windows_that_are_still_open() -> None:
    """Without lateness, 12 closes [0, 10). In [0, 20), which is open, c and d count; for f, at 21, all is over."""
    session = sb.TopK(k=1, by="v", window=sb.sliding(20, every=10, on="t")).open(LATE_ROWS.schema)
    assert shows(
        session.push(LATE_ROWS),
        """
        window_start  window_end  rank  score  t   id
        -10           10          1     1      4   a
        0             20          1     7      8   c
        """,
    )
    assert session.stats().rows_late == 1


@pytest.mark.parametrize(
    ("last", "windows"),
    [(9, 0), (10, 1), (11, 1), (19, 1), (20, 2)],
)
def test_a_window_closes_when_the_watermark_reaches_its_end(last: int, windows: int) -> None:
    rows = table(f"""
        t       v
        5       1
        {last}  1
    """)
    session = sb.TopK(k=1, by="v", window=sb.sliding(15, every=10, on="t")).open(rows.schema)
    assert session.push(rows).num_rows == windows


@pytest.mark.parametrize(("time", "taken"), [(10, True), (9, False), (0, False)])
def test_a_row_at_the_watermark_is_not_late(time: int, taken: bool) -> None:
    """FAILURES 4: [10, 20) is open at 10, [0, 10) is not."""
    session = sb.TopK(k=2, by="v", window=sb.tumbling(10, on="t")).open(LATE_ROWS.schema)
    session.push(LATE_ROWS.slice(0, 1))
    session.push(table("t v id\n10 1 x"))
    session.push(table(f"t v id\n{time} 1 y"))
    assert session.stats().rows_late == (not taken)


def test_a_row_in_the_far_future_closes_what_is_open_and_makes_the_rest_late() -> None:
    """FAILURES 2: it is counted, never silent."""
    session = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t")).open(LATE_ROWS.schema)
    session.push(table("t v id\n4 1 a\n9000000000000 1 b"))
    session.push(LATE_ROWS)
    assert session.stats().rows_late == LATE_ROWS.num_rows


def test_null_and_nan_scores_are_never_ranked_but_take_their_place() -> None:
    rows = table("""
        v    id
        3    a
        nan  b
        -    c
        2    d
    """)
    assert shows(
        sb.top_k(rows, k=2, by="v", window=sb.sliding(3, every=1)),
        """
        window_start  window_end  rank  score  id
        0             1           1     3      a
        0             2           1     3      a
        0             3           1     3      a
        1             4           1     2      d
        """,
    )


def test_infinities_are_scores_like_any_other() -> None:
    rows = table("v id\n-inf a\n0 b\ninf c\ninf d")
    result = sb.top_k(rows, k=4, by="v", window=sb.tumbling(4))
    assert result["id"].to_pylist() == ["d", "c", "b", "a"]
    result = sb.top_k(rows, k=4, by="v", window=sb.tumbling(4), ascending=True)
    assert result["id"].to_pylist() == ["a", "b", "d", "c"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("emit", ["changes", "entries"])
def test_every_algorithm_by_name_gives_the_same(algorithm: str, emit: sb.queries.Emit) -> None:
    window = sb.sliding(10, every=5, on="t")
    expected = sb.top_k(READINGS, k=2, by="v", window=window, emit=emit)
    assert sb.top_k(READINGS, k=2, by="v", window=window, emit=emit, algorithm=algorithm).equals(expected)
