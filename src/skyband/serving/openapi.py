"""The API as an OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The query.",
}
_TOP: Final = (
    ("k", "integer", "The number of rows of each ranking, up to the query's own k."),
    ("group", "string", "Only the ranking of this value of the query's first group column."),
    ("format", "string", "json (default), csv or arrow: a stream of Arrow IPC."),
    ("at", "string", "The end of an earlier window, as in `at` of its answer, while the server keeps it."),
    ("size", "string", "The ranking right now, over the last part of the window: '5 minutes' or a number; embedded."),
    ("now", "string", "The ranking right now, over the window that closes next; embedded."),
)


def document(*, with_statements: bool) -> dict[str, Any]:
    """The whole document; statements are run only where there is a place for them."""
    paths = {
        "/health": _get("Whether the server is live, every query has an answer, and no query has failed."),
        "/metrics": _get("The figures of all queries, in Prometheus's text format.", "text/plain"),
        "/catalog": _get("The title of the server, and what a statement may name: tables, keywords and functions."),
        "/queries": _get("All queries, each with its description and status."),
        "/queries/{name}": _get("One query: its description, columns, status and metrics.", _NAME),
        "/queries/{name}/top": _get(
            "The complete latest answer, of one micro-batch or one push, with its watermark and number.",
            _NAME,
            *(_parameter(*each) for each in _TOP),
        ),
        "/queries/{name}/changes": _get(
            "Each new answer as a server-sent event. Send its id as Last-Event-ID to continue after it. `missed` "
            "says how many answers were skipped, because the reader was slow or asked for fewer.",
            _NAME,
            _parameter("rate", "number", "The most events a second."),
            media="text/event-stream",
        ),
        "/queries/{name}/history": _get(
            "The answers that the server keeps, the latest last, each with its age in seconds (`age`).",
            _NAME,
            _parameter("k", "integer", "The number of rows of each ranking; at most 60 rows of each answer are given."),
            _parameter("group", "string", "Only the ranking of this value of the query's first group column."),
        ),
        "/queries/{name}/plan": _get("The plan, its reasons, and the alternatives.", _NAME),
        "/queries/{name}/picture": _get(
            "What an embedded query holds, as dots: rows in time and score, pairs as lines, or a lane for each stream, "
            "subscription or input.",
            _NAME,
        ),
        "/queries/{name}/rows": _get(
            "The newest rows that meet a condition, or their pairs, objects or groups; each with its `id`.",
            _NAME,
            _parameter("where", "string", "A condition such as symbol = 'OAK' AND price > 10."),
        ),
        "/queries/{name}/rows/{id}": _get(
            "Why a row, pair, object or group is in the answer or not: its rank, and what keeps it out.",
            _NAME,
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        ),
        "/queries/{name}/why": _get(
            "The same for a row of the answer.",
            _NAME,
            _parameter("row", "string", "The row as JSON, as `top` gives it; columns may be left out."),
        ),
    }
    if with_statements:
        paths["/statements/check"] = _post(
            "What a statement asks or, if it is wrong, what is wrong, and where (`place`)."
        )
        paths["/statements/explain"] = _post("The plan of a statement. No stream is read.")
        paths["/queries"] |= _post("Run a statement as a new query.", "201")
        paths["/queries/{name}"]["delete"] = {
            "summary": "Stop a statement that was run here.",
            "parameters": [_NAME],
            "responses": {"204": {"description": "It has stopped."}},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Skyband", "version": "1", "description": "The answers of continuous queries."},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _get(summary: str, *parameters: dict[str, Any] | str, media: str = "application/json") -> dict[str, Any]:
    given = [each for each in parameters if isinstance(each, dict)]
    media = next((each for each in parameters if isinstance(each, str)), media)
    return {
        "get": {
            "summary": summary,
            "parameters": given,
            "responses": {
                "200": {"description": "The answer.", "content": {media: {}}},
                "4XX": {
                    "description": "What is wrong with the request, as `error`.",
                    "content": {"application/json": {}},
                },
            },
        }
    }


def _post(summary: str, status: str = "200") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {
                status: {"description": "Done.", "content": {"application/json": {}}},
                "400": {"description": "What is wrong with the statement, as `error`, `why` and `place`."},
            },
        }
    }


def _parameter(name: str, kind: str, doc: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": doc}
