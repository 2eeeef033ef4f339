"""Golden tests: the plan in words, one file a query, compared as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyband as sb
from skyband.problems.pairs.costs import DISTANCES, KINDS, PairCosts
from skyband.problems.pairs.costs import KS as PAIR_KS
from skyband.problems.rows.costs import KS, SHAPES, Costs, window_rows_of

GOLDEN = Path(__file__).parent / "explained"


def worth(price, volume):  # type: ignore[no-untyped-def]
    return price * volume


# Made up: what ships is measured anew now and then.
NS_PER_ROW = {
    "mintopk": 1.0,
    "relaxed": 4.0,
    "partitioned": 20.0,
    "staircase": 150.0,
    "relaxed+probabilistic": 300.0,
    "probabilistic": 2.0,
    "hybrid": 2.5,
}
COSTS = Costs(
    "made up",
    {
        name: {"random": [[[ns] * len(KS) for _ in window_rows_of(s)] for s in SHAPES]}
        for name, ns in NS_PER_ROW.items()
    },
)

PAIR_COSTS = PairCosts(
    "made up",
    {
        name: {kind: [[[1_000.0, 4_000.0, ns] for _ in DISTANCES] for _ in PAIR_KS] for kind in KINDS}
        for name, ns in {"staircase": 30_000.0, "threshold": 8_000.0}.items()
    },
)


def explained(query: Any, **told: float) -> Callable[[], str]:
    return lambda: f"{sb.explain(query, **told)}\n"


QUERIES: dict[str, Callable[[], str]] = {
    "panes": explained(sb.TopK(k=10, by="price * volume", window=sb.sliding(1_000_000, every=100_000))),
    "each_arrival": explained(sb.TopK(k=9, by="price", window=sb.sliding(40_000), ascending=True)),
    "per_group": explained(
        sb.TopK(k=10, by=worth, window=sb.sliding("1 hour", every="1 minute", on="ts"), per=["symbol", "side"])
    ),
    "rows_told": explained(
        sb.TopK(k=10, by="v", window=sb.tumbling("1 day", on="ts"), emit="changes"), window_rows=5e6
    ),
    "error": explained(sb.TopK(k=9, by="price", window=sb.sliding(40_000), error=0.001)),
    "error_by_panes": explained(sb.TopK(k=9, by="price", window=sb.sliding(40_000, every=100), error=0.001)),
    "ad_hoc": explained(sb.TopK(k=10, by="v", window=sb.sliding(10_000, every=100), ad_hoc=True)),
    "by_name": explained(sb.TopK(k=10, by="v", window=sb.sliding(100, every=10), algorithm="recompute")),
    "pairs_of_few_distances": explained(
        sb.TopKPairs(k=20, by="abs(a.x - b.x) * abs(a.y - b.y)", ascending=True, window=sb.sliding(100_000))
    ),
    "pairs_of_any_score": explained(
        sb.TopKPairs(
            k=5,
            by="a.x / b.y",
            same="mote",
            where="a.x < b.x",
            window=sb.sliding("1 hour", every="1 minute", on="ts"),
        )
    ),
    "pairs_by_name": explained(
        sb.TopKPairs(k=5, by=worth, window=sb.sliding(1_000), algorithm="staircase(batch=8)"), window_rows=1_000
    ),
    "from_the_start": explained(sb.TopK(k=3, by="v", window=sb.landmark(every=1_000))),
}


@pytest.mark.parametrize("name", QUERIES)
def test_explained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyband.problems.rows.planning.known_costs", lambda: COSTS)
    monkeypatch.setattr("skyband.problems.pairs.planning.known_pair_costs", lambda: PAIR_COSTS)
    assert QUERIES[name]() == (GOLDEN / f"{name}.txt").read_text()


def test_every_file_is_tested() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == QUERIES.keys()
