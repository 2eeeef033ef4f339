"""Example and restart tests: how many different values a group has."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.problems.joins.query import JoinAggregate

PLANS = ["late", "early", "multiply", "recompute"]
NAN = float("nan")


def counted(values: pa.Array, plan: str | None = None) -> int:
    """How many different values there are."""
    rows = pa.table({"t": pa.array([1] * len(values), pa.int64()), "x": values})
    window = sb.tumbling(10, on="t")
    answer = sb.join_aggregate(rows, window=window, aggregates={"n": "COUNT(DISTINCT x)"}, plan=plan)
    return int(answer["n"].to_pylist()[0])


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    ("values", "number"),
    [
        (pa.array([0.0, -0.0, NAN, NAN, 1.5, None]), 3),
        (pa.array([None, None], pa.int64()), 0),
        (pa.array(["a", "A", "", "a", None]), 3),
        (pa.array(["a", "b", "a"]).dictionary_encode(), 2),
        (pa.array([Decimal("1.00"), Decimal("1.0"), Decimal("-0.01")], pa.decimal128(10, 2)), 2),
        (pa.array([2**63 + 1, 2**63 + 2, 2**63 + 1], pa.uint64()), 2),
        (pa.array([2**53, 2**53 + 1], pa.int64()), 2),
        (pa.array([True, False, None, True]), 2),
        (pa.array([date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1)]), 2),
        (pa.array([datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)]), 2),
        (pa.array([b"x", b"", b"x"]), 2),
    ],
)
def test_values_of_every_type_are_told_apart(values: pa.Array, number: int, plan: str) -> None:
    assert counted(values, plan) == number


ROWS = pa.table({
    "t": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "g": ["p", "p", "q", "p", None, "q", "q", "p", "p", None],
    "x": ["a", "b", "a", "a", "c", None, "b", "a", "d", "c"],
})  # fmt: skip


@pytest.mark.parametrize("plan", PLANS)
def test_a_value_counts_until_its_last_row_has_gone(plan: str) -> None:
    options = {"window": sb.sliding(4, on="t"), "group_by": "g", "aggregates": {"n": "COUNT(DISTINCT x)"}}
    answer = sb.join_aggregate(ROWS, **options, plan=plan)  # type: ignore[arg-type]
    assert [(row["at"], row["change"][0], row["g"], row["n"]) for row in answer.to_pylist()] == [
        (0, "u", "p", 1),
        (1, "u", "p", 2),
        (2, "u", "q", 1),
        (4, "u", None, 1),
        (5, "u", "p", 1),
        (8, "d", None, None),
        (8, "u", "p", 2),
        (9, "u", None, 1),
    ]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("every", [None, 2])
def test_a_restart_anywhere_changes_nothing(plan: str, every: int | None) -> None:
    query = JoinAggregate(
        inputs={"a": sb.sliding(4, on="t"), "b": sb.sliding(3, on="t")},
        on="a.g = b.g",
        group_by=["a.x", "b.x"],
        aggregates={"n": "COUNT(DISTINCT b.t)", "m": "COUNT(DISTINCT a.g)", "c": "COUNT(*)"},
        every=every,
        plan=plan,
    )
    schemas = {"a": ROWS.schema, "b": ROWS.schema}

    def run(*, restarts: bool) -> list[dict[str, Any]]:
        session = query.open(schemas)
        found: list[dict[str, Any]] = []
        for i in range(len(ROWS)):
            for name in ("a", "b"):
                found += session.push(ROWS.slice(i, 1), name).to_pylist()
                if restarts:
                    session = query.open(schemas, session.snapshot())
        return found + session.finish().to_pylist()

    assert run(restarts=True) == run(restarts=False) != []


def test_other_plans_go_on_from_a_snapshot() -> None:
    options: dict[str, Any] = {
        "inputs": sb.sliding(6, every=2, on="t"),
        "group_by": "g",
        "aggregates": {"n": "COUNT(DISTINCT x)"},
    }
    first = JoinAggregate(**options, plan="multiply").open(ROWS.schema)
    before = first.push(ROWS.slice(0, 6)).to_pylist()
    second = JoinAggregate(**options, plan="late").open(ROWS.schema, first.snapshot())
    after = second.push(ROWS.slice(6)).to_pylist() + second.finish().to_pylist()
    whole = JoinAggregate(**options).open(ROWS.schema)
    assert before + after == whole.push(ROWS).to_pylist() + whole.finish().to_pylist()


@pytest.mark.parametrize("plan", ["late", "early", "multiply"])
def test_values_that_are_gone_are_forgotten(plan: str) -> None:
    """Cells, values and tallies stay as many as are live, however many came."""
    query = JoinAggregate(
        inputs=sb.sliding(50, every=10, on="t"), group_by="g", aggregates={"n": "COUNT(DISTINCT x)"}, plan=plan
    )
    schema = pa.schema({"t": pa.int64(), "g": pa.int64(), "x": pa.string()})
    session, longest = query.open(schema), 0
    for start in range(0, 60_000, 2_000):
        times = range(start, start + 2_000)
        rows = pa.table({"t": times, "g": [t % 3 for t in times], "x": [f"value {t}" for t in times]}, schema=schema)
        answer = session.push(rows)
        assert set(answer["n"].to_pylist()[-9:]) <= {16, 17}
        longest = max(longest, len(session.snapshot()))
    session.check()
    assert longest < 1_000_000


def test_explain_shows_that_groups_stay_whole() -> None:
    query = JoinAggregate(inputs=sb.sliding(6, every=2, on="t"), group_by="g", aggregates={"n": "COUNT(DISTINCT x)"})
    assert "COUNT(DISTINCT x) AS n for each g" in str(sb.explain(query))
