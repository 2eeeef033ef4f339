"""A Redis server for tests, on loopback, that keeps nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.missing import missing
from servers.ports import free_port, wait_for_port


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a server that runs until the end of the block."""
    if shutil.which("redis-server") is None:
        missing("redis-server: apt-get install redis-server")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with (folder / "redis.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait()
