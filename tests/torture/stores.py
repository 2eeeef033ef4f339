"""Lines 1 and 3: a session whose snapshots go to a `Store` is killed at any moment, and its disk fails at every call.

A process that is killed has been forked from this one: starting hundreds of interpreters would take hours.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import skyband as sb
from skyband.core import store as stores
from torture.campaign import Result
from torture.corpus import SCHEMA, stream

QUERY = sb.TopK(k=3, by="v", window=sb.sliding(30, every=10, on="t"), per="g", algorithm="relaxed", lateness=8)
ROWS = stream(5, 400).combine_chunks()
STEP = 16


def expected() -> list[dict[str, Any]]:
    session = QUERY.open(SCHEMA)
    found = session.push(ROWS).to_pylist()
    return found + session.finish().to_pylist()


# -- line 1 ------------------------------------------------------------------------------------------------------------


def go_on(folder: Path) -> None:
    """Take up where the last snapshot was, and write each answer down under the row that it came with.

    The answers of a batch are written before its snapshot is saved. Whoever goes on from an earlier snapshot writes the
    same ones again, to the same file: a sink that is given the same answers twice and keeps them once, as a table with
    a key does.
    """
    with sb.Store(folder / "snapshots") as store:
        session = QUERY.open(SCHEMA, store.load())
        while (seen := session.stats().rows_in) < ROWS.num_rows:
            answer = session.push(ROWS.slice(seen, STEP))
            _write(folder / f"{seen:05}.arrow", answer)
            store.save(session.snapshot())
    _write(folder / "finished.arrow", session.finish())


def _write(place: Path, answer: pa.Table) -> None:
    with pa.OSFile(str(place) + ".part", "wb") as file, pa.ipc.new_file(file, answer.schema) as writer:
        writer.write_table(answer)
    os.replace(str(place) + ".part", place)


def _written(folder: Path) -> list[dict[str, Any]]:
    files = [*sorted(folder.glob("[0-9]*.arrow")), folder / "finished.arrow"]
    return [row for file in files for row in pa.ipc.open_file(str(file)).read_all().to_pylist()]


def killed(first: int, count: int) -> Result:
    """Each seed kills a run several times, and then lets it come to its end."""
    result, right = Result(), expected()
    for seed in range(first, first + count):
        rng, folder = np.random.default_rng(seed), Path(tempfile.mkdtemp())
        try:
            kills = 0
            while not _in_a_process(folder, float(rng.exponential(0.02)) if kills < 12 else None):
                kills += 1
            result.tried["kills"] += kills
            lost = _written(folder) != right
            result.note(seed, "came to its end", f"after {kills} kills the answers differ" if lost else None)
        finally:
            shutil.rmtree(folder)
    return result


def _in_a_process(folder: Path, after_s: float | None) -> bool:
    """Run until it is killed; True: it came to its end first."""
    child = os.fork()
    if not child:
        code = 1
        try:
            go_on(folder)
            code = 0
        finally:
            os._exit(code)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError("a run failed without being killed")
    return os.WIFEXITED(status)


# -- line 3 ------------------------------------------------------------------------------------------------------------

CALLS = ("open", "write", "fsync", "close", "rename", "unlink")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


@contextmanager
def failing(call: str, at: int, error: int) -> Iterator[list[int]]:
    """The at-th of these calls of the store fails; a write may write a part of it before."""
    counted = [0]

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **options: Any) -> Any:
            counted[0] += 1
            if counted[0] == at:
                if call == "write" and at % 2:
                    real(args[0], memoryview(args[1])[: len(args[1]) // 2])
                if call == "close":
                    real(*args, **options)
                raise OSError(error, os.strerror(error))
            return real(*args, **options)

        return wrapped

    owner: Any = Path if call in ("rename", "unlink") else stores.os
    real = getattr(owner, call)
    setattr(owner, call, wrap(real))
    try:
        yield counted
    finally:
        setattr(owner, call, real)


def faults(first: int, count: int) -> Result:
    """Seed i is one call, one moment and one error. Every combination comes once the seeds are enough."""
    result = Result()
    for seed in range(first, first + count):
        call, error = CALLS[seed % len(CALLS)], ERRORS[seed // len(CALLS) % len(ERRORS)]
        at, folder = 1 + seed // (len(CALLS) * len(ERRORS)), Path(tempfile.mkdtemp())
        try:
            result.note(seed, *_with_fault(folder, call, at, error))
        finally:
            shutil.rmtree(folder)
    return result


def _with_fault(folder: Path, call: str, at: int, error: int) -> tuple[str, str | None]:
    with sb.Store(folder) as store:
        store.save(b"before" * 100)
        store.save(b"last" * 100)
        raised = False
        try:
            with failing(call, at, error):
                store.save(b"next" * 100)
        except OSError:
            raised = True
    with sb.Store(folder) as again:
        found = again.load()
        # A snapshot that was saved may be there although the call failed: what fails after the rename is cleaning up.
        if found not in (b"last" * 100, b"next" * 100) or (not raised and found != b"next" * 100):
            return "lost", f"{call} number {at} fails with {errno.errorcode[error]}: {found!r:.40} is loaded"
        again.save(b"after" * 100)
        if again.load() != b"after" * 100:
            return "stuck", f"after {call} number {at} failed nothing can be saved"
    return "clean error" if raised else "right result", None
