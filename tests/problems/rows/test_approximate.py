"""Algorithms that may be wrong now and then: not more often than they say, and alike however the stream is cut."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.rows.algorithms import APPROXIMATE, every_approximate_one
from conformance.rows.driver import Driver, spec_of
from conformance.rows.strategies import cases
from conformance.suite import batch_sizes, examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question, answers, by_group

from skyband.core.emit import ENTRIES
from skyband.core.registry import algorithms_of, find
from skyband.kernels.ranking import best_first
from skyband.problems.rows.algorithms.filtered.candidate_bound import candidates, chance
from skyband.problems.rows.operator import Batch, RowAlgorithm, RowOperator, Spec
from skyband.windows import Ticks

NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


@every_approximate_one
@examples(60)
@given(st.data(), batch_sizes())
def test_says_the_same_however_the_stream_is_cut(
    algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]
) -> None:
    case = data.draw(cases(algorithm))
    whole, cut = Driver(case.spec, algorithm.open), Driver(case.spec, algorithm.open)
    whole.run(case.events)
    cut.run(case.events, sizes, after_each=lambda: cut.operator.check())
    assert whole.lines == cut.lines
    assert whole.operator.held().tolist() == cut.operator.held().tolist()


@every_approximate_one
@examples(60)
@given(st.data(), batch_sizes())
def test_goes_on_from_its_state(algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = data.draw(cases(algorithm))
    steady, restarted = Driver(case.spec, algorithm.open), Driver(case.spec, algorithm.open)
    steady.run(case.events, sizes)
    restarted.run(case.events, sizes, after_each=restarted.restart)
    assert steady.lines == restarted.lines


@every_approximate_one
@examples(60)
@given(st.data(), batch_sizes())
def test_is_exact_while_a_window_has_no_more_rows_than_are_held(
    algorithm: RowAlgorithm, data: st.DataObject, sizes: list[int]
) -> None:
    case = data.draw(cases(algorithm))
    driver = Driver(case.spec, lambda spec: algorithm.open(spec, limit=1_000))
    driver.run(case.events, sizes)
    driver.finish()
    assert by_group(driver.lines) == by_group(answers(case.question, case.events))


def entries(operator: RowOperator, scores: np.ndarray, batch: int = 50_000) -> set[int]:
    """The rows that ever enter the answer."""
    found: set[int] = set()
    for first in range(0, len(scores), batch):
        found.update(operator.push(Batch(scores[first : first + batch], NO_TIMES, NO_GROUPS, first)).position.tolist())
    return found


def errors(algorithm: str, scores: np.ndarray, k: int, n: int) -> tuple[int, int]:
    """How many rows are missed, and how many shown that should not be."""
    spec = Spec(k, Ticks(n, 0, 0, True), ENTRIES)
    right, said = (
        entries(algorithms_of("rows")["relaxed"].open(spec), scores),
        entries(find(algorithm, "rows").open(spec), scores),
    )
    return len(right - said), len(said - right)


@pytest.mark.parametrize("name", list(APPROXIMATE))
@pytest.mark.parametrize(("k", "n"), [(5, 1_000), (20, 1_000), (10, 4_000)])
def test_errors_in_random_order_stay_within_the_bound(name: str, k: int, n: int) -> None:
    """With so large a sigma that there are errors to see: sigma N / n rows are missed at most, 1.5 times that shown."""
    rows, sigma = 2_000_000, 0.5
    missed, wrong = errors(f"{name}(sigma={sigma})", np.random.default_rng(k).random(rows), k, n)
    assert missed < sigma * rows / n
    assert wrong < 1.5 * sigma * rows / n


def test_probabilistic_misses_rows_when_scores_fall_and_hybrid_does_not() -> None:
    rows, k, n = 100_000, 5, 2_000
    falling = -np.arange(rows, dtype=float)
    noise = np.random.default_rng(1).random(rows)
    assert errors("probabilistic", falling, k, n)[0] > rows / 2
    assert errors("hybrid", falling, k, n) == (0, 0)
    # Once random order ends: a skyband's rows may be lost, those turned away before.
    then_falling = np.concatenate([noise, 0.5 + falling / rows + noise / 1000, noise])
    assert errors("hybrid", then_falling, k, n)[0] < k * (1 + np.log(n / k))
    assert errors("probabilistic", then_falling, k, n)[0] > 1_000


@pytest.mark.parametrize("far_above", [0.0, 1e9])
def test_hybrid_sees_that_one_of_two_sources_falls(far_above: float) -> None:
    """The scores of both together cross their median often enough; their skyband is too large."""
    rows, k, n = 100_000, 5, 2_000
    noise = np.random.default_rng(1).random(rows)
    both = np.where(np.arange(rows) % 2, noise, far_above + 1 - np.arange(rows) / rows)
    assert errors("probabilistic", both, k, n)[0] > 100
    assert errors("hybrid", both, k, n) == (0, 0)
    assert errors("hybrid", np.concatenate([noise, both]), k, n)[0] < k * (1 + np.log(n / k))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("infinity", [-np.inf, np.inf])
def test_infinite_scores_leave_a_threshold(share: float, infinity: float) -> None:
    """Two of them have no difference by which it could be lowered."""
    random = np.random.default_rng(1)
    scores = np.where(random.random(60_000) < share, infinity, random.random(60_000))
    for additional in (0, 3, 10):
        assert errors(f"probabilistic(additional={additional})", scores, 5, 1_000) == (0, 0)


def test_hybrid_changes_over_and_back() -> None:
    rng, spec = np.random.default_rng(2), Spec(5, Ticks(2_000, 0, 0, True), ENTRIES)
    operator = find("hybrid", "rows").open(spec)
    for first, scores, exact in [
        (0, rng.random(20_000), False),
        (20_000, np.cumsum(rng.normal(size=20_000)), True),
        (40_000, rng.random(20_000), False),
    ]:
        operator.push(Batch(scores, NO_TIMES, NO_GROUPS, first))
        operator.check()
        assert operator.exact_now == exact  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["probabilistic", "probabilistic_published"])
def test_the_paper_s_trace_of_the_probabilistic_skyband(name: str) -> None:
    """GOLDEN, table VI: top-1 of the last 6 rows, the smallest is best; limit 3, one additional candidate."""
    question = Question(k=1, size=6, by_count=True, emit="changes")
    operator = find(f"{name}(limit=3, additional=1)", "rows").open(spec_of(question, grouped=False))
    scores = [4, 1, 2, 7, 5, 10, 3, 7.5, 6, 11, 9]
    top = [1, 2, 2, 2, 2, 2, 2, 3, 7, 7, 7]
    candidates = ["", "1", "3 1", "3 1 4", "3 1 5 4", "3 1 5 4", "3 7 5 4", "7 5 4 8", "5 9 4 8", "5 9 8", "9 8 11"]
    no = np.inf
    thresholds = [no, no, no, no, 7, 7, 7, 7.5, 7.5, 7.5 + (7.5 - 6) / 2, no]
    for i, score in enumerate(scores):
        operator.push(Batch(np.array([-score], float), NO_TIMES, NO_GROUPS, i))
        operator.check()
        rows = operator._rows()[1]  # type: ignore[attr-defined]
        held = (rows["position"][best_first(rows)] + 1).tolist()
        assert held == [top[i], *map(int, candidates[i].split())]
        assert operator._state.groups["bar"][0] == -thresholds[i]  # type: ignore[attr-defined]


@examples(60)
@given(st.data(), batch_sizes())
def test_the_published_skyband_says_what_ours_does(data: st.DataObject, sizes: list[int]) -> None:
    """Rows of one time leave in any order, which changes the threshold: so there are none."""
    ours, published = find("probabilistic", "rows"), find("probabilistic_published", "rows")
    case = data.draw(cases(ours).filter(lambda case: case.question.by_count))
    options = {"limit": data.draw(st.integers(1, 4)), "additional": data.draw(st.integers(0, 2))}
    one, other = (Driver(case.spec, lambda spec, each=each: each.open(spec, **options)) for each in (ours, published))
    one.run(case.events, sizes)
    other.run(case.events, sizes, after_each=lambda: other.operator.check())
    assert one.lines == other.lines
    assert one.operator.held().tolist() == other.operator.held().tolist()
    assert other.operator.rows_held() >= len(other.operator.held())


TABLE_V = {
    1: (18, 22, 25, 28),
    2: (21, 25, 28, 32),
    5: (26, 30, 34, 38),
    10: (32, 37, 41, 46),
    20: (40, 46, 51, 56),
    50: (56, 65, 72, 78),
    100: (72, 86, 95, 103),
    200: (91, 116, 128, 138),
    500: (106, 172, 192, 207),
}


@pytest.mark.parametrize("k", TABLE_V)
def test_table_v_comes_out_of_the_formula(k: int) -> None:
    """The paper's shortcut: the first rank whose chance is below sigma / 2."""
    for n, printed in zip((10**3, 10**4, 10**5, 10**6), TABLE_V[k], strict=True):
        ranks = np.arange(k + 1, min(n, k + 400) + 1)
        assert ranks[chance(ranks, n, k) < 0.001 / 2][0] - 1 - k == printed


def test_candidates_by_the_tail_sum() -> None:
    sizes = (10**3, 10**4, 10**5, 10**6)
    assert [candidates(n, 20, 0.001) for n in sizes] == [41, 47, 52, 57]
    assert [candidates(n, 500, 0.001) for n in sizes] == [109, 180, 200, 214]
    assert candidates(10**3, 10, 0.001) == 32
