"""Says at the end of a run how long it took, and how much of that was compiling; `--kernels=20` shows the slowest.

Hooks of pytest, which conftest.py imports. Compiling that Spark's workers and other processes do is not seen here.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from stat import ST_ATIME, ST_MTIME
from typing import Any, NamedTuple

import pytest
from numba.core import event

FORGOTTEN_AFTER_S = 14 * 24 * 3600


def checked_kernels() -> Path:
    """Where compiled code is kept between runs, less what no run of two weeks has used."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "skyband", "checked_kernels")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(__file__).parents[1] / ".pytest_cache" / "checked_kernels"
    for file in folder.glob("*/*.nb?"):
        with suppress(OSError):  # another run may be looking, too
            if max(file.stat()[ST_ATIME : ST_MTIME + 1]) < time.time() - FORGOTTEN_AFTER_S:
                file.unlink()
    return folder


class Compiled(NamedTuple):
    """A kernel that was not on disk, for one kind of arguments."""

    seconds: float
    name: str
    arguments: str


class CompileTimes(event.Listener):
    """Remembers kernels; parts are compiled with them."""

    def __init__(self) -> None:
        self.kernels: list[Compiled] = []
        self._began: list[float] = []

    def on_start(self, event: event.Event) -> None:
        self._began.append(time.perf_counter())

    def on_end(self, event: event.Event) -> None:
        seconds = time.perf_counter() - self._began.pop()
        if not self._began:
            compiled = event.data["dispatcher"].py_func
            name = f"{compiled.__module__}.{compiled.__qualname__}"
            self.kernels.append(Compiled(seconds, name, str(event.data["args"])))


TIMES = CompileTimes()
event.register("numba:compile", TIMES)
BEGAN = time.perf_counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kernels", type=int, default=0, metavar="N", help="show the N slowest to compile")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells the one process that writes the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compiled"] = [tuple(kernel) for kernel in TIMES.kernels]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    TIMES.kernels += [Compiled(*kernel) for kernel in getattr(node, "workeroutput", {}).get("compiled", [])]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    took, kernels = time.perf_counter() - BEGAN, TIMES.kernels
    terminalreporter.write_sep("=", "time")
    terminalreporter.write_line(
        f"{took / 60:.1f} minutes; {len(kernels)} kernels compiled in {sum(each.seconds for each in kernels):.0f} s"
    )
    for kernel in sorted(kernels, reverse=True)[: config.getoption("kernels")]:
        terminalreporter.write_line(f"{kernel.seconds:6.2f} s  {kernel.name}{kernel.arguments[:200]}")
