"""Golden tests: the plan in words, one file a query, compared as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import skyband as sb

GOLDEN = Path(__file__).parent / "explained"


def worth(price, volume):  # type: ignore[no-untyped-def]
    return price * volume


QUERIES: dict[str, sb.planner.explain.Explanation] = {
    "panes": sb.explain(sb.TopK(k=10, by="price * volume", window=sb.sliding(1_000_000, every=100_000))),
    "each_arrival": sb.explain(sb.TopK(k=9, by="price", window=sb.sliding(40_000), ascending=True)),
    "per_group": sb.explain(
        sb.TopK(k=10, by=worth, window=sb.sliding("1 hour", every="1 minute", on="ts"), per=["symbol", "side"])
    ),
    "rows_told": sb.explain(
        sb.TopK(k=10, by="v", window=sb.tumbling("1 day", on="ts"), emit="changes"), window_rows=5e6
    ),
    "ad_hoc": sb.explain(sb.TopK(k=10, by="v", window=sb.sliding(10_000, every=100), ad_hoc=True)),
    "by_name": sb.explain(sb.TopK(k=10, by="v", window=sb.sliding(100, every=10), algorithm="recompute")),
    "pairs_of_few_distances": sb.explain(
        sb.TopKPairs(k=20, by="abs(a.x - b.x) * abs(a.y - b.y)", ascending=True, window=sb.sliding(100_000))
    ),
    "pairs_of_any_score": sb.explain(
        sb.TopKPairs(
            k=5,
            by="a.x / b.y",
            same="mote",
            where="a.x < b.x",
            window=sb.sliding("1 hour", every="1 minute", on="ts"),
        )
    ),
    "pairs_by_name": sb.explain(
        sb.TopKPairs(k=5, by=worth, window=sb.sliding(1_000), algorithm="staircase(batch=8)"), window_rows=1_000
    ),
    "from_the_start": sb.explain(sb.TopK(k=3, by="v", window=sb.landmark(every=1_000))),
}


@pytest.mark.parametrize("name", QUERIES)
def test_explained(name: str) -> None:
    assert f"{QUERIES[name]}\n" == (GOLDEN / f"{name}.txt").read_text()


def test_every_file_is_tested() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == QUERIES.keys()
