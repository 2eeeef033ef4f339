"""CPU seconds of the processes below this one: Spark's Java, and its Python workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Cpu(NamedTuple):
    jvm: float
    python: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.jvm - before.jvm, self.python - before.python)

    def __str__(self) -> str:
        return f"{self.jvm:.1f} s of JVM, {self.python:.1f} s of Python"


class _Process(NamedTuple):
    name: str
    parent: int
    seconds: float


def cpu_seconds() -> Cpu | None:
    """What the processes below this one have used so far; None where there is no /proc. A worker that has ended counts
    where its parent has waited for it."""
    if not Path("/proc/self/stat").exists():
        return None
    processes = dict(filter(None, (_process(path) for path in Path("/proc").glob("[0-9]*/stat"))))

    def is_below(number: int) -> bool:
        while number in processes:
            number = processes[number].parent
            if number == os.getpid():
                return True
        return False

    ours = [process for number, process in processes.items() if is_below(number)]
    java = sum(process.seconds for process in ours if process.name == "java")
    python = sum(process.seconds for process in ours if process.name.startswith("python"))
    return Cpu(java, python)


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
