"""One skyband for all queries with the same score, whatever their k and window.

Paper:      Shen, Cheema, Lin, Zhang, Wang, TKDE 2014, sections 4.1 and 6.3: one K-skyband answers every k up to K and
            every window up to the largest; Yang et al., EDBT 2011, name sharing between queries as future work.
Invariant:  K is the largest k, and queries that score every row alike are one score group. When a window closes, the
            band of a score group holds every row of the window that fewer than K better ones of the group outlive.
            Later rows wait, except those that K better ones of their slide outlive.
Cost:       a row is scored and compared once, or once for each score group if the score reads the query. When a window
            closes, each query reads its band, best first, until it has its k. State: about K (1 + ln(n/K)) rows for
            each score group, the rows of one slide in windows by value, and with changes the answers before.
Choose it:  windows slide, and there are few score groups, or a condition selects the rows of each group.
"""

from __future__ import annotations

import numpy as np

from skyband.core.options import Count
from skyband.core.registry import Algorithm
from skyband.problems.subscriptions.algorithms.shared.state import ROOM, THINNED_AT, Shared
from skyband.problems.subscriptions.operator import Spec

NAME = "shared"


def refuses(spec: Spec) -> str | None:
    if not spec.window.slides or spec.window.endless:
        return "it reads its answers when windows close, so they need a slide and an end"
    if spec.backfill and spec.k is None:
        return "with backfill, what it keeps depends on the largest k that will come"
    if spec.backfill and spec.scoring.score.parameters:
        return "with backfill, what it keeps depends on what queries will ask for"
    return None


def expected_rows(spec: Spec, window_rows: float) -> float:
    """The rows of a k-skyband. If k is not known, ten is assumed."""
    return min(window_rows, 10 * (1 + float(np.log(max(1.0, window_rows / 10)))))


def open(spec: Spec, *, thinned_at: Count = THINNED_AT, room: Count = ROOM) -> Shared:
    return Shared(spec, thinned_at=thinned_at, room=room)


ALGORITHMS = (Algorithm(NAME, open, refuses, expected_rows),)
