"""Oracle tests on long streams: pools that grow, panes of many rows, guessed thresholds, selection, compaction.

The oracle here is numpy, or a sorted list: as plain as the other one, and fast enough for tens of thousands of rows.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from conformance.rows.algorithms import EXACT
from conformance.rows.driver import spec_of
from oracle import Question

from skyband.core.emit import ENTER
from skyband.core.operator import Answer
from skyband.kernels.panes import SAMPLE
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import STEPS
from skyband.problems.rows.algorithms.mintopk.state import MinTopK
from skyband.problems.rows.operator import Batch, RowAlgorithm, RowOperator

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


def all_that_take(question: Question) -> pytest.MarkDecorator:
    """Every algorithm for such a query that is not only for comparing: for those these streams are too long."""
    able = [a for a in EXACT.values() if not a.for_comparing and a.refuses(spec_of(question)) is None]
    return pytest.mark.parametrize("algorithm", able, ids=[algorithm.name for algorithm in able])


slides = all_that_take(Question(k=1, size=2, every=1))
slides_with_each_arrival = all_that_take(Question(k=1, size=2, emit="changes"))


def some_scores(shape: str, n: int) -> Floats:
    random = np.random.default_rng(7)
    scores = {
        "uniform": random.random(n),
        "ties": random.integers(0, 50, n).astype(float),
        "equal": np.ones(n),
        "rising": np.arange(n, dtype=float),
        "falling": -np.arange(n, dtype=float),
        "waves": np.sin(np.arange(n) / 700) + random.random(n) / 10,
        "infinities": np.where(
            random.random(n) < 0.3, np.inf, np.where(random.random(n) < 0.5, -np.inf, random.random(n))
        ),
        "without many": np.where(random.random(n) < 0.999, np.nan, random.random(n)),
    }[shape]
    scores[random.random(n) < 0.01] = np.nan
    return scores


SHAPES = ("uniform", "ties", "equal", "rising", "falling", "waves", "infinities", "without many")


def push_all(operator: RowOperator, score: Floats, time: Ints, group: Ints, batch: int) -> Answer:
    """All the answers, and every invariant on the way."""
    said = []
    for i in range(0, len(score), batch):
        rows = slice(i, i + batch)
        said.append(operator.push(Batch(score[rows], time[rows], group[rows].astype(np.int32), i)))
    operator.check()
    return Answer(*(np.concatenate(columns) for columns in zip(*said, strict=True)))


def best(score: Floats, time: Ints, rows: Ints, k: int) -> Ints:
    """Which of these rows are the k best."""
    ranked = rows[~np.isnan(score[rows])]
    return ranked[np.lexsort((-ranked, -time[ranked], -score[ranked]))[:k]]


@slides
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("k", "size", "every"), [(10, 30_000, 6_000), (100, 25_000, 10_000), (1_000, 40_000, 20_000)])
def test_windows_by_count(algorithm: RowAlgorithm, shape: str, k: int, size: int, every: int) -> None:
    spec = spec_of(Question(k=k, size=size, every=every, by_count=True), grouped=False)
    n = 60_000
    score, position = some_scores(shape, n), np.arange(n)
    expected = [
        (end, best(score, position, position[max(0, end - size) : end], k)) for end in range(every, n + 1, every)
    ]
    for batch in (n, 7_001):
        operator = algorithm.open(spec)
        answer = push_all(operator, score, NO_TIMES, NO_GROUPS, batch)
        assert_windows(answer, expected, score)


@slides
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [5, 200])
def test_windows_by_value_out_of_order(algorithm: RowAlgorithm, shape: str, k: int) -> None:
    """Rows up to 300 late, waited for; a thousand rows a slide."""
    n, size, every, lateness = 20_000, 3_500, 1_000, 300
    spec = spec_of(Question(k=k, size=size, every=every, lateness=lateness), grouped=False)
    score = some_scores(shape, n)
    time = np.arange(n) - np.random.default_rng(3).integers(0, lateness, n)
    closed = range(every, (time.max() - lateness) // every * every + 1, every)
    windows = [(end, np.flatnonzero((time >= end - size) & (time < end))) for end in (0, *closed)]
    expected = [(end, best(score, time, rows, k)) for end, rows in windows]
    answer = push_all(algorithm.open(spec), score, time, NO_GROUPS, 3_000)
    assert_windows(answer, expected, score)


@slides
def test_many_groups(algorithm: RowAlgorithm) -> None:
    """A thousand groups, very different in size, that come and go."""
    n, k, size, every = 40_000, 3, 6_000, 2_000
    spec = spec_of(Question(k=k, size=size, every=every))
    random = np.random.default_rng(5)
    score, time = random.integers(0, 500, n).astype(float), np.arange(n)
    group = np.minimum(random.zipf(1.3, n), 500) + np.where(time > n // 2, 500, 0)
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]  # numbered in order of first appearance
    answer = push_all(algorithm.open(spec), score, time, group, 5_000)
    found = set(
        zip(answer.at.tolist(), answer.group.tolist(), answer.rank.tolist(), answer.position.tolist(), strict=True)
    )
    assert len(found) == len(answer.at)
    expected = set()
    for end in range(every, n, every):
        rows = np.arange(max(0, end - size), end)
        ranked = rows[np.lexsort((-rows, -score[rows], group[rows]))]
        ranks = np.arange(len(rows)) - np.searchsorted(group[ranked], group[ranked]) + 1
        shown = ranks <= k
        expected |= set(
            zip(
                [end] * shown.sum(),
                group[ranked][shown].tolist(),
                ranks[shown].tolist(),
                ranked[shown].tolist(),
                strict=True,
            )
        )
    assert found == expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [5, 40])
def test_many_rows_of_few_groups(shape: str, k: int) -> None:
    """`mintopk` takes them together, and small k otherwise than large; rows come late, and panes in several batches."""
    n, size, every, lateness, groups = 12_000, 9_000, 3_000, 200, 3
    random = np.random.default_rng(3)
    score, time = some_scores(shape, n), np.arange(n) - random.integers(0, lateness, n)
    group = np.concatenate([np.arange(groups), random.integers(0, groups, n - groups)])
    spec = spec_of(Question(k=k, size=size, every=every, lateness=lateness))
    answer = push_all(EXACT["mintopk"].open(spec), score, time, group, 2_000)
    for g in range(groups):
        rows = np.flatnonzero(group == g)
        windows = [
            (end, rows[(time[rows] >= end - size) & (time[rows] < end)]) for end in range(0, n - lateness, every)
        ]
        shown = Answer(*(column[answer.group == g] for column in answer))
        assert_windows(shown, [(end, best(score, time, rows, k)) for end, rows in windows], score)


# -- ten thousand slides in a window ----------------------------------------------------------------------------------


def top_of_slides(
    score: Floats, time: Ints, size: int, every: int, k: int, ends: range
) -> Iterator[tuple[int, list[tuple[float, int, int]]]]:
    """The k best rows of each window that holds one, as (-score, -time, -row): a sorted list, rows put in and out.

    Rows are in order of time.
    """
    window: list[tuple[float, int, int]] = []
    keys = [(-value, -at, -row) for row, (value, at) in enumerate(zip(score.tolist(), time.tolist(), strict=True))]
    first = after = 0
    for end in ends:
        while after < len(keys) and -keys[after][1] < end:
            if keys[after][0] == keys[after][0]:
                bisect.insort(window, keys[after])
            after += 1
        while first < after and -keys[first][1] < end - size:
            if keys[first][0] == keys[first][0]:
                window.pop(bisect.bisect_left(window, keys[first]))
            first += 1
        yield end, window[:k]


def said_of_slides(
    tops: Iterator[tuple[int, list[tuple[float, int, int]]]], emit: str
) -> Iterator[tuple[int, int, int, int]]:
    """(at, change, rank, position) of these answers, as windows, changes or entries."""
    before: list[tuple[float, int, int]] = []
    ever: set[int] = set()
    for at, top in tops:
        rows, gone = {row[2] for row in before}, {row[2] for row in top}
        if emit == "changes":
            yield from ((at, -ENTER, rank, -row[2]) for rank, row in enumerate(before, 1) if row[2] not in gone)
        shown = {"windows": set(), "changes": rows, "entries": ever}[emit]
        yield from ((at, ENTER, rank, -row[2]) for rank, row in enumerate(top, 1) if row[2] not in shown)
        ever |= gone
        before = top


@pytest.mark.parametrize("emit", ["windows", "changes", "entries"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("k", "every"), [(1, 1), (7, 2), (20, 1)])
def test_ten_thousand_slides_by_count(shape: str, emit: str, k: int, every: int) -> None:
    check_ten_thousand_slides(EXACT["mintopk"], shape, emit, k, every)


@slides
@pytest.mark.parametrize("emit", ["windows", "changes"])
@pytest.mark.parametrize("shape", ["ties", "falling"])
def test_ten_thousand_slides_of_a_row(algorithm: RowAlgorithm, shape: str, emit: str) -> None:
    check_ten_thousand_slides(algorithm, shape, emit, 5, 1)


def check_ten_thousand_slides(algorithm: RowAlgorithm, shape: str, emit: str, k: int, every: int) -> None:
    """A window of 10,000 slides of a row or two; it fills, and slides on for a quarter of its size."""
    size = 10_000 * every
    n = size + size // 4
    spec = spec_of(Question(k=k, size=size, every=every, by_count=True, emit=emit), grouped=False)
    score, position = some_scores(shape, n), np.arange(n)
    answer = push_all(algorithm.open(spec), score, NO_TIMES, NO_GROUPS, 3_001)
    tops = top_of_slides(score, position, size, every, k, range(every, n + 1, every))
    assert said(answer) == list(said_of_slides(tops, emit))


@pytest.mark.parametrize("emit", ["windows", "changes", "entries"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_slides_by_value(shape: str, emit: str) -> None:
    """Some slides bring no row and some bring many, now and then none comes for a whole window, and rows come late."""
    n, k, size, every, lateness = 8_000, 5, 20_001, 2, 30
    random = np.random.default_rng(2)
    time = np.cumsum(random.choice([0, 1, 2, 9], n)) + np.where(np.arange(n) > 6_000, 2 * size, 0)
    score = some_scores(shape, n)
    spec = spec_of(Question(k=k, size=size, every=every, lateness=lateness, emit=emit), grouped=False)
    shuffled = np.argsort(time + random.integers(0, lateness, n), kind="stable")
    operator = EXACT["mintopk"].open(spec)
    closed = range(every, (time[shuffled].max() - lateness) // every * every + 1, every)
    answer = push_all(operator, score[shuffled], time[shuffled], NO_GROUPS, 1_000)
    # In order of time, and of those at the same time in the order in which they came.
    order = np.lexsort((np.arange(n), time[shuffled]))
    tops = top_of_slides(score[shuffled][order], time[shuffled][order], size, every, k, closed)
    renamed = ((at, change, rank, int(order[row])) for at, change, rank, row in said_of_slides(tops, emit))
    assert said(answer) == list(renamed)


@pytest.mark.parametrize("emit", ["windows", "changes"])
def test_groups_with_few_and_with_many_slides(emit: str) -> None:
    """By count each group has its own windows; the rows of one are thousands and those of another a handful."""
    n, k, size, every = 30_000, 3, 5_000, 1
    random = np.random.default_rng(5)
    group = np.minimum(random.zipf(1.4, n), 40)
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]
    score = some_scores("waves", n)
    spec = spec_of(Question(k=k, size=size, every=every, by_count=True, emit=emit))
    answer = push_all(EXACT["mintopk"].open(spec), score, NO_TIMES, group, 4_000)
    for g in range(group.max() + 1):
        rows = np.flatnonzero(group == g)
        tops = top_of_slides(score[rows], np.arange(len(rows)), size, every, k, range(every, len(rows) + 1, every))
        renamed = [(at, change, rank, int(rows[row])) for at, change, rank, row in said_of_slides(tops, emit)]
        assert said(Answer(*(column[answer.group == g] for column in answer))) == renamed


def said(answer: Answer) -> list[tuple[int, int, int, int]]:
    return list(
        zip(answer.at.tolist(), answer.change.tolist(), answer.rank.tolist(), answer.position.tolist(), strict=True)
    )


def steps_of_a_slide(slides: int, every: int, k: int, emit: str, scores: Floats) -> float:
    """Rows that `mintopk` merges or looks at when a window of so many slides closes, on average once it is full."""
    size = slides * every
    operator = MinTopK(spec_of(Question(k=k, size=size, every=every, by_count=True, emit=emit), grouped=False))
    operator.push(Batch(scores[:size], NO_TIMES, NO_GROUPS, 0))
    before = operator._clock[STEPS]
    operator.push(Batch(scores[size : size + size // 2], NO_TIMES, NO_GROUPS, size))
    return float(operator._clock[STEPS] - before) / (slides // 2)


@pytest.mark.parametrize("emit", ["windows", "changes"])
@pytest.mark.parametrize(("k", "every"), [(10, 1), (10, 10), (100, 10), (10, 100)])
def test_what_a_slide_takes_does_not_grow_with_the_slides_of_a_window(k: int, every: int, emit: str) -> None:
    """A hundred times the slides: at most half as many steps more, where merging the whole list takes as many again."""
    scores = np.random.default_rng(11).random(15_000 * every)
    few, many = (steps_of_a_slide(slides, every, k, emit, scores) for slides in (100, 10_000))
    assert many <= 1.5 * few


@slides_with_each_arrival
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [9, 81])
def test_changes_with_each_arrival(algorithm: RowAlgorithm, shape: str, k: int) -> None:
    n, size = 6_000, 1_000
    spec = spec_of(Question(k=k, size=size, by_count=True, emit="changes"), grouped=False)
    score = some_scores(shape, n)
    answer = push_all(algorithm.open(spec), score, NO_TIMES, NO_GROUPS, 2_500)
    found = zip(answer.at.tolist(), answer.change.tolist(), answer.rank.tolist(), answer.position.tolist(), strict=True)
    assert list(found) == list(changes_in_a_sorted_list(score, size, k))


def changes_in_a_sorted_list(score: Floats, size: int, k: int) -> Iterator[tuple[int, int, int, int]]:
    """(at, change, rank, position) of a window of arrivals that slides with each: insert one, delete one, compare."""
    window: list[tuple[float, int]] = []  # (-score, -position), so best first
    before: list[tuple[float, int]] = []
    for position, value in enumerate(score.tolist()):
        if value == value:
            bisect.insort(window, (-value, -position))
        gone = position - size
        if gone >= 0 and score[gone] == score[gone]:
            window.pop(bisect.bisect_left(window, (-score[gone], -gone)))
        after = window[:k]
        if after != before:
            yield from ((position + 1, -ENTER, rank, -row[1]) for rank, row in enumerate(before, 1) if row not in after)
            yield from ((position + 1, ENTER, rank, -row[1]) for rank, row in enumerate(after, 1) if row not in before)
        before = after


@slides
def test_a_guess_that_misleads(algorithm: RowAlgorithm) -> None:
    """Thresholds are guessed from a sample. Here only the sampled rows are high, and far fewer than k reach it."""
    n, k = 20 * SAMPLE, 1_000
    spec = spec_of(Question(k=k, size=n, every=n, by_count=True), grouped=False)
    score, position = np.random.default_rng(1).random(n), np.arange(n)
    score[::20] += 1_000
    assert_windows(
        push_all(algorithm.open(spec), score, NO_TIMES, NO_GROUPS, n), [(n, best(score, position, position, k))], score
    )


def assert_windows(answer: Answer, expected: list[tuple[int, Ints]], score: Floats) -> None:
    assert answer.at.tolist() == [end for end, rows in expected for _ in rows]
    assert answer.position.tolist() == [row for _, rows in expected for row in rows.tolist()]
    assert answer.rank.tolist() == [rank for _, rows in expected for rank in range(1, len(rows) + 1)]
    assert (answer.score == score[answer.position]).all()
    assert (answer.change == ENTER).all()
