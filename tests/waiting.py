"""How tests wait: for an event, as long as it takes. No test fails because the machine is slow."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

PATIENCE_S = 600  # after so long something hangs
POLL_S = 0.005


def wait_until(
    happened: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None
) -> None:
    """Return when `happened` is true. `what` is said to be missing if it never is, or if the process ends before."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        # The process may have ended just after it happened.
        assert process is None or process.poll() is None or happened(), f"{what}: the process ended before"
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s"
        time.sleep(POLL_S)
