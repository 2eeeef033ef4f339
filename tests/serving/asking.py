"""How tests ask a server: one connection a request, no client library between."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from waiting import PATIENCE_S


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    server: Any, path: str, method: str = "GET", body: Any = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """One request; a body that is no bytes is sent as JSON."""
    sent = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, sent)
        reply = connection.getresponse()
        return Reply(reply.status, {name.lower(): text for name, text in reply.getheaders()}, reply.read())
    finally:
        connection.close()


class Event(NamedTuple):
    kind: str
    id: str
    data: Any


@contextmanager
def events(server: Any, path: str, headers: Mapping[str, str] | None = None) -> Iterator[Iterator[Event]]:
    """Server-sent events, as they come, until the end of the block."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", path, headers=dict(headers or {}))
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    try:
        yield _parsed(reply)
    finally:
        reply.close()
        connection.close()


def _parsed(reply: http.client.HTTPResponse) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in reply:
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            continue
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"]))
            fields = {}
