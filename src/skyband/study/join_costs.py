"""Measures what the plans of a join spend their time on, for the planner: see problems/joins/costs.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from skyband.problems.joins.costs import Constants, cost, enumerate_plans
from skyband.study.papers.experiments import FULL
from skyband.study.papers.tran import THREE, TWO, Setting, measure_second

LEAST: Final = 0.1  # ns: nothing is for nothing
_FEW: Final = (
    *(replace(TWO, windows=(w, w), groups=(g, 1)) for w in (1000, 5000) for g in (2, 150, 2000)),
    replace(TWO, windows=(1000, 1000), groups=(500, 2000)),
)
_MANY: Final = replace(TWO, rates=(1e4, 1e4), windows=(1e5, 1e5), groups=(1, 1))
_SELECTIVE: Final = tuple(replace(_MANY, selectivity=(share, share)) for share in (1e-3, 1e-4, 1e-5))
_SMALL_SLIDES: Final = tuple(replace(each, rates=(1e3, 1e3)) for each in _SELECTIVE[:2])
_DEEP: Final = tuple(replace(THREE, selectivity=(share,) * 3) for share in (0.2, 0.1, 0.02))
_ALONE: Final = (Setting((1e5,), (1e6,), (100.0,), (1.0,)), Setting((1e4,), (1e5,), (1e5,), (1.0,)))
SETTINGS: Final = (*_FEW, *_SELECTIVE, *_SMALL_SLIDES, *_DEEP, *_ALONE)


def settings_to_measure() -> int:
    return len(SETTINGS)


def measure(step: Callable[[str], None]) -> Constants:
    """The constants that best explain what plans cost in some settings; `step` is told each before it is measured."""
    names = tuple(field.name for field in fields(Constants))
    ones = [Constants(**{name: float(name == each) for name in names}) for each in names]
    features, measured = [], []
    for setting in SETTINGS:
        step(
            f"windows of {setting.windows[0]:,.0f} rows, groups {setting.groups}, selectivity {setting.selectivity[0]}"
        )
        candidates = enumerate_plans(len(setting.rates))
        measured += measure_second(setting, candidates, FULL)
        features += [[cost(plan, setting.statistics(), one, slide=1.0) for one in ones] for plan in candidates]
    found = fit(np.array(features), 1e6 * np.array(measured))
    return Constants(*(round(float(value), 1) for value in found))


def fit(features: npt.NDArray[np.float64], measured: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What each feature costs, at least LEAST, so that relative errors are small."""
    weighted = features / measured[:, None]
    found, free = np.full(features.shape[1], LEAST), np.arange(features.shape[1])
    while len(free):
        rest = 1.0 - weighted @ np.where(np.isin(np.arange(len(found)), free), 0.0, found)
        values, *_ = np.linalg.lstsq(weighted[:, free], rest, rcond=None)
        found[free] = np.maximum(values, LEAST)
        if (values >= LEAST).all():
            break
        free = free[values >= LEAST]
    return found
