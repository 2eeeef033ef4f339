"""Finds the rows of a block that reach the thresholds of queries, where a score group has one score for each row."""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import allocating, part
from skyband.kernels.panes import reaching
from skyband.problems.subscriptions.drivers.kernels.score_groups import NONE
from skyband.problems.subscriptions.drivers.scoring import BLOCK


@allocating
def sweep_shared(scores, seen_by, score_groups, score_group_of, threshold, which, begin, hit, score, ends):
    """Find the rows that reach the thresholds of the queries which[begin:], in order of arrival, as `sweep` does."""
    least, starts = np.full(score_groups, np.inf), np.zeros(score_groups + 1, np.int64)
    for j in range(begin, len(which)):
        least[score_group_of[which[j]]] = min(least[score_group_of[which[j]]], threshold[which[j]])
    near = np.empty(len(scores), np.int64)
    m = near_of_score_groups(scores, seen_by, least, near) if len(seen_by) else near_of_one(scores, least[0], near)
    for x in range(m):
        starts[(seen_by[near[x]] if len(seen_by) else 0) + 1] += 1
    for t in range(score_groups):
        starts[t + 1] += starts[t]
    following, found, worth = starts.copy(), np.empty(m, np.int64), np.empty(m)
    for x in range(m):
        t = seen_by[near[x]] if len(seen_by) else 0
        found[following[t]], worth[following[t]] = near[x], scores[near[x]]
        following[t] += 1
    n = 0
    for j in range(begin, len(which)):
        q = which[j]
        t, limit = score_group_of[q], threshold[q]
        if n + starts[t + 1] - starts[t] > len(hit):
            return n, j
        for x in range(starts[t], starts[t + 1]):
            hit[n], score[n] = found[x], worth[x]
            n += worth[x] >= limit
        ends[j] = n
    return n, len(which)


@part
def near_of_one(scores, least, near):
    """List the rows that reach the lowest threshold; returns how many."""
    m = 0
    for begin in range(0, len(scores), BLOCK):
        block = scores[begin : min(len(scores), begin + BLOCK)]
        if reaching(block, least):
            for x in range(len(block)):
                near[m] = begin + x
                m += block[x] >= least
    return m


@part
def near_of_score_groups(scores, seen_by, least, near):
    """List the rows that reach the lowest threshold of their score group; returns how many."""
    m = 0
    for i in range(len(scores)):
        near[m] = i
        m += (seen_by[i] != NONE) & (scores[i] >= least[max(seen_by[i], 0)])
    return m
