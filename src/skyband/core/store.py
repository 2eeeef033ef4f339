"""A folder for a session's snapshots. A snapshot is read completely or not at all, even if the process was killed.

The store writes a snapshot to a temporary file, flushes it to the disk, and only then renames it to a number above all
others. It keeps the last two: if one is damaged later, the previous one is there.

    folder/lock                          held by the one process that saves
    folder/00000000000000000042.state    digest (32 bytes) | snapshot
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import warnings
from pathlib import Path
from typing import Final

from skyband.errors import EnvironmentProblem, InvalidInput, SnapshotCorrupt

try:
    import fcntl
except ImportError:  # on Windows, where nothing keeps two processes from saving to one folder
    fcntl = None  # type: ignore[assignment]

KEPT: Final = 2
_SUFFIX: Final = ".state"
_UNNAMED: Final = ".unnamed"
_DIGEST_SIZE: Final = 32


class Store:
    """A folder that keeps the last two snapshots of one session, safe from crashes and full disks.

    `save` returns when the snapshot is on the disk. `load` returns the last complete snapshot, or None. After a crash,
    push again the rows that came after it: `session.stats().rows_in` is the number of rows that the session has seen.

    Parameters
    ----------
    path
        The folder. The store creates it if it does not exist.
    key
        A secret. The store then reads only snapshots that were saved with the same key. Use it if others can write to
        the folder.

    Raises
    ------
    InvalidInput
        `path` is a file, or `key` is not 1 to 64 bytes.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopK(k=1, by="price", window=sb.sliding(3, every=3))
    >>> trades = pa.table({"price": [10, 30, 20]})
    >>> with tempfile.TemporaryDirectory() as folder, sb.Store(folder) as store:
    ...     session = query.open(trades.schema, store.load())  # None the first time
    ...     _ = session.push(trades.slice(0, 2))
    ...     store.save(session.snapshot())
    ...     again = query.open(trades.schema, store.load())  # as after a crash
    ...     seen = again.stats().rows_in
    ...     again.push(trades.slice(seen))["score"].to_pylist()
    [30]
    """

    def __init__(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        if key is not None and not (isinstance(key, bytes) and 0 < len(key) <= hashlib.blake2b.MAX_KEY_SIZE):
            raise InvalidInput(f"key must be 1 to {hashlib.blake2b.MAX_KEY_SIZE} bytes, got {type(key).__name__}.")
        self._folder = Path(path)
        self._key = key or b""
        self._lock: int | None = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InvalidInput(f"A store is a folder, but {str(path)!r} is a file, or lies below one.") from None

    def save(self, state: bytes) -> None:
        """Save a snapshot. When this returns, it is on the disk; if it raises, the earlier ones are unchanged.

        Parameters
        ----------
        state
            What `session.snapshot()` returned.

        Raises
        ------
        InvalidInput
            `state` is not bytes.
        EnvironmentProblem
            Another store is saving to this folder.
        OSError
            The disk is full, or this process may not write to the folder.
        """
        if not isinstance(state, (bytes, bytearray, memoryview)):
            raise InvalidInput(f"save takes the bytes that session.snapshot() returns; got {type(state).__name__}.")
        self._take_lock()
        numbers = self._numbers()
        number = numbers[-1] + 1 if numbers else 0
        unnamed = self._folder / f"{number:020}{_UNNAMED}"
        _write(unnamed, self._digest(state), state)
        unnamed.rename(self._file(number))
        _flush_folder(self._folder)
        for old in numbers[: 1 - KEPT]:
            self._file(old).unlink(missing_ok=True)

    def load(self) -> bytes | None:
        """Read the last complete snapshot. If the last one is damaged, `load` warns and reads the previous one.

        Returns
        -------
        The snapshot, for `query.open(schema, state)`; None if the store is empty.

        Raises
        ------
        SnapshotCorrupt
            All snapshots are damaged, or were saved with another key.
        """
        problems: list[str] = []
        for number in reversed(self._numbers()):
            content = self._file(number).read_bytes()
            digest, state = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
            if hmac.compare_digest(digest, self._digest(state)):
                if problems:
                    warnings.warn(f"{' and '.join(problems)}: loading the previous snapshot.", stacklevel=2)
                return state
            problems.append(f"{self._file(number)} is damaged{', or was saved with another key' if self._key else ''}")
        if problems:
            raise SnapshotCorrupt(f"{' and '.join(problems)}. There is no other snapshot: start without one.")
        return None

    def close(self) -> None:
        """Release the folder, so that another process can save to it. A `with` block does this at its end."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _take_lock(self) -> None:
        """Without a lock, two sessions that save to one folder would overwrite each other's snapshots."""
        if self._lock is not None or fcntl is None:
            return
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise EnvironmentProblem(
                f"Another store is saving to {self._folder}. One session has one folder: close() the other one, or "
                "name another folder."
            ) from error
        self._lock = lock
        for left in self._folder.glob(f"*{_UNNAMED}"):  # of a process that was killed
            left.unlink()

    def _numbers(self) -> list[int]:
        names = (file.stem for file in self._folder.glob(f"*{_SUFFIX}"))
        return sorted(int(name) for name in names if name.isdigit())

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:020}{_SUFFIX}"

    def _digest(self, state: bytes) -> bytes:
        return hashlib.blake2b(state, digest_size=_DIGEST_SIZE, key=self._key).digest()


def _write(place: Path, *parts: bytes) -> None:
    """Write all parts, and flush them to the disk."""
    file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)


def _flush_folder(folder: Path) -> None:
    """Flush a folder, so that a new name in it is on the disk; Windows has no call for this."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
