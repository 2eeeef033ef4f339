"""The texts of the loops over pairs, with places in them for the lines of a score.

A line such as `{SCORE}` stands for the lines that `scoring.py` makes of the score, and one such as `<MEET>` for a part
that several loops have. Rows lie in the columns of one array in their order, so of rows i < j it is i that is `a`. A
pair that colours or `where` rule out does not fit.
"""

from __future__ import annotations

import re
from textwrap import indent
from typing import Final

BLOCK: Final = 512  # pairs that are compared together: long enough to vectorise, short enough to look again
SHORT: Final = 32  # the same where many pairs pass: among the latest rows,
NEAR: Final = 512  # which are so many
STEPS: Final = 8  # rows that are taken from a list before the bound is looked at again
TILE: Final = 1024  # rows of the window that a batch of new rows meets while they are in the cache

SIZES: Final = {"BLOCK": BLOCK, "SHORT": SHORT, "NEAR": NEAR, "STEPS": STEPS, "TILE": TILE}

# Parts that several loops have.
_MEET_OLDER: Final = """
while i < STOP:
    q = (i - tile) // block
    stop = min(tile + (q + 1) * block, STOP)
    {SLICE}
    {SUM_A}
    limits, lowest = limit[i:stop], least[q]
    hits = 0
    for x in range(len(limits)):
        {VARY_A}
        {SCORE}
        hits += (s >= lowest) & fits
    if hits > 0:
        if n + stop - i > room:
            return n, i
        for x in range(len(limits)):
            {VARY_A}
            {SCORE}
            if (s >= limits[x]) & fits:
                row[n], other[n], score[n] = i + x, fixed, s
                n += 1
    i = stop
"""
_PARTS: Final = {
    # The least limit of each block of a tile, which is mostly that of all of its rows.
    "LEAST_LIMITS": """
q = 0
for i in range(tile, tile_end, block):
    limits = limit[i : min(i + block, tile_end)]
    lowest, same = limits[0], 0
    for x in range(len(limits)):
        same += limits[x] == lowest
    if same < len(limits):
        lowest = np.inf
        for x in range(len(limits)):
            if limits[x] < lowest:
                lowest = limits[x]
    least[q] = lowest
    q += 1
""",
    # The fixed row meets the rows from i on, all older, in blocks.
    "MEET_OLDER": _MEET_OLDER.replace("STOP", "final"),
    "MEET_OLDER_OF_TILE": _MEET_OLDER.replace("STOP", "tile_end"),
    # The fixed row meets the row i, which may be older or younger.
    "MEET": """
if (i < heads[j]) | (i == fixed):
    continue
older, younger = min(i, fixed), max(i, fixed)
{OLDER}
{YOUNGER}
{SCORE}
if (s >= limit[older]) & fits:
    if n == room:
        return -1
    row[n], other[n], by[n], score[n] = older, younger, j, s
    n += 1
""",
}


_TEXTS: Final = {
    # New rows [first, first + m) against the rows before them. heads[j]: where the partners of the j-th begin. Pairs
    # (row, other) with an old row whose score reaches the row's limit are written out; those of two new rows all are,
    # into `inner`. Returns how many were written and, if the room for them ran out, the old row to go on with; that
    # makes sense for one new row only. A block is first compared with its least limit, which is mostly that of all of
    # its rows; limits differ most among the latest rows, where blocks are short. Scores are not stored: it is cheaper
    # to score the few blocks again in which something passed.
    "sweep": """
def sweep(columns, colours, limit, first, heads, start, least, row, other, score, inner):
    n, m, room = 0, len(heads), len(row)
    fine = max(start, first - NEAR)
    tile = start
    while tile < first:
        block = BLOCK if tile < fine else SHORT
        tile_end = min(tile + TILE, fine if tile < fine else first)
        <LEAST_LIMITS>
        for j in range(m):
            fixed = first + j
            {FIX_B}
            i = max(tile, heads[j])
            <MEET_OLDER_OF_TILE>
        tile = tile_end
    for j in range(1, m):
        fixed = first + j
        {FIX_B}
        i, stop = first, fixed
        {SLICE}
        {SUM_A}
        for x in range(j):
            {VARY_A}
            {SCORE}
            inner[j, x] = s if fits & (first + x >= heads[j]) else np.nan
    return n, first
""",
    # New rows at the indices `at`, anywhere among the others, against all older rows of [start, end) and all younger
    # ones before `last`: partners of the j-th begin at heads[j]. A pair must reach the limit of its older row. Pairs
    # (row, other) are written out, and by which new row they were found. Returns how many there are and, if the room
    # for them ran out, the row to go on with; that makes sense for one new row only.
    "sweep_late": """
def sweep_late(columns, colours, limit, at, heads, start, end, last, least, row, other, by, score):
    n, m, room = 0, len(at), len(row)
    fine = max(start, end - NEAR)
    tile = start
    while tile < end:
        block = BLOCK if tile < fine else SHORT
        tile_end = min(tile + TILE, fine if tile < fine else end)
        <LEAST_LIMITS>
        for j in range(m):
            fixed, begun = at[j], n
            {FIX_B}
            i, final = max(tile, heads[j]), min(tile_end, fixed)
            <MEET_OLDER>
            {FIX_A}
            i, lowest, final = max(tile, fixed + 1), limit[fixed], min(tile_end, last)
            while i < final:
                stop = min(i + block, final)
                {SLICE}
                {SUM_B}
                hits = 0
                for x in range(stop - i):
                    {VARY_B}
                    {SCORE}
                    hits += (s >= lowest) & fits
                if hits > 0:
                    if n + stop - i > room:
                        return n, i
                    for x in range(stop - i):
                        {VARY_B}
                        {SCORE}
                        if (s >= lowest) & fits:
                            row[n], other[n], score[n] = fixed, i + x, s
                            n += 1
                i = stop
            for f in range(begun, n):
                by[f] = j
        tile = tile_end
    return n, end
""",
    # The score of a row with each of the rows [start, end), into `out`; NaN with itself, and where there is none.
    "scores": """
def scores(columns, colours, fixed, start, end, out):
    i, stop = start, max(start, min(fixed, end))
    {FIX_B}
    {SLICE}
    {SUM_A}
    for x in range(stop - i):
        {VARY_A}
        {SCORE}
        out[x] = s if fits else np.nan
    if start <= fixed < end:
        out[fixed - start] = np.nan
    i, stop = max(start, fixed + 1), max(end, fixed + 1, start)
    {FIX_A}
    {SLICE}
    {SUM_B}
    for x in range(stop - i):
        {VARY_B}
        {SCORE}
        out[i - start + x] = s if fits else np.nan
""",
    # New rows, at the indices `at`, against old ones that are listed by value, for each column whose distance the score
    # depends on: `order` is their numbers and `value` their values, `count` of each; of whole numbers, how far they are
    # from `origin`. From each list comes the row with the next best distance, until even a row that had the next best
    # distance of all lists could not reach `reach`, which all limits of these rows do. Rows in `odd` are in no list.
    # Pairs that reach the limit of their older row are written behind the first n. Returns how many there are then; -1
    # if there was no room, -2 if more than `most` rows of the lists were looked at. `seen` says how many were.
    "walk": """
def walk(columns, colours, limit, order, value, count, odd, base, at, heads, reach, near, listed, whole, origin, most,
         seen, x, left, right, distance, row, other, by, score, n):
    lists, room = len(near), len(row)
    for j in range(len(heads)):
        fixed, begun, finite = at[j], n, True
        for c in range(lists):
            x[c] = columns[listed[c], fixed]
            if whole[c]:
                x[c] = distance_from(whole_of(x[c]), origin[c])
            finite &= abs(x[c]) < np.inf
            left[c], right[c] = 0, count - 1
            if near[c]:
                low, high = 0, count
                while low < high:
                    middle = (low + high) >> 1
                    if value[c, middle] < x[c]:
                        low = middle + 1
                    else:
                        high = middle
                left[c], right[c] = low - 1, low
        seen[0] += len(odd) + (0 if finite else count)
        for r in range(len(odd) + (0 if finite else count)):
            i = (odd[r] if r < len(odd) else order[0, r - len(odd)]) - base
            <MEET>
        while finite:
            # Every row that was not met is no better, in any list, than the next one there.
            for c in range(lists):
                if near[c]:
                    below = x[c] - value[c, left[c]] if left[c] >= 0 else np.inf
                    above = value[c, right[c]] - x[c] if right[c] < count else np.inf
                    distance[c] = min(below, above)
                    finite &= (left[c] >= 0) | (right[c] < count)
                else:
                    finite &= left[c] <= right[c]
                    if finite:
                        distance[c] = max(abs(x[c] - value[c, left[c]]), abs(value[c, right[c]] - x[c]))
            if not finite:
                break
            {BOUND}
            if (bound < reach) | (reach != reach):
                break
            seen[0] += lists * STEPS
            if seen[0] > most:
                return -2
            for c in range(lists):
                for step in range(STEPS):
                    if near[c]:
                        if (left[c] < 0) & (right[c] >= count):
                            break
                        below = x[c] - value[c, left[c]] if left[c] >= 0 else np.inf
                        above = value[c, right[c]] - x[c] if right[c] < count else np.inf
                        if (left[c] >= 0) & ((below <= above) | (right[c] >= count)):
                            r = left[c]
                            left[c] -= 1
                        else:
                            r = right[c]
                            right[c] += 1
                    else:
                        if left[c] > right[c]:
                            break
                        if abs(x[c] - value[c, left[c]]) >= abs(value[c, right[c]] - x[c]):
                            r = left[c]
                            left[c] += 1
                        else:
                            r = right[c]
                            right[c] -= 1
                    i = order[c, r] - base
                    if (i < heads[j]) | (i == fixed):
                        continue
                    older, younger = min(i, fixed), max(i, fixed)
                    {OLDER}
                    {YOUNGER}
                    {SCORE}
                    if (s >= limit[older]) & fits:
                        known = False
                        for f in range(begun, n):
                            known |= (row[f] == older) & (other[f] == younger)
                        if not known:
                            if n == room:
                                return -1
                            row[n], other[n], by[n], score[n] = older, younger, j, s
                            n += 1
    return n
""",
    # New rows, at the indices `at`, against old ones of the same colour: `order` is their numbers, colour after colour;
    # `starts` says where each colour begins. Rows in `odd` may have any colour. As `walk` otherwise.
    "meet": """
def meet(columns, colours, limit, order, starts, odd, base, at, heads, row, other, by, score, n):
    room = len(row)
    for j in range(len(heads)):
        fixed = at[j]
        colour = int(colours[0, fixed])
        start, end = 0, 0
        if colour + 1 < len(starts):
            start, end = starts[colour], starts[colour + 1]
        for r in range(start, end + len(odd)):
            i = (order[r] if r < end else odd[r - end]) - base
            <MEET>
    return n
""",
    # Every new pair is scored, in the order in which `sweep` does it, and that is all: the lower bound.
    "score_all": """
def score_all(columns, colours, first, heads, out):
    m = len(heads)
    end = first + m
    tile = heads[0]
    while tile < end:
        tile_end = min(tile + TILE, end)
        for j in range(m):
            fixed = first + j
            {FIX_B}
            i, last = max(tile, heads[j]), min(tile_end, fixed)
            while i < last:
                stop = min(i + BLOCK, last)
                {SLICE}
                {SUM_A}
                for x in range(stop - i):
                    {VARY_A}
                    {SCORE}
                    out[x] = s if fits else np.nan
                i = stop
        tile = tile_end
""",
}


def _put_together(text: str) -> str:
    """The text, in which a line that is `<NAME>` stands for the part of that name, indented alike."""
    return re.sub(r"( *)<(\w+)>\n", lambda found: indent(_PARTS[found[2]].strip("\n") + "\n", found[1]), text)


LOOPS: Final = {name: _put_together(text) for name, text in _TEXTS.items()}
