"""Line 3 under Spark: a disk that is full, broken or forbidden under the checkpoint or a sink of a running pipeline.

A library of ours (faults.c) is loaded before all others into the driver, its Java and its workers. From the n-th call
on, all calls of a kind fail in one folder. The run has to end with an error that says so, or to do without. Then the
cause is gone, and the next run goes on, until it is its turn to fail. The sinks must have every answer at the end.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torture import market
from torture.campaign import Result
from torture.lives import STREAMS, WRITES, Life

LIVES = 3  # in which the disk fails, and then one in which it does not
FOLDERS = ("state", "answers/files", "answers/delta", "answers/iceberg", "answers/latest", "answers/merged")
RENAMED = FOLDERS[:2]  # whose files get their names at the end
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
OPEN, WRITE, RENAME, SYNC, TORN = 1, 2, 4, 8, 16
CALLS = {"opening": OPEN, "writing": WRITE, "half a write": WRITE | TORN, "renaming": RENAME, "any call": 15}
MOST_CALLS = 12  # that succeed before


@dataclass(frozen=True)
class Fault:
    folder: str
    error: int
    calls: str
    after: int  # calls that succeed before
    stream: str  # it begins after a write of it
    what: str

    def __str__(self) -> str:
        return f"{errno.errorcode[self.error]} in {self.folder} after {self.after} calls for {self.calls}"


class Control:
    """What all processes of a life map: see faults.c."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.file = folder, folder / "faults"
        self.file.write_bytes(bytes(16 + 1024))
        with self.file.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), 0)

    def begin(self, fault: Fault) -> None:
        place = str(self._folder / fault.folder).encode()
        self._shared[16 : 16 + len(place) + 1] = place + b"\0"
        self._shared[4:16] = struct.pack("iii", CALLS[fault.calls], fault.after, 0)
        self._shared[0:4] = struct.pack("i", fault.error)

    def end(self) -> int:
        """How many calls have failed."""
        self._shared[0:4] = bytes(4)
        return int(struct.unpack("i", self._shared[12:16])[0])


def plan(seed: int) -> Iterator[Fault]:
    chance = random.Random(seed)
    for life in range(LIVES):
        number = seed * LIVES + life
        folder = FOLDERS[1] if number == 0 else FOLDERS[0] if number % 2 else chance.choice(FOLDERS[1:])
        possible = [name for name in CALLS if name != "renaming" or folder in RENAMED]
        calls = "opening" if number == 0 else chance.choice(possible)
        stream, what = STREAMS[number % len(STREAMS)], chance.choice(WRITES)
        after = chance.randrange(MOST_CALLS) if number else 0
        yield Fault(folder, ERRORS[number % len(ERRORS)], calls, after, stream, what)


def run(first: int, count: int) -> Result:
    result = Result()
    with tempfile.TemporaryDirectory(prefix="torture-") as name, market.servers(Path(name)) as servers:
        library = _library(Path(name))
        for seed in range(first, first + count):
            folder = Path(tempfile.mkdtemp(prefix=f"torture-faults-{seed}-"))
            wrong = _one(folder, seed, servers, library, result)
            result.note(seed, "came to its end", wrong and f"{wrong} (left in {folder})")
            if wrong is None:
                shutil.rmtree(folder)
    return result


def _library(folder: Path) -> Path:
    source, made = Path(__file__).with_name("faults.c"), folder / "faults.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("Line 3s makes calls fail by a library written in C: it needs a compiler (cc).")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl"], check=True)
    return made


def _one(folder: Path, seed: int, servers: market.Servers, library: Path, result: Result) -> str | None:
    """What went wrong."""
    file, control = market.write(folder, seed, servers), Control(folder)
    more = servers.environment() | {"LD_PRELOAD": str(library), "FAULTS": str(control.file)}
    said = []
    for fault in [*plan(seed), None]:
        life = Life(file, **more)
        try:
            if fault is not None and life.wait_for_writes(fault.stream, fault.what, 1):
                control.begin(fault)
            code = life.wait()
        finally:
            failed = control.end()
            life.end()
        if fault is not None and failed:
            said.append(str(fault))
            result.tried["clean error" if code else "right result"] += 1
        elif fault is not None:
            result.tried["no such call came"] += 1
        wrong = _wrong_with(life, code, fault.folder if failed and fault is not None else None)
        if wrong:
            return f"{wrong}; after {'; '.join(said)}"
    wrong = "; ".join(market.differences(folder, seed, servers))
    return f"{wrong}; after {'; '.join(said)}" if wrong else None


def _wrong_with(life: Life, code: int, folder: str | None) -> str | None:
    """`folder`: where calls failed; None: nowhere."""
    said = life.said()
    if code and folder is None:
        return f"a run failed without a fault: {said[-2000:]}"
    if code < 0 or "Traceback" in said or "\tat " in said:
        return f"no clean error (code {code}): {said[-2000:]}"
    error = said.partition("Error: ")[2]
    # Java does not know why it could not make a folder, but it says which.
    if code and f"/{folder}/" not in error and not any(os.strerror(one) in error for one in ERRORS):
        return f"the error says neither why nor where: {said[-2000:]}"
    return None
