"""Spark's Python workers: processes that run our functions, task after task."""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_the_collector() -> None:
    """Take what the imports left out of the garbage collector's sight, once per process.

    A worker collects garbage after every task. numba, pyarrow and the rest make that a walk through half a million
    objects that never change: 0.1 s a task and worker, more than a small micro-batch takes otherwise.
    """
    gc.collect()
    gc.freeze()
