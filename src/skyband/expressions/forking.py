"""Polars computes with threads, which a fork does not copy: the child process would wait for them forever."""

from __future__ import annotations

import os

from skyband.errors import EnvironmentProblem


class _Threads:
    started = False  # has this process, or the one that it was forked from, evaluated an expression?
    left_behind = False  # did a fork come after that?


def use_threads() -> None:
    """Called before polars computes. Raises `EnvironmentProblem` where that would hang."""
    if _Threads.left_behind:
        raise EnvironmentProblem(
            "This process is a fork of one that had evaluated an expression with threads. A fork does not copy "
            "threads, so another expression would wait forever. Start processes with "
            "multiprocessing.get_context('spawn'), or fork before you push the first row."
        )
    _Threads.started = True


def started() -> bool:
    """Would a fork now leave threads behind?"""
    return _Threads.started


def _forked() -> None:
    _Threads.left_behind = _Threads.started


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_forked)
