"""The loops over rows and queries, compiled once for each scoring expression, with the expression inside them.

Their text is put together from the lines that `expressions.many` made of a checked tree. Rows lie in the columns of one
array, parameters of queries in those of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numba.core.errors import NumbaError

from skyband.errors import InvalidExpression
from skyband.expressions.many import QueryScore
from skyband.kernels.compiling import inlined
from skyband.kernels.generating import callee, filled, loop
from skyband.kernels.heap import note_score as note
from skyband.kernels.intrinsics import row_at, widen

BLOCK: Final = 256  # rows that are compared together: long enough to vectorise, short enough to look again,
PART: Final = 32  # part by part
IN_TURN: Final = 16  # queries that such rows meet one after the other, while they are near


@dataclass(frozen=True, eq=False)
class Scoring:
    """A score and its loops; each is compiled when it is first called."""

    score: QueryScore
    _loops: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in LOOPS:
            raise AttributeError(name)
        if name not in self._loops:
            self._loops[name] = self._compile(name)
        return self._loops[name]

    @property
    def may_raise(self) -> bool:
        """May scoring fail halfway? What is made from an expression alone cannot."""
        return bool(self.score.calls)

    def _compile(self, name: str) -> Callable[..., Any]:
        scope = {
            "BLOCK": BLOCK,
            "PART": PART,
            "IN_TURN": IN_TURN,
            "widen": widen,
            "note": note,
            "put": put_kept,
            "merge_last": merge_last,
            **{called: callee(theirs) for called, theirs in self.score.calls},
        }
        return loop(name, self.source(name), scope, may_raise=self.may_raise)

    def source(self, name: str) -> str:
        """The text of a loop."""
        columns, parameters = range(len(self.score.columns)), range(len(self.score.parameters))
        parts = {
            "QUERY": [f"b{c} = parameters[{c}, q]" for c in parameters],
            "SLICE": [f"p{c} = columns[{c}, i:stop]" for c in columns],
            "ROW": [f"a{c} = p{c}[x]" for c in columns],
            "RUN": [f"a{c}_low, a{c}_high = low_run[{c}, x], high_run[{c}, x]" for c in columns],
            "SCORE": list(self.score.lines),
            "COMMON": list(self.score.common or ()),
            "AT": [f"a{c} = columns[{c}, i]" for c in columns],
            "CELL": [f"a{c}_low, a{c}_high = low[{c}, x], high[{c}, x]" for c in columns],
            "BOXES": [f"p{c}, r{c} = low[{c}, i:stop], high[{c}, i:stop]" for c in columns],
            "BOX": [f"a{c}_low, a{c}_high = p{c}[x], r{c}[x]" for c in columns],
            "POINT": [f"b{c}_low = b{c}_high = parameters[{c}, q]" for c in parameters],
            "BOUND": list(self.score.bound or ()),
            "WIDEN": [line for c in parameters for line in _widened(c)],
            "UNKNOWN": [f"b{c}_low = b{c}_high = np.nan" for c in parameters] or ["pass"],
            "LAID": [f"p{c} = laid[{c}, i:stop]" for c in columns],
            "VALUE": [f"a{c}_low = a{c}_high = p{c}[x]" for c in columns],
            "FOUND": [f"found[{c}, x] = columns[{c}, first + near[x]]" for c in columns],
            "NEAR": [f"p{c} = found[{c}, i:stop]" for c in columns],
            **_without_root(self.score.lines),
        }
        return filled(LOOPS[name], parts)


_ROOT: Final = re.compile(r"(\w+) = math\.sqrt\((\w+)\)")
_LAST: Final = re.compile(r"s = (-?)\((\w+)\)")


def _without_root(lines: tuple[str, ...]) -> dict[str, list[str]]:
    """A score in two parts: `u`, which says whether it `may` reach the limit, and what is left to do for those that do.

    A root, and its sign, are left: they keep the order, so that squares can be compared, which are there much sooner.
    What rounding does to a root and to a square is less than what `reach` leaves room for; where they are the smallest
    numbers there are, or too large for any, that is so, too.
    """
    last, root = _LAST.fullmatch(lines[-1]), _ROOT.fullmatch(lines[-2]) if len(lines) > 1 else None
    if last is None or root is None or last[2] != root[1]:
        return {
            "ARGUMENT": [*lines, "u = s"],
            "REACH": ["reach = limit"],
            "MAY": ["may = u >= reach"],
            "REST": ["s = u"],
        }
    nearer = bool(last[1])
    return {
        "ARGUMENT": [*lines[:-2], f"u = {root[2]}"],
        "REACH": [
            "reach = limit * limit * (1 + 2.0**-50) + 1e-323"
            if nearer
            else "reach = limit * (limit * (1 - 2.0**-50)) - 1e-323 if limit > 0 else 0.0"
        ],
        "MAY": [f"may = u {'<=' if nearer else '>='} reach"],
        "REST": [f"s = {last[1]}math.sqrt(u)"],
    }


def _widened(c: int) -> tuple[str, ...]:
    """The lines that widen the interval of a parameter so that the query's is in it."""
    return (
        f"value = parameters[{c}, q]",
        f"b{c}_low = value if value < b{c}_low else b{c}_low",
        f"b{c}_high = value if value > b{c}_high else b{c}_high",
        "unknown |= value != value",
    )


LOOPS: Final = {
    # Rows [first, end) against the queries which[begin:]: what reaches a query's threshold is a hit, in order of
    # arrival, counted from `first`. The hits of the j-th query end at ends[j]. Returns how many there are, and where to
    # go on if there was no room for all that a query may have.
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
    # The same where rows lie in boxes: those of box i are [starts[i], starts[i + 1]) of `laid`, `order` says when each
    # arrived, [low, high] what values they have; run r of boxes is [runs[r], runs[r + 1]), with [low_run, high_run]. So
    # many queries at a time are asked `together`: rows, boxes and runs in which none of them can find anything are
    # passed over. `columns` has the rows as they arrived; `near` and `others` have room for the numbers of all of them,
    # `found` for their values.
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
    # Where queries lie in cells: those that cell i concerns are member[starts[i]:starts[i + 1]], and those that every
    # row concerns member[always:]. `asked` says of a query whether it is found by its cells (1), so (2), or not asked.
    # Hits are in order of arrival, each with its query; -1 if there is no room for them.
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
    # Cell i has the values [low, high], and lies in run i // per_run of cells, with [low_run, high_run]. Counts the
    # queries that each may concern in `ends`; or, told to write, puts them into `member` from `ends` on.
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
    # Of the rows [first, end), for each of the topics from `begin` on, by whose parameters they are scored: those that
    # fewer than k later ones outrank, and some others perhaps, latest first, into `kept`; in place of their times and
    # positions are their numbers, counted from `first`. `best` has room for 2 k scores; if it has not, all that are
    # worth something. Returns how many there are, and the topic to go on with.
    "latest": """
def latest(columns, first, end, parameters, begin, topics, k, best, kept):
    n, every = 0, 2 * k > len(best)
    for q in range(begin, topics):
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
    return n, topics
""",
    # The same where each row is of one topic, `of`, or of none, and is worth the same to all queries of it. `best` has
    # room for 2 k scores of each topic, `counts` and `limits` for a number.
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
    # The score of a query for each of the rows [first, end), into `out`.
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
    # The same where it is one for all queries that see the row.
    "common": """
def common(columns, first, end, out):
    i, stop = first, end
    {SLICE}
    for x in range(stop - i):
        {ROW}
        {COMMON}
        out[x] = s
""",
    # The same of several queries: for which[j] into out[j].
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
    # The score of one row for one query, and the most that a row in one box can have.
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
    # Every row is scored for every query, in the order in which `sweep` does it, and that is all: the lower bound.
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


@lru_cache(maxsize=256)
def _of_expression(score: QueryScore) -> Scoring:
    return Scoring(score)


def scoring_of(score: QueryScore) -> Scoring:
    """The loops of a score: the same for the same lines, so that they are compiled once."""
    if not score.calls:
        return _of_expression(score)
    scoring = Scoring(score)
    try:
        scoring.scores(np.zeros((len(score.columns), 1)), 0, 0, np.zeros((len(score.parameters), 1)), 0, np.empty(1))
    except NumbaError as error:
        raise InvalidExpression(
            f"numba cannot compile a function that {score.text!r} calls, as one of numbers that gives a number. numba "
            f"says: {str(error).strip()[:600]}"
        ) from None
    return scoring


@inlined
def put_kept(kept, n, score, number, topic):  # type: ignore[no-untyped-def]
    """A row that may matter to a topic: when and where it came is known to who asked."""
    row = row_at(kept, n)
    row.score, row.time, row.position, row.last, row.flag = score, number, number, topic, 0


@inlined
def merge_last(near, before, end, room):  # type: ignore[no-untyped-def]
    """Merge the numbers near[before:end], which ascend, into those before, which do, too."""
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
