"""The compiled loops of `basic`: dominators are counted one by one."""

from __future__ import annotations

from skyband.kernels.compiling import inlined, kernel, part
from skyband.problems.pairs.drivers.kernels import ranks_before
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import HELD
from skyband.study.baselines.pairs.staircase_published.kernels.skyband import merge_in, settle


@inlined
def dominators(band, k, score, a, b):
    """How many pairs of the skyband dominate this one, up to k: those that rank before it and do not leave sooner."""
    count = 0
    for r in range(band.numbers[HELD]):
        pair = band.pairs[band.by_score[r]]
        if count == k or not ranks_before(pair.score, pair.a, pair.b, score, a, b):
            break
        count += pair.a >= a
    return count


@kernel
def undominated(band, k, score, head, at, base, row, other, reached):
    """As the kernel of that name of `staircase_published`, without a staircase."""
    n = 0
    for x in range(len(score)):
        s, i = score[x], head + x
        if s == s and dominators(band, k, s, base + min(i, at), base + max(i, at)) < k:
            row[n], other[n], reached[n] = min(i, at), max(i, at), s
            n += 1
    return n


@part
def count_dominators(band, k, n):
    """Of the first n of `merged`: count the dominators of each new pair, and add one to the pairs that it dominates."""
    for r in range(n):
        slot = band.merged[r]
        if band.fresh[slot]:
            count, a = 0, band.pairs[slot].a
            for i in range(r):
                count += band.pairs[band.merged[i]].a >= a
            band.dominators[slot] = count
            for i in range(r + 1, n):
                worse = band.merged[i]
                if not band.fresh[worse] and band.pairs[worse].a <= a:
                    band.dominators[worse] += 1
    for r in range(n):
        band.kept[band.merged[r]] = band.dominators[band.merged[r]] < k


@kernel
def take(band, tree, k, row, other, score, n, base, position):
    """As the kernel of that name of `staircase_published`, with counters."""
    merged = merge_in(band, tree.keys, row, other, score, n, base, position)
    count_dominators(band, k, merged)
    return settle(band, tree, merged)


@kernel
def count_all(band, n):
    """Count the dominators of each of the n pairs held."""
    for r in range(n):
        slot = band.by_score[r]
        band.dominators[slot] = 0
        for i in range(r):
            band.dominators[slot] += band.pairs[band.by_score[i]].a >= band.pairs[slot].a
