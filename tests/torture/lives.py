"""The lives of a pipeline: one `skyband run` after another, which are watched and ended by force."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from servers.fast_start import FAST_START
from waiting import PATIENCE_S, POLL_S

from torture.processes import environment

STREAMS = ("trades_1", "query_subscriptions", "query_across", "query_joins")
# A query of each stream that writes to a Delta table; that of joins writes to files.
DELTA = {"trades_1": "rows", "query_subscriptions": "subscriptions", "query_across": "across", "query_joins": None}
WRITES = ("offsets", "state", "sink", "commits")  # in the order in which a micro-batch makes them


def written(folder: Path, stream: str, what: str) -> set[str]:
    """The files of a stream that are there now."""
    state = folder / "state" / stream
    query = DELTA[stream]
    if what == "sink":
        place, pattern = (
            (folder / "answers" / "files" / "joins", "batch=*")
            if query is None
            else (folder / "answers" / "delta" / query / "_delta_log", "[0-9]*.json")
        )
    else:
        place, pattern = (state / "state", "*/*/*") if what == "state" else (state / what, "[0-9]*")
    try:
        return {path.name if what != "state" else str(path) for path in place.glob(pattern)}
    except OSError:  # a folder went while we looked
        return set()


class Life:
    """One run of the pipeline in a folder."""

    def __init__(self, file: Path, **more: str) -> None:
        self._folder = file.parent
        self.log = self._folder / "log.txt"
        command = [sys.executable, "-m", "torture.run", str(file)]
        with self.log.open("ab") as log:
            self._log_begins = log.tell()
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment(PYTHONUNBUFFERED="1", **FAST_START, **more),
            )

    def said(self) -> str:
        return self.log.read_bytes()[self._log_begins :].decode(errors="replace")

    def wait(self) -> int:
        """Until it ends; its code."""
        return self.process.wait(PATIENCE_S)

    def wait_for(self, happened: Callable[[], bool]) -> bool:
        """False: it ended before."""
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            if self.process.poll() is not None:
                return happened()
            if time.monotonic() > deadline:
                raise TimeoutError(f"What was waited for did not happen: {self.said()[-500:]}")
            time.sleep(POLL_S)
        return True

    def wait_for_writes(self, stream: str, what: str, count: int) -> bool:
        before = written(self._folder, stream, what)
        return self.wait_for(lambda: len(written(self._folder, stream, what) - before) >= count)

    def processes(self) -> dict[str, list[int]]:
        """Those that live: the driver, its Java, the daemon that forks workers, and these."""
        parents, names = {}, {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            state, parent, _, session = rest.split()[:4]
            if int(session) == self.process.pid and state != "Z":
                parents[int(path.name)], names[int(path.name)] = int(parent), name
        driver = self.process.pid
        java = [one for one, name in names.items() if name == "java"]
        daemons = [one for one, parent in parents.items() if parent in java and one not in java]
        workers = [one for one, parent in parents.items() if parent in daemons]
        return {"driver": [driver] if driver in names else [], "java": java, "daemon": daemons, "worker": workers}

    def kill(self, *numbers: int) -> None:
        for number in numbers:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(number, signal.SIGKILL)

    def end(self) -> None:
        """Kill whatever is left."""
        while left := [one for several in self.processes().values() for one in several]:
            self.kill(*left)
            self.process.poll()
            time.sleep(POLL_S)
        self.process.wait(PATIENCE_S)

    def wait_for_java(self) -> bool:
        """After the driver was killed: does its Java end, too?"""
        deadline = time.monotonic() + PATIENCE_S
        while self.processes()["java"]:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
