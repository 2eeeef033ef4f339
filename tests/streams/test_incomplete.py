"""Example tests: streams that are never in step, and the web log."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import skyband as sb
from skyband.streams.incomplete import incomplete
from skyband.streams.weblog import weblog


@pytest.mark.parametrize("make", [incomplete, weblog])
def test_an_object_comes_at_most_once_in_a_stream(make: Callable[..., pa.Table]) -> None:
    made = make(2_000)
    pairs = list(zip(made["stream"].to_pylist(), made["id"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs)) == 2_000
    assert 0 <= min(made["value"].to_pylist()) <= max(made["value"].to_pylist()) <= 1
    assert made.equals(make(2_000))
    assert not made.equals(make(2_000, seed=2))


def test_xi_is_how_often_an_object_comes_again_elsewhere() -> None:
    distinct = [len(set(incomplete(3_000, xi=xi, recent=100)["id"].to_pylist())) for xi in (0.0, 0.5, 0.9)]
    assert distinct[0] == 3_000
    assert 1_500 < distinct[1] < 2_200
    assert distinct[2] < distinct[1]


def test_streams_come_in_turn() -> None:
    assert incomplete(5, streams=2)["stream"].to_pylist() == ["r1", "r2", "r1", "r2", "r1"]


def test_mistakes() -> None:
    with pytest.raises(sb.InvalidInput, match="xi must be a number from 0 to 1"):
        incomplete(5, xi=2)
