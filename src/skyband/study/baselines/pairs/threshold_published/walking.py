"""Algorithm 5, compiled once for each score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from skyband.kernels.generating import filled, loop
from skyband.kernels.whole_scores import NULL, distance_from, rank_key, whole_of
from skyband.problems.pairs.drivers.scoring import Scoring
from skyband.study.baselines.pairs.staircase_published.kernels.skyband import is_under_staircase
from skyband.study.baselines.pairs.threshold_published import kernels

_TEXT: Final = """
def walk(columns, colours, band, lists, node, at, head, tail, base, odd, kinds, ways, listed, slack, chromatic,
         best, cursor, forward, row, other, reached):
    n, age, fixed = 0, len(kinds), at
    begin(lists, node, kinds, ways, chromatic, cursor, forward)
    r, c, going = 0, 0, True
    while going:
        # From the rows that are in no list, then from each list in turn.
        i = at
        if r < len(odd):
            i, r = odd[r] - base, r + 1
        elif c <= age:
            side = better_side(lists, c, node, kinds, ways, cursor)
            found = take_next(lists, c, side, node, chromatic, cursor, forward) if cursor[c, side] != NONE else NONE
            c += 1
            if found != NONE and lists.met[found] != lists.numbers[WALKS]:
                lists.met[found] = lists.numbers[WALKS]
                lists.numbers[MET] += 1
                i = lists.number[found] - base
        else:
            # The dummy: as young as the youngest row that may not have been met, and of the best local scores left.
            c = 0
            for list_ in range(age + 1):
                side = better_side(lists, list_, node, kinds, ways, cursor)
                going &= cursor[list_, side] != NONE
                if list_ < age:
                    best[listed[list_]] = lists.value[list_, cursor[list_, side]]
            if going:
                {FIX_A}
                {BEST_B}
                {SCORE}
                s += abs(s) * slack
                youngest = lists.number[node]
                if cursor[age, RIGHT] == NONE:
                    youngest = lists.number[cursor[age, LEFT]]
                going = s != s or not is_under_staircase(band, s, youngest, base + tail)
        if (i < head) | (i == at):
            continue
        older, younger = min(i, at), max(i, at)
        {OLDER}
        {YOUNGER}
        {SCORE}
        if fits and s == s and not is_under_staircase(band, s, base + older, base + younger):
            row[n], other[n], reached[n] = older, younger, s
            n += 1
    return n
"""


@dataclass(frozen=True, eq=False)
class Walking(Scoring):
    """The loops of a score, and this one."""

    TEMPLATES: ClassVar[dict[str, str]] = {**Scoring.TEMPLATES, "walk": _TEXT}

    def _compile(self, name: str) -> Callable[..., Any]:
        if name != "walk":
            return super()._compile(name)
        parts = {
            "FIX_A": self._load("a", "columns[{c}, fixed]", "colours[{c}, fixed]"),
            "BEST_B": self._load("b", "best[{c}]", "colours[{c}, fixed]"),
            "OLDER": self._load("a", "columns[{c}, older]", "colours[{c}, older]"),
            "YOUNGER": self._load("b", "columns[{c}, younger]", "colours[{c}, younger]"),
            "SCORE": [*self.score.lines, f"fits = {self._fits()}"],
        }
        called = ("begin", "better_side", "take_next", "NONE", "LEFT", "RIGHT", "WALKS", "MET")
        scope = {"NULL": NULL, "whole_of": whole_of, "rank_key": rank_key, "distance_from": distance_from}
        scope |= {each: getattr(kernels, each) for each in called} | {"is_under_staircase": is_under_staircase}
        return loop(name, filled(_TEXT, parts), scope, may_raise=False)


@lru_cache(maxsize=256)
def walking(scoring: Scoring) -> Walking:
    return Walking(scoring.score, scoring.same, scoring.different)
