"""One run at a time on a checkpoint: two would write the same micro-batches twice, and Spark notices late or never."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Final

from skyband.errors import EnvironmentProblem
from skyband.pipelines.model import Pipeline
from skyband.pipelines.secrets import resolve

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

LOCK: Final = "run.lock"
_NOT_HERE: Final = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # a file system without locks


@contextmanager
def only_run_of(pipeline: Pipeline) -> Iterator[None]:
    """Nobody else runs on the checkpoint of `pipeline` until the end of the block; raises if somebody does.

    The operating system holds the lock for this process, and takes it back however the process ends. Checkpoints
    elsewhere are not locked.
    """
    folder = pipeline.on_this_machine(resolve(pipeline.checkpoint))
    if folder is None or fcntl is None:
        yield
        return
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context((folder / LOCK).open("ab+", buffering=0))
            _lock(file, folder)
        except OSError as error:
            raise EnvironmentProblem(f"The checkpoint {folder} cannot be written: {error.strerror}.") from error
        yield


def _lock(file: FileIO, folder: Path) -> None:
    """Lock the file for this process, and write in it which one that is."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        process = file.read().decode().strip() or "unknown"
        raise EnvironmentProblem(
            f"Another `skyband run` (process {process}) uses the checkpoint {folder}. "
            'Stop it first, or give this pipeline a checkpoint of its own: checkpoint = "…".'
        ) from error
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
