"""Replaces every score in an operator's state by others in the same order.

Algorithms do little with scores but compare them, so the answers stay the same: the same rows at the same ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Floats

Change = Callable[[Floats], Floats]  # from scores to others in the same order; infinities stay


def rescored(state: Arrays, change: Change, *, other: Collection[str] = ()) -> Arrays:
    """Copy the state with other scores. All floats count as scores, except in arrays and fields named in `other`."""
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
