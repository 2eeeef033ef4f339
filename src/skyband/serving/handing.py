"""Hands readers of changes over to a process of their own (`fanout.py`), and tells it each answer once."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from skyband.serving import fanout
from skyband.serving.boards import Answer, Board

_MOST_WAITING: Final = 64  # messages for the process

Connections = dict[Any, asyncio.Transport]  # the open ones, by the address of the other side
Encode = Callable[[Answer], tuple[bytes, bytes]]  # an event, before and after the number of answers that were missed


def remembering(connections: Connections) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with which one finds the connection that a request came on."""

    class Remembering(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """Knows its connection as long as it is open."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            connections[transport.get_extra_info("peername")] = transport
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self.transport.get_extra_info("peername"), None)
            super().connection_lost(exc)

    return Remembering


class Link:
    """The process, and the socket to it. Everything but `close` is called in the server's event loop."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-IS", str(Path(fanout.__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._socket = ours
        self._loop = asyncio.get_running_loop()
        self._outgoing: asyncio.Queue[tuple[bytes, int | None]] = asyncio.Queue()
        self._boards: dict[Board, int] = {}  # with their numbers there
        self._tellers: dict[Board, asyncio.Task[None]] = {}
        self._readers: Counter[int] = Counter()
        self._heard = b""
        self.is_open = True
        self._writer = asyncio.ensure_future(self._write())
        self._loop.add_reader(ours, self._hear)

    @property
    def readers(self) -> int:
        return self._readers.total()

    def hand(self, connection: socket.socket, board: Board, first: bytes, **told: Any) -> None:
        """From now on the process serves this reader, which has seen the answers up to `seen` once it got `first`."""
        number = self._boards.setdefault(board, len(self._boards))
        if board not in self._tellers:
            self._tellers[board] = asyncio.ensure_future(self._tell(board, number, told["seen"]))
        self._readers[number] += 1
        self._say({"kind": "reader", "board": number, **told}, first, connection.detach())

    async def _tell(self, board: Board, number: int, seen: int) -> None:
        """Each answer once, for all readers."""
        while True:
            while self._outgoing.qsize() > _MOST_WAITING:  # the process does not keep up
                await asyncio.sleep(0.05)
            for answer in board.since(seen, fanout.KEPT)[0]:
                before, after = self._encode(answer)
                said = {"kind": "answer", "board": number, "version": answer.version, "cut": len(before)}
                self._say(said, before + after)
                seen = answer.version
            if board.closed and board.version <= seen:
                self._say({"kind": "end", "board": number}, b"")
                self._boards.pop(board, None)
                self._tellers.pop(board, None)
                return
            await board.change(seen)

    def _say(self, told: dict[str, Any], content: bytes, file: int | None = None) -> None:
        head = json.dumps(told).encode()
        self._outgoing.put_nowait((fanout.LENGTHS.pack(len(head), len(content)) + head + content, file))

    async def _write(self) -> None:
        try:
            while True:
                data, file = await self._outgoing.get()
                if file is not None:
                    data = await self._write_with(data, file)
                await self._loop.sock_sendall(self._socket, data)
        except OSError:
            self.close()

    async def _write_with(self, data: bytes, file: int) -> bytes:
        """The beginning of a message, with a connection; what is left of it."""
        try:
            while True:
                try:
                    return data[socket.send_fds(self._socket, [data], [file]) :]
                except BlockingIOError:
                    await asyncio.sleep(0.001)
        finally:
            socket.close(file)

    def _hear(self) -> None:
        """Readers have gone; or the process has."""
        try:
            data = self._socket.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        self._readers.subtract(map(int, lines))

    def close(self) -> None:
        """The process ends with the socket, and with it the connections of its readers."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._socket)
        self._writer.cancel()
        for teller in self._tellers.values():
            teller.cancel()
        self._socket.close()
        while not self._outgoing.empty():
            _, file = self._outgoing.get_nowait()
            if file is not None:
                socket.close(file)

    def wait(self) -> None:
        """After `close`: until the process has ended."""
        self._process.wait()


def is_possible() -> bool:
    """Can connections be handed to another process here?"""
    return hasattr(socket, "send_fds") and bool(sys.executable)
