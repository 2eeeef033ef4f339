"""Oracle and golden tests of the published K-skyband of pairs: its search tree, and answers that follow the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conformance.pairs.driver import Driver, meaning, spec_of
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from oracle import Question
from pair_oracle import PairRow
from pair_oracle import top as expected_top

from skyband.core.emit import CHANGES
from skyband.core.registry import baselines_of, find
from skyband.expressions.pairs import bind
from skyband.problems.pairs.drivers.scoring import scoring_of
from skyband.problems.pairs.operator import PAIR, Batch, PairAlgorithm, Spec, best_first
from skyband.study.baselines.pairs.staircase_published.kernels import search_tree
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import NONE, ROOT, new_tree
from skyband.study.baselines.pairs.staircase_published.state import checked_slots
from skyband.study.baselines.pairs.threshold_published.local_scores import local_scores
from skyband.windows import Ticks

insert, remove = njit(search_tree.insert), njit(search_tree.remove)
PUBLISHED = {name: baselines_of("pairs")[name] for name in ("basic", "staircase_published", "threshold_published")}
every_baseline = pytest.mark.parametrize("algorithm", PUBLISHED.values(), ids=PUBLISHED)


def pairs_of(ages_and_scores: list[tuple[int, float]]) -> Any:
    """Pairs of these ages, the smallest score best."""
    pairs = np.zeros(len(ages_and_scores), PAIR)
    pairs["score"] = [-score for _, score in ages_and_scores]
    pairs["a"] = [100 - age for age, _ in ages_and_scores]
    pairs["b"] = np.arange(200, 200 + len(pairs))
    return pairs


def best(pairs: Any, slots: list[int], k: int, start: int) -> list[int]:
    """What looking at every pair finds."""
    live = [slot for slot in slots if pairs["a"][slot] >= start]
    return [live[i] for i in best_first(pairs[live])[:k]]


def searched(tree: Any, pairs: Any, k: int, start: int) -> list[int]:
    found = np.zeros(len(pairs), np.int64)
    return found[: search_tree.search(tree, pairs, k, start, found)].tolist()


def test_the_tree_of_figure_4() -> None:
    """Its pairs have ages 1 to 8. The scores are lost: these keep every order that the figure and the text show."""
    scores = {1: 6.0, 2: 9.0, 3: 8.0, 4: 7.0, 5: 3.0, 6: 4.0, 7: 2.0, 8: 1.0}
    pairs = pairs_of(list(scores.items()))
    in_order = best_first(pairs)
    tree = new_tree(8)
    search_tree.index(tree, pairs, in_order, 8)

    def below(age: int) -> list[int]:
        node = int(np.flatnonzero(tree.slot == age - 1)[0])
        return [int(tree.slot[child]) + 1 for child in (tree.left[node], tree.right[node]) if child != NONE]

    assert int(tree.slot[tree.numbers[ROOT]]) + 1 == 1
    assert {age: below(age) for age in scores} == {1: [5, 2], 2: [4, 3], 3: [], 4: [], 5: [7, 6], 6: [], 7: [8], 8: []}
    assert -tree.split["score"][tree.numbers[ROOT]] == 4, "the median under the dotted line"
    # Example 1: the best two of the last seven are p7 and p5.
    assert [slot + 1 for slot in searched(tree, pairs, 2, 100 - 7)] == [7, 5]


AGES = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 6).map(float)), min_size=1, max_size=60)


@given(AGES, st.data())
def test_a_tree_that_grows_and_shrinks_finds_what_looking_at_every_pair_finds(
    listed: list[tuple[int, float]], data: st.DataObject
) -> None:
    pairs, tree, held = pairs_of(listed), new_tree(len(listed)), list[int]()
    for slot in range(len(listed)):
        insert(tree, pairs, slot)
        held.append(slot)
        while held and data.draw(st.integers(0, 2)) == 0:
            remove(tree, pairs, held.pop(data.draw(st.integers(0, len(held) - 1))))
        assert sorted(checked_slots(tree, pairs, int(tree.numbers[ROOT]))) == sorted(held)
        k, start = data.draw(st.integers(1, 8)), 100 - data.draw(st.integers(0, 13))
        assert searched(tree, pairs, k, start) == best(pairs, held, k, start)


@pytest.mark.parametrize("order", ["rising", "falling", "random"])
def test_the_tree_stays_low_whatever_the_order(order: str) -> None:
    n = 2_000
    score = {"rising": np.arange(n), "falling": -np.arange(n), "random": np.random.default_rng(1).random(n)}[order]
    pairs, tree = np.zeros(n, PAIR), new_tree(n)
    pairs["score"], pairs["a"] = score, np.arange(n)
    for slot in range(n):
        insert(tree, pairs, slot)

    def height(node: int) -> int:
        return 0 if node == NONE else 1 + max(height(int(tree.left[node])), height(int(tree.right[node])))

    assert height(int(tree.numbers[ROOT])) <= np.log(n) / np.log(4 / 3) + 1


# -- continuous queries -----------------------------------------------------------------------------------------------


@every_baseline
@given(data=st.data())
def test_what_is_watched_is_what_the_oracle_says(algorithm: PairAlgorithm, data: st.DataObject) -> None:
    """Many k and sizes over one skyband, while rows come, some of them late."""
    by_count = data.draw(st.booleans())
    k, size = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 10))
    question = Question(k=k, size=size, every=None, by_count=by_count, emit="changes")
    score = "closest of the same"
    driver = Driver(spec_of(question, score), algorithm.open)
    asked = data.draw(st.lists(st.tuples(st.integers(1, k), st.integers(1, size)), min_size=1, max_size=4))
    value, events, now = st.integers(0, 3).map(float), list[PairRow](), 0
    since = data.draw(st.integers(0, 6))
    for i in range(data.draw(st.integers(1, 20))):
        now = max(now, now + data.draw(st.integers(-4, 3)))
        time = None if by_count else now - data.draw(st.sampled_from([0, 0, 2, 5]))
        events.append(PairRow((data.draw(value), data.draw(value)), time, 0))
        driver.run(events[i : i + 1])
        driver.operator.check()
        if i == since:
            first = driver.operator.watch(*(np.array(numbers) for numbers in zip(*asked, strict=True)))
        if i >= since:
            for which, (k_asked, size_asked) in enumerate(asked):
                pairs = driver.operator.watched(first + which)
                shown = list(zip(pairs["a_position"].tolist(), pairs["b_position"].tolist(), strict=True))
                expected = expected_top(question, meaning(score), events, k_asked, size_asked)
                assert shown == [(line.a, line.b) for line in expected]


def test_a_pair_of_a_row_that_leaves_is_replaced_from_the_tree() -> None:
    """Section 4.2: the best pair leaves with row 0, and no new pair takes its place: the next one held does."""
    question = Question(k=2, size=3, every=None, by_count=True, emit="changes")
    driver = Driver(spec_of(question, "closest of the same"), baselines_of("pairs")["staircase_published"].open)
    driver.run([PairRow((x, 0.0), None, 0) for x in (1.0, 1.5, 4.0)])
    assert [(line.a, line.b) for line in driver.top(2)] == [(0, 1), (1, 2)]
    driver.run([PairRow((9.0, 0.0), None, 0)])
    pairs = driver.operator.watched(0)
    assert pairs["b_position"].tolist() == [2, 3]
    assert pairs["a_position"].tolist() == [1, 2]


# -- the threshold algorithm ------------------------------------------------------------------------------------------

COLUMNS = pa.schema([("x", pa.float64()), ("y", pa.float64())])


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize(
    ("by", "colours"),
    [
        ("(a.x + b.x) - greatest(a.y, b.y)", {"different": True}),
        ("a.x * b.x + least(a.y, b.y)", {"same": True}),
        ("(a.x - b.x) * (a.x - b.x) + ln(1 + abs(a.y - b.y))", {}),
    ],
)
def test_rows_are_met_by_any_local_score_and_colour(by: str, colours: dict[str, bool], ascending: bool) -> None:
    spec = Spec(3, Ticks(20, 0, 0, by_count=False), scoring_of(bind(by, None, ascending, COLUMNS), **colours), CHANGES)
    for seed in range(3):
        random = np.random.default_rng(seed)
        operators = [find(name, "pairs").open(spec) for name in ("threshold_published(initial_room=1)", "recompute")]
        now = 0
        for first in range(0, 90, 3):
            now += 3
            values = random.choice(
                [-1.0, 0.0, 0.5, 1.0, np.inf, np.nan] if seed == 0 else random.normal(size=50), (2, 3)
            )
            time = now + random.integers(-15, 3, 3)  # some rows come late
            codes = random.integers(0, 2 + seed, (len(colours), 3)).astype(np.float64)
            shown, expected = (operator.push(Batch(values, codes, time, first)) for operator in operators)
            for name in ("at", "rank", "score", "a", "b", "change"):
                assert np.array_equal(getattr(shown, name), getattr(expected, name))
            operators[0].check()


@pytest.mark.parametrize(
    "by", ["a.x - b.x", "abs(a.x + b.x)", "abs(a.x - b.x) + a.x * b.x", "(a.x + b.x) * (a.y + b.y)"]
)
def test_a_score_without_local_scores_is_refused(by: str) -> None:
    assert local_scores(bind(by, None, True, COLUMNS)) is None
