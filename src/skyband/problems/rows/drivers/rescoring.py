"""Other scores in the same order: an operator's state with every score in it replaced.

Algorithms compare scores and do little else with them, so they answer as before: the same rows, at the same ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats

Change = Callable[[Floats], Floats]  # from scores to others in the same order, infinities staying what they are


def rescored(state: Arrays, change: Change, *, other: Collection[str] = ()) -> Arrays:
    """The state with other scores; all its floats are scores, but for those in arrays and fields of these names."""
    changed = {name: array.copy() for name, array in state.items()}
    places = [places for name, array in changed.items() if name not in other for places in _floats(array, other)]
    ends = np.cumsum([0, *(place.size for place in places)])
    scores = change(np.concatenate([np.empty(0), *(place.ravel() for place in places)]))
    for place, start, end in zip(places, ends[:-1], ends[1:], strict=True):
        place[...] = scores[start:end].reshape(place.shape)
    return changed


def _floats(array: npt.NDArray[Any], other: Collection[str]) -> list[Floats]:
    if array.dtype.names is None:
        return [array] if array.dtype == np.float64 else []
    return [array[name] for name in array.dtype.names if array.dtype[name] == np.float64 and name not in other]
