"""The loops over rows and queries as text: `{SCORE}` is replaced by the lines of a scoring expression.

One array has the rows, column by column, and another the parameters of queries.
"""

from __future__ import annotations

from typing import Final

from skyband.kernels.compiling import inlined
from skyband.kernels.intrinsics import row_at

LOOPS: Final = {
    # Finds the hits of the queries which[begin:] among the rows [first, end): the rows that reach the query's
    # threshold, in order of arrival, counted from `first`. The hits of the query which[j] end at ends[j]. Returns how
    # many hits there are, and the query to go on with if there was no room for all that a query may have.
    "sweep": """
def sweep(columns, first, end, parameters, threshold, which, begin, hit, score, ends, scores):
    widen()
    n, rows, j = 0, end - first, begin
    while j < len(which):
        if n + rows >= len(hit):
            return n, j
        # Some queries meet a block of rows in turn. Meanwhile each has room for as many hits as there are rows.
        j_end = min(j + min(IN_TURN, (len(hit) - n) // max(1, rows)), len(which))
        for y in range(j, j_end):
            ends[y] = n + (y - j) * rows
        i = first
        while i < end:
            stop = min(i + BLOCK, end)
            {SLICE}
            for y in range(j, j_end):
                q = which[y]
                {QUERY}
                limit = threshold[q]
                {REACH}
                hits = 0
                for x in range(stop - i):
                    {ROW}
                    {ARGUMENT}
                    {MAY}
                    scores[x] = u
                    hits += may
                if hits == 0:
                    continue
                m = ends[y]
                for begun in range(0, stop - i, PART):
                    z = min(begun + PART, stop - i)
                    hits = 0
                    for x in range(begun, z):
                        u = scores[x]
                        {MAY}
                        hits += may
                    if hits > 0:
                        for x in range(begun, z):
                            u = scores[x]
                            {MAY}
                            if may:
                                {REST}
                                hit[m], score[m] = i - first + x, s
                                m += s >= limit
                ends[y] = m
            i = stop
        at = n
        for y in range(j, j_end):
            for x in range(at, ends[y]):
                hit[n], score[n] = hit[x], score[x]
                n += 1
            ends[y] = n
            at += rows
        j = j_end
    return n, len(which)
""",
    # As `sweep`, for rows in boxes. Box i has the rows [starts[i], starts[i + 1]) of `laid`; `order` says when each
    # arrived, and [low, high] bounds their values. Run r has the boxes [runs[r], runs[r + 1]), with the bounds
    # [low_run, high_run]. So many queries are asked `together`: they pass over rows, boxes and runs in which none of
    # them can find anything. `columns` has the rows in order of arrival; `near` and `others` have room for the numbers
    # of all rows, `found` for their values.
    "sweep_boxes": """
def sweep_boxes(laid, order, starts, low, high, runs, low_run, high_run, columns, first, parameters, threshold, which,
                begin, together, hit, score, ends, scores, in_run, in_box, near, others, found):
    widen()
    n, j = 0, begin
    while j < len(which):
        j_end = min(j + together, len(which))
        q = which[j]
        {POINT}
        limit, unknown = threshold[q], False
        for y in range(j, j_end):
            q = which[y]
            limit = min(limit, threshold[q])
            {WIDEN}
        if unknown:
            {UNKNOWN}
        {QUERY}
        {REACH}
        for x in range(len(runs) - 1):
            {RUN}
            {BOUND}
            in_run[x] = not (most < limit)
        m = 0
        for run in range(len(runs) - 1):
            if not in_run[run]:
                continue
            i, stop = runs[run], runs[run + 1]
            {BOXES}
            for x in range(stop - i):
                {BOX}
                {BOUND}
                in_box[x] = not (most < limit)
            for box in range(runs[run], runs[run + 1]):
                if not in_box[box - runs[run]]:
                    continue
                i, stop, before = starts[box], starts[box + 1], m
                {LAID}
                if j_end == j + 1:
                    for x in range(stop - i):
                        {ROW}
                        {ARGUMENT}
                        {MAY}
                        others[x] = may
                else:
                    for x in range(stop - i):
                        {VALUE}
                        {BOUND}
                        others[x] = not (most < limit)
                for x in range(stop - i):
                    near[m] = order[i + x]
                    m += others[x]
                merge_last(near, before, m, others)
        for x in range(m):
            {FOUND}
        i, stop = 0, m
        for y in range(j, j_end):
            if n + m > len(hit):
                return n, y
            q = which[y]
            {QUERY}
            limit = threshold[q]
            {NEAR}
            for x in range(m):
                {ROW}
                {SCORE}
                scores[x] = s
            for x in range(m):
                hit[n], score[n] = near[x], scores[x]
                n += scores[x] >= limit
            ends[y] = n
        j = j_end
    return n, len(which)
""",
    # As `sweep`, for queries in cells. Cell i concerns the queries member[starts[i]:starts[i + 1]], and every row
    # concerns member[always:]. `asked` says whether a query is found by its cells (1), among the latter (2), or is not
    # asked (0). Hits are in order of arrival, each with its query. Returns -1 if there is no room for them.
    "sweep_cells": """
def sweep_cells(columns, first, end, cell, starts, member, always, parameters, threshold, asked, hit, query, score):
    n = 0
    for i in range(first, end):
        {AT}
        at, stop = starts[cell[i - first]], starts[cell[i - first] + 1]
        if n + stop - at + len(member) - always > len(hit):
            return -1
        for way in range(1, 3):
            for x in range(at, stop):
                q = member[x]
                {QUERY}
                {SCORE}
                hit[n], query[n], score[n] = i - first, q, s
                n += (s >= threshold[q]) & (asked[q] == way)
            at, stop = always, len(member)
    return n
""",
    # Finds the queries that each cell may concern. Cell i has the values [low, high]; it lies in the run i // per_run
    # of cells, which has the values [low_run, high_run]. Counts the queries in `ends`, or, with `write`, puts them into
    # `member` from `ends` on.
    "reach_cells": """
def reach_cells(low, high, low_run, high_run, per_run, parameters, threshold, ends, member, write):
    for q in range(len(threshold)):
        {POINT}
        limit = threshold[q]
        for run in range(low_run.shape[1]):
            x = run
            {RUN}
            {BOUND}
            if most < limit:
                continue
            for x in range(run * per_run, (run + 1) * per_run):
                {CELL}
                {BOUND}
                if not (most < limit):
                    if write:
                        member[ends[x]] = q
                    ends[x] += 1
""",
    # Scores rows by the parameters of each score group from `begin` on, and puts the rows of [first, end) that fewer
    # than k later ones outrank, and perhaps some others, into `kept`, latest first. Their numbers, counted from
    # `first`, stand for times and positions. `best` is scratch space for 2 k scores; if it has less, every row that has
    # a score is kept. Returns how many rows are kept, and the score group to go on with.
    "latest": """
def latest(columns, first, end, parameters, begin, score_groups, k, best, kept):
    n, every = 0, 2 * k > len(best)
    for q in range(begin, score_groups):
        if n + end - first > len(kept):
            return n, q
        {QUERY}
        count, limit = 0, -np.inf
        stop = end
        while stop > first:
            i = max(first, stop - BLOCK // 2)
            {SLICE}
            hits = 0
            for x in range(stop - i):
                {ROW}
                {SCORE}
                hits += s > limit
            if hits > 0 or count < k:
                for x in range(stop - i - 1, -1, -1):
                    {ROW}
                    {SCORE}
                    if s > limit or (count < k and s == s):
                        put(kept, n, s, i - first + x, q)
                        n += 1
                        if not every:
                            count, limit = note(best, count, k, s, limit)
            stop = i
    return n, score_groups
""",
    # As `latest`, if each row belongs to one score group, `of`, or to none, and has one score for all queries of the
    # group. `best` is scratch space for 2 k scores of each score group, `counts` and `limits` for one number of each.
    "latest_of": """
def latest_of(columns, first, end, of, k, best, counts, limits, kept):
    n, every = 0, 2 * k > best.shape[1]
    for x in range(end - first):
        if of[x] >= 0:
            counts[of[x]], limits[of[x]] = 0, -np.inf
    stop = end
    while stop > first:
        i = max(first, stop - BLOCK // 2)
        {SLICE}
        for x in range(stop - i - 1, -1, -1):
            t = of[i - first + x]
            if t >= 0:
                {ROW}
                {COMMON}
                if s > limits[t] or (counts[t] < k and s == s):
                    put(kept, n, s, i - first + x, t)
                    n += 1
                    if not every:
                        counts[t], limits[t] = note(best[t], counts[t], k, s, limits[t])
        stop = i
    return n
""",
    # Writes the score that a query gives each of the rows [first, end) into `out`.
    "scores": """
def scores(columns, first, end, parameters, q, out):
    {QUERY}
    i, stop = first, end
    {SLICE}
    for x in range(stop - i):
        {ROW}
        {SCORE}
        out[x] = s
""",
    # As `scores`, if all queries that see a row give it the same score.
    "common": """
def common(columns, first, end, out):
    i, stop = first, end
    {SLICE}
    for x in range(stop - i):
        {ROW}
        {COMMON}
        out[x] = s
""",
    # As `scores`, for several queries: writes the scores of which[j] into out[j].
    "scores_of_each": """
def scores_of_each(columns, first, end, parameters, which, out):
    for j in range(len(which)):
        q = which[j]
        {QUERY}
        i, stop = first, end
        {SLICE}
        for x in range(stop - i):
            {ROW}
            {SCORE}
            out[j, x] = s
""",
    # Returns the score of one row for one query, and the highest score that a row in one box can have.
    "one": """
def one(columns, i, parameters, q):
    {QUERY}
    {AT}
    {SCORE}
    return s
""",
    "most": """
def most(low, high, x, parameters, q):
    {POINT}
    {CELL}
    {BOUND}
    return most
""",
    # Scores every row for every query in the order of `sweep`, and does nothing else. No sweep can be faster.
    "score_all": """
def score_all(columns, first, end, parameters, queries, out):
    widen()
    for q in range(queries):
        {QUERY}
        i = first
        while i < end:
            stop = min(i + BLOCK, end)
            {SLICE}
            for x in range(stop - i):
                {ROW}
                {SCORE}
                out[x] = s
            i = stop
""",
}


@inlined
def put_kept(kept, n, score, number, score_group):
    """Keep a row that may matter to a score group. Its number stands for its time and position."""
    row = row_at(kept, n)
    row.score, row.time, row.position, row.last, row.flag = score, number, number, score_group, 0


@inlined
def merge_last(near, before, end, room):
    """Merge near[before:end] into near[:before]; both ascend."""
    if before == end or before == 0 or near[before - 1] < near[before]:
        return
    for x in range(end - before):
        room[x] = near[before + x]
    x, y, to = before - 1, end - before - 1, end - 1
    while y >= 0:
        if x >= 0 and near[x] > room[y]:
            near[to] = near[x]
            x -= 1
        else:
            near[to] = room[y]
            y -= 1
        to -= 1
