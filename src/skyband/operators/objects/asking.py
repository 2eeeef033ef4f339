"""Ad-hoc questions to the rows an operator holds."""

from __future__ import annotations

import numpy as np

from skyband.operators.protocol import ENTER, Answer, Ints
from skyband.structures.ranking import Rows, best_first


def best_of(group: Ints, rows: Rows, k: int, questions: dict[int, tuple[int, int, int]]) -> Answer:
    """The k best rows of each group with time in [start, end), called `at`; questions: group -> (start, end, at)."""
    picked, ranks, ats = [], [], []
    for g, (start, end, at) in questions.items():
        live = np.flatnonzero((group == g) & (rows["time"] >= start) & (rows["time"] < end))
        best = live[best_first(rows[live])[:k]]
        picked.append(best)
        ranks.append(np.arange(1, len(best) + 1))
        ats.append(np.full(len(best), at, np.int64))
    chosen = np.concatenate(picked) if picked else np.empty(0, np.intp)
    return Answer(
        np.concatenate(ats) if ats else np.empty(0, np.int64),
        group[chosen].astype(np.int32),
        np.concatenate(ranks).astype(np.int32) if ranks else np.empty(0, np.int32),
        rows["score"][chosen],
        rows["position"][chosen],
        np.full(len(chosen), ENTER, np.int8),
    )
