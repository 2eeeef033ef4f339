"""Example tests: what notebooks show of plans, queries, sessions and stats is whole HTML, and text stays text."""

from __future__ import annotations

from xml.etree import ElementTree

import pyarrow as pa
import pytest

import skyband as sb

ROWS = pa.table({"t": [1, 2, 3], "<b>": [3, 2, 1]})
QUERY = sb.TopK(k=2, by="<b>", window=sb.sliding(2, every=1, on="t"), per=())


def parsed(html: str) -> str:
    """All its text; raises unless every tag is closed."""
    return " ".join(ElementTree.fromstring(html).itertext())


def test_a_plan_is_a_graph_with_costs_and_what_else_was_considered() -> None:
    html = sb.explain(QUERY)._repr_html_()
    text = parsed(html)
    assert html.count("<rect") == 4
    for said in ("rows", "window", sb.explain(QUERY).plan.algorithm, "answers", "ns a row", "cannot:"):
        assert said in text


def test_a_box_of_a_plan_is_as_high_as_its_longest_text() -> None:
    bids = pa.table({"t": [1], "symbol": ["OAK"], "price": [2]})
    text = """EXPLAIN SELECT offers.symbol, COUNT(bids.*) AS n
    FROM offers [WINDOW 600 ON t], bids [WINDOW 200 EVERY 10 ON t]
    WHERE offers.symbol = bids.symbol GROUP BY offers.symbol"""
    html = sb.sql(text, offers=bids, bids=bids)._repr_html_()
    said = " ".join(parsed(html).split())
    for window in ("the last 600, every 10", "the last 200, every 10", "join: offers.symbol = bids.symbol"):
        assert window in said
    assert "…" not in said


@pytest.mark.parametrize(
    "query",
    [
        sb.TopKPairs(k=2, by="abs(a.x - b.x)", window=sb.sliding(5)),
        sb.TopKAcross(streams=("r1", "r2"), k=2, id="flow", value="size", window=sb.sliding(5, every=1, on="t")),
        sb.JoinAggregate(inputs=sb.sliding(5, every=1, on="t"), group_by="x", aggregates={"n": "COUNT(*)"}),
        sb.TopKForEach(k=1, by="abs(x - q.x)", window=sb.sliding(5), queries=pa.table({"id": [1], "x": [2]}), key="id"),
    ],
    ids=lambda query: type(query).__name__,
)
def test_every_kind_of_query_and_its_plan_can_be_shown(query: object) -> None:
    assert type(query).__name__ in parsed(query._repr_html_())
    assert "window" in parsed(sb.explain(query)._repr_html_())


def test_text_of_a_users_is_text() -> None:
    assert "<b>" not in QUERY._repr_html_()
    assert "<b>" in parsed(QUERY._repr_html_())


def test_a_session_and_its_stats_say_what_happened() -> None:
    session = QUERY.open(ROWS.schema)
    session.push(ROWS)
    assert session.algorithm in parsed(session._repr_html_())
    assert "rows in 3" in parsed(session.stats()._repr_html_())
    assert "late" not in parsed(session.stats()._repr_html_()), "what is zero is not said"
