"""The loops over pairs, compiled once for each scoring expression, with the expression inside them.

Their text is put together here from the lines that `pair_expressions` made of a checked tree. Rows lie in the columns
of one array in their order, so of rows i < j it is i that is `a`. A pair that colours or `where` rule out has no score.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numba.core.errors import NumbaError

from skyband.errors import InvalidExpression
from skyband.expressions.exact import TEXT, WHOLE
from skyband.expressions.pairs import PairScore
from skyband.expressions.wide import Sum
from skyband.kernels.generating import callee, filled, loop
from skyband.kernels.whole_scores import NULL, distance_from, rank_key, whole_of

BLOCK: Final = 512  # pairs that are compared together: long enough to vectorise, short enough to look again
SHORT: Final = 32  # the same where many pairs pass: among the latest rows,
NEAR: Final = 512  # which are so many
STEPS: Final = 8  # rows that are taken from a list before the bound is looked at again
TILE: Final = 1024  # rows of the window that a batch of new rows meets while they are in the cache

_SIZES: Final = {"BLOCK": BLOCK, "SHORT": SHORT, "NEAR": NEAR, "STEPS": STEPS, "TILE": TILE}


@dataclass(frozen=True, eq=False)
class Scoring:
    """A score and its loops; each is compiled when it is first called."""

    score: PairScore
    same: bool  # the first colour must be the same
    different: bool  # the last colour must not be
    _loops: dict[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return len(self.score.kept)

    @property
    def colours(self) -> int:
        return self.same + self.different

    @property
    def may_raise(self) -> bool:
        """May scoring fail halfway? What is made from an expression cannot."""
        return not self.score.is_checked

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in LOOPS:
            raise AttributeError(name)
        if name not in self._loops:
            self._loops[name] = self._compile(name)
        return self._loops[name]

    def _compile(self, name: str) -> Callable[..., Any]:
        """The loop of that name around the lines of this score."""
        scope: dict[str, Any] = {**_SIZES, **{called: callee(theirs) for called, theirs in self.score.calls}}
        scope |= {"NULL": NULL, "whole_of": whole_of, "rank_key": rank_key, "distance_from": distance_from}
        if self.score.function is not None:
            scope["function"] = callee(self.score.function)
            scope["Row"] = namedtuple("Row", self.score.arguments)
        for i, one in enumerate(self.score.sums):
            scope |= {f"SLOT_{i}_{s}": np.array(slot) for s, slot in enumerate(one.slots)}
        compiled = loop(name, self.source(name), scope, may_raise=self.may_raise)
        if not self.score.sums:
            return compiled
        sums = len(self.score.sums)
        return lambda columns, *rest: compiled(columns, *rest, np.empty((sums, columns.shape[1])))

    def source(self, name: str) -> str:
        """The text of a loop."""
        score = [*self.score.lines, f"fits = {self._fits()}"]
        parts = {
            "FIX_A": self._load("a", "columns[{c}, fixed]", "colours[{c}, fixed]"),
            "FIX_B": self._load("b", "columns[{c}, fixed]", "colours[{c}, fixed]"),
            "SLICE": [f"p{c} = columns[{c}, i:stop]" for c in range(self.width) if self._reads("ab", c)]
            + [f"q{c} = colours[{c}, i:stop]" for c in range(self.colours)],
            "SUM_A": self._sums_of_block("a", "b"),
            "SUM_B": self._sums_of_block("b", "a"),
            "VARY_A": self._load("a", "p{c}[x]", "q{c}[x]") + self._sums_at("x"),
            "VARY_B": self._load("b", "p{c}[x]", "q{c}[x]") + self._sums_at("x"),
            "OLDER": self._load("a", "columns[{c}, older]", "colours[{c}, older]"),
            "YOUNGER": self._load("b", "columns[{c}, younger]", "colours[{c}, younger]") + self._sums_of_pair(),
            "SCORE": score,
        }
        if self.score.distances is not None:
            distances = [
                f"l{c} = {'int(distance[{}])' if whole else 'distance[{}]'}".format(c)
                for c, whole in enumerate(self.score.distances.whole)
            ]
            parts["BOUND"] = [*distances, *self.score.distances.lines]
        text = filled(LOOPS[name], parts)
        if self.score.sums:
            # What is compiled is kept by its text, which must say what it was compiled for.
            text = text.replace("):\n", ", sums):\n", 1) + f"# {self.score.sums!r}\n"
        return text

    def _load(self, side: str, column: str, colour: str) -> list[str]:
        columns = [
            f"{side}{c} = {'whole_of({})' if kept.kind in (WHOLE, TEXT) else '{}'}".format(column.format(c=c))
            for c, kept in enumerate(self.score.kept)
            if self._reads(side, c)
        ]
        return columns + [f"{side}_colour{c} = {colour.format(c=c)}" for c in range(self.colours)]

    def _reads(self, sides: str, column: int) -> bool:
        """Do the lines read this column of one of these rows?"""
        return any(f"{side}{column}" in self._names for side in sides)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", " ".join(self.score.lines)))

    # -- sums of many terms: see expressions/wide.py ------------------------------------------------------------------

    def _sums_at(self, x: str) -> list[str]:
        return [f"sum{i} = sums[{i}, {x}]" for i in range(len(self.score.sums))]

    def _sums_of_block(self, varying: str, fixed: str) -> list[str]:
        """The sums of the rows [i, stop) with the fixed one, into `sums`."""
        lines = []
        for i, one in enumerate(self.score.sums):
            lines += ["for x in range(stop - i):", f"    sums[{i}, x] = 0.0", f"for term in range({one.count}):"]
            inner = []
            for s, sides in enumerate(one.sides):
                slot = f"SLOT_{i}_{s}[term]"
                if not self._is_column(one, s):
                    lines.append(f"    as{s} = {slot}")
                    continue
                if fixed in sides:
                    lines.append(f"    {fixed}s{s} = columns[{slot}, fixed]")
                if varying in sides:
                    lines.append(f"    part{s} = columns[{slot}, i:stop]")
                    inner.append(f"        {varying}s{s} = part{s}[x]")
            lines += ["    for x in range(stop - i):", *inner, *(f"        {line}" for line in one.lines)]
            lines.append(f"        sums[{i}, x] += {one.term}")
        return lines

    def _sums_of_pair(self) -> list[str]:
        lines = []
        for i, one in enumerate(self.score.sums):
            lines += [f"sum{i} = 0.0", f"for term in range({one.count}):"]
            for s, sides in enumerate(one.sides):
                slot = f"SLOT_{i}_{s}[term]"
                if not self._is_column(one, s):
                    lines.append(f"    as{s} = {slot}")
                    continue
                rows = {"a": "older", "b": "younger"}
                lines += [f"    {side}s{s} = columns[{slot}, {rows[side]}]" for side in sides]
            lines += [*(f"    {line}" for line in one.lines), f"    sum{i} += {one.term}"]
        return lines

    @staticmethod
    def _is_column(one: Sum, slot: int) -> bool:
        return isinstance(one.slots[slot][0], int)

    def _fits(self) -> str:
        conditions = ["ok"] if self.score.has_where else []
        if self.same:
            conditions.append("(a_colour0 == b_colour0)")
        if self.different:
            conditions.append(f"(a_colour{self.colours - 1} != b_colour{self.colours - 1})")
        return " & ".join(conditions) or "True"


LOOPS: Final = {
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
        for j in range(m):
            fixed = first + j
            {FIX_B}
            i = max(tile, heads[j])
            while i < tile_end:
                q = (i - tile) // block
                stop = min(tile + (q + 1) * block, tile_end)
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
        q = 0
        for i in range(tile, tile_end, block):
            limits = limit[i : min(i + block, tile_end)]
            lowest = np.inf
            for x in range(len(limits)):
                lowest = limits[x] if limits[x] < lowest else lowest
            least[q] = lowest
            q += 1
        for j in range(m):
            fixed = at[j]
            {FIX_B}
            i, final = max(tile, heads[j]), min(tile_end, fixed)
            while i < final:
                q = (i - tile) // block
                stop = min(tile + (q + 1) * block, final)
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
                            row[n], other[n], by[n], score[n] = i + x, fixed, j, s
                            n += 1
                i = stop
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
                            row[n], other[n], by[n], score[n] = fixed, i + x, j, s
                            n += 1
                i = stop
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


@lru_cache(maxsize=256)
def _of_expression(score: PairScore, same: bool, different: bool) -> Scoring:
    return Scoring(score, same, different)


def scoring_of(score: PairScore, *, same: bool = False, different: bool = False) -> Scoring:
    """The loops of a score: the same for the same lines, so that they are compiled once."""
    if score.is_checked:
        return _of_expression(score, same, different)
    scoring = Scoring(score, same, different)
    _try(scoring)
    return scoring


def _try(scoring: Scoring) -> None:
    """Compile a user's function before any row comes, to say what is wrong with it if something is."""
    text = scoring.score.text
    columns, colours = np.zeros((scoring.width, 1)), np.zeros((scoring.colours, 1))
    try:
        scoring.scores(columns, colours, 0, 0, 0, np.empty(1))
    except NumbaError as error:
        reason = str(error).strip()
        raise InvalidExpression(
            f"numba cannot compile {text} as a function of two rows that gives a number. It gets a and b with the "
            f"columns {', '.join(scoring.score.columns)} as floats. numba says: {reason[:600]}"
        ) from None
