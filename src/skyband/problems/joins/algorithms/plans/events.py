"""The events of a plan: rows that come or leave, in order of moment, with the rows without values among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyband.core.operator import Ints
from skyband.problems.joins.algorithms.plans.arrays import table
from skyband.problems.joins.algorithms.plans.kernels.running import line_up
from skyband.problems.joins.algorithms.plans.partners import Absent
from skyband.problems.joins.drivers.live_rows import Moves
from skyband.problems.joins.operator import Spec


def events_of(spec: Spec, moves: Moves, absent: Sequence[Absent]) -> tuple[Ints, Ints]:
    """The events in order of moment, and the moments. In each moment rows leave first, so that fewer are joined in
    vain."""
    seen = [i for i, source in enumerate(spec.inputs) if not source.is_hidden]
    gone = [(moves.going[i], moves.goes[i], -1) for i in seen] + [(each.going, each.goes, -1) for each in absent]
    come = [(moves.slots[i], moves.comes[i], 1) for i in seen] + [(each.slots, each.comes, 1) for each in absent]
    counts = sum(np.bincount(moment, minlength=len(moves.now)) for _, moment, _ in (*gone, *come))
    end = np.cumsum(counts)
    events, at = table(int(end[-1]), 2), end - counts
    for slots, moment, sign in (*gone, *come):
        line_up(events, at, slots, moment, sign)
    return events, np.column_stack([end, moves.at, moves.now])
