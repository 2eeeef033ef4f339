"""Readers of one answer, in a process of their own that does as little for each event as it can.

The readers share the machine with the pipeline that they follow. Real ones would not, so this measurement alone takes
what they use from the pipeline, and it has to be small: one loop over sockets, and one search in what has come.
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import selectors
import socket
import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from skyband.serving.boards import Board

UPDATES_PER_SECOND: Final = 10
_EVENT: Final = re.compile(rb'-(\d+)\nevent: answer\ndata: \{"missed":(\d+),')
_FILES: Final = 8_192  # open at once: a connection is one on each side


class Read(NamedTuple):
    """What the readers got."""

    received: int = 0
    skipped: int = 0  # answers that readers did not get because they were behind, and were told of
    versions: Any = np.zeros(0, np.int64)  # of each answer that a reader received
    moments: Any = np.zeros(0)  # when it was received, by the machine's monotonic clock

    def late_ms(self, published: Mapping[int, float]) -> tuple[float, float]:
        """The median delay and the 99th percentile; `published` has the moment of each version."""
        if not len(self.versions):
            return 0.0, 0.0
        at = np.zeros(max(published) + 1)
        at[[*published]] = [*published.values()]
        median, p99 = np.percentile((self.moments - at[self.versions]) * 1_000, [50, 99])
        return float(median), float(p99)


class Publisher:
    """Publishes an answer ten times a second, for as long as somebody calls `tick` often enough."""

    def __init__(self, board: Board) -> None:
        self._board, self._began = board, time.monotonic()
        self.published: dict[int, float] = {}

    @property
    def due(self) -> float:
        """When it is time again, by the monotonic clock."""
        return self._began + len(self.published) / UPDATES_PER_SECOND

    def tick(self, table: pa.Table) -> None:
        """Publish `table` if it is time."""
        if (now := time.monotonic()) >= self.due:
            self.published[self._board.version + 1] = now
            self._board.publish(table)


class Readers:
    """Readers that are connected."""

    def __init__(self, done: Any, pid: int | None) -> None:
        self._done, self.pid = done, pid

    def result(self) -> Read:
        """After the end of their answer: what they got."""
        return Read() if self._done is None else Read(*self._done.get())


@contextmanager
def reading(port: int, name: str, count: int) -> Iterator[Readers]:
    """So many readers of the query `name`, all connected, until the query has ended."""
    allow_connections()
    if not count:
        yield Readers(None, None)
        return
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Queue()
    process = context.Process(target=_read, args=(port, name, count, ready, done), daemon=True)
    process.start()
    ready.wait()
    yield Readers(done, process.pid)
    process.join()


def allow_connections() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def _read(port: int, name: str, count: int, ready: Any, done: Any) -> None:
    """In a process of its own."""
    allow_connections()
    selector, rests = selectors.DefaultSelector(), {}
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(f"GET /queries/{name}/changes HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        selector.register(connection, selectors.EVENT_READ)
    versions, moments, skipped = array("q"), array("d"), 0
    while selector.get_map():
        for key, _ in selector.select():
            line: Any = key.fileobj
            data = line.recv(1 << 18)
            if line not in rests:  # its first bytes are the head of the answer
                rests[line] = b""
                if len(rests) == count:
                    ready.set()
            came = rests[line] + data
            end, now = 0, time.monotonic()
            for found in _EVENT.finditer(came):
                versions.append(int(found[1]))
                moments.append(now)
                skipped += int(found[2])
                end = found.end()
            rests[line] = b"" if end and came.endswith(b"\n\r\n") else came[end:]
            if not data or b"event: end" in came:
                selector.unregister(line)
                line.close()
    done.put((len(versions), skipped, np.array(versions), np.array(moments)))
