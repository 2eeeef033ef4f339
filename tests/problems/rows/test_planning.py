"""Example tests: which algorithm the planner chooses, and what it expects of it."""

from __future__ import annotations

import math
import re
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from skyband.core.registry import every_algorithm_of
from skyband.problems.rows.planning import plan, specify
from skyband.windows import FOREVER

SCHEMA = pa.schema({"t": pa.int64(), "ts": pa.timestamp("us"), "v": pa.float64(), "g": pa.string()})


@pytest.mark.parametrize(
    ("window", "options", "algorithm"),
    [
        (sb.sliding(1_000_000, every=100_000), {}, "mintopk"),
        (sb.tumbling(1_000), {}, "mintopk"),
        (sb.sliding("1 hour", every="1 minute", on="ts"), {"per": "g"}, "mintopk"),
        (sb.landmark(every=10, on="t"), {}, "mintopk"),
        (sb.sliding(1_000_000, every=10_000), {"emit": "changes"}, "mintopk"),
        (sb.sliding(40_000), {}, "relaxed"),
        (sb.sliding("1 hour", on="ts"), {"emit": "entries"}, "relaxed"),
        (sb.sliding(1_000_000, every=100_000), {"ad_hoc": True}, "relaxed"),
        # Also when the answer is the whole window: recomputing from scratch is only for study.
        (sb.tumbling(5), {}, "mintopk"),
        (sb.sliding(5), {}, "relaxed"),
    ],
    ids=str,
)
def test_choice(window: sb.Window, options: dict[str, object], algorithm: str) -> None:
    query = sb.TopK(k=10, by="v", window=window, **options)  # type: ignore[arg-type]
    assert plan(specify(query, SCHEMA)).algorithm == algorithm
    assert query.open(SCHEMA).algorithm == algorithm
    assert sb.explain(query).plan.algorithm == algorithm


def test_a_large_k_is_cut_into_parts() -> None:
    query = sb.TopK(k=1_000, by="v", window=sb.sliding(60_000))
    assert plan(specify(query, SCHEMA)).algorithm == "partitioned"


@pytest.mark.parametrize("algorithm", every_algorithm_of("rows"))
def test_by_name(algorithm: str) -> None:
    window = sb.sliding(100) if algorithm == "budgeted" else sb.tumbling(100)
    query = sb.TopK(k=10, by="v", window=window, algorithm=algorithm, ties="rank" if algorithm == "tied" else None)
    chosen = plan(specify(query, SCHEMA), algorithm)
    assert (chosen.algorithm, chosen.why) == (algorithm, "named in the query")
    assert query.open(SCHEMA).algorithm == algorithm


def test_expected_rows() -> None:
    """A k-skyband of k (1 + ln(n/k)) rows on random order; with panes 2k to 3.5k; never more than the window."""
    spec = specify(sb.TopK(k=10, by="v", window=sb.sliding(1_000, every=100)), SCHEMA)
    assert every_algorithm_of("rows")["recompute"].expected_rows(spec, 1_000) == 1_000
    assert 20 <= every_algorithm_of("rows")["mintopk"].expected_rows(spec, 1_000) <= 40
    assert every_algorithm_of("rows")["relaxed"].expected_rows(spec, 1_000) == pytest.approx(
        10 * (1 + math.log(100)), rel=0.5
    )
    assert (
        every_algorithm_of("rows")["mintopk"].expected_rows(spec, 3)
        == every_algorithm_of("rows")["relaxed"].expected_rows(spec, 3)
        == 3
    )


def test_an_external_clock_never_moves_with_rows() -> None:
    query = sb.TopK(k=1, by="v", window=sb.tumbling(10, on="t"), lateness=3)
    assert specify(query, SCHEMA).window.lateness == 3
    assert specify(query, SCHEMA, external_clock=True).window.lateness == FOREVER


def test_options_behind_the_name() -> None:
    query = sb.TopK(k=1, by="v", window=sb.sliding(6), algorithm="relaxed(gamma=0.5)")
    session = query.open(SCHEMA)
    assert session.algorithm == "relaxed(gamma=0.5)"
    assert session._operator._kind.gamma == 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ("fastest", "No algorithm 'fastest'"),
        ("relaxed(delta=1)", "has no option 'delta'. It has: block"),
        ("relaxed(gamma=lots)", "'relaxed': gamma must be a number from 0 to 1,000, got lots."),
        ("relaxed(block=0)", "'relaxed': block must be a whole number from 1 to 1,000,000, got 0."),
        ("relaxed(gamma)", "Cannot read"),
        ("relaxed(gamma=1", "Cannot read"),
        ("__import__('os')", "Cannot read"),
        ("", "Cannot read"),
        (5, "Cannot read 5 as an algorithm"),
    ],
)
def test_names_that_are_not_there(algorithm: Any, said: str) -> None:
    query = sb.TopK(k=1, by="v", window=sb.sliding(6), algorithm=algorithm)
    with pytest.raises(sb.SkybandError, match=re.escape(said)):
        query.open(SCHEMA)
