"""Does the planner choose well for pairs? Its choice against the best algorithm, over kinds of scores and restrictions.

As for single rows (planner.py): algorithms are measured in turns, on settings between those of the calibration. Colours
and conditions are drawn at random: with `same` of c colours one pair in c counts, with `where` a given share of all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.table import Table

from skyband.core.emit import CHANGES
from skyband.core.registry import algorithms_of, candidates_of
from skyband.expressions.pairs import bind
from skyband.problems.pairs.drivers.scoring import Scoring, scoring_of
from skyband.problems.pairs.operator import Batch, PairOperator, Spec
from skyband.problems.pairs.planning import plan
from skyband.windows import Ticks

SCORES: Final = {
    "1 near": "-abs(a.x0 - b.x0)",
    "2 near": "-(abs(a.x0 - b.x0) + abs(a.x1 - b.x1))",
    "4 near": "-(abs(a.x0 - b.x0) + abs(a.x1 - b.x1) + abs(a.x2 - b.x2) + abs(a.x3 - b.x3))",
    "2 mixed": "abs(a.x0 - b.x0) - abs(a.x1 - b.x1)",
}
RESTRICTIONS: Final = ("none", "same 2", "same 5000", "different 2", "where .5", "where .001")
WINDOW_ROWS: Final = (3_000, 20_000)
KS: Final = (5, 300)
SETTINGS: Final = tuple(product(SCORES, RESTRICTIONS, WINDOW_ROWS, KS))
BAR: Final = 1.5
ROUNDS: Final = 3
ALGORITHMS: Final = tuple(each.name for each in candidates_of("pairs"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """One setting: what was chosen, what would have been best, and how much more a row costs so."""

    score: str
    restriction: str
    window_rows: int
    k: int
    chosen: str
    best: str
    ratio: float
    ns: dict[str, float]


def measure(
    say: Callable[[str], None], *, settings: Sequence[tuple[str, str, int, int]] = SETTINGS, timed: int = 1_024
) -> list[Verdict]:
    """`timed`: how many rows are timed together, once the window is full."""
    verdicts = []
    for number, (score, restriction, rows, k) in enumerate(settings, 1):
        say(f"{number} of {len(settings)}: {score}, {restriction}, {rows:,} rows, k = {k}")
        scoring, dimensions, colours = _scoring(score, restriction)
        spec = Spec(k, Ticks(rows, 0, 0, by_count=True), scoring, CHANGES)
        chosen = plan(spec).algorithm
        able = [name for name in ALGORITHMS if algorithms_of("pairs")[name].refuses(spec) is None]
        rng = np.random.default_rng(number)
        values = rng.random((dimensions, rows + 2 * ROUNDS * timed))
        codes = rng.integers(0, max(colours, 1), (scoring.colours, values.shape[1])).astype(np.float64)
        operators = {name: algorithms_of("pairs")[name].open(spec) for name in able}
        # The rows that follow a full window show the algorithm what it has to know of them.
        for operator in operators.values():
            _push(operator, values, codes, 0, rows + ROUNDS * timed)
        ns = dict.fromkeys(able, math.inf)
        for turn in range(ROUNDS):
            start = rows + (ROUNDS + turn) * timed
            for name, operator in operators.items():
                began = time.process_time()
                _push(operator, values, codes, start, start + timed)
                ns[name] = min(ns[name], 1e9 * (time.process_time() - began) / timed)
        best = min(ns, key=lambda name: ns[name])
        verdicts.append(Verdict(score, restriction, rows, k, chosen, best, ns[chosen] / ns[best], ns))
    return verdicts


def _scoring(score: str, restriction: str) -> tuple[Scoring, int, int]:
    """The loops, how many columns rows have, and how many colours."""
    what, _, number = restriction.partition(" ")
    where = f"abs(a.y + b.y - 1) < {_half_width(float(number))!r}" if what == "where" else None
    schema = pa.schema([(f"x{i}", pa.float64()) for i in range(4)] + [("y", pa.float64())])
    bound = bind(SCORES[score], where, False, schema)
    colours = int(number) if what in ("same", "different") else 0
    return scoring_of(bound, same=what == "same", different=what == "different"), len(bound.columns), colours


def _half_width(share: float) -> float:
    """The w for which |x + y - 1| < w holds for this share of uniform x and y: 1 - (1 - w) ** 2 of them."""
    return 1 - math.sqrt(1 - share)


def _push(
    operator: PairOperator, values: npt.NDArray[np.float64], codes: npt.NDArray[np.float64], start: int, stop: int
) -> None:
    for i in range(start, stop, 4_096):
        part = slice(i, min(i + 4_096, stop))
        operator.push(Batch(values[:, part], codes[:, part], np.empty(0, np.int64), i))


def table(verdicts: Sequence[Verdict]) -> Table:
    shown = Table(title="The planner's choice for pairs against the best", title_justify="left", box=None)
    for heading in ("score", "only", "window", "k", "chosen", "best", "ratio"):
        shown.add_column(heading, justify="right" if heading in ("window", "k", "ratio") else "left")
    for v in verdicts:
        mark = "" if v.ratio <= BAR else "  above"
        shown.add_row(v.score, v.restriction, f"{v.window_rows:,}", str(v.k), v.chosen, v.best, f"{v.ratio:.2f}{mark}")
    return shown
