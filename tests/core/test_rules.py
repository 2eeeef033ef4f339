"""Golden tests: what each rule of the planner decides of the same queries, one file a rule, compared as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from core.test_explain import COSTS, PAIR_COSTS

import skyband as sb
from skyband.core.plan import Draft, Measured, Read
from skyband.core.rules import RULES
from skyband.problems.joins.costs import Constants

GOLDEN = Path(__file__).parent / "rules"
JOIN_COSTS: Final = Constants(
    late=900.0,
    early=400.0,
    match=50.0,
    visit=50.0,
    gather=90.0,
    touch=400.0,
    slide=400_000.0,
    show=0.0,
    far=0.0,
    far_match=0.0,
)

TRADES: Final = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "id": pa.int64(), "symbol": pa.string(), "price": pa.float64(), "n": pa.int32()}
)
BIDS: Final = pa.schema({"ts": pa.timestamp("us", "UTC"), "auction": pa.int64(), "amount": pa.float64()})
HOUR: Final = sb.sliding("1 hour", every="1 minute", on="ts")
FLOWS: Final = {"k": 5, "id": "flow", "value": "size", "streams": ["r1", "r2"]}

DRAFTS: Final = {
    "the best rows of a table": Draft(
        sb.TopK(k=10, by="price * n", window=HOUR),
        (Read("trades", TRADES, ("ts", "price", "n"), "n > 5"),),
        on_spark=False,
    ),
    "the same, run": Draft(
        sb.TopK(k=10, by="price * n", window=HOUR),
        (Read("trades", TRADES, ("ts", "price", "n"), "n > 5"),),
        on_spark=False,
        measured=Measured(100_000, 12, 400, 0.25, 31.0, 52.0, 40.0),
    ),
    "for each symbol, on Spark": Draft(
        sb.TopK(k=10, by="price", window=HOUR, per="symbol"),
        (Read("trades", TRADES, tuple(TRADES.names), "n > 5"),),
        on_spark=True,
    ),
    "of arrivals, nobody knows where": Draft(sb.TopK(k=9, by="price", window=sb.sliding(40_000))),
    "two panes a slide": Draft(sb.TopK(k=9, by="price", window=sb.sliding(70, every=20, on="t"), emit="entries")),
    "few rows may be missed": Draft(sb.TopK(k=9, by="price", window=sb.sliding(40_000, order="seq"), error=0.001)),
    "pairs on Spark": Draft(
        sb.TopKPairs(k=3, by="abs(a.price - b.price)", window=HOUR, different="id"),
        (Read("trades", TRADES, ("ts", "id", "price")),),
        on_spark=True,
    ),
    "pairs of one symbol": Draft(sb.TopKPairs(k=3, by="a.price / b.price", window=HOUR, same="symbol")),
    "across streams": Draft(sb.TopKAcross(**FLOWS, window=HOUR)),
    "across streams, most of it": Draft(sb.TopKAcross(**FLOWS, window=sb.sliding(1_000, order="seq"), recall=0.95)),
    "heaviest flows": Draft(sb.TopKAcross(k=5, id="flow", value="size", window=HOUR, repeat="sum")),
    "a join on Spark": Draft(
        sb.JoinAggregate(
            inputs={"t": HOUR, "b": sb.sliding("2 hours", on="ts")},
            on="t.id = b.auction",
            group_by="t.id",
            aggregates={"paid": "SUM(b.amount)"},
            every="1 minute",
        ),
        (Read("t", TRADES, ("ts", "id")), Read("b", BIDS, tuple(BIDS.names))),
        on_spark=True,
    ),
    "the best groups": Draft(
        sb.JoinAggregate(
            inputs={"t": HOUR}, group_by="t.symbol", aggregates={"n": "COUNT(*)"}, order_by="n", k=3, every="1 minute"
        )
    ),
}


def decided(name: str) -> str:
    """What the rule says of every query."""
    rule = next(rule for rule in RULES if rule.__name__ == name)
    said = []
    for title, draft in DRAFTS.items():
        lines = [line for step in rule(draft).steps for line in step.lines()]
        said.append("\n".join([title, *(lines or ["  nothing"])]))
    return "\n\n".join(said) + "\n"


@pytest.mark.parametrize("name", [rule.__name__ for rule in RULES])
def test_decided(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skyband.problems.rows.planning.known_costs", lambda: COSTS)
    monkeypatch.setattr("skyband.problems.pairs.planning.known_pair_costs", lambda: PAIR_COSTS)
    monkeypatch.setattr("skyband.problems.joins.costs.known_constants", lambda: JOIN_COSTS)
    assert decided(name) == (GOLDEN / f"{name}.txt").read_text()


def test_every_file_is_a_rule() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {rule.__name__ for rule in RULES}
