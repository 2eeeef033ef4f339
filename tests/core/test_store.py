"""Fault tests of a store: whatever stops a process or a write, what is read was saved whole, and is the last or the one
being saved."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

import skyband as sb

CALLS = ("open", "write", "fsync", "rename", "unlink", "close")


class Killed(BaseException):
    """The process is gone."""


class Faults:
    """Every call that changes a disk, counted; the n-th is stopped before it does its work, or half-way through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.at, self.error = 0, -1, Killed()  # type: BaseException
        for name in CALLS:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name), name))

    def _counted(self, call: Any, name: str) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count - 1 == self.at:
                if name == "write":  # a torn one
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                if name == "close":
                    call(*args)
                raise self.error
            return call(*args, **options)

        return counted


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    yield Faults(monkeypatch)
    monkeypatch.undo()


def stopped_anywhere(faults: Faults, folder: Path, error: BaseException) -> Iterator[tuple[Path, bool]]:
    """Save three snapshots, and a fourth that is stopped at its n-th call, for every n until none is."""
    for n in range(100):
        place = folder / str(n)
        store = sb.Store(place)
        for number in range(3):
            store.save(b"state %d" % number)
        faults.at, faults.error = faults.count + n, error
        done = False
        try:
            store.save(b"state 3")
            done = True
        except type(error):
            pass
        faults.at = -1
        store.close()
        yield place, done
        if done:
            assert n > 5, "there are at least so many steps"
            return
    raise AssertionError("it is never done")


def test_a_kill_between_any_two_steps_loses_nothing(faults: Faults, tmp_path: Path) -> None:
    for place, done in stopped_anywhere(faults, tmp_path, Killed()):
        with sb.Store(place) as again:
            assert again.load() in ([b"state 3"] if done else [b"state 2", b"state 3"])
            again.save(b"state 4")
            assert again.load() == b"state 4"
        assert len(list(place.glob("*.state"))) == 2
        assert not list(place.glob("*.unnamed")), "what a killed process left is gone"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_disk_that_fails_keeps_what_was_saved_and_the_store_goes_on_after(
    faults: Faults, tmp_path: Path, code: int
) -> None:
    for place, done in stopped_anywhere(faults, tmp_path, OSError(code, os.strerror(code))):
        store = sb.Store(place)
        assert store.load() in ([b"state 3"] if done else [b"state 2", b"state 3"])
        store.save(b"state 4")
        assert store.load() == b"state 4"
        store.close()


def test_short_writes_are_gone_on_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data)[: max(1, len(data) // 3)]))
    with sb.Store(tmp_path) as store:
        store.save(bytes(range(256)) * 50)
        assert store.load() == bytes(range(256)) * 50


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_one_that_is_damaged_is_passed_over_with_a_warning(tmp_path: Path, place: int) -> None:
    with sb.Store(tmp_path) as store:
        store.save(b"first")
        store.save(b"second")
        newest = max(tmp_path.glob("*.state"))
        content = bytearray(newest.read_bytes())
        content[place] ^= 1
        newest.write_bytes(content)
        with pytest.warns(UserWarning, match=r"is damaged: loading the previous snapshot"):
            assert store.load() == b"first"
        min(tmp_path.glob("*.state")).write_bytes(b"")
        with pytest.raises(sb.SnapshotCorrupt, match="There is no other snapshot: start without one"):
            store.load()


def test_only_those_with_the_key_are_believed(tmp_path: Path) -> None:
    with sb.Store(tmp_path, key=b"secret") as store:
        store.save(b"mine")
        assert store.load() == b"mine"
    for other in (sb.Store(tmp_path, key=b"other"), sb.Store(tmp_path)):
        with pytest.raises(sb.SnapshotCorrupt):
            other.load()
    for wrong in (b"", "text", b"x" * 65):
        with pytest.raises(sb.InvalidInput, match="key must be 1 to 64 bytes"):
            sb.Store(tmp_path, key=wrong)  # type: ignore[arg-type]


def test_what_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sb.InvalidInput, match=r"that session.snapshot\(\) returns; got str"):
        sb.Store(tmp_path).save("state")  # type: ignore[arg-type]


def test_two_stores_do_not_save_to_one_folder(tmp_path: Path) -> None:
    with sb.Store(tmp_path) as one, sb.Store(tmp_path) as other:
        one.save(b"mine")
        with pytest.raises(sb.EnvironmentProblem, match="Another store is saving to"):
            other.save(b"theirs")
        assert other.load() == b"mine"
        one.close()
        other.save(b"theirs")
        assert one.load() == b"theirs"


_SAVER = """
import sys
import skyband as sb
store = sb.Store(sys.argv[1])
last = store.load()
number = 0 if last is None else int(last.split()[0]) + 1
while True:
    store.save(b"%d " % number + b"x" * (number * 7919 % 100_000))
    print(number, flush=True)
    number += 1
"""


def test_processes_killed_at_any_time_lose_nothing(tmp_path: Path) -> None:
    """What was said to be saved is there after kill -9; and no more than one that was being saved."""
    rng = random.Random(5)
    said = -1
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", _SAVER, tmp_path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()  # one has been saved
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        lines = (first + process.stdout.read()).splitlines(keepends=True)
        process.wait(timeout=PATIENCE_S)
        numbers = [int(line) for line in lines if line.endswith("\n")]
        assert numbers == list(range(said + 1, said + 1 + len(numbers)))
        said += len(numbers)
        found = sb.Store(tmp_path).load()
        last = -1 if found is None else int(found.split()[0])
        assert said <= last <= said + 1
        assert found is None or len(found.split()[1] if b"x" in found else b"") == last * 7919 % 100_000
        said = last
    assert said >= 11
