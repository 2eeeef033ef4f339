"""Does the planner choose well? Its choice against the best algorithm, on settings between those it was calibrated on.

Every algorithm that the planner expects to cost less than ten times the cheapest is measured, in turns; the others have
no chance. Where the choice costs too much, it and the best one are measured again, some times: perhaps something
else took the time. The planner is told the order of the stream.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.table import Table

from skyband.core.registry import algorithms_of
from skyband.problems.rows.costs import MOST_SHOWN, ORDERS
from skyband.problems.rows.operator import Spec
from skyband.problems.rows.planning import plan
from skyband.study.pushing import SCORES, STREAM_ROWS, Floats, cost, setting


class Setting(NamedTuple):
    order: str
    slides: int  # how many make a window; 0: it slides with each arrival
    window_rows: int
    k: int
    whole: bool = True  # each slide shows its whole answer; else what changes


KS: Final = (5, 50, 200)
WINDOW_ROWS: Final = (5_000, 200_000)
MANY_SLIDES: Final = (
    (200, 20_000),
    (2_000, 20_000),
    (20_000, 20_000),
    (500, 1_000_000),
    (5_000, 1_000_000),
    (50_000, 1_000_000),
)
MANY_KS: Final = (20, 500, 5_000)
SETTINGS: Final = (
    *(Setting(order, slides, rows, k) for order, slides, rows, k in product(ORDERS, (0, 20), WINDOW_ROWS, KS)),
    *(
        Setting(order, slides, rows, k, whole)
        for order, whole, (slides, rows), k in product(("random", "falling"), (True, False), MANY_SLIDES, MANY_KS)
        if k * slides <= MOST_SHOWN
    ),
)
BAR: Final = 1.15
WORTH_MEASURING: Final = 10.0
ROUNDS: Final = 3
AGAIN: Final = 3  # times so many


@dataclass(frozen=True, slots=True)
class Verdict:
    """One setting: what was chosen, what would have been best, and how much more a row costs so."""

    setting: Setting
    chosen: str
    best: str
    ratio: float
    ns: dict[str, float]  # what a row cost each algorithm that was measured


def measure(
    say: Callable[[str], None], *, seconds: float = 0.05, settings: Sequence[Setting] = SETTINGS
) -> list[Verdict]:
    verdicts = []
    streams = {order: SCORES[order](STREAM_ROWS) for order in {order for order, *_ in settings}}
    for number, one in enumerate(settings, 1):
        order, slides, rows, k, whole = one
        say(f"{number} of {len(settings)}: {order}, {slides} slides, {rows:,} rows, k = {k}")
        spec = setting(k, rows, slides, whole=whole)
        chosen = plan(spec, expect=order)
        worth = [
            choice.algorithm
            for choice in chosen.considered
            if choice.refused is None and not choice.ns > WORTH_MEASURING * chosen.ns
        ]
        scores = streams[order]
        ns = dict.fromkeys(worth, math.inf)
        _take_turns(worth, ns, spec, scores, seconds)
        best = min(ns, key=lambda name: ns[name])
        for _ in range(AGAIN):
            if ns[chosen.algorithm] > BAR * ns[best]:
                _take_turns([chosen.algorithm, best], ns, spec, scores, seconds)
                best = min(ns, key=lambda name: ns[name])
        verdicts.append(Verdict(one, chosen.algorithm, best, ns[chosen.algorithm] / ns[best], ns))
    return verdicts


def _take_turns(names: Sequence[str], ns: dict[str, float], spec: Spec, scores: Floats, seconds: float) -> None:
    """Measure these algorithms in turn; the best turn of each counts."""
    for name in [*names] * ROUNDS:
        ns[name] = min(ns[name], cost(algorithms_of("rows")[name].open, spec, scores, seconds=seconds).ns_per_row)


def table(verdicts: Sequence[Verdict]) -> Table:
    shown = Table(title="The planner's choice against the best", title_justify="left", box=None)
    for heading, justify in (
        ("order", "left"),
        ("slides", "right"),
        ("shows", "left"),
        ("window", "right"),
        ("k", "right"),
        ("chosen", "left"),
        ("best", "left"),
        ("ratio", "right"),
    ):
        shown.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for verdict in verdicts:
        order, slides, rows, k, whole = verdict.setting
        mark = "" if verdict.ratio <= BAR else "  above"
        shown.add_row(
            order,
            "each row" if slides == 0 else f"{slides:,}",
            "windows" if whole and slides else "changes",
            f"{rows:,}",
            f"{k:,}",
            verdict.chosen,
            verdict.best,
            f"{verdict.ratio:.2f}{mark}",
        )
    return shown


def summary(verdicts: Sequence[Any], bar: float = BAR) -> str:
    """Of verdicts on rows or on pairs, whose bar may be another."""
    within = sum(verdict.ratio <= bar for verdict in verdicts)
    worst = max(verdict.ratio for verdict in verdicts)
    return f"{within} of {len(verdicts)} choices cost at most {bar}x the best; the worst costs {worst:.2f}x."


def write(verdicts: Sequence[Any], path: Path) -> None:
    """One verdict a line."""
    described = [asdict(verdict) for verdict in verdicts]
    for fields in described:
        if isinstance(fields.get("setting"), tuple):
            fields["setting"] = fields["setting"]._asdict()
    path.write_text("[\n " + ",\n ".join(map(json.dumps, described)) + "\n]\n")
