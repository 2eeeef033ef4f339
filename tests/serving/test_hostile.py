"""Example tests of requests that mean harm, or that are just wrong: each is refused in words, none shows a trace."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pyarrow as pa
import pytest
from serving.asking import ask
from waiting import PATIENCE_S

import skyband as sb
from skyband.serving import app as serving_app
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.workshop import MOST_RUNNING, Workshop, table_feed

ROWS = pa.table({"t": [1, 2, 3], "name": ["a", "b", "c"], "x": [5, 6, 7]})
GOOD = "SELECT name FROM rows [WINDOW 2 EVERY 1 ON t] ORDER BY x DESC LIMIT 2"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    catalog = Catalog("hostile")
    catalog.workshop = Workshop(catalog, {"rows": table_feed("rows", ROWS, None)})
    with Server(catalog) as server:
        assert ask(server, "/queries", "POST", {"sql": GOOD}).status == 201
        yield server
        catalog.workshop.close()


def refused(reply: object, *statuses: int) -> None:
    status, body = reply.status, reply.body.decode()
    assert 400 <= status < 500, (status, body)
    assert not statuses or status in statuses, (status, body)
    assert "Traceback" not in body
    assert 'File "' not in body
    if body and reply.headers.get("content-type") == "application/json":
        assert json.loads(body)["error"]


PATHS = [
    *("/..", "/../", "/../../etc/passwd", "/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/app.py"),
    *("/assets/%2e%2e%2fapp.py", "/assets/..\\app.py", "/assets/%5c..%5capp.py", "/assets//etc/passwd", "/assets/%00"),
    *("/assets/", "/assets/.", "/assets/nothing.js", "/assets/....//app.py", "/assets/%252e%252e/app.py", "//assets"),
    *("/queries/", "/queries//top", "/queries/none", "/queries/none/top", "/queries/none/changes", "/queries/%00"),
    *("/queries/query1/nothing", "/queries/../queries", "/queries/QUERY1/top", "/favicon.php"),
    *("/queries/query1/rows/-1", "/queries/query1/rows/x", "/queries/query1/rows/9e9", "/queries/query1/rows/٣"),
    *(f"/queries/query1/rows/{'9' * 400}", f"/{'a' * 8000}", "/.git/config", "/.env", "/admin", "/openapi.yaml"),
    *(
        f"/queries/{'%41' * 500}",
        "/queries/__class__",
        "/queries/query1/rows/1.5",
        "/console",
        "/queries/query1/rows/ 1",
    ),
]

PARAMETERS = [
    *("k=0", "k=-1", "k=1.5", "k=abc", "k=", "k=1e3", f"k={'9' * 30}", "k=٣", "k=1&k=2", "k=0x10", "k=%00", "k=null"),
    *("format=xml", "format=", "format=JSON", "format=../../x", "format=json&format=csv", "at=", "at=1999", "at=%00"),
    *("at='; DROP TABLE x", "at=1&now=1", "at=1&size=2", "size=0", "size=-1", "size=abc", "size=99999", "size=1.5"),
    *("size=", f"size={'9' * 100}", "size=5 parsecs", "size=1 hour", "now=1&k=99", "group=a", "nonsense=1", "K=1"),
    *(f"group={'a' * 3000}", "__proto__=1", "k[]=1", "k=1;k=2", "size=%F0%28%8C%28", "format=arrow%0d%0aX:1"),
    *(f"at={'[' * 1500}", "sort=score", "limit=1", "callback=alert(1)"),
]

BODIES = [
    *(
        b"",
        b"{",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"{}",
        b'{"sql": 1}',
        b'{"sql": null}',
        b'{"sql": ["a"]}',
        b"\xff\xfe\x00",
    ),
    *(b'{"sql": "SELECT 1", "more": 1}', b'{"SQL": "x"}', b'{"sql": ""}', b'{"sql": "   "}', b"[" * 30_000),
    *(b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b'{"sql": "\\ud800"}', b"{'sql': 'x'}", b'{"sql": NaN}', b"\x00" * 100),
    *(b'{"sql": "' + b"a" * 60_000 + b'"}', b'{"__proto__": {"sql": "x"}}', b'{"sql": "x"}{"sql": "y"}'),
]

STATEMENTS = [
    *(
        "DROP TABLE rows",
        "DELETE FROM rows",
        "INSERT INTO rows VALUES (1)",
        "UPDATE rows SET x = 1",
        "SELECT",
        ";",
        "--",
    ),
    *("SELECT 1", "SELECT * FROM rows", "SELECT * FROM nowhere [WINDOW 2] ORDER BY x LIMIT 1", f"{GOOD}; {GOOD}"),
    *("SELECT * FROM rows [WINDOW 2 ON t] ORDER BY y LIMIT 1", "SELECT * FROM rows [WINDOW 0] ORDER BY x LIMIT 1"),
    *("SELECT * FROM rows [WINDOW 2] ORDER BY x LIMIT 0", "SELECT * FROM rows [WINDOW 2] ORDER BY x LIMIT -1"),
    *(
        "SELECT * FROM rows [WINDOW 2 ON t] ORDER BY name * 2 LIMIT 1",
        "COPY rows TO '/etc/passwd'",
        "SHOW TABLES",
        "EXPLAIN",
    ),
    *(
        "SELECT * FROM '/etc/passwd' [WINDOW 2] ORDER BY x LIMIT 1",
        "SELECT load_extension('x')",
        "PRAGMA x",
        "ATTACH 'x'",
    ),
    *("SELECT * FROM read_csv('/etc/passwd') [WINDOW 2] ORDER BY x LIMIT 1", "WITH RECURSIVE a AS (SELECT 1) SELECT 1"),
    *(f"SELECT {'(' * 3000}1{')' * 3000} FROM rows [WINDOW 2] ORDER BY x LIMIT 1", "'" * 7000, '"' * 7001, "(" * 7000),
    *(
        f"SELECT * FROM rows [WINDOW 2] ORDER BY {'x + ' * 1500}x LIMIT 1",
        f"SELECT {'-' * 7000}",
        "/*" * 3500,
        "[" * 7000,
    ),
    *(f"SELECT * FROM rows [WINDOW 2] ORDER BY {'abs(' * 1500}x{')' * 1500} LIMIT 1", "SELECT * FROM rows " * 300),
    *(f"SELECT {', '.join('x' for _ in range(3000))}, FROM rows", f"SELECT * FROM {', '.join(['rows'] * 1500)}"),
    *(
        "SELECT * FROM rows [WINDOW 999999999999999999999 ON t] ORDER BY x LIMIT 1",
        "\x00",
        "SELECT \x00",
        "SELECT 😀 FROM 😀",
    ),
    *("SELECT * FROM rows [WINDOW 2] ORDER BY x LIMIT 99999999999999999999", "EXPLAIN ANALYZE " + GOOD),
    *("SELECT __import__('os').system('true') FROM rows [WINDOW 2] ORDER BY x LIMIT 1", "${jndi:ldap://x}", "{{7*7}}"),
    *(
        "SELECT * FROM rows [WINDOW 2] ORDER BY random() LIMIT 1",
        "SELECT * FROM rows [WINDOW 2] ORDER BY sleep(9) LIMIT 1",
    ),
    "SELECT * FROM rows [WINDOW 2] ORDER BY (SELECT max(x) FROM rows) LIMIT 1",
]

SEARCHES = [
    *(
        "",
        "x",
        "x =",
        "x = 1; DROP TABLE rows",
        "nothing = 1",
        "sleep(1)",
        "x = (SELECT 1)",
        "name",
        "1",
        "(" * 1500,
        "'",
    ),
    *("x IN (SELECT x FROM rows)", "name = 1 = 2", "__import__('os')", "x > 'a'", "read_text('/etc/passwd') = 'x'"),
]


def test_there_are_enough_of_them() -> None:
    given = len(PATHS) + len(PARAMETERS) + len(BODIES) + 2 * len(STATEMENTS) + len(SEARCHES)
    assert given >= 200


def test_paths(server: Server) -> None:
    for path in PATHS:
        line = path.encode().replace(b" ", b"%20").decode("latin-1")
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line_to:
            line_to.sendall(f"GET {line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
            reply = _all(line_to)
        assert reply.split(b" ")[1][:1] in (b"4", b"3"), (path, reply[:200])
        assert b"Traceback" not in reply
        assert b"root:" not in reply
        assert b"import " not in reply, path


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_parameters(server: Server, parameters: str) -> None:
    line = parameters.replace(" ", "%20").encode().decode("latin-1")
    quoted = "".join(sign if sign.isascii() else f"%{ord(sign):02x}" for sign in line)
    refused(ask(server, f"/queries/query1/top?{quoted}"), 400, 404)


def test_bodies(server: Server) -> None:
    for body in BODIES:
        for path in ("/queries", "/statements/check", "/statements/explain"):
            refused(ask(server, path, "POST", body, {"Content-Type": "application/json"}), 400)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text[:40])
def test_statements(server: Server, statement: str) -> None:
    refused(ask(server, "/queries", "POST", {"sql": statement}), 400)
    refused(ask(server, "/statements/explain", "POST", {"sql": statement}), 400)


def test_searches(server: Server) -> None:
    for where in SEARCHES:
        quoted = "".join(sign if sign.isalnum() else f"%{ord(sign):02x}" for sign in where)
        refused(ask(server, f"/queries/query1/rows?where={quoted}"), 400)


def test_what_is_wrong_is_shown_at_its_place(server: Server) -> None:
    text = "SELECT nmae FROM rows [WINDOW 2 ON t] ORDER BY x LIMIT 1"
    reply = ask(server, "/statements/check", "POST", {"sql": text}).json
    assert reply["place"] == text.index("nmae")
    assert "name" in reply["why"]


def test_other_sites_can_neither_ask_nor_make_us_do_something(server: Server) -> None:
    for host in (
        "evil.example",
        "evil.example:80",
        f"evil.example:{server.port}",
        "127.0.0.1.evil.example",
        "",
        "[::2]",
    ):
        refused(ask(server, "/queries", headers={"Host": host}), 421)
    good = {"sql": GOOD}
    for header, value in (
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", f"http://localhost:{server.port + 1}"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ):
        refused(ask(server, "/queries", "POST", good, {header: value}), 403)
        refused(ask(server, "/queries/query1", "DELETE", headers={header: value}), 403)
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "APPLICATION",
    ):
        refused(ask(server, "/queries", "POST", json.dumps(good).encode(), {"Content-Type": kind}), 415)
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "NONSENSE"):
        refused(ask(server, "/queries", method), 405, 400, 404)


def test_bodies_that_are_too_long_or_too_slow_are_not_waited_for(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(ask(server, "/queries", "POST", b"x" * 100_000, {"Content-Type": "application/json"}), 413)
    start = b"POST /queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        line.sendall(start + b"Content-Length: 999999999999\r\n\r\n")
        assert _all(line).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:  # its length is never said
        line.sendall(start + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        for _ in range(3):  # the third is too much: what comes after it, nobody may take
            line.sendall(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        assert _all(line).startswith(b"HTTP/1.1 413")
    monkeypatch.setattr(serving_app, "BODY_SECONDS", 0.05)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        line.sendall(start + b"Content-Length: 20\r\nConnection: close\r\n\r\n{")
        assert _all(line).startswith(b"HTTP/1.1 408")


def test_what_is_no_http_is_refused(server: Server) -> None:
    for given in (
        *(
            b"\x16\x03\x01\x02\x00",
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\r\n\r\n\x00\x00\r\n\r\n",
            b"nonsense\r\n\r\n",
        ),
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 80_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X%d: a\r\n" % n for n in range(9_000)) + b"\r\n",
    ):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
            try:
                line.sendall(given)
                line.shutdown(socket.SHUT_WR)
                said = _all(line)
            except (ConnectionResetError, BrokenPipeError):
                continue  # hung up on, which is an answer too
        # What is merely long may be understood; what is no HTTP may not.
        possible = (b"HTTP/1.1 4", b"HTTP/1.1 200") if len(given) > 1_000 else (b"HTTP/1.1 4",)
        assert not said or said.startswith(possible), said[:100]
    assert ask(server, "/health").status == 200


def test_only_so_many_statements_run_at_once() -> None:
    catalog = Catalog("many")
    catalog.workshop = Workshop(catalog, {"rows": table_feed("rows", ROWS, 0.01)})
    with Server(catalog) as server:
        for _ in range(MOST_RUNNING):
            assert ask(server, "/queries", "POST", {"sql": GOOD}).status == 201
        refused(ask(server, "/queries", "POST", {"sql": GOOD}), 429)
        assert ask(server, "/queries/query3", "DELETE").status == 204
        assert ask(server, "/queries", "POST", {"sql": GOOD}).status == 201
        catalog.workshop.close()


def test_on_another_address_nothing_is_served_without_the_token() -> None:
    session = sb.TopK(k=1, by="x", window=sb.sliding(2, every=1, on="t")).open(ROWS.schema)
    with session.serve(host="0.0.0.0", name="best") as server:
        token = server.token
        for path in ("/", "/queries", "/queries/best/top", "/queries/best/changes", "/metrics", "/openapi.json"):
            refused(ask(server, path), 401)
            for wrong in ("", "x", token[:-1], token + "x", token.upper(), "ü", "Bearer"):
                refused(ask(server, path, headers={"Authorization": f"Bearer {wrong}".encode()}), 401)
            refused(ask(server, f"{path}?token={token[1:]}"), 401)
            refused(ask(server, path, headers={"Cookie": "skyband_token=x"}), 401)
            refused(ask(server, path, headers={"Cookie": f'{"=" * 50}; skyband_token="{token}x'}), 401)
        assert ask(server, "/health").status == 200
        assert ask(server, "/queries", headers={"Authorization": f"Bearer {token}"}).status == 200
        page = ask(server, f"/?token={token}")
        assert (page.status, "HttpOnly; SameSite=Strict" in page.headers["set-cookie"]) == (200, True)
        cookie = page.headers["set-cookie"].partition(";")[0]
        assert ask(server, "/queries", headers={"Cookie": cookie}).status == 200
        assert token not in repr(server)


def test_every_answer_keeps_browsers_from_harm(server: Server) -> None:
    for path in ("/health", "/queries", "/nothing", "/queries/query1/top"):
        headers = ask(server, path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'self'")


def test_no_answer_carries_headers_of_another_one(server: Server) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
            line.sendall(b"GET /queries/query1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = b""
            while b"\r\n\r\n" not in head:
                head += line.recv(65_536)
            assert head.count(b"x-content-type-options") == 1


def _all(line: socket.socket) -> bytes:
    found = b""
    while part := line.recv(65_536):
        found += part
        if b"\r\n\r\n" in found and found.split(b"content-length: ")[-1:] != [found]:
            head, _, body = found.partition(b"\r\n\r\n")
            length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            if len(body) >= int(length):
                break
    return found


def test_a_reader_that_asks_for_ever_other_things_fills_no_memory(server: Server) -> None:
    for k in range(1, serving_app.MOST_ENCODED + 20):
        assert ask(server, f"/queries/query1/top?k={k}").status == 200
    query = next(iter(server.catalog.queries()))
    assert len(query.board.latest().encoded) <= serving_app.MOST_ENCODED
