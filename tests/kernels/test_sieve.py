"""Oracle tests of the sieve: against sorting every group and pane from scratch."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.kernels.panes import shape_of
from skyband.kernels.sieve import Sieve, tally_panes
from skyband.windows import FOREVER

Rows = list[tuple[int, float, int | None, int]]  # time, score, group, tie

scores = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.5, -1.0, np.inf, -np.inf, np.nan])
# Few times and groups, so that many rows share a pane.
rows = st.tuples(st.integers(-6, 13), scores, st.sampled_from([None, 0, 2**62]), st.integers(0, 3))
shapes = st.sampled_from([(10, 5), (12, 5), (7, 7), (FOREVER, 10), (3, 1)])


def pane(time: int, size: int, every: int) -> tuple[int, bool]:
    rest = 0 if size == FOREVER else size % every
    return time // every, rest > 0 and time % every >= every - rest


class Need(NamedTuple):
    row: bool  # there are fewer than k better ones in its group and pane
    twin: bool  # another row there ranks the same, so the sieve may keep both


def needs(seen: Rows, k: int, size: int, every: int, *, ascending: bool, grouped: bool, tied: bool) -> list[Need]:
    places = defaultdict(list)
    for i, (time, score, group, tie) in enumerate(seen):
        if not np.isnan(score):
            rank = (-score if ascending else score, time, tie if tied else 0)
            places[pane(time, size, every), group if grouped else None].append((rank, i))
    answer = [Need(False, False)] * len(seen)
    for ranked in places.values():
        for rank, i in ranked:
            better = sum(other > rank for other, _ in ranked)
            answer[i] = Need(better < k, sum(other == rank for other, _ in ranked) > 1)
    return answer


def check(kept: list[bool], needed: list[Need]) -> None:
    for keeps, need in zip(kept, needed, strict=True):
        assert keeps == need.row or (keeps and need.twin)


def sift(sieve: Sieve, batch: Rows, *, grouped: bool, tied: bool) -> list[bool]:
    times, values, groups, ties = zip(*batch, strict=True) if batch else ((), (), (), ())
    return sieve.keep(
        np.array(times, np.int64),
        np.array(values, np.float64),
        np.array([group or 0 for group in groups], np.int64) if grouped else None,
        np.array([group is None for group in groups], np.bool_) if grouped and None in groups else None,
        np.array(ties, np.int64) if tied else None,
    ).tolist()


@settings(max_examples=300)
@given(st.lists(rows, max_size=60), st.integers(1, 4), shapes, st.booleans(), st.booleans(), st.booleans())
def test_one_batch_keeps_what_is_needed(
    batch: Rows, k: int, window: tuple[int, int], ascending: bool, grouped: bool, tied: bool
) -> None:
    sieve = Sieve(k, shape_of(*window), ascending=ascending)
    needed = needs(batch, k, *window, ascending=ascending, grouped=grouped, tied=tied)
    check(sift(sieve, batch, grouped=grouped, tied=tied), needed)


@settings(max_examples=300)
@given(st.lists(st.lists(rows, max_size=30), max_size=5), st.integers(1, 4), shapes, st.booleans())
def test_a_batch_keeps_what_is_needed_of_all_rows_so_far(
    batches: list[Rows], k: int, window: tuple[int, int], grouped: bool
) -> None:
    sieve = Sieve(k, shape_of(*window))
    seen: Rows = []
    for batch in batches:
        seen = seen + batch
        kept = sift(sieve, batch, grouped=grouped, tied=True)
        needed = needs(seen, k, *window, ascending=False, grouped=grouped, tied=True)
        check(kept, needed[len(seen) - len(batch) :])


def many_rows(count: int) -> Rows:
    rng = np.random.default_rng(5)
    columns = rng.integers(0, 50_000, count), rng.random(count), rng.integers(0, 2_000, count), np.zeros(count, int)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_grown_tables_forget_nothing() -> None:
    batch = many_rows(30_000)
    needed = needs(batch, 1, 20_000, 10_000, ascending=False, grouped=True, tied=False)
    kept = sift(Sieve(1, shape_of(20_000, 10_000)), batch, grouped=True, tied=False)
    assert kept == [need.row for need in needed]


def test_a_full_sieve_keeps_too_much_and_never_too_little() -> None:
    batch = many_rows(30_000)
    needed = needs(batch, 1, 20_000, 10_000, ascending=False, grouped=True, tied=False)
    kept = sift(Sieve(1, shape_of(20_000, 10_000), capacity=1), batch, grouped=True, tied=False)
    assert all(keeps for keeps, need in zip(kept, needed, strict=True) if need.row)
    assert sum(need.row for need in needed) < sum(kept) < len(batch)


def test_rising_scores_do_not_fill_the_batch() -> None:
    times, rising = np.arange(10_000), np.arange(10_000, dtype=np.float64)
    assert Sieve(10, shape_of(5_000, 1_000)).keep(times, rising).sum() == 100


@given(st.lists(rows, max_size=60), shapes)
def test_tally_counts_the_scored_rows_of_each_pane(batch: Rows, window: tuple[int, int]) -> None:
    times = np.array([time for time, *_ in batch], np.int64)
    values = np.array([score for _, score, *_ in batch], np.float64)
    first, count = tally_panes(times, values, shape_of(*window))
    expected: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for i, (time, score, *_) in enumerate(batch):
        if not np.isnan(score):
            expected[pane(time, *window)].append(i)
    assert first.tolist() == [members[0] for members in expected.values()]
    assert count.tolist() == [len(members) for members in expected.values()]


def test_memory_follows_rows_not_k() -> None:
    sieve = Sieve(2**31 - 1, shape_of(20, 10))
    assert sieve.keep(np.arange(90_000), np.arange(90_000.0)).all()
    assert sieve._scratch.nbytes + sum(array.nbytes for array in sieve._nodes) < 100 << 20
