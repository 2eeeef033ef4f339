"""Who may ask: this machine alone, or whoever has the token; never a page of another site.

On a loopback address no token is needed, but the browser of this machine also shows pages of others. They cannot read
what we answer, because of the same-origin policy; they cannot get around that with a name of their own, because of the
Host header; and they cannot make us do something, because of the Origin and Content-Type headers.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from skyband.serving.formats import encode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE: Final = "skyband_token"
MOST_BODY: Final = 64 * 1024
_READS: Final = ("GET", "HEAD")

# No outside requests, no inline code, no frames.
HEADERS: Final = (
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def new_token() -> str:
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """An ASGI application in front of another: what it does not let through never gets there."""

    def __init__(self, app: App, *, token: str | None, names: Iterable[str] | None) -> None:
        """`names` are the hosts that requests may name; None: any, since the token decides."""
        self._app, self._token = app, token
        self._names = None if names is None else frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # web sockets are closed unopened
        headers = dict(scope["headers"])
        problem = self._problem(scope, headers)
        if problem is not None:
            await _refuse(send, *problem)
            return
        cookie = self._new_cookie(scope, headers)

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                # A new one: an application may send the same message to every reader.
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS, *cookie]}
            await send(message)

        await self._app(scope, receive, guarded)

    def _problem(self, scope: Scope, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self._names is not None and _host_name(host) not in self._names:
            return 421, "This server does not answer to that host name."
        if scope["method"] not in (*_READS, "POST", "DELETE"):
            return 405, f"{scope['method'][:20]} is not possible here."
        if self._token is not None and not self._has_token(scope, headers) and scope["path"] != "/health":
            return 401, "A token is needed: Authorization: Bearer …, or ?token=… once, as printed at the start."
        if scope["method"] in _READS:
            return None
        if not self._is_own(host, headers):
            return 403, "This request comes from another site."
        if scope["method"] == "POST":
            if headers.get(b"content-type", b"").split(b";")[0].strip() != b"application/json":
                return 415, "Send JSON, with Content-Type: application/json."
            length = headers.get(b"content-length", b"")
            if length and (not length.isdigit() or int(length[:20]) > MOST_BODY):
                return 413, f"A request has at most {MOST_BODY:,} bytes."
        return None

    def _has_token(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        kind, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer":
            return self._is_token(given.strip())
        if (asked := _query(scope).get("token")) is not None:
            return self._is_token(asked)
        return self._is_token(_cookie(headers))

    def _is_token(self, given: str) -> bool:
        # In constant time: how long it takes says nothing of how much of it is right.
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _new_cookie(self, scope: Scope, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """After ?token=… the browser has it, so that the page can ask on; no script can read it."""
        if self._token is None or "token" not in _query(scope) or _cookie(headers) == self._token:
            return []
        return [(b"set-cookie", f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/".encode())]

    @staticmethod
    def _is_own(host: str, headers: Mapping[bytes, bytes]) -> bool:
        """Is the request of our own page, or of no page at all?"""
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return False
        origin = headers.get(b"origin")
        return origin is None or urlsplit(origin.decode("latin-1")).netloc == host


async def _refuse(send: Send, status: int, why: str) -> None:
    body = encode({"error": why})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *HEADERS]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers.append((b"connection", b"close"))  # what was sent with it is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _query(scope: Scope) -> dict[str, str]:
    try:
        return dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=50))
    except ValueError:  # more than anybody needs
        return {}


def _cookie(headers: Mapping[bytes, bytes]) -> str:
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
