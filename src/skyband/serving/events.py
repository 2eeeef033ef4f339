"""Changes as server-sent events: each event is the complete latest answer, so a reader needs only the last one.

A slow reader, or one that asks for fewer events a second than there are answers, skips to the latest answer; `missed`
counts the answers it did not get. After a break it continues after the event whose id it sends (`Last-Event-ID`), as
long as the server has the answers since then.

The first readers are served here. With more of them a process of their own serves the others (`handing.py`), so that
they do not share the interpreter with the session.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from skyband.serving import formats
from skyband.serving.boards import Answer, Board
from skyband.serving.catalog import Catalog
from skyband.serving.fanout import chunk
from skyband.serving.guard import Receive, Scope, Send
from skyband.serving.handing import Connections, Link
from skyband.serving.replies import find
from skyband.serving.served import Served

MOST_READERS: Final = 4_000
MOST_ROWS: Final = 1_000  # of an event: whoever needs more asks for `top`
MOST_RATE: Final = 100
KEEPS: Final = 1_000_000  # all that a board keeps
BEHIND: Final = 16  # answers that a reader may be behind: with more, it skips to the latest
MOST_BEHIND: Final = BEHIND + 1
SERVED_HERE: Final = 8  # readers for whom it does not pay to start a process
_QUIET_SECONDS: Final = 15.0  # after so long without an event, a comment shows that the line is open


class Events:
    """The endpoint of changes, as an ASGI application: an event is encoded once for all readers."""

    def __init__(self, catalog: Catalog, connections: Connections | None = None) -> None:
        """`connections` are those that can be handed to another process; None: all readers are served here."""
        self._catalog = catalog
        self._run = secrets.token_hex(4)  # ids of events are those of this run
        self._readers = 0
        self._connections = connections
        self._link: Link | None = None
        self._serving: dict[asyncio.Task[Any], asyncio.AbstractEventLoop] = {}  # the readers that are served here

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        query = find(self._catalog, request)
        rate = self._rate(request)
        after = self._last_seen(request.headers.get("last-event-id") or request.query_params.get("after"))
        if self.readers >= MOST_READERS:
            raise HTTPException(503, f"{self.readers:,} readers are connected already.", {"retry-after": "5"})
        if self._readers >= SERVED_HERE and await self._hand(query.board, after, rate, scope, receive, send):
            return
        self._readers += 1
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await send(_START)
            told = asyncio.ensure_future(self._tell(query, after, rate, send))
            self._serving[told] = asyncio.get_running_loop()
            await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
            self._serving.pop(told)
            if told.cancelled() and not gone.done():  # the server lets its readers go
                await send(_body(b"", more=False))
            told.cancel()
        finally:
            gone.cancel()
            self._readers -= 1

    @property
    def readers(self) -> int:
        return self._readers + (0 if self._link is None else self._link.readers)

    def let_go(self) -> None:
        """Called from any thread: the readers that are served here get no more, and their connections end."""
        for task, loop in [*self._serving.items()]:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(task.cancel)

    def close(self) -> None:
        """Called in the server's event loop, or after it."""
        if self._link is not None:
            self._link.close()
            self._link.wait()

    async def _hand(
        self, board: Board, after: int | None, rate: float | None, scope: Scope, receive: Receive, send: Send
    ) -> bool:
        """Let another process serve this reader; False: that is not possible."""
        connection = None if self._connections is None else self._connections.get(tuple(scope["client"] or ()))
        if connection is None or scope["http_version"] != "1.1":
            return False
        if self._link is None or not self._link.is_open:
            try:
                self._link = Link(self._event)
            except OSError:  # no process can be started now
                return False
        await send(_START)
        while connection.get_write_buffer_size():
            await asyncio.sleep(0.001)
        seen = max(0, board.version - 1) if after is None else min(after, board.version)
        answers, missed = board.since(seen, KEEPS)
        first = b""
        for answer in answers:
            before, after_it = self._event(answer)
            first += chunk(b"%b%d%b" % (before, missed, after_it))
            missed, seen = 0, answer.version
        behind = BEHIND if rate is None else 1
        told = {"seen": seen, "missed": missed, "behind": behind, "pause": 0.0 if rate is None else 1 / rate}
        self._link.hand(connection.get_extra_info("socket").dup(), board, first, **told)
        connection.abort()  # this end of it: the other process has its own
        await _disconnected(receive)
        return True

    async def _tell(self, query: Served, after: int | None, rate: float | None, send: Send) -> None:
        """All answers from now on. While `send` waits for a slow reader, others are served."""
        board, loop = query.board, asyncio.get_running_loop()
        seen = max(0, board.version - 1) if after is None else min(after, board.version)
        most = KEEPS  # the first time, all that was missed and is still kept
        while True:
            answers, missed = board.since(seen, most)
            if len(answers) > BEHIND and most != KEEPS:
                answers, missed = answers[-1:], missed + len(answers) - 1
            most = MOST_BEHIND if rate is None else 1
            for answer in answers:
                before, after_it = self._event(answer)
                await send(_body(b"%b%d%b" % (before, missed, after_it)))
                missed, seen = 0, answer.version
            if board.closed and board.version <= seen:
                await send(_body(b"event: end\ndata: {}\n\n", more=False))
                return
            began = loop.time()
            try:
                async with asyncio.timeout(_QUIET_SECONDS):
                    await board.change(seen)
            except TimeoutError:
                await send(_body(b": still here\n\n"))
            if rate is not None:
                await asyncio.sleep(max(0.0, 1 / rate - (loop.time() - began)))

    def _event(self, answer: Answer) -> tuple[bytes, bytes]:
        """An event before and after the number of answers that a reader has missed; encoded once for all of them."""
        data = answer.encoded.get("event")
        if data is None:
            data = answer.encoded["event"] = formats.encode(
                {
                    "version": answer.version,
                    "batch": answer.batch,
                    "watermark": formats.value(answer.watermark),
                    "at": formats.value(answer.at),
                    "rows_in_all": answer.table.num_rows,
                    "rows": formats.rows_of(answer.table.slice(0, MOST_ROWS)),
                }
            )
        return f'id: {self._run}-{answer.version}\nevent: answer\ndata: {{"missed":'.encode(), b"," + data[1:] + b"\n\n"

    def _last_seen(self, id: str | None) -> int | None:
        """The version that a reader has seen last; of another run of the server, none."""
        if not id:
            return None
        run, _, version = id.partition("-")
        if not (version.isascii() and version.isdecimal()) or len(version) > 18:
            raise HTTPException(400, "Last-Event-ID is the id of an event, as it came.")
        return int(version) if run == self._run else None

    def _rate(self, request: Request) -> float | None:
        text: Any = request.query_params.get("rate")
        if text is None:
            return None
        try:
            rate = float(text)
        except ValueError:
            rate = 0.0
        if not 0.01 <= rate <= MOST_RATE:
            raise HTTPException(400, f"rate={text[:40]!r} must be a number of events a second, up to {MOST_RATE}.")
        return rate


_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


def _body(data: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
