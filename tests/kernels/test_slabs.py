"""Oracle tests of slabs: many lists in one pool, against Python lists, through random growing, emptying and moving."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

from skyband.kernels import slabs
from skyband.kernels.slabs import CLASSES, HEADER

give_slab, reserve = njit(slabs.give_slab), njit(slabs.reserve)  # parts of kernels, compiled to be called from here


@pytest.mark.parametrize("seed", range(10))
def test_lists_in_a_pool_keep_their_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    pool, headers = slabs.new_pool(8), np.zeros(5, np.dtype(HEADER))
    expected: list[list[int]] = [[] for _ in range(5)]
    for step in range(300):
        i = int(random.integers(5))
        if random.random() < 0.1:
            give_slab(pool, headers[i])
            expected[i] = []
        else:
            if pool.room() < 4 * len(expected[i]) + 16:
                pool = slabs.grown_pool(pool, 4 * len(expected[i]) + 16)
            reserve(pool, headers[i], len(expected[i]) + 1)
            pool.rows[headers[i]["offset"] + len(expected[i])]["position"] = step
            headers[i]["length"] += 1
            expected[i].append(step)
        assert contents(pool, headers) == expected
        assert pool.free[CLASSES] <= len(pool.rows), "nothing lies beyond the pool"
    assert_apart(headers)


@pytest.mark.parametrize("seed", range(5))
def test_pack_and_unpack(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 30, 6) * random.integers(0, 2, 6)
    pool, headers = slabs.new_pool(2_000), np.zeros(6, np.dtype(HEADER))
    for i, length in enumerate(lengths):
        reserve(pool, headers[i], length)
        headers[i]["length"] = length
        for j in range(length):
            pool.rows[headers[i]["offset"] + j]["position"] = 100 * i + j
    before, packed = contents(pool, headers), slabs.pack(pool, headers)
    assert packed["position"].tolist() == [position for rows in before for position in rows]
    fresh = slabs.new_pool(slabs.room_for(headers["length"]))
    slabs.unpack(fresh, headers, packed)
    assert contents(fresh, headers) == before
    assert fresh.free[CLASSES] <= len(fresh.rows)
    assert_apart(headers)


def test_slabs_given_back_are_used_again() -> None:
    pool, headers = slabs.new_pool(1_000), np.zeros(1, np.dtype(HEADER))
    for _ in range(1_000):
        reserve(pool, headers[0], 20)
        give_slab(pool, headers[0])
    assert pool.free[CLASSES] == 32


@pytest.mark.parametrize(("entries", "expected"), [(0, 3), (1, 3), (8, 3), (9, 4), (16, 4), (17, 5), (1_000, 10)])
def test_size_class(entries: int, expected: int) -> None:
    assert slabs.size_class(entries) == expected


def contents(pool: slabs.Pool, headers: slabs.Headers) -> list[list[int]]:
    return [
        pool.rows["position"][header["offset"] : header["offset"] + header["length"]].tolist() for header in headers
    ]


def assert_apart(headers: slabs.Headers) -> None:
    """No two lists share an entry."""
    used = sorted((int(h["offset"]), int(h["offset"] + h["capacity"])) for h in headers if h["capacity"])
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(used))
