"""Changes as server-sent events: each event is the complete latest answer, so a reader needs only the last one.

A slow reader, or one that asks for fewer events a second than there are answers, skips to the latest answer; `missed`
counts the answers it did not get. After a break it continues after the event whose id it sends (`Last-Event-ID`), as
long as the server has the answers since then.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from skyband.serving import formats
from skyband.serving.boards import Answer
from skyband.serving.catalog import Catalog
from skyband.serving.guard import Receive, Scope, Send
from skyband.serving.served import Served

MOST_READERS: Final = 4_000
MOST_ROWS: Final = 1_000  # of an event: whoever needs more asks for `top`
MOST_RATE: Final = 100
KEEPS: Final = 1_000_000  # all that a board keeps
BEHIND: Final = 16  # answers that a reader may be behind: with more, it skips to the latest
MOST_BEHIND: Final = BEHIND + 1
_QUIET_SECONDS: Final = 15.0  # after so long without an event, a comment shows that the line is open


class Events:
    """The endpoint of changes, as an ASGI application: an event is encoded once for all readers."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._run = secrets.token_hex(4)  # ids of events are those of this run
        self._readers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        query = self._find(request)
        rate = self._rate(request)
        after = self._last_seen(request.headers.get("last-event-id") or request.query_params.get("after"))
        if self._readers >= MOST_READERS:
            raise HTTPException(503, f"{self._readers:,} readers are connected already.", {"retry-after": "5"})
        self._readers += 1
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await send(_START)
            told = asyncio.ensure_future(self._tell(query, after, rate, send))
            await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
        finally:
            gone.cancel()
            self._readers -= 1

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
                await send(_body(self._event(query, answer, missed)))
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

    def _event(self, query: Served, answer: Answer, missed: int) -> bytes:
        data = answer.encoded.get("event")
        if data is None:
            rows = formats.rows_of(answer.table.slice(0, MOST_ROWS))
            data = answer.encoded["event"] = formats.encode(
                {
                    "version": answer.version,
                    "batch": answer.batch,
                    "watermark": formats.value(answer.watermark),
                    "at": formats.value(answer.at),
                    "rows_in_all": answer.table.num_rows,
                    "rows": rows,
                }
            )
        head = f'id: {self._run}-{answer.version}\nevent: answer\ndata: {{"missed":{missed},'.encode()
        return head + data[1:] + b"\n\n"

    def _find(self, request: Request) -> Served:
        query = self._catalog.find(request.path_params["name"])
        if query is None:
            raise HTTPException(404, f"There is no query {request.path_params['name'][:60]!r}.")
        return query

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
