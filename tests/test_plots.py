"""Example tests of charts: what the lines say, and what is refused."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

import skyband as sb  # noqa: E402
from skyband import plots  # noqa: E402
from skyband.errors import InvalidInput  # noqa: E402

TRADES = pa.table(
    {
        "t": [0, 1, 2, 3, 4, 5],
        "symbol": ["OAK", "ELM", "OAK", "FIR", "ELM", "FIR"],
        "price": [5, 4, 3, 6, 9, 8],
    }
)


@pytest.fixture
def best() -> pa.Table:
    return sb.top_k(TRADES, k=2, by="price", window=sb.tumbling(2, on="t"))


def test_ranks_have_a_line_for_each_name_with_gaps_where_it_is_not_listed(best: pa.Table) -> None:
    ax = plots.ranks(best)
    lines = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    assert set(lines) == {"OAK", "ELM", "FIR"}
    assert (lines["OAK"][:2], math.isnan(lines["OAK"][2])) == ([1, 2], True)
    assert lines["FIR"][1:] == [1, 2]
    assert ax.lines[0].get_xdata().tolist() == [2, 4, 6]
    low, high = ax.get_ylim()
    assert low > high, "rank 1 is on top"


def test_the_kth_score_is_that_of_the_last_rank_and_pandas_is_taken_too(best: pa.Table) -> None:
    ax = plots.kth_score(best.to_pandas())
    assert ax.lines[0].get_ydata().tolist() == [4, 3, 8]
    assert ax.get_ylabel() == "score of rank 2"
    assert plots.kth_score(best, ax=ax) is ax
    assert len(ax.lines) == 2


def test_rows_held_are_followed_until_it_is_closed() -> None:
    session = sb.TopK(k=1, by="price", window=sb.sliding(3)).open(TRADES.schema)
    followed = plots.follow(session)
    session.push(TRADES.slice(0, 3))
    session.push(TRADES.slice(3, 1))
    followed.close()
    session.push(TRADES.slice(4))
    assert followed.rows_in == [3, 4]
    assert followed.held().lines[0].get_ydata().tolist() == followed.rows_held


def test_what_cannot_be_drawn_is_refused_with_what_is_possible(best: pa.Table) -> None:
    with pytest.raises(InvalidInput, match="no column 'window_end'"):
        plots.ranks(TRADES)
    with pytest.raises(InvalidInput, match="several rankings"):
        plots.ranks(sb.top_k(TRADES, k=1, by="price", per="symbol", window=sb.tumbling(6, on="t")))
    with pytest.raises(InvalidInput, match="by='size' is no column"):
        plots.ranks(best, by="size")
    with pytest.raises(InvalidInput, match="no scores"):
        plots.kth_score(best.drop_columns(["score"]))
