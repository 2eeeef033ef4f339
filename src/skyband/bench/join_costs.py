"""Measures what the plans of a join spend their time on, for the planner: see planner/join_costs.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

import numpy as np

from skyband.bench.papers.effort import FULL
from skyband.bench.papers.tran import TWO, measure_second, name_of
from skyband.planner.join_costs import Constants, cost, enumerate_plans

_FEW: Final = tuple(
    replace(TWO, windows=(w, w), groups=g) for w in (1000, 4000) for g in ((2, 1), (150, 1), (2000, 500))
)
_MANY: Final = replace(TWO, rates=(2e4, 2e4), windows=(1e5, 1e5), groups=(1, 1))
SETTINGS: Final = (*_FEW, *(replace(_MANY, selectivity=(share, share)) for share in (1e-3, 1e-4, 1e-5)))
PLANS: Final = enumerate_plans(2, linear=True)


def settings_to_measure() -> int:
    return len(SETTINGS) * len(PLANS)


def measure(step: Callable[[str], None]) -> Constants:
    """The constants that best explain what plans cost in some settings; `step` is told each before it is measured."""
    names = tuple(field.name for field in fields(Constants))
    ones = [Constants(**{name: float(name == each) for name in names}) for each in names]
    features, measured = [], []
    for setting in SETTINGS:
        for plan in PLANS:
            step(f"{name_of(plan)}, {setting.windows[0]:,.0f} rows, groups {setting.groups}")
            measured.append(1e6 * measure_second(setting, plan, FULL))
            features.append([cost(plan, setting.statistics(), one, slide=1.0) for one in ones])
    scale = 1 / np.array(measured)  # relative errors count
    found, *_ = np.linalg.lstsq(np.array(features) * scale[:, None], np.ones(len(measured)), rcond=None)
    return Constants(*(round(float(max(value, 1.0)), 1) for value in found))
