"""The compiled steps of the hybrid, which changes between two skybands.

While the buffer looks random it runs the probabilistic one; while it does not, a relaxed one behind a probabilistic
filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import inlined, part
from skyband.kernels.heap import note_score
from skyband.kernels.panes import largest
from skyband.kernels.queues import pop_front, push_back
from skyband.kernels.ranking import ZERO
from skyband.kernels.skyband import first_row
from skyband.problems.rows.algorithms.filtered import kernels as filtered_kernels
from skyband.problems.rows.algorithms.filtered.kernels import BUFFER, FILTER, QUERY, drop_rows, offer, take_row
from skyband.problems.rows.drivers.step_kernels import steps
from skyband.study.baselines.rows.probabilistic.kernels import FIELDS, expire_likely, take_likely
from skyband.windows import NEVER


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
def looks_random(buffer, k, scores, best, pool):
    return usual_skyband(buffer, k, best, pool) and usual_runs(buffer, scores, pool)


@part
def usual_skyband(buffer, k, best, pool):
    """Is the k-skyband of the buffer as large as it would be in random order?

    The skyband holds the rows that may yet be shown, so it is larger where the scores of even one source fall. In
    random order the i-th newest row is in it with a chance of min(1, k/i), whatever the others do.
    """
    n, start, rows = buffer.length, first_row(buffer), pool.rows
    if n <= k:
        return True
    size, count, threshold = 0, ZERO, -np.inf
    for r in range(start + n - 1, start - 1, -1):
        score = rows[r].score
        if score > threshold or count < k:
            size += 1
            count, threshold = note_score(best, count, k, score, threshold)
    expected = k * (1 + np.log(n / k))
    variance = expected - k - k * (1 - k / n)
    return abs(size - expected) <= NOT_RANDOM * np.sqrt(max(variance, 1.0))


@part
def usual_runs(buffer, scores, pool):
    """Wald and Wolfowitz: do the scores of the buffer cross their median as often as they would in random order?

    Of a long buffer it looks at every so many rows: what makes a buffer not random shows at most distances.
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
def change_over(kind, g, exact, config, pool, state):
    """Go on with the exact skyband or with the probabilistic one; it gets all rows that wait in the buffer first."""
    group, band, buffer = state.groups[g], state.lists[QUERY, g], state.lists[BUFFER, g]
    if group.exact == exact:
        return False
    changed = False
    for i in range(buffer.length):
        row = pool.rows[first_row(buffer) + i]
        if not row.last:
            row.last = 1
            changed |= offer(kind, g, row.score, row.time, row.position, config, pool, state)
    state.lists[FILTER, g].length = 0
    group.threshold, group.bar, group.exact = -np.inf, -np.inf, exact
    if not exact:
        most = config.k + kind.limit + kind.additional
        if band.length >= most:
            band.length = most
            group.bar = pool.rows[first_row(band) + most - 1].score
    group.expires = NEVER
    for r in range(first_row(band), first_row(band) + band.length):
        group.expires = min(group.expires, pool.rows[r].time)
    filtered_kernels.look_ahead(kind, g, config, pool, state)
    return changed


@inlined
def take_either(kind, g, score, time, position, config, pool, state):
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if group.exact:
        changed = take_row(kind, g, score, time, position, config, pool, state)
    else:
        changed = take_likely(kind, g, score, time, position, config, pool, state)
        group.expires = min(group.expires, time)
        if time >= group.latest:
            group.latest = time
            while buffer.length > 0 and pool.rows[first_row(buffer)].time <= time - kind.span:
                pop_front(buffer, 1)
            push_back(pool, buffer, score, time, position, np.int64(score >= group.bar))
        filtered_kernels.look_ahead(kind, g, config, pool, state)
    group.untested += 1
    # A row that was turned away since the last test is still in the buffer: if the test fails, it is not lost.
    if 2 * group.untested >= buffer.length and group.untested >= kind.patience:
        group.untested = 0
        changed |= change_over(
            kind, g, np.int64(not looks_random(buffer, config.k, kind.scores, kind.best, pool)), config, pool, state
        )
    return changed


@inlined
def drop_either(kind, g, limit, config, pool, state):
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if group.exact:
        return drop_rows(kind, g, limit, config, pool, state)
    group.limit = limit
    while buffer.length > 0 and pool.rows[first_row(buffer)].time < limit + config.size - kind.span:
        pop_front(buffer, 1)
    changed = False
    if group.expires < limit:
        changed, group.expires = expire_likely(kind, g, limit, config, pool, state)
    filtered_kernels.look_ahead(kind, g, config, pool, state)
    return changed


@inlined
def skip_either(kind, g, j, end, batch, config, pool, state, out):
    group, buffer = state.groups[g], state.lists[BUFFER, g]
    if not config.numbered:
        return j
    untested = max(kind.patience, (buffer.length + 1) >> 1) - group.untested
    end = min(end, j + untested - 1)
    bar = group.threshold if group.exact else group.bar
    stop = filtered_kernels.pass_below(kind, g, j, end, bar, group.exact == 1, batch, config, pool, state)
    group.untested += stop - j
    return stop


steps(Hybrid, take_either, drop_either, skip_either)
