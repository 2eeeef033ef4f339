"""Spark's Python workers: processes that run our functions, task after task."""

from __future__ import annotations

import gc
from itertools import count
from typing import Final

_TASKS: Final = 16  # in so many a worker has met all that it will load
_tasks = count()


def spare_the_collector() -> None:
    """Take what there is now out of the garbage collector's sight: said at the start of each task.

    A worker collects garbage after every task. numba, pyarrow and the rest make that a walk through half a million
    objects that never change: 0.1 s a task and worker, more than a small micro-batch takes otherwise. The imports are
    there when the first task starts; compiled kernels and much else only come with the first rows, so once is too soon.
    """
    if next(_tasks) < _TASKS:
        gc.collect()
        gc.freeze()
