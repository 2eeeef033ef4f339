"""Golden tests: the worked examples of Haghani, Michel, Aberer, CIKM 2009 (figures 1 and 2).

Their window of 100 lets a value of time t count at time T when t >= T - 100. Ours holds what is later than now - size,
so it is a window of 101.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from tables import table

import skyband as sb
from skyband.core.registry import every_algorithm_of
from skyband.problems.across.combining import resolve
from skyband.problems.across.drivers.kernels.scoring import scoring_of
from skyband.problems.across.drivers.kernels.slots import best_score, current_score, new_slots, take_value
from skyband.problems.across.operator import AcrossSpec
from skyband.windows import Ticks

STREAMS = {
    "r1": table("flow size t\n p .3 10\n q .2 11\n r .5 109\n o .5 110\n t .9 111"),
    "r2": table("flow size t\n r .6 10\n p .1 11\n q .7 109\n w .6 110\n s .2 111"),
    "r3": table("flow size t\n q .6 10\n r .1 11\n o .5 109\n s .4 110\n t .1 111"),
}
SCORES = {
    10: {"p": 0.3, "r": 0.6, "q": 0.6},
    11: {"p": 0.4, "r": 0.7, "q": 0.8},
    109: {"p": 0.4, "r": 1.2, "q": 1.5, "o": 0.5},
    110: {"p": 0.4, "r": 1.2, "q": 1.5, "o": 1.0, "w": 0.6, "s": 0.4},
    111: {"p": 0.1, "r": 0.6, "q": 0.9, "o": 1.0, "w": 0.6, "s": 0.6, "t": 1.0},
}


@pytest.mark.parametrize(
    "algorithm", [name for name in every_algorithm_of("across") if every_algorithm_of("across")[name].exact]
)
def test_scores_at_each_time(algorithm: str) -> None:
    query = sb.TopKAcross(
        k=10, id="flow", value="size", streams=list(STREAMS), window=sb.sliding(101, on="t"), algorithm=algorithm
    )
    session = query.open(STREAMS["r1"].schema)
    for i, now in enumerate(SCORES):
        for name, rows in STREAMS.items():
            session.push(rows.slice(i, 1), stream=name)
        answer = session.top()
        found = dict(zip(answer["flow"].to_pylist(), answer["score"].to_pylist(), strict=True))
        assert set(answer["window_end"].to_pylist()) == {now}
        assert found == pytest.approx(SCORES[now])


def test_the_same_in_one_call() -> None:
    window = sb.sliding(101, every=1, on="t")
    answer = sb.top_k_across(STREAMS, k=2, id="flow", value="size", window=window)
    # The window that ends at 111, and does not hold it, is what counts at 110.
    at_110 = answer.filter(pa.compute.equal(answer["window_end"], 111)).to_pylist()
    assert [(row["flow"], row["r1"], row["r2"], row["r3"]) for row in at_110] == [
        ("q", 0.2, 0.7, 0.6),
        ("r", 0.5, 0.6, 0.1),
    ]


def test_instances_and_their_score_intervals() -> None:
    """Values .2 (t=1, stream 2), .3 (t=5, stream 3), .8 (t=10, stream 1), each living 100."""
    low, high = (0.0,) * 3, (1.0,) * 3
    scoring = scoring_of(AcrossSpec(1, Ticks(101, 0, 0, False), 1, resolve("sum", "abc", low, high), low, high))
    slots = new_slots(1, 3)

    def intervals() -> list[tuple[float, float]]:
        moments = sorted(last for last in slots["last"][0].tolist() if last > 0)
        return [(current_score(slots, 0, last, scoring), best_score(slots, 0, last, scoring)) for last in moments]

    take_value(slots, 0, 1, 0.2, 1, 0, 101)
    assert intervals() == [pytest.approx((0.2, 2.2))]
    take_value(slots, 0, 2, 0.3, 5, 1, 105)
    assert intervals() == [pytest.approx((0.5, 1.5)), pytest.approx((0.3, 1.3))]
    take_value(slots, 0, 0, 0.8, 10, 2, 110)
    assert intervals() == [pytest.approx((1.3, 1.3)), pytest.approx((1.1, 1.1)), pytest.approx((0.8, 0.8))]
