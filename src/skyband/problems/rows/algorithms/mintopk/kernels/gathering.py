"""Takes many rows of one pane and of many groups together.

Each group has a buffer, and a bar that a row must reach to get there. Adding a row takes no branch: in random order a
third of the rows reach the bar, and the processor cannot predict which. When a buffer is full, its bar is raised, and
the rows below it are dropped. The few rows that are left in the end are ranked once.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.compiling import inlined, part
from skyband.kernels.panes import NARROW, exceeding, largest
from skyband.kernels.ranking import SMALL, ZERO
from skyband.kernels.slabs import CLASSES, NONE, reserve
from skyband.problems.rows.algorithms.mintopk.kernels.arrays import (
    CLOSED,
    FREE_CELL,
    LANES,
    MARGIN,
    NEXT,
    TOTAL,
    WANTED,
    admit,
    find_cell,
    gathers,
    new_cell,
    room_needed,
)
from skyband.problems.rows.drivers.row_kernels import UNRANKED

CROWDED = 32  # with more rows per bucket than this, on average, dealing into buckets does not pay


@inlined
def has_room_for_run(config, pool, groups, cells, clock):
    """Is there room for k more rows and one more cell of every group? If not, request it."""
    free, cell = 0, clock[FREE_CELL]
    while cell != NONE and free < len(groups):
        free += 1
        cell = cells[cell].following
    clock[WANTED] = 2 * len(groups) * (config.limit + 8)
    if free < len(groups) or len(pool.rows) - pool.free[CLASSES] < room_needed(config, groups, clock):
        return False
    clock[WANTED] = 0
    return True


@part
def take_run(score, time, group, first, i, end, pane, config, pool, groups, cells, clock, work):
    """Take rows [i, end), which are all of one pane and many for each group."""
    for g in range(len(groups)):
        index = find_cell(g, pane, groups, cells)
        work.bar[g] = cells[index].threshold if index != NONE else -np.inf
        work.gathered[g] = 0
    clock[UNRANKED] += gather(score, time, group, i, end, config, work)
    for g in range(len(groups)):
        if work.gathered[g] == 0:
            continue
        index = find_cell(g, pane, groups, cells)
        if index == NONE:
            index = new_cell(g, pane, groups, cells, clock)
            clock[NEXT] = min(clock[NEXT], max(pane >> 1, clock[CLOSED]))
        if config.k <= SMALL:
            n = work.gathered[g]
            if n > 2 * config.k:
                n = raise_bar(g, n, config.k, gathers(config.k), time, work)
            n = rank_gathered(g * gathers(config.k), n, config.k, time, work)
        else:
            n = select_gathered(g, config.k, time, work)
        deliver(n, cells[index], time, ZERO, first, config, pool, clock, work)


@part
def gather(score, time, group, i, end, config, work):
    """Put rows that reach their group's bar into its buffer. Returns the number of rows without a score."""
    bar, count, scores, rows, room = work.bar, work.gathered, work.scores, work.rows, np.uint64(gathers(config.k))
    unranked = 0
    for r in range(np.uint64(i), np.uint64(end)):
        # Unsigned indices: numba adds a check for an index that might be negative, which more than doubles the time.
        g, s = np.uint64(group[r]), score[r]
        n = np.uint64(count[g])
        scores[g * room + n], rows[g * room + n] = s, r  # the next row overwrites this one unless it counts
        n += np.uint64(s >= bar[g])
        count[g] = n
        unranked += s != s
        if n == room:
            count[g] = raise_bar(np.int64(g), np.int64(n), config.k, gathers(config.k), time, work)
    return unranked


@part
def raise_bar(g, n, k, room, time, work):
    """Raise the bar of a group that has gathered n rows, drop the rows below it, and return how many are left.

    At least the k best rows are left, and at most twice as many.
    """
    low = g * room
    scores, rows, some = work.scores[low : low + room], work.rows[low : low + room], work.some
    if k <= SMALL:
        for j in range(n, room):
            scores[j] = -np.inf
        bar = third_smallest_of_maxima(scores)
    else:
        for j in range(len(scores)):
            some[j] = scores[j]
        bar = largest(some[:room], k - 1)
    work.bar[g] = bar
    kept = np.uint64(0)
    for j in range(np.uint64(n)):
        s, r = scores[j], rows[j]
        scores[kept], rows[kept] = s, r
        kept += np.uint64(s >= bar)
    n = np.int64(kept)
    return n if n <= 2 * k else keep_best(g, n, k, room, time, work)


@inlined
def third_smallest_of_maxima(scores):
    """A score that at least k of 3 (k + 2) scores reach, and hardly ever many more, without sorting.

    It divides the scores into k + 2 parts of three, and takes the third smallest maximum of a part: k maxima reach it.
    """
    third = len(scores) // 3
    first, second, last = scores[:third], scores[third : 2 * third], scores[2 * third :]
    a, b, c = np.inf, np.inf, np.inf  # the smallest maxima so far, in order
    for j in range(third):
        s = first[j] if first[j] > second[j] else second[j]
        s = last[j] if last[j] > s else s
        s, a = (a, s) if s < a else (s, a)
        s, b = (b, s) if s < b else (s, b)
        c = s if s < c else c
    return c


@inlined
def pad(some, n):
    """Fill the lanes behind n scores with -inf, which exceeds none. Returns the number of scores then."""
    lanes = (n + LANES - 1) // LANES * LANES
    for j in range(n, lanes):
        some[j] = -np.inf
    return lanes


@part
def keep_best(g, n, k, room, time, work):
    """Keep exactly the k best of n > k rows in a group's buffer, and make the worst of them its bar."""
    low, scores, rows, some, latest = g * room, work.scores, work.rows, work.some, work.which
    for j in range(n):
        some[j] = scores[low + j]
    bar = largest(some[:n], k - 1)
    spare = k - exceeding(scores[low : low + n], bar)
    # Among rows at the bar it keeps the most recent, which mostly come last.
    found = 0
    for j in range(low + n - 1, low - 1, -1):
        if scores[j] == bar and (found < spare or is_later(time, rows[j], latest[spare - 1])):
            place = min(found, spare - 1)
            while place > 0 and is_later(time, rows[j], latest[place - 1]):
                latest[place] = latest[place - 1]
                place -= 1
            latest[place] = rows[j]
            found = min(found + 1, spare)
    work.bar[g] = bar
    kept = low
    for j in range(low, low + n):
        s, r = scores[j], rows[j]
        if s > bar or (s == bar and not is_later(time, latest[spare - 1], r)):
            scores[kept], rows[kept] = s, r
            kept += 1
    return k


@inlined
def is_later(time, a, b):
    """Is row a later than row b? Without times, the order of arrival decides."""
    if len(time) and time[a] != time[b]:
        return time[a] > time[b]
    return a > b


@part
def select_gathered(g, k, time, work):
    """Write the entries of a group's k best rows to `which`, in any order. Returns their number."""
    n, low = work.gathered[g], g * gathers(k)
    if n > k:
        n = keep_best(g, n, k, gathers(k), time, work)
    for j in range(n):
        work.which[j] = low + j
    return n


@part
def deliver(n, cell, time, before, first, config, pool, clock, work):
    """Put n gathered rows, whose entries are in `which`, into a cell. By count, `before + r` rows of the group came
    before row r."""
    k, scores, rows, which = config.k, work.scores, work.rows, work.which
    if cell.length > 0:
        for j in which[:n]:
            if scores[j] >= cell.threshold:
                r = rows[j]
                admit(cell, scores[j], time[r] if len(time) else before + r, first + r, config, pool, clock)
        return
    reserve(pool, cell, n)
    worst = np.inf
    for j in range(n):
        s, r = scores[which[j]], rows[which[j]]
        row = pool.rows[cell.offset + j]
        row.score, row.time, row.position = s, time[r] if len(time) else before + r, first + r
        row.last = row.flag = 0
        worst = min(worst, s)
    cell.length = n
    clock[TOTAL] += n
    if n == k:
        cell.threshold = worst


@part
def rank_gathered(low, n, k, time, work):
    """Write the entries of the best k of n gathered rows to `which`, best first. Returns their number."""
    scores, some, which = work.scores[low : low + n], work.some, work.which
    for j in range(len(scores)):
        some[j], which[j] = scores[j], NONE
    counted = some[: pad(some, n)]
    # A row's place is the number of better rows: no branches, and every place is taken unless some scores are equal.
    for j in range(len(scores)):
        which[np.uint64(exceeding(counted, scores[j]))] = low + j
    equal = 0
    for j in range(min(n, k + 1)):
        equal += which[j] == NONE
    return rank_one_by_one(low, n, k, time, work) if equal else min(n, k)


@part
def rank_one_by_one(low, n, k, time, work):
    """`rank_gathered` if scores are equal. It goes from the last row to the first, so most rows need not move."""
    scores, rows, which = work.scores, work.rows, work.which
    ranked = 0
    for j in range(low + n - 1, low - 1, -1):
        if ranked == k and not gathered_before(j, which[k - 1], scores, rows, time):
            continue
        place = min(ranked, k - 1)
        while place > 0 and gathered_before(j, which[place - 1], scores, rows, time):
            which[place] = which[place - 1]
            place -= 1
        which[place] = j
        ranked = min(ranked + 1, k)
    return ranked


@inlined
def gathered_before(a, b, scores, rows, time):
    """Does one gathered row rank before another?"""
    if scores[a] != scores[b]:
        return scores[a] > scores[b]
    return is_later(time, rows[a], rows[b])


@part
def sort_gathered(low, n, time, work):
    """Write the entries of n gathered rows to `which`, best first. Returns False if scores are too unevenly spread.

    It deals the rows by score into as many buckets as there are rows, and then swaps neighbours until all are in order.
    """
    scores, rows, which, ranked, start = work.scores[low : low + n], work.rows, work.which, work.some, work.counts
    highest, lowest = -np.inf, np.inf
    for j in range(len(scores)):
        highest, lowest = max(highest, scores[j]), min(lowest, scores[j])
    scale = (n - 1) / (highest - lowest) if highest > lowest else np.inf
    if not (0 < scale < np.inf):
        return False
    start[: n + 1] = 0
    for j in range(len(scores)):
        start[np.uint64((highest - scores[j]) * scale) + np.uint64(1)] += 1
    together = 0
    for i in range(n):
        together += start[i + 1] * start[i + 1]
        start[i + 1] += start[i]
    if together > CROWDED * n:
        return False
    for j in range(len(scores)):
        bucket = np.uint64((highest - scores[j]) * scale)
        at = np.uint64(start[bucket])
        ranked[at], which[at] = scores[j], low + j
        start[bucket] += 1
    for i in range(1, n):
        # Rows before i are in order, and so are their scores in `ranked`.
        score, j, place = ranked[i], which[i], i
        while place > 0 and score >= ranked[place - 1]:
            if score == ranked[place - 1] and not is_later(time, rows[j], rows[which[place - 1]]):
                break
            ranked[place], which[place] = ranked[place - 1], which[place - 1]
            place -= 1
        ranked[place], which[place] = score, j
    return True


@part
def gather_pane(score, i, end, bar, config, work):
    """Gather the rows of [i, end) that reach the bar. If they are many, it may leave out some that are not among the k
    best.

    Rows must be in order of time. Returns the number of rows gathered, and of rows without a score.
    """
    scores, rows, none = work.scores, work.rows, work.which[:0]
    n, most, unranked = np.uint64(0), np.uint64(gathers(config.k) - NARROW), 0
    for low in range(i, end, NARROW):
        block, reached = score[low : min(low + NARROW, end)], 0
        for j in range(len(block)):
            reached += block[j] >= bar
            unranked += block[j] != block[j]
        if reached:
            for j in range(len(block)):
                scores[n], rows[n] = block[j], low + j  # as in `gather`
                n += np.uint64(block[j] >= bar)
            if n > most:
                n = np.uint64(raise_bar(ZERO, np.int64(n), config.k, np.int64(n), none, work))
                bar = work.bar[0]
    work.gathered[0] = n
    return np.int64(n), unranked


@part
def expect(n, k, rows, missed, hint, work):
    """Predict a score that at least k rows of the next pane will reach, and few more, if they are like these.

    n of `rows` rows were gathered; `which` has them, best first. In random order, the number of rows that reach a score
    varies by the square root of 2k. The margin starts at nearly three times that, and doubles if a prediction `missed`.
    """
    scores, which = work.scores, work.which
    hint.margin = min(2 * hint.margin, np.sqrt(k)) if missed else max(0.95 * hint.margin, MARGIN)
    wanted = k + np.int64(hint.margin * np.sqrt(k))
    lowest = scores[which[min(wanted, n - 1)]]
    if n < wanted:
        lowest -= (scores[which[n >> 1]] - lowest) * 2 * (wanted - n) / n
    hint.bar, hint.rows = lowest, rows
