"""Compiles the loops over rows and queries, once for each scoring expression, with the expression inside.

`expressions.subscriptions` turns a checked tree into lines of code; this module puts them into the text of
`kernels/scoring.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from skyband.expressions.subscriptions import QueryScore
from skyband.kernels.generating import GeneratedLoops, callee, filled, loop, refusing
from skyband.kernels.heap import note_score as note
from skyband.kernels.intrinsics import widen
from skyband.problems.subscriptions.drivers.kernels.scoring import LOOPS, merge_last, put_kept

BLOCK: Final = 256  # so many rows are compared together: enough to vectorise, few enough to look at again,
PART: Final = 32  # in parts of so many rows
IN_TURN: Final = 16  # so many queries look at the same rows in turn, while these are in the cache


@dataclass(frozen=True, eq=False)
class Scoring(GeneratedLoops):
    """A score and its compiled loops."""

    TEMPLATES = LOOPS
    score: QueryScore

    @property
    def may_raise(self) -> bool:
        """Can scoring raise? Only the functions that an expression calls can."""
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
    """Split a score into two parts: `u` says whether the score `may` reach the limit; {REST} computes it if so.

    A square root and its sign go into the second part. They keep the order, so the first part compares squares, which
    are known much sooner. Rounding changes a root and a square by less than `reach` leaves room for, even if they are
    subnormal or overflow.
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
    """The lines that widen the interval of a parameter so that it contains the query's value."""
    return (
        f"value = parameters[{c}, q]",
        f"b{c}_low = value if value < b{c}_low else b{c}_low",
        f"b{c}_high = value if value > b{c}_high else b{c}_high",
        "unknown |= value != value",
    )


@lru_cache(maxsize=256)
def _of_expression(score: QueryScore) -> Scoring:
    return Scoring(score)


def scoring_of(score: QueryScore) -> Scoring:
    """The loops of a score. Scores with the same lines share their loops, so these are compiled once."""
    if not score.calls:
        return _of_expression(score)
    scoring = Scoring(score)
    with refusing(f"a function that {score.text!r} calls, as one of numbers that gives a number."):
        scoring.scores(np.zeros((len(score.columns), 1)), 0, 0, np.zeros((len(score.parameters), 1)), 0, np.empty(1))
    return scoring
