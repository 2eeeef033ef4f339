"""The loops over pairs, compiled once for each scoring expression, with the expression inside them.

`Scoring` fills the texts of `loop_texts.py` with the lines that `expressions/pairs.py` made of a checked tree.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skyband.expressions.exact_values import TEXT, WHOLE
from skyband.expressions.pairs import PairScore
from skyband.expressions.wide import Sum
from skyband.kernels.generating import GeneratedLoops, callee, filled, loop, refusing
from skyband.kernels.whole_scores import NULL, distance_from, rank_key, whole_of
from skyband.problems.pairs.drivers.loop_texts import LOOPS, SIZES


@dataclass(frozen=True, eq=False)
class Scoring(GeneratedLoops):
    """A score and its loops."""

    TEMPLATES = LOOPS
    score: PairScore
    same: bool  # the first colour must be the same
    different: bool  # the last colour must not be

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

    def _compile(self, name: str) -> Callable[..., Any]:
        scope: dict[str, Any] = {**SIZES, **{called: callee(theirs) for called, theirs in self.score.calls}}
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


@lru_cache(maxsize=256)
def _of_expression(score: PairScore, same: bool, different: bool) -> Scoring:
    return Scoring(score, same, different)


def scoring_of(score: PairScore, *, same: bool = False, different: bool = False) -> Scoring:
    """The loops of a score: the same for the same lines, so that they are compiled once."""
    if score.is_checked:
        return _of_expression(score, same, different)
    scoring = Scoring(score, same, different)
    # Before any row comes, to say what is wrong with the user's function if something is.
    with refusing(
        f"{score.text} as a function of two rows that gives a number. It gets a and b with the columns "
        f"{', '.join(score.columns)} as floats."
    ):
        scoring.scores(np.zeros((scoring.width, 1)), np.zeros((scoring.colours, 1)), 0, 0, 0, np.empty(1))
    return scoring
