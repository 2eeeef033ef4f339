"""Algorithms 3 and 4: how a new row finds its place in the K-skyband, and the staircase that says which pairs do.

The skyband is sorted by rank. Algorithm 4 passes over it once, with the k youngest pairs so far in a heap, and finds
what k better pairs outlive. For each pair that stays it notes the oldest of these k: a pair that ranks behind it, and
leaves no later than that one, is dominated by all k of them. These notes are the staircase. It rises, so the last point
that ranks before a new pair decides, and a binary search finds it.
"""

from __future__ import annotations

from skyband.kernels.compiling import inlined, kernel, part
from skyband.kernels.heap import push_heap
from skyband.problems.pairs.drivers.kernels import arrival_at, ranks_before
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import FREE, HELD, STEPS, precedes
from skyband.study.baselines.pairs.staircase_published.kernels.search_tree import insert, remove, sort_by_rank


@inlined
def is_under_staircase(band, score, a, b):
    low, high = 0, band.numbers[STEPS]
    while low < high:
        middle = (low + high) >> 1
        point = band.stair[middle]
        if ranks_before(point.score, point.a, point.b, score, a, b):
            low = middle + 1
        else:
            high = middle
    return low > 0 and band.stair_age[low - 1] >= a


@kernel
def undominated(band, score, head, at, base, row, other, reached):
    """Lines 2 to 4 of Algorithm 3: write out the pairs of the row at this index that k others do not dominate.

    score[x] is that of the pair with the row at head + x. Returns how many there are.
    """
    n = 0
    for x in range(len(score)):
        s, i = score[x], head + x
        if s == s and not is_under_staircase(band, s, base + min(i, at), base + max(i, at)):
            row[n], other[n], reached[n] = min(i, at), max(i, at), s
            n += 1
    return n


@part
def merge_in(band, keys, row, other, score, n, base, position):
    """Line 5 of Algorithm 3: candidates get slots, and `merged` is the skyband with them, best first. Returns its size.

    `keys`: scratch for n slots.
    """
    for c in range(n):
        band.numbers[FREE] -= 1
        slot = band.free[band.numbers[FREE]]
        pair, keys[c], band.fresh[slot] = band.pairs[slot], slot, True
        pair.score, pair.a, pair.b, pair.flag = score[c], base + row[c], base + other[c], 0
        pair.a_position, pair.b_position = arrival_at(row[c], base, position), arrival_at(other[c], base, position)
    sort_by_rank(keys, n, band.pairs)
    i, j, held = 0, 0, band.numbers[HELD]
    while i < held or j < n:
        if j == n or (i < held and precedes(band.pairs[band.by_score[i]], band.pairs[keys[j]])):
            band.merged[i + j] = band.by_score[i]
            i += 1
        else:
            band.merged[i + j] = keys[j]
            j += 1
    return held + n


@part
def update_skyband_and_staircase(band, k, n):
    """Algorithm 4, on the first n of `merged`: says in `kept` which of them stay, and sets the staircase."""
    in_heap, steps = 0, 0
    for r in range(n):
        # The heap has the k youngest of the pairs so far, by their older rows, the oldest of them on top.
        pair = band.pairs[band.merged[r]]
        stays = in_heap < k or pair.a > band.heap[0]
        band.kept[band.merged[r]] = stays
        if not stays:
            continue
        in_heap = push_heap(band.heap, in_heap, k, pair.a)
        if in_heap == k:
            point = band.stair[steps]
            point.score, point.a, point.b = pair.score, pair.a, pair.b
            band.stair_age[steps] = band.heap[0]
            steps += 1
    band.numbers[STEPS] = steps


@inlined
def give_slot(band, slot):
    band.free[band.numbers[FREE]] = slot
    band.numbers[FREE] += 1


@part
def settle(band, tree, n):
    """The first n of `merged` become the skyband, but for those not kept; so do the tree and the list by age.

    Returns how many of them are new; `new` has their slots.
    """
    held, fresh = 0, 0
    for r in range(n):
        slot = band.merged[r]
        if not band.kept[slot]:
            if not band.fresh[slot]:
                remove(tree, band.pairs, slot)
            band.fresh[slot] = False
            give_slot(band, slot)
    for r in range(band.numbers[HELD]):
        if band.kept[band.by_age[r]]:
            band.by_age[held] = band.by_age[r]
            held += 1
    for r in range(n):
        slot = band.merged[r]
        if band.fresh[slot]:
            band.fresh[slot] = False
            insert(tree, band.pairs, slot)
            band.new[fresh] = slot
            fresh += 1
            j = held
            while j > 0 and band.pairs[band.by_age[j - 1]].a < band.pairs[slot].a:
                band.by_age[j] = band.by_age[j - 1]
                j -= 1
            band.by_age[j] = slot
            held += 1
    held = 0
    for r in range(n):
        if band.kept[band.merged[r]]:
            band.by_score[held] = band.merged[r]
            held += 1
    band.numbers[HELD] = held
    return fresh


@kernel
def take(band, tree, k, row, other, score, n, base, position):
    """Lines 5 and 6 of Algorithm 3, for n candidates."""
    merged = merge_in(band, tree.keys, row, other, score, n, base, position)
    update_skyband_and_staircase(band, k, merged)
    return settle(band, tree, merged)


@kernel
def expire(band, tree, start):
    """Rows numbered before `start` leave: the pairs that leave with them are the last of the list by age."""
    held = band.numbers[HELD]
    while held > 0 and band.pairs[band.by_age[held - 1]].a < start:
        held -= 1
        remove(tree, band.pairs, band.by_age[held])
        give_slot(band, band.by_age[held])
    if held < band.numbers[HELD]:
        kept = 0
        for r in range(band.numbers[HELD]):
            if band.pairs[band.by_score[r]].a >= start:
                band.by_score[kept] = band.by_score[r]
                kept += 1
        band.numbers[HELD] = held


@kernel
def adopt(band, k, n):
    """The first n pairs are a skyband, best first: set the lists and the staircase."""
    for slot in range(n):
        band.by_score[slot] = band.merged[slot] = slot
        j = slot
        while j > 0 and band.pairs[band.by_age[j - 1]].a < band.pairs[slot].a:
            band.by_age[j] = band.by_age[j - 1]
            j -= 1
        band.by_age[j] = slot
    band.numbers[HELD], band.numbers[FREE] = n, len(band.free) - n
    update_skyband_and_staircase(band, k, n)
