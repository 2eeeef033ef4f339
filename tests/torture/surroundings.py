"""Line 13: threads, forks, folders that cannot be written, caches that cannot be used, clocks that go back.

Each works, or is refused by name. A process of its own tries each, since some change the process for good.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import skyband as sb
from torture.campaign import Result
from torture.corpus import MADE, SCHEMA, Case, cases
from torture.processes import environment

PATIENCE_S = 600  # until a process that says nothing counts as one that hangs


def _case(seed: int) -> Case:
    """A query of each problem, as the planner's own algorithms answer it."""
    problem = list(MADE)[seed % len(MADE)]
    algorithm = {"rows": "relaxed", "pairs": "staircase", "across": "totals", "subscriptions": "scan", "joins": "late"}
    found = list(cases(f"{problem}/{algorithm[problem]}/").values())
    return found[seed // len(MADE) % len(found)]


def _all(case: Case) -> list[str]:
    session, found = case.open(), []
    for batch, options in case.pushes:
        found += session.push(batch, **options).to_pylist()
    return sorted(map(repr, found + session.finish().to_pylist()))


def threads_push(seed: int) -> str | None:
    """Four threads push to one session at once: every row is taken once."""
    case = _case(seed)
    session = case.open()
    waiting, errors = list(case.pushes), list[BaseException]()

    def push() -> None:
        try:
            while True:
                batch, options = waiting.pop()
                session.push(batch, **options)
        except IndexError:
            return
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=push) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    taken, rows = session.stats().rows_in, sum(batch.num_rows for batch, _ in case.pushes)
    return None if not errors and taken == rows else f"{case.name}: {errors[:1]}, {taken} of {rows} rows"


def threads_look(seed: int) -> str | None:
    """One thread pushes while others save, count and ask. The answers are those of a session that is left alone."""
    case, ended, errors = _case(seed), threading.Event(), list[BaseException]()
    session, found = case.open(), []

    def look() -> None:
        while not ended.is_set():
            try:
                case.open(session.snapshot())
                session.stats()
                with suppress(sb.InvalidQuery):
                    session.top()
            except BaseException as error:
                errors.append(error)

    looking = threading.Thread(target=look)
    looking.start()
    for batch, options in case.pushes:
        found += session.push(batch, **options).to_pylist()
    ended.set()
    looking.join()
    said = sorted(map(repr, found + session.finish().to_pylist()))
    return None if said == _all(case) and not errors else f"{case.name}: {errors[:1]}"


def forked(seed: int) -> str | None:
    """A session goes on in a process that is forked from its own, or is refused there by name."""
    case = _case(seed)
    half, session = len(case.pushes) // 2, case.open()
    for batch, options in case.pushes[:half]:
        session.push(batch, **options)
    child = os.fork()
    if not child:
        code = 3
        try:
            for batch, options in case.pushes[half:]:
                session.push(batch, **options)
            code = 0
        except sb.SkybandError:
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return None if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else f"{case.name}: status {status}"


def two_stores(seed: int) -> str | None:
    """Two that save to one folder: the second is refused, and the first one's snapshots are whole."""
    with tempfile.TemporaryDirectory() as folder, sb.Store(folder) as first, sb.Store(folder) as second:
        first.save(b"first")
        try:
            second.save(b"second")
        except sb.EnvironmentProblem:
            return None if first.load() == b"first" else "another snapshot is loaded"
        return "two stores saved to one folder"


def no_folder(seed: int) -> str | None:
    """A store in a place that is a file: an error of the system or of ours, and nothing is changed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "taken")
        place.write_text("mine")
        try:
            sb.Store(place).save(b"x")
        except (OSError, sb.SkybandError):
            return None if place.read_text() == "mine" else "the file was changed"
        return "a store was made of a file"


def no_cache(seed: int) -> str | None:
    """A user without a home, and with a cache that cannot be written: the same answer."""
    program = (
        "import pyarrow as pa, skyband as sb\n"
        "rows = pa.table({'x': [1.0, 3.0, 2.0, 5.0]})\n"
        "print(sb.top_k(rows, k=1, by='x', window=sb.tumbling(2))['score'].to_pylist())\n"
    )
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere", "SKYBAND_CACHE": "/proc/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(**nowhere), capture_output=True, text=True, check=False
    )
    return None if done.stdout.strip() == "[3.0, 5.0]" else f"{done.stdout} {done.stderr[-300:]}"


def clock_goes_back(seed: int) -> str | None:
    """The machine's clock jumps back at every look: windows go by the rows' own times."""
    case, real, said = _case(seed), time.time, [0.0]

    def backwards() -> float:
        said[0] -= 1_000.0
        return real() + said[0]

    right = _all(case)
    time.time = backwards
    try:
        return None if _all(case) == right else f"{case.name}: other answers"
    finally:
        time.time = real


def failed_in_the_middle(seed: int) -> str | None:
    """A session that failed refuses to go on, and its last snapshot does not."""
    case = _case(seed)
    session = case.open()
    batch, options = case.pushes[0]
    session.push(batch, **options)
    state = session.snapshot()

    def fails(*_: Any) -> Any:
        raise MemoryError("planted")

    with patch.object(session._operator, "push", fails), suppress(MemoryError, sb.SkybandError):
        session.push(batch, **options)
    for ask in (lambda: session.push(batch, **options), session.snapshot, session.finish):
        try:
            ask()
        except sb.SessionFailed:
            continue
        return f"{case.name}: a session that failed went on"
    case.open(state).push(batch, **options)
    return None


def empty_pushes(seed: int) -> str | None:
    """Pushes of nothing between all others change nothing."""
    case = _case(seed)
    session, found = case.open(), []
    for batch, options in case.pushes:
        for nothing in (batch.slice(0, 0), pa.table(batch.slice(0, 0)), pa.Table.from_batches([], SCHEMA)):
            found += session.push(nothing, **options).to_pylist()
        found += session.push(batch, **options).to_pylist()
    said = sorted(map(repr, found + session.finish().to_pylist()))
    return None if said == _all(case) else f"{case.name}: other answers"


CHECKS: tuple[Callable[[int], str | None], ...] = (
    threads_push,
    threads_look,
    forked,
    two_stores,
    no_folder,
    no_cache,
    clock_goes_back,
    failed_in_the_middle,
    empty_pushes,
)


def run(first: int, count: int) -> Result:
    """Seed i is the check i modulo their number; the problem changes with each round."""
    result = Result()
    for seed in range(first, first + count):
        check = CHECKS[seed % len(CHECKS)]
        command = [sys.executable, "-m", "torture.surroundings", str(seed)]
        try:
            done = subprocess.run(
                command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            wrong = None if done.returncode == 0 else (done.stdout.strip() or done.stderr[-300:] or "it crashed")
        except subprocess.TimeoutExpired:
            wrong = "it hangs"
        words = check.__name__.replace("_", " ")
        result.note(seed, words if wrong is None else f"{words}: wrong", wrong)
    return result


if __name__ == "__main__":
    from torture.planted import planted_here

    number = int(sys.argv[1])
    with planted_here():
        problem = CHECKS[number % len(CHECKS)](number // len(CHECKS))
    print(problem or "")
    sys.exit(problem is not None)
