"""The HTTP API, as an ASGI application on Starlette. docs/console.md shows it by example, /openapi.json in full.

What a session or a pipeline says is read from boards. Whatever may take long, or may have to wait for a session's turn,
runs in a thread, so that no request holds up another one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from skyband.core.picture import Picture
from skyband.errors import InvalidSql, SkybandError
from skyband.serving import formats, openapi, replies
from skyband.serving.boards import Answer
from skyband.serving.catalog import Catalog
from skyband.serving.events import Events
from skyband.serving.guard import MOST_BODY, App, Guard
from skyband.serving.served import Served
from skyband.serving.workshop import TooManyQueries, Workshop, words

ASSETS: Final = Path(__file__).with_name("assets")
BODY_SECONDS: Final = 10.0  # for all of a request to come
MOST_ID: Final = 1_000  # characters of what names a row, a pair, an object or a group
MOST_SHOWN: Final = 16_000  # characters of a row of the answer
MOST_ENCODED: Final = 64  # forms of one answer that are kept for other readers: a group can be any text
_NUMBERS: Final = 18  # digits of a number that anybody needs


def application(
    catalog: Catalog, events: Events, *, token: str | None = None, names: frozenset[str] | None = None
) -> App:
    """What is served under all addresses, behind the guard."""
    api = _Api(catalog)
    routes = [
        Route("/", api.page),
        Route("/docs", api.page),
        Route("/health", api.health),
        Route("/metrics", api.metrics),
        Route("/openapi.json", api.openapi),
        Route("/catalog", api.catalog),
        Route("/queries", api.queries),
        Route("/queries", api.start, methods=["POST"]),
        Route("/queries/{name}", api.query),
        Route("/queries/{name}", api.stop, methods=["DELETE"]),
        Route("/queries/{name}/top", api.top),
        Route("/queries/{name}/history", api.history),
        Route("/queries/{name}/changes", events),
        Route("/queries/{name}/plan", api.plan),
        Route("/queries/{name}/picture", api.picture),
        Route("/queries/{name}/rows", api.rows),
        Route("/queries/{name}/rows/{id:path}", api.row),
        Route("/queries/{name}/why", api.why),
        Route("/statements/check", api.check, methods=["POST"]),
        Route("/statements/explain", api.explain, methods=["POST"]),
        Mount("/assets", StaticFiles(directory=ASSETS)),
    ]
    handlers: Any = {HTTPException: _refused, SkybandError: _wrong, ClientDisconnect: _gone, Exception: _failed}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token=token, names=names)


class _Api:
    """The endpoints."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    # -- about the server --------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        name = "index.html" if request.url.path == "/" else "docs.html"
        return Response((ASSETS / name).read_bytes(), media_type="text/html")

    async def health(self, request: Request) -> Response:
        states = [query.describe()["state"] for query in self._catalog.queries()]
        ready = bool(states) and all(query.board.version > 0 for query in self._catalog.queries())
        failed = "failed" in states
        found = {"live": True, "ready": ready and not failed, "failed": failed, "queries": len(states)}
        return JSONResponse(found, 503 if failed else 200)

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(await run_in_threadpool(self._metrics))

    def _metrics(self) -> bytes:
        if self._catalog.metrics is not None:
            return self._catalog.metrics()
        from skyband.serving.metrics import text_of

        return text_of(self._catalog)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(openapi.document(with_statements=self._catalog.workshop is not None))

    async def catalog(self, request: Request) -> Response:
        """What the page has to know to begin."""
        workshop = self._catalog.workshop
        feeds = [] if workshop is None else workshop.feeds.values()
        tables = [
            {"name": feed.name, "columns": [{"name": each.name, "type": str(each.type)} for each in feed.schema]}
            for feed in feeds
        ]
        found = {"title": self._catalog.title, "tables": tables, "statements": workshop is not None}
        return JSONResponse(found if workshop is None else {**found, **words()})

    # -- queries -----------------------------------------------------------------------------------------------------

    async def queries(self, request: Request) -> Response:
        found = await run_in_threadpool(lambda: [_summary(query) for query in self._catalog.queries()])
        return JSONResponse({"queries": found})

    async def query(self, request: Request) -> Response:
        query = self._find(request)
        return JSONResponse(await run_in_threadpool(_summary, query))

    async def top(self, request: Request) -> Response:
        query = self._find(request)
        given = _parameters(request, ("k", "group", "format", "at", "size", "now", "token"))
        form = given.get("format", "json")
        if form not in formats.MEDIA_TYPES:
            raise HTTPException(400, f"format={form[:40]!r}: possible are {', '.join(formats.MEDIA_TYPES)}.")
        k = _whole(given, "k")
        if "at" in given and ("size" in given or "now" in given):
            raise HTTPException(400, "Give either at=, a window that has closed, or size= or now=, to ask right now.")
        if "size" in given or "now" in given:
            answer: Answer | None = await run_in_threadpool(_asked, query, k, given.get("size"))
        else:
            answer = replies.published(query, given.get("at"))
        if answer is None:
            return JSONResponse({"query": query.name, "version": 0, "rows": []})
        key = (form, k, given.get("group"))
        body = answer.encoded.get(key)
        if body is None:
            body = await run_in_threadpool(replies.encoded, query, answer, form, k, given.get("group"))
            if len(answer.encoded) < MOST_ENCODED:
                answer.encoded[key] = body
        headers = {"x-skyband-version": str(answer.version), "cache-control": "no-store"}
        if answer.batch is not None:
            headers["x-skyband-batch"] = str(answer.batch)
        if answer.watermark is not None:
            headers["x-skyband-watermark"] = str(formats.value(answer.watermark))
        return Response(body, media_type=formats.MEDIA_TYPES[form], headers=headers)

    async def history(self, request: Request) -> Response:
        query = self._find(request)
        given = _parameters(request, ("k", "group", "token"))
        k = min(_whole(given, "k") or replies.MOST_HISTORY, replies.MOST_HISTORY)
        found = await run_in_threadpool(replies.history, query, k, given.get("group"))
        return Response(found, media_type=formats.JSON)

    async def plan(self, request: Request) -> Response:
        query = self._find(request)
        return JSONResponse(await run_in_threadpool(lambda: replies.plan_json(query.explanation())))

    # -- rows --------------------------------------------------------------------------------------------------------

    async def picture(self, request: Request) -> Response:
        picture = self._picture(request)
        return Response(formats.encode(await run_in_threadpool(picture.draw)), media_type=formats.JSON)

    async def rows(self, request: Request) -> Response:
        picture = self._picture(request)
        given = _parameters(request, ("where", "token"))
        if not given.get("where"):
            raise HTTPException(400, "where= is missing: a condition such as symbol = 'OAK'.")
        return _json_of({"rows": await run_in_threadpool(picture.find, given["where"])})

    async def row(self, request: Request) -> Response:
        """Why something is in the answer, or is not: by its id, as `rows` gives it."""
        picture, id = self._picture(request), request.path_params["id"]
        return _json_of(_known(await run_in_threadpool(picture.why, id) if len(id) <= MOST_ID else None))

    async def why(self, request: Request) -> Response:
        """The same, by what a row of the answer shows."""
        picture = self._picture(request)
        text = _parameters(request, ("row", "token"), MOST_SHOWN).get("row", "")
        try:
            shown = json.loads(text)
        except (ValueError, RecursionError):
            shown = None
        if not isinstance(shown, dict):
            raise HTTPException(400, 'row= is a row of the answer, as it came: {"rank": 1, …}.')

        def explained() -> Any:
            id = picture.id_of(shown, formats.value)
            return None if id is None else picture.why(id)

        return _json_of(_known(await run_in_threadpool(explained)))

    # -- statements --------------------------------------------------------------------------------------------------

    async def check(self, request: Request) -> Response:
        return await self._with_statement(request, lambda workshop, text: JSONResponse(workshop.check(text)))

    async def explain(self, request: Request) -> Response:
        def explained(workshop: Workshop, text: str) -> Response:
            return JSONResponse(replies.plan_json(workshop.explain(text)))

        return await self._with_statement(request, explained)

    async def start(self, request: Request) -> Response:
        def started(workshop: Workshop, text: str) -> Response:
            return JSONResponse(_summary(workshop.start(text)), 201)

        return await self._with_statement(request, started)

    async def stop(self, request: Request) -> Response:
        query = self._find(request)
        workshop = self._catalog.workshop
        if workshop is None or not await run_in_threadpool(workshop.stop, query.name):
            raise HTTPException(409, f"{query.name} was not started here, so it cannot be stopped here.")
        return Response(status_code=204)

    async def _with_statement(self, request: Request, answer: Callable[[Workshop, str], Response]) -> Response:
        workshop = self._catalog.workshop
        if workshop is None:
            raise HTTPException(409, "Statements cannot be run here: `skyband ui` is for that.")
        body = await _json(request)
        if not isinstance(body, dict) or set(body) != {"sql"} or not isinstance(body["sql"], str):
            raise HTTPException(400, 'Send {"sql": "SELECT …"}.')
        try:
            return await run_in_threadpool(answer, workshop, body["sql"])
        except TooManyQueries as error:
            raise HTTPException(429, str(error)) from error

    # -- inside ------------------------------------------------------------------------------------------------------

    def _find(self, request: Request) -> Served:
        return replies.find(self._catalog, request)

    def _picture(self, request: Request) -> Picture:
        picture = self._find(request).picture
        if picture is None:
            raise HTTPException(404, "This query has no picture: it does not run in this process, or has no one score.")
        return picture


def _summary(query: Served) -> dict[str, Any]:
    return {**query.describe(), "version": query.board.version, "figures": query.figures()}


def _parameters(request: Request, known: tuple[str, ...], longest: int = 2_000) -> dict[str, str]:
    """The parameters of a request; what is not known, or given twice, is refused."""
    given: dict[str, str] = {}
    for name, text in request.query_params.multi_items():
        if name not in known or name in given or len(text) > longest:
            possible = ", ".join(each for each in known if each != "token")
            raise HTTPException(
                400, f"Parameter {name[:40]!r} is unknown, given twice or too long. Possible: {possible}."
            )
        given[name] = text
    return given


def _whole(given: dict[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > _NUMBERS or int(text) < 1:
        raise HTTPException(400, f"{name}={text[:40]!r} must be a whole number, at least 1.")
    return int(text)


def _asked(query: Served, k: int | None, size: str | None) -> Answer:
    """What the query says right now."""
    if not query.can_be_asked:
        raise HTTPException(409, "This query cannot answer for a size or for right now; leave out size= and now=.")
    span = int(size) if size is not None and size.isascii() and size.isdecimal() and len(size) <= _NUMBERS else size
    latest = query.board.latest()
    batch, watermark = (None, None) if latest is None else (latest.batch, latest.watermark)
    return Answer(query.board.version, query.top(k, span), None, batch, watermark)


def _json_of(content: Any) -> Response:
    return Response(formats.encode(formats.value(content)), media_type=formats.JSON)


def _known(found: Any) -> Any:
    if found is None:
        raise HTTPException(404, "The server does not have that row: it came too long ago, or has not come yet.")
    return found


async def _json(request: Request) -> Any:
    """The body of a request; one that is too long, or too slow in coming, is not waited for."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY:
                    raise HTTPException(413, f"A request has at most {MOST_BODY:,} bytes.")
    except TimeoutError as error:
        raise HTTPException(408, "The request took too long to arrive.") from error
    try:
        found = json.loads(body)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        return found
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "This is not JSON.") from error


# -- errors: in words, never a trace ---------------------------------------------------------------------------------


async def _refused(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def _wrong(request: Request, error: SkybandError) -> Response:
    said: dict[str, Any] = {"error": str(error), "kind": type(error).__name__}
    if isinstance(error, InvalidSql):
        said |= {"place": error.place, "why": error.why or str(error).splitlines()[0]}
    return JSONResponse(said, 400)


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "Something went wrong in the server. Its log says what."}, 500)
