"""Rows in the lists of queries and of filters, and in the one list by time that all of them share.

The paper has an object tree, a query tree and a time tree, and wraps a row once for each query that refers to it. Rows
are numbered by arrival here, and as many live as the window is long: so a ring by arrival is the tree of objects, and
of each row a chain of its wrappers is the list by time. A query's list is sorted, and searched by halves.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Floats, Ints
from skyband.kernels.compiling import kernel, part
from skyband.kernels.heap import push_heap

NONE, STRICT, RELAXED, PROBABILISTIC = range(4)  # what a query's list is, and what a filter is
QUERY, FILTER, ROLES = range(3)  # whose list it is
NOWHERE: Final = -1
FREE, LONGEST, NUMBERS = range(3)
SHOWN, LINKED = 1, 2  # bits of `flags`: it was in an answer; it is in the list by time

# A row as one query or filter knows it.
WRAPPER: Final = np.dtype(
    [
        ("score", np.float64),
        ("row", np.int64),  # its arrival
        ("query", np.int64),
        ("dominators", np.int64),  # of a strict list: better rows of it that outlive this one
        ("before", np.int64),  # in the row's chain, or NOWHERE
        ("following", np.int64),
        ("flags", np.int64),
    ]
)


class Kind(NamedTuple):
    """Which algorithm."""

    query: int  # STRICT, RELAXED or PROBABILISTIC
    filter: int  # STRICT, PROBABILISTIC or NONE
    buffer: int  # rows; 0: there is none
    additional: int  # candidates of PA, so that its threshold need not be reset as soon as one leaves
    gamma: float  # a relaxed list is pruned again when its candidates are (1 + gamma) times those left last time


class Bands(NamedTuple):
    """By query."""

    members: Ints  # by role, query and rank: the number of a wrapper
    length: Ints  # by role and query: how many
    bar: Floats  # of a probabilistic list or filter: no row below it is taken
    indexed: Floats  # the threshold that the cells know
    vain: Ints  # rows scored since that did not reach the threshold
    prune_at: Ints  # candidates of a relaxed list that are too many; 0: not known yet
    limit: Ints  # candidates that have prospects
    k: Ints
    start: Ints  # the first arrival that the query sees


class Wrappers(NamedTuple):
    all: npt.NDArray[Any]  # WRAPPER
    free: Ints  # the numbers of those not in use, [0, FREE)
    heads: Ints  # by role, then by arrival modulo the window: the first wrapper of the row's chain, or NOWHERE
    numbers: Ints  # FREE; LONGEST: no list is longer


@part
def rank_of(bands, wrappers, role, q, score, row):
    """How many of a list rank before a row with this score."""
    low, high = np.int64(0), bands.length[role, q]
    while low < high:
        middle = (low + high) >> 1
        other = wrappers.all[bands.members[role, q, middle]]
        if other.score > score or (other.score == score and other.row > row):
            low = middle + 1
        else:
            high = middle
    return low


@part
def has(bands, wrappers, role, q, rank, row):
    """Is it this row that has the rank?"""
    return rank < bands.length[role, q] and wrappers.all[bands.members[role, q, rank]].row == row


@part
def link(wrappers, role, number):
    wrapper = wrappers.all[number]
    slot = wrapper.row % wrappers.heads.shape[1]
    head = wrappers.heads[role, slot]
    wrapper.before, wrapper.following = NOWHERE, head
    if head != NOWHERE:
        wrappers.all[head].before = number
    wrappers.heads[role, slot] = number
    wrapper.flags |= LINKED


@part
def unlink(wrappers, role, number):
    wrapper = wrappers.all[number]
    if wrapper.before == NOWHERE:
        wrappers.heads[role, wrapper.row % wrappers.heads.shape[1]] = wrapper.following
    else:
        wrappers.all[wrapper.before].following = wrapper.following
    if wrapper.following != NOWHERE:
        wrappers.all[wrapper.following].before = wrapper.before
    wrapper.flags &= ~LINKED


@part
def release(wrappers, role, number):
    """A wrapper is not in use any more."""
    if wrappers.all[number].flags & LINKED:
        unlink(wrappers, role, number)
    wrappers.free[wrappers.numbers[FREE]] = number
    wrappers.numbers[FREE] += 1


@part
def put(bands, wrappers, role, q, rank, score, row, dominators):
    """Wrap a row, and put it into a list at this rank."""
    wrappers.numbers[FREE] -= 1
    number = wrappers.free[wrappers.numbers[FREE]]
    wrapper = wrappers.all[number]
    wrapper.score, wrapper.row, wrapper.query, wrapper.dominators, wrapper.flags = score, row, q, dominators, 0
    for x in range(bands.length[role, q], rank, -1):
        bands.members[role, q, x] = bands.members[role, q, x - 1]
    bands.members[role, q, rank] = number
    bands.length[role, q] += 1
    wrappers.numbers[LONGEST] = max(wrappers.numbers[LONGEST], bands.length[role, q])
    return number


@part
def take_out(bands, wrappers, role, q, rank):
    number = bands.members[role, q, rank]
    for x in range(rank, bands.length[role, q] - 1):
        bands.members[role, q, x] = bands.members[role, q, x + 1]
    bands.length[role, q] -= 1
    release(wrappers, role, number)


@part
def take_strict(bands, wrappers, role, q, score, row):
    """Put a row into a k-skyband, unless k better ones outlive it, and drop those that it is the k-th to dominate.

    Returns its rank, or one that no row has.
    """
    k, n = bands.k[q], bands.length[role, q]
    rank = rank_of(bands, wrappers, role, q, score, row)
    if has(bands, wrappers, role, q, rank, row):
        return n + k
    dominators = 0
    for x in range(rank):
        dominators += wrappers.all[bands.members[role, q, x]].row > row
    if dominators >= k:
        return n + k
    kept = rank
    for x in range(rank, n):
        number = bands.members[role, q, x]
        wrapper = wrappers.all[number]
        wrapper.dominators += wrapper.row < row
        if wrapper.dominators < k:
            bands.members[role, q, kept] = number
            kept += 1
        else:
            release(wrappers, role, number)
    bands.length[role, q] = kept
    link(wrappers, role, put(bands, wrappers, role, q, rank, score, row, dominators))
    return rank


@part
def take_relaxed(bands, wrappers, q, score, row, gamma, gone, heap):
    """Put a row into a query's relaxed k-skyband, of which only the first k are in the list by time (Algorithm 3)."""
    k = bands.k[q]
    rank = rank_of(bands, wrappers, QUERY, q, score, row)
    if has(bands, wrappers, QUERY, q, rank, row):
        return bands.length[QUERY, q] + k
    number = put(bands, wrappers, QUERY, q, rank, score, row, 0)
    if rank < k:
        link(wrappers, QUERY, number)
        if bands.length[QUERY, q] > k:
            unlink(wrappers, QUERY, bands.members[QUERY, q, k])
    most = bands.prune_at[q] if bands.prune_at[q] > 0 else 4 * k
    if bands.length[QUERY, q] - k >= most:
        prune(bands, wrappers, q, gone, heap)
        bands.prune_at[q] = np.int64(np.ceil((1 + gamma) * max(1, bands.length[QUERY, q] - k)))
    return rank


@part
def prune(bands, wrappers, q, gone, heap):
    """Drop the candidates that have left the window, or that k better rows outlive (Algorithm 4)."""
    k, kept, in_heap = bands.k[q], 0, np.int64(0)
    for x in range(bands.length[QUERY, q]):
        number = bands.members[QUERY, q, x]
        row = wrappers.all[number].row
        if x >= k and (row <= gone or (in_heap == k and heap[0] > row)):
            release(wrappers, QUERY, number)
            continue
        bands.members[QUERY, q, kept] = number
        kept += 1
        in_heap = push_heap(heap, in_heap, k, row) if in_heap < k or row > heap[0] else in_heap
    bands.length[QUERY, q] = kept


@part
def fill_top(bands, wrappers, q, gone):
    """After one of the first k has left: the best candidate that still lives becomes one of them (Algorithm 5)."""
    k = bands.k[q]
    while bands.length[QUERY, q] >= k:
        number = bands.members[QUERY, q, k - 1]
        if wrappers.all[number].row > gone:
            if not wrappers.all[number].flags & LINKED:
                link(wrappers, QUERY, number)
            return
        take_out(bands, wrappers, QUERY, q, k - 1)


@part
def take_likely(bands, wrappers, role, q, score, row, additional):
    """Put a row that reaches the threshold into a probabilistic k-skyband, of limited length (Algorithm 1)."""
    rank = rank_of(bands, wrappers, role, q, score, row)
    link(wrappers, role, put(bands, wrappers, role, q, rank, score, row, 0))
    if role == FILTER:
        bands.bar[q] = min(bands.bar[q], score)
    most = bands.k[q] + bands.limit[q] + additional
    if bands.length[role, q] > most:
        take_out(bands, wrappers, role, q, most)
    if bands.length[role, q] == most:
        bands.bar[q] = wrappers.all[bands.members[role, q, most - 1]].score
    return rank


@part
def lower(bands, wrappers, role, q, share):
    """After a row has left a probabilistic list: lower its threshold by a share of how far its last two are apart."""
    n = bands.length[role, q]
    if n >= 2:
        last, other = bands.members[role, q, n - 1], bands.members[role, q, n - 2]
        bar = bands.bar[q] - share * (wrappers.all[other].score - wrappers.all[last].score)
        bands.bar[q] = bar if bar == bar else -np.inf
    else:
        bands.bar[q] = -np.inf


@part
def threshold(bands, wrappers, kind, q):
    """The score below which a row does not concern the query or its filter."""
    k = bands.k[q]
    if kind.filter == NONE:
        return bands.bar[q]
    if bands.length[FILTER, q] < k:
        return -np.inf
    if kind.filter == PROBABILISTIC:
        return bands.bar[q]
    return wrappers.all[bands.members[FILTER, q, k - 1]].score


@part
def offer(bands, wrappers, kind, q, score, row, gone, heap):
    """Put a row into a query's list behind a filter."""
    if kind.query == STRICT:
        take_strict(bands, wrappers, QUERY, q, score, row)
    else:
        take_relaxed(bands, wrappers, q, score, row, kind.gamma, gone, heap)


@kernel
def link_all(wrappers, roles):
    """Put the wrappers that say so into the list by time; the first ones are in use, in these roles."""
    for number in range(len(roles)):
        if wrappers.all[number].flags & LINKED:
            link(wrappers, roles[number], number)


@kernel
def thresholds(bands, wrappers, kind, found):
    for q in range(len(found)):
        found[q] = threshold(bands, wrappers, kind, q)
