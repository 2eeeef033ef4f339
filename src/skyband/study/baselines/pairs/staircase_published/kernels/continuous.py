"""Section 4.2: answers that follow the rows. Each has its pairs twice: by score, and their older rows by age."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Ints
from skyband.kernels.compiling import kernel, part
from skyband.problems.pairs.operator import PAIR
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import precedes
from skyband.study.baselines.pairs.staircase_published.kernels.search_tree import top_pairs


class Watched(NamedTuple):
    """Questions that are answered with every row. By question."""

    k: Ints
    size: Ints
    length: Ints  # pairs in its answer
    top: npt.NDArray[Any]  # of PAIR, [0, length): the answer, best first
    age: Ints  # [0, length): the numbers of the older rows in it, ascending: what leaves first comes first


def watching(k: Ints, size: Ints) -> Watched:
    questions, most = len(k), int(k.max(initial=0))
    top, age = np.zeros((questions, most), PAIR), np.zeros((questions, most), np.int64)
    return Watched(k, size, np.zeros(questions, np.int64), top, age)


@part
def note_age(age, n, a):
    """Put a number into n of them that ascend."""
    while n > 0 and age[n - 1] > a:
        age[n] = age[n - 1]
        n -= 1
    age[n] = a


@part
def forget_age(age, n, a):
    """Take a number out of n of them that ascend."""
    r = 0
    while age[r] != a:
        r += 1
    for i in range(r, n - 1):
        age[i] = age[i + 1]


@part
def drop_expired(top, age, n, start):
    """Handle pairs that have left: drop them from both lists. Returns how many stay."""
    gone = 0
    while gone < n and age[gone] < start:
        gone += 1
    if gone == 0:
        return n
    kept = 0
    for r in range(n):
        if top[r].a >= start:
            top[kept] = top[r]
            kept += 1
    for r in range(kept):
        age[r] = age[r + gone]
    return kept


@part
def add_new(top, age, n, k, start, band, new):
    """Handle pairs that are new in the skyband, best first, until one ranks behind the whole answer."""
    for i in range(new):
        pair = band.pairs[band.new[i]]
        if n == 0 or precedes(top[n - 1], pair):
            break
        if pair.a < start:
            continue
        if n == k:
            n -= 1
            forget_age(age, k, top[n].a)
        note_age(age, n, pair.a)
        r = n
        while r > 0 and precedes(pair, top[r - 1]):
            top[r] = top[r - 1]
            r -= 1
        top[r] = pair
        n += 1
    return n


@kernel
def follow(watched, starts, band, tree, new):
    """A row has come and brought so many new pairs: bring each answer up to date.

    starts[q] is the number of the first row in the window of question q. An answer is always the best of its window,
    so what ranks behind all of it can only follow it: where too few pairs are left, the tree is searched.
    """
    for q in range(len(watched.k)):
        k, top, age = watched.k[q], watched.top[q], watched.age[q]
        n = drop_expired(top, age, watched.length[q], starts[q])
        n = add_new(top, age, n, k, starts[q], band, new)
        if n < k:
            n = top_pairs(tree, band.pairs, k, starts[q], band.merged)
            for r in range(n):
                top[r] = band.pairs[band.merged[r]]
                note_age(age, r, top[r].a)
        watched.length[q] = n
