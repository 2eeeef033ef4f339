"""The few scores that conformance is tested with: each is compiled, so there are not many; and what each means."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pyarrow as pa
from pair_oracle import PairRow

from skyband.expressions.pairs import bind
from skyband.problems.pairs.drivers.scoring import Scoring, scoring_of

SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("m", pa.int64()), ("n", pa.int64())])
NAN = float("nan")
FAR = 2**60  # where float64 has only every 256th whole number


def whole(value: float) -> int | None:
    """The columns m and n: x and y as whole numbers far from 0; of what is not finite, null."""
    return FAR + int(math.fmod(value, 1_000)) if math.isfinite(value) else None


class Scored(NamedTuple):
    by: str
    meaning: Callable[[PairRow, PairRow], float]  # of pairs in order, higher is better; NaN: not ranked
    ascending: bool = False
    where: str | None = None
    same: bool = False
    different: bool = False

    @property
    def colours(self) -> int:
        """How many columns of colours it compares."""
        return self.same + self.different

    def of(self, a: PairRow, b: PairRow) -> float:
        fits = not (self.same and a.colour != b.colour) and not (self.different and a.colour == b.colour)
        return self.meaning(a, b) if fits else NAN


def divide(x: float, y: float) -> float:
    if y != 0:
        return x / y
    return NAN if x == 0 or x != x else math.copysign(math.inf, x)  # zero has one sign


def distance(x: float, y: float) -> float:
    return abs(x - y)


SCORES = {
    "lopsided": Scored("a.x - 2 * b.y", lambda a, b: a.values[0] - 2 * b.values[1]),
    "ratio of different": Scored(
        "a.x / (a.y - b.y)", lambda a, b: divide(a.values[0], a.values[1] - b.values[1]), different=True
    ),
    "closest of the same": Scored(
        "abs(a.x - b.x) + abs(a.y - b.y)",
        lambda a, b: -(distance(a.values[0], b.values[0]) + distance(a.values[1], b.values[1])),
        ascending=True,
        same=True,
    ),
    "product where": Scored(
        "abs(a.x - b.x) * abs(a.y - b.y)",
        lambda a, b: (
            distance(a.values[0], b.values[0]) * distance(a.values[1], b.values[1])
            if a.values[0] <= b.values[0] or b.values[1] > 1
            else NAN
        ),
        where="a.x <= b.x OR b.y > 1",
    ),
}


def of_whole(columns: str, meaning: Callable[..., int]) -> Callable[[PairRow, PairRow], float]:
    """A score that is a whole number, of these columns: of row a, then of row b."""

    def of(a: PairRow, b: PairRow) -> float:
        read = columns.split()
        values = [whole({"a": a, "b": b}[name[0]].values["mn".index(name[-1])]) for name in read]
        return NAN if None in values else meaning(*values)

    return of


SCORES |= {
    "whole distance": Scored(
        "abs(a.m - b.m) + 2 * abs(a.n - b.n)",
        of_whole("a.m a.n b.m b.n", lambda am, an, bm, bn: -(abs(am - bm) + 2 * abs(an - bn))),
        ascending=True,
    ),
    "whole and lopsided": Scored("a.m + 2 * b.n", of_whole("a.m b.n", lambda am, bn: am + 2 * bn)),
}


@cache
def scoring(name: str) -> Scoring:
    scored = SCORES[name]
    score = bind(scored.by, scored.where, scored.ascending, SCHEMA)
    return scoring_of(score, same=scored.same, different=scored.different)
