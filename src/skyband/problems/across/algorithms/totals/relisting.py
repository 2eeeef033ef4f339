"""MAX, after a restart: the values that may still be the largest follow from the rows that live."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.kernels.compiling import kernel
from skyband.problems.across.algorithms.totals.kernels import _remember


@kernel  # type: ignore[untyped-decorator]
def remember_all(rows: Any, nodes: Any, lists: Any, numbers: Any) -> None:
    """Rows that live, in whatever order, become entries of the lists of their objects and streams."""
    for i in range(len(rows)):
        row = rows[i]
        _remember(nodes, lists[np.int64(row.code), np.int64(row.stream)], numbers, row.value, row.last)
