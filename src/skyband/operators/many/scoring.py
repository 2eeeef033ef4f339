"""The loops over rows and queries, compiled once for each scoring expression, with the expression inside them.

Their text is put together from the lines that `expressions.many` made of a checked tree. Rows lie in the columns of one
array, parameters of queries in those of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numba.core.errors import NumbaError

from skyband.errors import InvalidExpression
from skyband.expressions.many import QueryScore
from skyband.structures.generating import callee, filled, loop

BLOCK: Final = 256  # rows that are compared together: long enough to vectorise, short enough to look again


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
        scope = {"BLOCK": BLOCK, **{called: callee(theirs) for called, theirs in self.score.calls}}
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
            "AT": [f"a{c} = columns[{c}, i]" for c in columns],
            "CELL": [f"a{c}_low, a{c}_high = low[{c}, x], high[{c}, x]" for c in columns],
            "BOXES": [f"p{c}, r{c} = low[{c}, i:stop], high[{c}, i:stop]" for c in columns],
            "BOX": [f"a{c}_low, a{c}_high = p{c}[x], r{c}[x]" for c in columns],
            "POINT": [f"b{c}_low = b{c}_high = parameters[{c}, q]" for c in parameters],
            "BOUND": list(self.score.bound or ()),
        }
        return filled(LOOPS[name], parts)


LOOPS: Final = {
    # Rows [first, end) against the queries which[begin:]: what reaches a query's threshold is a hit, in order of
    # arrival, counted from `first`. The hits of the j-th query end at ends[j]. Returns how many there are, and where to
    # go on if there was no room for all that a query may have.
    "sweep": """
def sweep(columns, first, end, parameters, threshold, which, begin, hit, score, ends, scores):
    n = 0
    for j in range(begin, len(which)):
        if n + end - first > len(hit):
            return n, j
        q = which[j]
        {QUERY}
        limit = threshold[q]
        i = first
        while i < end:
            stop = min(i + BLOCK, end)
            {SLICE}
            hits = 0
            for x in range(stop - i):
                {ROW}
                {SCORE}
                scores[x] = s
                hits += s >= limit
            if hits > 0:
                for x in range(stop - i):
                    if scores[x] >= limit:
                        hit[n], score[n] = i - first + x, scores[x]
                        n += 1
            i = stop
        ends[j] = n
    return n, len(which)
""",
    # The same where rows lie in boxes: those of box i are [starts[i], starts[i + 1]), `order` says when each arrived,
    # [low, high] what values they have; run r of boxes is [runs[r], runs[r + 1]), with [low_run, high_run]. What no row
    # of a run or a box can reach passes it over. `score_of` has room for a score by row, and is NaN before and after.
    "sweep_boxes": """
def sweep_boxes(columns, order, starts, low, high, runs, low_run, high_run, parameters, threshold, which, begin,
                hit, score, ends, scores, in_run, in_box, score_of):
    n = 0
    for j in range(begin, len(which)):
        if n + len(order) > len(hit):
            return n, j
        q = which[j]
        {QUERY}
        {POINT}
        limit, begun = threshold[q], n
        for x in range(len(runs) - 1):
            {RUN}
            {BOUND}
            in_run[x] = not (most < limit)
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
                i, stop = starts[box], starts[box + 1]
                {SLICE}
                hits = 0
                for x in range(stop - i):
                    {ROW}
                    {SCORE}
                    scores[x] = s
                    hits += s >= limit
                if hits > 0:
                    for x in range(stop - i):
                        if scores[x] >= limit:
                            hit[n], score[n] = order[i + x], scores[x]
                            n += 1
        if n - begun > 32:
            for x in range(begun, n):
                score_of[hit[x]] = score[x]
            n = begun
            for x in range(len(order)):
                if score_of[x] == score_of[x]:
                    hit[n], score[n] = x, score_of[x]
                    score_of[x] = np.nan
                    n += 1
        else:
            for x in range(begun + 1, n):
                row, value, y = hit[x], score[x], x
                while y > begun and hit[y - 1] > row:
                    hit[y], score[y] = hit[y - 1], score[y - 1]
                    y -= 1
                hit[y], score[y] = row, value
        ends[j] = n
    return n, len(which)
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
