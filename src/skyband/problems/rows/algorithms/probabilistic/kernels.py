"""The compiled steps of the probabilistic k-skyband: a ranked list of limited length, and the score it takes to enter.

Also of the hybrid, which changes between this and a relaxed skyband behind a probabilistic filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined, part
from skyband.kernels.panes import largest, skip_scores
from skyband.kernels.queues import pop_front, push_back
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row, insert, rank_of, remove
from skyband.problems.rows.algorithms.filtered import kernels as filtered_kernels
from skyband.problems.rows.algorithms.filtered.kernels import BUFFER, FILTER, QUERY, drop_rows, lowered, offer, take_row
from skyband.problems.rows.algorithms.relaxed.block_kernels import note
from skyband.problems.rows.drivers.row_driver import NEVER
from skyband.problems.rows.drivers.step_kernels import quiet_until, steps
from skyband.windows import FOREVER


class Probabilistic(NamedTuple):
    limit: int  # candidates behind the first k that have prospects
    additional: int  # more of them, so that the threshold need not be reset as soon as one leaves


FIELDS: dict[str, int | float] = {
    "bar": -np.inf,  # a row with a lower score has no prospects
}


@inlined
def take_likely(kind, g, score, time, position, rule, pool, state):  # type: ignore[no-untyped-def]
    """Algorithm 1 of the paper."""
    group, band = state.groups[g], state.lists[QUERY, g]
    if score < group.bar:
        return False
    rank = rank_of(pool, band, score, time, position)
    insert(pool, band, rank, rule.k, score, time, position)
    most = rule.k + kind.limit + kind.additional
    if band.length >= most:
        band.length = most
        group.bar = pool.rows[first_row(band) + most - 1].score
    group.oldest = min(group.oldest, time)
    return rank < rule.k


@inlined
def expire_likely(kind, g, limit, rule, pool, state):  # type: ignore[no-untyped-def]
    """Algorithm 2 of the paper, for every row that has left the window. Returns the earliest time that is left."""
    group, band = state.groups[g], state.lists[QUERY, g]
    changed = False
    rank, oldest, following = two_oldest(pool, band)
    while oldest < limit:
        remove(pool, band, rank)
        changed |= rank < rule.k
        last = first_row(band) + band.length - 1
        if band.length - rule.k < max(kind.limit, 2):
            group.bar = -np.inf
        else:
            group.bar = lowered(group.bar, (pool.rows[last - 1].score - pool.rows[last].score) / 2)
        oldest = following
        if following < limit:
            rank, oldest, following = two_oldest(pool, band)
    return changed, oldest


@inlined
def two_oldest(pool, band):  # type: ignore[no-untyped-def]
    """The rank of the oldest row, its time, and the time of the next oldest; NEVER where there is none."""
    rows, rank, oldest, following = pool.rows[first_row(band) :][: band.length], 0, NEVER, NEVER
    for r in range(len(rows)):
        time = rows[r].time
        # Both times without a branch; the rank changes seldom.
        following = min(following, max(oldest, time))
        if time < oldest:
            rank, oldest = r, time
    return rank, oldest, following


@inlined
def drop_likely(kind, g, limit, rule, pool, state):  # type: ignore[no-untyped-def]
    changed, state.groups[g].oldest = expire_likely(kind, g, limit, rule, pool, state)
    return changed


@inlined
def skip_unlikely(kind, g, j, end, batch, rule, pool, state, out):  # type: ignore[no-untyped-def]
    group = state.groups[g]
    stop = quiet_until(group, group.oldest, j, end, batch, rule)
    if group.bar == -np.inf:
        return j
    j = skip_scores(batch.score, j, stop, group.bar)
    while j < stop and not batch.score[j] >= group.bar:
        j += 1
    return j


steps(Probabilistic, take_likely, drop_likely, skip_unlikely)


# -- the hybrid -------------------------------------------------------------------------------------------------------


class Hybrid(NamedTuple):
    """What Filtered and Probabilistic have, and scratch for testing a buffer: some of its scores, and its best ones."""

    query: int
    filter: int
    span: int
    candidates: int
    gamma: float
    limit: int
    additional: int
    patience: int  # rows from one test to the next, at least
    scores: npt.NDArray[np.float64]
    best: npt.NDArray[np.float64]


HYBRID_FIELDS: dict[str, int | float] = {
    **filtered_kernels.FIELDS,
    **FIELDS,
    "exact": 1,  # does a relaxed skyband run, behind its filter?
    "untested": 0,  # rows since the last test
}

NOT_RANDOM = 4.0  # standard deviations from random order: three in 100,000 random buffers are so far on one side


@part
def looks_random(buffer, k, scores, best, pool):  # type: ignore[no-untyped-def]
    return usual_skyband(buffer, k, best, pool) and usual_runs(buffer, scores, pool)


@part
def usual_skyband(buffer, k, best, pool):  # type: ignore[no-untyped-def]
    """Is the k-skyband of the buffer as large as it would be in random order?

    It has the rows that may yet be shown, so where scores of only one of several sources fall, it is larger. In random
    order the i-th newest row is in it with a chance of min(1, k/i), whatever the others do.
    """
    n, start, rows = buffer.length, first_row(buffer), pool.rows
    if n <= k:
        return True
    size, count, threshold = 0, ZERO, -np.inf
    for r in range(start + n - 1, start - 1, -1):
        score = rows[r].score
        if score > threshold or count < k:
            size += 1
            count, threshold = note(best, count, k, score, threshold)
    expected = k * (1 + np.log(n / k))
    variance = expected - k - k * (1 - k / n)
    return abs(size - expected) <= NOT_RANDOM * np.sqrt(max(variance, 1.0))


@part
def usual_runs(buffer, scores, pool):  # type: ignore[no-untyped-def]
    """Wald and Wolfowitz: do the scores of the buffer cross their median as often as they would in random order?

    Of a long buffer every so many rows are looked at: what makes it not random shows at most distances.
    """
    n, start, rows = min(buffer.length, len(scores)), first_row(buffer), pool.rows
    for i in range(n):
        scores[i] = rows[start + i * buffer.length // n].score
    median = largest(scores[:n], n >> 1)
    above, runs, before = 0, 0, -1
    for i in range(n):
        now = 1 if rows[start + i * buffer.length // n].score > median else 0
        above += now
        runs += now != before
        before = now
    below = n - above
    if above == 0 or below == 0:
        return False
    expected = 2 * above * below / n + 1
    variance = (expected - 1) * (expected - 2) / (n - 1)
    return runs - expected > -NOT_RANDOM * np.sqrt(max(variance, 1e-9))


@part
def change_over(kind, g, exact, rule, pool, state):  # type: ignore[no-untyped-def]
    """Go on exactly, or by odds. What waits in the buffer is offered first, so that nothing of it is lost."""
    group, band, buffer = state.groups[g], state.lists[QUERY, g], state.lists[BUFFER, g]
    if group.exact == exact:
        return False
    changed = False
    for i in range(buffer.length):
        row = pool.rows[first_row(buffer) + i]
        if not row.last:
            row.last = 1
            changed |= offer(kind, g, row.score, row.time, row.position, rule, pool, state)
    state.lists[FILTER, g].length = 0
    group.threshold, group.bar, group.exact = -np.inf, -np.inf, exact
    if not exact:
        most = rule.k + kind.limit + kind.additional
        if band.length >= most:
            band.length = most
            group.bar = pool.rows[first_row(band) + most - 1].score
    group.expires = NEVER
    for r in range(first_row(band), first_row(band) + band.length):
        group.expires = min(group.expires, pool.rows[r].time)
    filtered_kernels.look_ahead(kind, g, rule, pool, state)
    return changed


@inlined
def take_either(kind, g, score, time, position, rule, pool, state):  # type: ignore[no-untyped-def]
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if group.exact:
        changed = take_row(kind, g, score, time, position, rule, pool, state)
    else:
        changed = take_likely(kind, g, score, time, position, rule, pool, state)
        group.expires = min(group.expires, time)
        if time >= group.latest:
            group.latest = time
            while buffer.length > 0 and pool.rows[first_row(buffer)].time <= time - kind.span:
                pop_front(buffer, 1)
            push_back(pool, buffer, score, time, position, np.int64(score >= group.bar))
        filtered_kernels.look_ahead(kind, g, rule, pool, state)
    group.untested += 1
    # A row that was turned away since the last test is still in the buffer: if the test fails, it is not lost.
    if 2 * group.untested >= buffer.length and group.untested >= kind.patience:
        group.untested = 0
        changed |= change_over(
            kind, g, np.int64(not looks_random(buffer, rule.k, kind.scores, kind.best, pool)), rule, pool, state
        )
    return changed


@inlined
def drop_either(kind, g, limit, rule, pool, state):  # type: ignore[no-untyped-def]
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if group.exact:
        return drop_rows(kind, g, limit, rule, pool, state)
    group.limit = limit
    while buffer.length > 0 and pool.rows[first_row(buffer)].time < limit + rule.size - kind.span:
        pop_front(buffer, 1)
    changed = False
    if group.expires < limit:
        changed, group.expires = expire_likely(kind, g, limit, rule, pool, state)
    filtered_kernels.look_ahead(kind, g, rule, pool, state)
    return changed


@inlined
def skip_either(kind, g, j, end, batch, rule, pool, state, out):  # type: ignore[no-untyped-def]
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if not rule.by_count or rule.size == FOREVER:
        return j
    untested = max(kind.patience, (buffer.length + 1) >> 1) - group.untested
    end = min(end, j + untested - 1)
    bar = group.threshold if group.exact else group.bar
    stop = filtered_kernels.pass_below(kind, g, j, end, bar, group.exact == 1, batch, rule, pool, state)
    group.untested += stop - j
    return stop


steps(Hybrid, take_either, drop_either, skip_either)
