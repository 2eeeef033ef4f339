"""Example tests of readers that another process serves: they get what others get, skip what is too much, and go."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from serving.asking import ask, events
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.serving import events as served_events
from skyband.serving.catalog import Catalog
from skyband.serving.handing import is_possible
from skyband.serving.server import Server
from skyband.serving.watching import Watched

pytestmark = pytest.mark.skipif(not is_possible(), reason="connections cannot be handed to another process here")
ROWS = pa.schema({"x": pa.int64(), "text": pa.string()})


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Watched, Server]]:
    """A board and its server, all of whose readers another process serves."""
    monkeypatch.setattr(served_events, "SERVED_HERE", 0)
    watched = Watched(sb.TopK(k=1, by="x", window=sb.sliding(2, every=2)).open(ROWS), "best")
    catalog = Catalog("best")
    catalog.add(watched)
    with Server(catalog) as server:
        yield watched, server


def publish(watched: Watched, *values: int, text: str = "") -> None:
    for value in values:
        watched.board.publish(pa.table({"x": [value], "text": [text]}, schema=ROWS), at=value)


def test_each_answer_comes_once_and_a_break_is_resumed(served) -> None:
    watched, server = served
    with events(server, "/queries/best/changes") as told, events(server, "/queries/best/changes") as also:
        wait_until(lambda: server._events.readers == 2, "both readers")
        assert server._events._readers == 0, "none is served in this process"
        publish(watched, 10, 11, 12)
        first = [next(told) for _ in range(3)]
        assert [(each.data["at"], each.data["missed"]) for each in first] == [(10, 0), (11, 0), (12, 0)]
        assert [next(also).id for _ in range(3)] == [each.id for each in first]
    wait_until(lambda: server._events.readers == 0, "that both have gone")
    publish(watched, 13)
    with events(server, "/queries/best/changes", {"Last-Event-ID": first[1].id}) as told:
        assert [next(told).data["at"] for _ in range(2)] == [12, 13]
        publish(watched, 14)
        assert next(told).data["at"] == 14


def test_the_end_comes_after_the_last_answer_and_closes_the_connection(served) -> None:
    watched, server = served
    publish(watched, 1)
    with events(server, "/queries/best/changes") as told:
        assert next(told).data["at"] == 1
        publish(watched, 2)
        watched.close()
        assert [(each.kind, each.data.get("at")) for each in told] == [("answer", 2), ("end", None)]


def test_a_reader_gets_no_more_events_a_second_than_it_asks_for_and_is_told_what_it_missed(served) -> None:
    watched, server = served
    publish(watched, 0)
    with events(server, "/queries/best/changes?rate=2") as told:
        assert next(told).data["at"] == 0
        began = time.monotonic()
        publish(watched, *range(1, 8))
        one, latest = next(told), next(told)
        assert time.monotonic() - began >= 0.4, "half a second lies between two events"
        assert latest.data["at"] == 7
        assert one.data["missed"] + latest.data["missed"] == 5, "of seven answers it got two"


def test_a_reader_that_does_not_read_holds_up_nobody_and_skips_to_the_latest(served) -> None:
    watched, server = served
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.sendall(b"GET /queries/best/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: server._events.readers == 1, "the slow reader")
        with events(server, "/queries/best/changes") as told:
            for value in range(60):
                publish(watched, value, text="x" * 200_000)
                assert next(told).data["at"] == value
        found = b""
        slow.settimeout(PATIENCE_S)
        while b'"at":59' not in found:
            found += slow.recv(1 << 20)
    assert found.count(b"event: answer") < 59, "it has skipped some"
    missed = [int(part.partition(b",")[0]) for part in found.split(b'"missed":')[1:]]
    assert sum(missed) + len(missed) == 60, "what it did not get, it was told of"


def test_when_the_process_is_killed_readers_come_back_to_a_new_one(served) -> None:
    watched, server = served
    publish(watched, 1)
    with events(server, "/queries/best/changes") as told:
        last = next(told)
        os.kill(server._events._link._process.pid, signal.SIGKILL)
        assert list(told) == [], "the connection has ended"
    wait_until(lambda: not server._events._link.is_open, "that the server has noticed")
    with events(server, "/queries/best/changes", {"Last-Event-ID": last.id}) as told:
        publish(watched, 2)
        assert next(told).data["at"] == 2
    assert ask(server, "/health").status == 200


def test_the_head_of_the_answer_is_the_same_as_in_this_process(served, monkeypatch: pytest.MonkeyPatch) -> None:
    _, server = served
    heads = []
    for here in (0, 8):
        monkeypatch.setattr(served_events, "SERVED_HERE", here)
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
            line.sendall(b"GET /queries/best/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = b""
            while b"\r\n\r\n" not in head:
                head += line.recv(65_536)
        lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
        heads.append(sorted(each for each in lines if not each.startswith(b"date")))
    assert heads[0] == heads[1]


def test_closing_the_server_ends_the_process(served) -> None:
    watched, server = served
    publish(watched, 1)
    with events(server, "/queries/best/changes") as told:
        next(told)
        process = server._events._link._process
        server.close()
        assert process.poll() is not None
        assert list(told) == []
