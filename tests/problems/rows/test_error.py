"""Oracle: `error` is kept on any stream. Every line said is of the exact answer; the rows left out are few enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from conformance.rows.driver import Driver, spec_of
from conformance.rows.hostile import SEGMENTS, Floats, interleaved, streams
from conformance.rows.strategies import groups
from conformance.suite import batch_sizes, examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question, Row, Shown, answers, by_group

import skyband as sb
from skyband.core import snapshots
from skyband.core.emit import ENTRIES
from skyband.core.registry import algorithms_of
from skyband.problems.rows.algorithms.budgeted.state import usual_rows
from skyband.problems.rows.operator import Batch, Spec
from skyband.windows import Ticks

BUDGETED = algorithms_of("rows")["budgeted"]
NO_TIMES, NO_GROUPS = np.empty(0, np.int64), np.empty(0, np.int32)


def missing(exact: Sequence[Shown], said: Sequence[Shown]) -> dict[int, int]:
    """The rows of which lines are left out, and when first. What is said is in the exact answer, in its order."""
    found: dict[int, int] = {}
    taken = 0
    for line in exact:
        if taken < len(said) and said[taken] == line:
            taken += 1
        else:
            found.setdefault(line.position, line.at)
    assert taken == len(said), f"{said[taken]} is not in the exact answer"
    return found


def assert_kept(question: Question, rows: Sequence[Row], driver: Driver) -> None:
    """Of every group, at every moment, no more rows were missed than its rows so far allow; and it says how many."""
    exact, said = by_group(answers(question, rows)), by_group(driver.lines)
    assert question.size is not None
    total = 0
    for group, lines in exact.items():
        moments = sorted(missing(lines, said.get(group, [])).values())
        for count, arrivals in enumerate(moments, 1):
            assert count <= driver.spec.error * arrivals / question.size
        total += len(moments)
    assert driver.operator.missed == total  # type: ignore[attr-defined]


@st.composite
def cases(draw: st.DrawFn, most: int = 400) -> tuple[Question, Spec, list[Row], dict[str, int]]:
    """Small windows, so that many of them pass; rows are let go as soon as may be."""
    emit = draw(st.sampled_from(["changes", "entries"]))
    question = Question(k=draw(st.integers(1, 4)), size=draw(st.integers(1, 16)), by_count=True, emit=emit)
    grouped = draw(st.booleans())
    scores = draw(streams(most))
    names: Sequence[Hashable] = draw(groups(len(scores))) if grouped else [0] * len(scores)
    rows = [Row(float(score), None, name) for score, name in zip(scores, names, strict=True)]
    spec = replace(spec_of(question, grouped=grouped), error=draw(st.sampled_from([0.05, 0.3, 0.5, 0.9, 0.999])))
    options = {
        "limit": draw(st.sampled_from([0, 1, 4])),
        "block": draw(st.sampled_from([1, 7, 32768])),
        "slack": draw(st.sampled_from([0, 5])),
    }
    return question, spec, rows, options


@examples(300)
@given(cases(), batch_sizes())
def test_error_is_kept_on_any_stream(case: tuple[Question, Spec, list[Row], dict[str, int]], sizes: list[int]) -> None:
    question, spec, rows, options = case
    driver = Driver(spec, lambda spec: BUDGETED.open(spec, **options))
    driver.run(rows, sizes, after_each=lambda: driver.operator.check())
    assert_kept(question, rows, driver)


@examples(60)
@given(cases(), batch_sizes())
def test_goes_on_from_its_state(case: tuple[Question, Spec, list[Row], dict[str, int]], sizes: list[int]) -> None:
    _, spec, rows, options = case
    steady, restarted = (Driver(spec, lambda spec: BUDGETED.open(spec, **options)) for _ in range(2))
    steady.run(rows, sizes)
    restarted.run(rows, sizes, after_each=restarted.restart)
    assert steady.lines == restarted.lines
    assert steady.operator.held().tolist() == restarted.operator.held().tolist()
    assert steady.operator.missed == restarted.operator.missed  # type: ignore[attr-defined]


@examples(60)
@given(cases(), batch_sizes())
def test_asked_for_the_whole_window_it_leaves_out_what_it_has_missed(
    case: tuple[Question, Spec, list[Row], dict[str, int]], sizes: list[int]
) -> None:
    question, spec, rows, options = case
    exact, driver = (
        Driver(spec, algorithms_of("rows")["recompute"].open),
        Driver(spec, lambda spec: BUDGETED.open(spec, **options)),
    )
    exact.run(rows, sizes)
    driver.run(rows, sizes)
    left_out = missing(exact.top(question.k), driver.top(question.k))
    assert len(left_out) <= driver.operator.missed  # type: ignore[attr-defined]
    assert driver.top_many([(question.k, None), (1, question.size)]) == [driver.top(question.k), driver.top(1)]


# -- long streams, asked as a user asks -------------------------------------------------------------------------------

K, WINDOW, ROWS = 9, 1_000, 40_000


def hostile(name: str) -> Floats:
    rng = np.random.default_rng(7)
    random, half = SEGMENTS["random"], ROWS // 2
    if name.startswith("random, then "):
        return np.concatenate([random(rng, half), SEGMENTS[name.removeprefix("random, then ")](rng, half)])
    if name.startswith("random and "):
        return interleaved([random(rng, half), SEGMENTS[name.removeprefix("random and ")](rng, half)])
    return SEGMENTS[name](rng, ROWS)


NAMES = [
    *SEGMENTS,
    *(f"random and {name}" for name in ("falling", "falling, far above", "long days", "a flood of -inf")),
    *(f"random, then {name}" for name in ("falling", "a level below", "long days", "a walk", "a flood of -inf")),
]


def entries(scores: Floats, error: float | None, algorithm: str | None = None) -> tuple[Counter[int], int]:
    """How often each row enters the answer, and how many are missed, as it says itself."""
    table = pa.table({"s": scores, "row": np.arange(len(scores))})
    query = sb.TopK(k=K, by="s", window=sb.sliding(WINDOW), emit="entries", error=error, algorithm=algorithm)
    session = query.open(table.schema)
    found: Counter[int] = Counter()
    for batch in table.to_batches(max_chunksize=3_000):
        found.update(session.push(batch)["row"].to_pylist())
    session.check()
    return found, session.stats().rows_missed


@pytest.mark.parametrize("name", NAMES)
def test_no_more_rows_are_missed_than_error_allows(name: str) -> None:
    scores = hostile(name)
    right, _ = entries(scores, None, "strict")
    for error, algorithm in ((0.001, None), (0.1, None), (0.9, "budgeted")):
        said, missed = entries(scores, error, algorithm)
        assert not said - right, "a row is shown that does not belong there"
        assert missed == (right - said).total()
        assert missed <= error * ROWS / WINDOW


def test_each_group_keeps_it_by_itself() -> None:
    """Two groups, one of which has few rows: what the other may miss is not its to miss."""
    rng = np.random.default_rng(3)
    scores, group = rng.random(60_000), (rng.random(60_000) < 0.02).astype(np.int64)
    scores[50_000:] = -np.arange(10_000)
    table = pa.table({"s": scores, "g": group, "row": np.arange(60_000)})

    def shown(error: float | None) -> tuple[sb.Stats, dict[int, set[int]]]:
        query = sb.TopK(k=9, by="s", window=sb.sliding(400), emit="entries", per="g", error=error)
        session = query.open(table.schema)
        said = pa.concat_tables([session.push(batch) for batch in table.to_batches(max_chunksize=5_000)])
        session.check()
        return session.stats(), {
            g: {row for of, row in zip(said["g"].to_pylist(), said["row"].to_pylist(), strict=True) if of == g}
            for g in (0, 1)
        }

    _, right = shown(None)
    stats, said = shown(0.5)
    assert stats.rows_missed == sum(len(right[g] - said[g]) for g in (0, 1)) > 0
    for g in (0, 1):
        assert said[g] <= right[g]
        assert len(right[g] - said[g]) <= 0.5 * (group == g).sum() / 400


def test_a_group_that_is_forgotten_takes_its_count_along() -> None:
    spec = Spec(9, Ticks(400, 0, 0, True), ENTRIES, grouped=True, error=0.5)
    operator, group = BUDGETED.open(spec), np.arange(200_000, dtype=np.int32) % 2
    scores = np.random.default_rng(2).random(200_000)
    operator.push(Batch(scores, NO_TIMES, group, 0))
    operator.push(Batch(-np.arange(1_000.0), NO_TIMES, group[:1_000], 200_000))
    both, held = operator.missed, operator.held()  # type: ignore[attr-defined]
    operator.compact(np.array([1]))
    operator.check()
    assert 0 < operator.missed < both  # type: ignore[attr-defined]
    assert set(operator.held()) < set(held)


# -- a session --------------------------------------------------------------------------------------------------------

# EXPLAIN ANALYZE takes it in 64 batches: scores fall right after one.
SCORES = np.concatenate([np.random.default_rng(5).random(63_000), -np.arange(1_000.0)])
FALLS_LATER = pa.table({"s": SCORES, "row": np.arange(64_000)})
QUERY = sb.TopK(k=9, by="s", window=sb.sliding(400), error=0.5)


def test_what_was_missed_is_counted_across_a_snapshot() -> None:
    steady, session = QUERY.open(FALLS_LATER.schema), QUERY.open(FALLS_LATER.schema)
    assert session.algorithm == "budgeted"
    for start, rows in ((0, 63_000), (63_000, 150), (63_150, 850)):
        assert session.push(FALLS_LATER.slice(start, rows)) == steady.push(FALLS_LATER.slice(start, rows))
        session = QUERY.open(FALLS_LATER.schema, session.snapshot())
        session.check()
    assert session.stats() == steady.stats()
    assert 0 < session.stats().rows_missed <= 0.5 * 64_000 / 400


def test_explain_analyze_says_how_many_rows_were_missed() -> None:
    query = "SELECT * FROM rows [WINDOW 400 ROWS] ORDER BY s DESC LIMIT 9 WITH ERROR 0.5"
    assert "budgeted: " in str(sb.sql(f"EXPLAIN {query}", rows=FALLS_LATER))
    said = str(sb.sql(f"EXPLAIN ANALYZE {query}", rows=FALLS_LATER))
    assert " missed, in " in said.splitlines()[-1]


def test_a_part_of_the_window_can_be_asked_for_only_ad_hoc() -> None:
    session = QUERY.open(FALLS_LATER.schema)
    session.push(FALLS_LATER)
    assert session.top(size=400) == session.top()
    with pytest.raises(sb.InvalidQuery, match=r"size=50 is a part of the window. With error=0.5.*ad_hoc=True"):
        session.top(size=50)
    with pytest.raises(sb.InvalidQuery, match="size=7 is a part"):
        session.top_many([(1, None), (1, 7)])
    ad_hoc = sb.TopK(k=3, by="s", window=sb.sliding(400), error=0.5, ad_hoc=True).open(FALLS_LATER.schema)
    ad_hoc.push(FALLS_LATER)
    assert ad_hoc.algorithm != "budgeted"
    assert ad_hoc.top(size=50)["score"].to_pylist() == [-950.0, -951.0, -952.0]


@pytest.mark.parametrize("algorithm", ["probabilistic", "hybrid"])
def test_a_snapshot_of_one_that_keeps_no_error_is_refused(algorithm: str) -> None:
    """As earlier versions wrote them."""
    saved = snapshots.read(QUERY.open(FALLS_LATER.schema).snapshot())
    state = snapshots.write(replace(saved, algorithm=algorithm))
    with pytest.raises(sb.SnapshotMismatch, match=f"taken by '{algorithm}'.*on any stream"):
        QUERY.open(FALLS_LATER.schema, state)


# -- how rows are let go ----------------------------------------------------------------------------------------------


def test_on_random_order_fewer_rows_are_held_than_exactly() -> None:
    spec, scores = Spec(20, Ticks(1_000, 0, 0, True), ENTRIES, error=0.5), np.random.default_rng(1).random(400_000)
    exact, operator = algorithms_of("rows")["relaxed"].open(spec), BUDGETED.open(spec)
    for first in range(0, len(scores), 5_000):
        for each in (exact, operator):
            each.push(Batch(scores[first : first + 5_000], NO_TIMES, NO_GROUPS, first))
    assert operator.rows_held() < 0.75 * exact.rows_held()
    assert len(operator.held()) <= operator.rows_held()
    assert operator.missed < 0.5 * len(scores) / 1_000  # type: ignore[attr-defined]


def test_no_row_is_let_go_while_scores_fall() -> None:
    spec = Spec(5, Ticks(100, 0, 0, True), ENTRIES, error=0.9)
    operator = BUDGETED.open(spec)
    operator.push(Batch(-np.arange(50_000, dtype=float), NO_TIMES, NO_GROUPS, 0))
    assert operator.missed == 0  # type: ignore[attr-defined]
    assert operator.held().tolist() == list(range(49_900, 50_000))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 9), (1_000, 9), (40_000, 81)])
def test_how_large_a_skyband_usually_is(n: int, k: int) -> None:
    chance = np.minimum(1, k / np.arange(1, n + 1))
    most = chance.sum() + 4 * np.sqrt((chance * (1 - chance)).sum())
    assert most <= usual_rows(n, k) <= max(most, k) + 2
