"""CPU seconds of this process and of those below it: Spark's Java, its Python workers, and what serves readers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

_FANOUT: Final = "serving/fanout.py"


class Cpu(NamedTuple):
    jvm: float
    python: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.jvm - before.jvm, self.python - before.python)

    def __str__(self) -> str:
        return f"{self.jvm:.1f} s of JVM, {self.python:.1f} s of Python"


class Shares(NamedTuple):
    """CPU seconds of a pipeline that is served, by what they are used for."""

    pipeline: float  # of the process that runs it, and of Spark's Java and Python workers; without `server`
    server: float  # of the thread that serves, in that process
    fanout: float  # of the process that sends answers to most readers
    readers: float  # of the process that plays the readers
    others: float  # of all other processes of the machine

    def since(self, before: Shares) -> Shares:
        return Shares(*(now - then for now, then in zip(self, before, strict=True)))

    def each_second(self, seconds: float) -> Shares:
        return Shares(*(each / seconds for each in self))


class _Process(NamedTuple):
    name: str
    parent: int
    seconds: float


def cpu_seconds() -> Cpu | None:
    """What the processes below this one have used so far; None where there is no /proc. A worker that has ended counts
    where its parent has waited for it."""
    if not Path("/proc/self/stat").exists():
        return None
    ours = _below().values()
    java = sum(process.seconds for process in ours if process.name == "java")
    python = sum(process.seconds for process in ours if process.name.startswith("python"))
    return Cpu(java, python)


def shares(server: Thread, readers: int | None) -> Shares:
    """What a pipeline that is served has used so far; `server` is the thread that serves, `readers` the process of the
    readers."""
    below = _below()
    serving = _thread_seconds(server)
    fanout = sum(each.seconds for number, each in below.items() if _FANOUT in _command(number))
    reading = 0.0 if readers is None else below[readers].seconds
    spark = sum(each.seconds for each in below.values()) - fanout - reading
    ours = time.process_time() + spark + fanout + reading
    return Shares(ours - serving - fanout - reading, serving, fanout, reading, _machine_seconds() - ours)


def _machine_seconds() -> float:
    """What all processes of the machine have used since it started."""
    user, nice, system, _, _, interrupts, soft, *_ = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(map(int, (user, nice, system, interrupts, soft))) / os.sysconf("SC_CLK_TCK")


def _below() -> dict[int, _Process]:
    """The processes below this one, by their numbers."""
    processes = dict(filter(None, (_process(path) for path in Path("/proc").glob("[0-9]*/stat"))))

    def is_below(number: int) -> bool:
        while number in processes:
            number = processes[number].parent
            if number == os.getpid():
                return True
        return False

    return {number: process for number, process in processes.items() if is_below(number)}


def _command(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text().replace("\0", " ")
    except OSError:  # it has ended
        return ""


def _thread_seconds(thread: Thread) -> float:
    fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _process(path: Path) -> tuple[int, _Process] | None:
    try:
        text = path.read_text()
    except OSError:  # it has ended
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    # Fields 4, 14, 15 and of those waited for 16 and 17 of proc(5), which counts from 1 and the state is 3.
    ticks = sum(int(fields[i]) for i in ((11, 12) if name == "java" else (11, 12, 13, 14)))
    return int(path.parent.name), _Process(name, int(fields[1]), ticks / os.sysconf("SC_CLK_TCK"))
