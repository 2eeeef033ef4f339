"""A k-skyband with a filter before it: exact top-k with each arrival; most rows never reach the skyband.

Paper:      Pripužić, Podnar Žarko, Aberer, TODS 2015, section 5 (RAPF; the others are a baseline).
Invariant:  every row that fewer than k better rows outlive is in the query's skyband or in the buffer; of the buffer's
            rows only those in the skyband can be among the best k now.
Cost:       push O(1) for a row that a probabilistic filter rejects, which is all but (k + candidates) / b of them;
            state k (1 + ln(n/b)) rows of the skyband, b rows of the buffer.
Choose it:  you want an answer with each arrival, k is large, and you can afford b more rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skyband.core.options import Count, Growth, TickSpan
from skyband.problems.rows.algorithms.filtered.state import KINDS, Skyband, best_buffer
from skyband.problems.rows.operator import Spec, row_algorithm

NAME = "relaxed+probabilistic"


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The buffer of b rows, and a k-skyband of the rows before it, which has k (1 + ln(n/b)) rows."""
    if spec.window.endless:
        return min(spec.k, window_rows)
    share = min(best_buffer(spec), (spec.window.size + 1) // 2) / spec.window.size
    return min(window_rows, share * window_rows + spec.k * (1 + np.log(1 / share)))


def opener(name: str) -> Callable[..., Skyband]:
    """The `open` of the composition with this name, such as "relaxed+probabilistic"."""
    query, before = (KINDS[part] for part in name.split("+"))

    def open(spec: Spec, *, gamma: Growth = 0.2, buffer: TickSpan = 0, initial_room: Count = 1024) -> Skyband:
        return Skyband(spec, query, before, gamma=gamma, buffer=buffer, initial_room=initial_room)

    return open


ALGORITHMS = (row_algorithm(NAME, opener(NAME), expected_rows=expected_rows),)
