"""The API as an OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The name of a query, as /queries lists it.",
}
_GROUP: Final = "Give only the ranking of one group: a value of the query's first group column."
_TOP: Final = (
    ("k", "integer", "Give only the first k rows of each ranking. The query's own k is the most."),
    ("group", "string", _GROUP),
    ("format", "string", "`json` (the default), `csv`, or `arrow`: a stream of Arrow IPC."),
    (
        "at",
        "string",
        "Give an earlier window, named by its end as `at` of its answer has it. The server keeps the last 128 answers.",
    ),
    (
        "now",
        "string",
        "With `now=1`: give the ranking of the window that closes next, as it is now. Not for pipelines.",
    ),
    (
        "size",
        "string",
        "The same over the last part of that window only, such as `5 minutes` or `1000`. Not for pipelines.",
    ),
)
_ABOUT: Final = (
    "The answers of continuous queries. A server on 127.0.0.1 answers every user of this machine. A server on another "
    "address requires a token: send it as `Authorization: Bearer …`. A request that cannot be answered gets a status "
    "from 400 to 499, and a JSON object whose `error` says what is wrong."
)


def document(*, with_statements: bool) -> dict[str, Any]:
    """The whole document; statements are run only where there is a place for them."""
    paths = {
        "/health": _get(
            "Is the server alive, has every query an answer, has one failed? The status is 503 if a query has failed."
        ),
        "/metrics": _get("The metrics of all queries, in the text format of Prometheus.", "text/plain"),
        "/catalog": _get(
            "What the console's page needs at its start: a title, and the tables, keywords and functions of statements."
        ),
        "/queries": _get("All queries. Each has its name, its description, its status and its metrics."),
        "/queries/{name}": _get("One query: its description, its columns, its status and its metrics.", _NAME),
        "/queries/{name}/top": _get(
            "The latest answer. It is complete: one window, or the ranking after one micro-batch or push. "
            "`watermark` and `batch` "
            "say up to where it has read.",
            _NAME,
            *(_parameter(*each) for each in _TOP),
        ),
        "/queries/{name}/changes": _get(
            "Each new answer, as a server-sent event. A reader that is slow, or that asks for a lower rate, "
            "skips to the "
            "latest answer; `missed` counts the answers that it did not get. After a break, send the last id as "
            "the header "
            "`Last-Event-ID` to get all answers since then.",
            _NAME,
            _parameter("rate", "number", "Send at most so many events a second, from 0.01 to 100."),
            media="text/event-stream",
        ),
        "/queries/{name}/history": _get(
            "The answers that the server keeps, the latest last. `age` says how many seconds ago each one came.",
            _NAME,
            _parameter(
                "k", "integer", "Give only the first k rows of each ranking, and at most 60 rows of each answer."
            ),
            _parameter("group", "string", _GROUP),
        ),
        "/queries/{name}/plan": _get(
            "The plan of a query: the algorithm, why it was chosen, and what the alternatives would cost.", _NAME
        ),
        "/queries/{name}/picture": _get(
            "What a query holds, as dots with their places. The console draws them: rows, pairs, or a lane for "
            "each stream, "
            "subscription or input. Not for pipelines.",
            _NAME,
        ),
        "/queries/{name}/rows": _get(
            "The newest rows that meet a condition, or the pairs, objects or groups that they belong to. Not "
            "for pipelines.",
            _NAME,
            _parameter(
                "where", "string", "A condition over the columns of the input, such as `symbol = 'OAK' AND price > 10`."
            ),
        ),
        "/queries/{name}/rows/{id}": _get(
            "Why is it in the answer, or why not? Its rank, when it leaves, and the better ones. `id` is that "
            "of /rows or /picture. "
            "Not for pipelines.",
            _NAME,
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "description": "An `id`."},
        ),
        "/queries/{name}/why": _get(
            "The same for a row of the answer, by what it shows.",
            _NAME,
            _parameter(
                "row",
                "string",
                "The row as a JSON object, as /top gives it. You can leave out columns. "
                "The newest row that fits is meant.",
            ),
        ),
    }
    if with_statements:
        paths["/statements/check"] = _post(
            "Check a statement, and say in words what it asks. If it is wrong, `why` says what is wrong, and "
            "`place` counts the "
            "characters before the mistake."
        )
        paths["/statements/explain"] = _post("The plan of a statement, without running it.")
        paths["/queries"] |= _post("Run a statement as a new query. Eight can run at a time.", "201")
        paths["/queries/{name}"]["delete"] = {
            "summary": "Stop a query, and forget its answers. Only queries that were started here can be stopped.",
            "parameters": [_NAME],
            "responses": {"204": {"description": "It has stopped."}},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Skyband", "version": "1", "description": _ABOUT},
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
