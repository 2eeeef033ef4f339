"""A process that sends answers to many readers, so that they take no time from the interpreter of the session.

The server starts it as a program of its own, `python fanout.py FD`, with no module but Python's own: it is there at
once, and small. Over one socket the server hands it the connections of readers, whose requests it has answered up to
the first bytes of the body, and each new answer once, encoded. This process writes the answers to all readers.

A reader that is more than a few answers behind skips to the latest one and learns how many it has missed. One slow
reader holds up nobody: what its connection does not take waits for that connection alone.
"""

from __future__ import annotations

import heapq
import json
import os
import selectors
import socket
import struct
import sys
import time
from collections import deque
from typing import Any

LENGTHS = struct.Struct("!II")  # of a message: its head, as JSON, and its body
KEPT = 128  # answers that a reader who is behind can still get
QUIET_SECONDS = 15.0  # after so long without an answer, a comment shows that the line is open
_READ, _BOTH = selectors.EVENT_READ, selectors.EVENT_READ | selectors.EVENT_WRITE


def chunk(data: bytes) -> bytes:
    """A part of a body whose length nobody knows beforehand, as HTTP has it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
END = chunk(b"event: end\ndata: {}\n\n") + LAST_CHUNK
STILL_HERE = chunk(b": still here\n\n")


class Board:
    """The latest answers of one query."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.readers: dict[int, Reader] = {}  # by their file
        # Of each event its version, what comes before the number of missed answers, and what comes after it.
        self.events: deque[tuple[int, bytes, bytes]] = deque(maxlen=KEPT)
        self.version = 0
        self.ended = False

    def event(self, place: int, missed: int) -> bytes:
        _, before, after = self.events[place]
        return chunk(b"%b%d%b" % (before, missed, after))


class Reader:
    """One connection."""

    def __init__(self, connection: socket.socket, board: Board, told: dict[str, Any]) -> None:
        self.connection, self.board = connection, board
        self.seen: int = told["seen"]  # the version that it got last
        self.missed: int = told["missed"]  # answers that it will not get, and has not been told of
        self.behind: int = told["behind"]  # with more answers to send than this, it skips to the latest
        self.pause: float = told["pause"]  # seconds between two events, at least
        self.due = 0.0  # no event before this
        self.sent = time.monotonic()
        self.rest = b""  # of what is being sent


class Fanout:
    """All boards and their readers."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, _READ)
        self._boards: dict[int, Board] = {}
        self._due: list[tuple[float, int, Reader]] = []  # readers that get no more than so many events a second
        self._waiting = b""  # of the server, the beginning of a message
        self._files: deque[int] = deque()  # connections whose message is still to come

    def run(self) -> None:
        """Until the server is gone."""
        looked = time.monotonic()
        while True:
            wait = 1.0 if not self._due else min(1.0, max(0.0, self._due[0][0] - time.monotonic()))
            for key, events in self._selector.select(wait):
                if key.fileobj is self._server:
                    if not self._listen():
                        return
                elif events & selectors.EVENT_WRITE:
                    self._send(key.data)
                elif not _is_open(key.data):
                    self._drop(key.data)
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                self._send(heapq.heappop(self._due)[2])
            if now - looked >= 1.0:
                looked = now
                self._keep_open(now)

    # -- from the server ---------------------------------------------------------------------------------------------

    def _listen(self) -> bool:
        """Take what the server says; False: it is gone."""
        data, files, _, _ = socket.recv_fds(self._server, 1 << 20, 64)
        self._files.extend(files)
        if not data:
            return False
        self._waiting += data
        while len(self._waiting) >= LENGTHS.size:
            head, body = LENGTHS.unpack_from(self._waiting)
            end = LENGTHS.size + head + body
            if len(self._waiting) < end:
                break
            told = json.loads(self._waiting[LENGTHS.size : LENGTHS.size + head])
            content, self._waiting = self._waiting[LENGTHS.size + head : end], self._waiting[end:]
            self._take(told, content)
        return True

    def _take(self, told: dict[str, Any], content: bytes) -> None:
        board = self._boards.setdefault(told["board"], Board(told["board"]))
        if told["kind"] == "reader":
            connection = socket.socket(fileno=self._files.popleft())
            connection.setblocking(False)
            reader = Reader(connection, board, told)
            reader.rest = content
            board.readers[connection.fileno()] = reader
            self._selector.register(connection, _READ, reader)
            self._send(reader)
        elif told["kind"] == "answer":
            if told["version"] != board.version + 1:  # the server has skipped some: places are counted from the first
                board.events.clear()
            board.version = told["version"]
            board.events.append((told["version"], content[: told["cut"]], content[told["cut"] :]))
            self._send_all(board)
        else:
            board.ended = True
            self._send_all(board)
            self._boards.pop(board.number, None)

    # -- to the readers ----------------------------------------------------------------------------------------------

    def _send_all(self, board: Board) -> None:
        """What is new, to all readers whose connections are free. Most lack the latest answer alone, and take all of it
        at once: they have the shortest way."""
        before, now = board.version - 1, time.monotonic()
        data = b"" if board.ended or not board.events else board.event(-1, 0)
        for reader in [*board.readers.values()]:
            if reader.rest:
                continue
            if not data or reader.seen != before or reader.missed or reader.pause:
                self._send(reader)
                continue
            try:
                sent = reader.connection.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._drop(reader)
                continue
            reader.seen = board.version
            if sent == len(data):
                reader.sent = now
            else:
                reader.rest = data[sent:]
                self._selector.modify(reader.connection, _BOTH, reader)

    def _send(self, reader: Reader) -> None:
        """All that a reader lacks and its connection takes."""
        if reader.connection.fileno() < 0:  # it has gone, and its turn came after that
            return
        board = reader.board
        while True:
            if reader.rest:
                try:
                    sent = reader.connection.send(reader.rest)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._drop(reader)
                    return
                reader.rest = reader.rest[sent:]
                if reader.rest:
                    self._selector.modify(reader.connection, _BOTH, reader)
                    return
                if self._selector.get_key(reader.connection).events != _READ:
                    self._selector.modify(reader.connection, _READ, reader)
                reader.sent = time.monotonic()
                if board.ended and reader.seen > board.version:
                    self._drop(reader)
                    return
            if reader.pause and reader.seen < board.version:
                now = time.monotonic()
                if now < reader.due:
                    heapq.heappush(self._due, (reader.due, id(reader), reader))
                    return
                reader.due = now + reader.pause
            reader.rest = self._next(reader)
            if not reader.rest:
                return

    def _next(self, reader: Reader) -> bytes:
        """What a reader gets next; nothing, if it has all."""
        board = reader.board
        if reader.seen >= board.version or not board.events:
            if board.ended and reader.seen <= board.version:
                reader.seen = board.version + 1
                return END
            return b""
        first, latest = board.events[0][0], board.events[-1][0]
        wanted = max(reader.seen + 1, first)
        if latest - wanted + 1 > reader.behind:
            wanted = latest
        missed = reader.missed + wanted - reader.seen - 1
        reader.seen, reader.missed = wanted, 0
        return board.event(wanted - first, missed)

    def _keep_open(self, now: float) -> None:
        for board in [*self._boards.values()]:
            for reader in [*board.readers.values()]:
                if not reader.rest and now - reader.sent >= QUIET_SECONDS:
                    reader.rest = STILL_HERE
                    self._send(reader)

    def _drop(self, reader: Reader) -> None:
        self._selector.unregister(reader.connection)
        reader.board.readers.pop(reader.connection.fileno(), None)
        reader.connection.close()
        try:
            self._server.send(b"%d\n" % reader.board.number)  # the server counts readers
        except OSError:
            return


def _is_open(reader: Reader) -> bool:
    try:
        return bool(reader.connection.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False


def main() -> None:
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ImportError, ValueError, OSError):
        pass  # then for as many readers as there may be
    with socket.socket(fileno=int(sys.argv[1])) as server:
        Fanout(server).run()
    os._exit(0)  # connections end with the process


if __name__ == "__main__":
    main()
