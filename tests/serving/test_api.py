"""Example tests of the HTTP API over embedded sessions, through a real socket."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pytest
from serving.asking import ask, events
from waiting import wait_until

import skyband as sb
from skyband.errors import EnvironmentProblem, InvalidInput
from skyband.serving import workshop
from skyband.serving.catalog import Catalog
from skyband.serving.formats import as_csv
from skyband.serving.replies import plan_json
from skyband.serving.watching import Watched
from skyband.serving.workshop import Workshop, table_feed

ROWS = pa.schema({"minute": pa.int64(), "symbol": pa.string(), "price": pa.int64()})


def rows(*given: tuple[int, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ROWS.names, each, strict=True)) for each in given], ROWS)


@pytest.fixture
def windows() -> Iterator[tuple[sb.Session, object]]:
    """The two best prices of the last 4 minutes, every 2."""
    session = sb.TopK(k=2, by="price", window=sb.sliding(4, every=2, on="minute")).open(ROWS)
    with session.serve(name="best") as server:
        yield session, server


def test_the_latest_window_is_given_whole_with_its_watermark_and_batch(windows) -> None:
    session, server = windows
    assert ask(server, "/queries/best/top").json == {"query": "best", "version": 0, "rows": []}
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
    reply = ask(server, "/queries/best/top")
    assert reply.json["rows"] == [
        {"window_start": -2, "window_end": 2, "rank": 1, "score": 9, "minute": 1, "symbol": "ELM"},
        {"window_start": -2, "window_end": 2, "rank": 2, "score": 5, "minute": 0, "symbol": "OAK"},
    ]
    assert (reply.json["version"], reply.json["batch"], reply.json["watermark"], reply.json["at"]) == (1, 1, 2, 2)
    assert reply.headers["x-skyband-batch"] == "1"
    session.push(rows((5, "ASH", 1)))  # closes the window that ends in minute 4
    assert [row["symbol"] for row in ask(server, "/queries/best/top?k=1").json["rows"]] == ["ELM"]
    assert ask(server, "/queries/best/top").json["at"] == 4


def test_earlier_windows_can_be_asked_for_while_they_are_kept(windows) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (9, "ELM", 1)))
    assert ask(server, "/queries/best/top?at=2").json["rows"][0]["window_end"] == 2
    missing = ask(server, "/queries/best/top?at=99")
    assert missing.status == 404
    assert "The server keeps the windows from 2 to 4." in missing.json["error"]


def test_answers_come_as_csv_and_arrow(windows) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
    table = pa.ipc.open_stream(ask(server, "/queries/best/top?format=arrow").body).read_all()
    assert table.column("symbol").to_pylist() == ["ELM", "OAK"]
    csv = ask(server, "/queries/best/top?format=csv")
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert pyarrow.csv.read_csv(io.BytesIO(csv.body)).column("score").to_pylist() == [9, 5]


def test_a_session_is_asked_right_now_for_any_k_and_size() -> None:
    session = sb.TopK(k=3, by="price", window=sb.sliding(4, on="minute")).open(ROWS)
    with session.serve(name="best") as server:
        session.push(rows((1, "OAK", 9), (3, "ELM", 5), (4, "FIR", 7)))
        assert [row["score"] for row in ask(server, "/queries/best/top?now=1").json["rows"]] == [9, 7, 5]
        assert [row["score"] for row in ask(server, "/queries/best/top?size=2&k=1").json["rows"]] == [7]
        too_much = ask(server, "/queries/best/top?size=5")
        assert (too_much.status, "larger than the query's window" in too_much.json["error"]) == (400, True)
        assert ask(server, "/queries/best/top?k=4&now=1").status == 400
        # What changes with each row is published when somebody can see it.
        wait_until(lambda: ask(server, "/queries/best/top").json["version"] > 0, "the first answer")
        assert [row["symbol"] for row in ask(server, "/queries/best/top").json["rows"]] == ["OAK", "FIR", "ELM"]


def test_groups_are_asked_for_one_by_one_and_groups_by_count_keep_their_last_window() -> None:
    session = sb.TopK(k=1, by="price", window=sb.sliding(2, every=2), per="symbol").open(ROWS)
    with session.serve(name="best") as server:
        session.push(rows((0, "OAK", 5), (0, "ELM", 1), (0, "ELM", 3), (0, "OAK", 2), (0, "OAK", 8), (0, "OAK", 4)))
        found = {row["symbol"]: row["score"] for row in ask(server, "/queries/best/top").json["rows"]}
        assert found == {"ELM": 3, "OAK": 8}
        one = ask(server, "/queries/best/top?group=ELM").json["rows"]
        assert [row["score"] for row in one] == [3]
        assert ask(server, "/queries/best/top?group=nobody").json["rows"] == []


def test_joins_tell_upserts_and_are_served_as_what_they_add_up_to() -> None:
    query = sb.JoinAggregate(
        inputs=sb.sliding(10, every=5, on="minute"), group_by="symbol", aggregates={"n": "COUNT(*)"}, emit="changes"
    )
    session = query.open(ROWS)
    with session.serve(name="sold") as server:
        session.push(rows((1, "OAK", 5), (2, "ELM", 5), (3, "OAK", 5), (6, "OAK", 1)))
        counts = {row["symbol"]: row["n"] for row in ask(server, "/queries/sold/top").json["rows"]}
        assert counts == {"OAK": 2, "ELM": 1}


def test_events_are_whole_answers_that_can_be_resumed_behind_any_that_came(windows) -> None:
    session, server = windows
    with events(server, "/queries/best/changes") as told:
        session.push(rows((0, "OAK", 5), (2, "FIR", 7)))
        first = next(told)
        assert (first.kind, first.data["missed"], first.data["rows"][0]["symbol"]) == ("answer", 0, "OAK")
    session.push(rows((4, "ELM", 1), (6, "ASH", 2)))  # two windows, while nobody reads
    with events(server, "/queries/best/changes", {"Last-Event-ID": first.id}) as told:
        assert [next(told).data["at"] for _ in range(2)] == [4, 6]
    with events(server, "/queries/best/changes", {"Last-Event-ID": "another-1"}) as told:
        assert next(told).data["at"] == 6  # of another run: the latest


def test_a_reader_that_is_far_behind_skips_to_the_latest_and_is_told_how_much_it_missed(windows) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (2, "FIR", 7)))
    with events(server, "/queries/best/changes?rate=0.5") as told:
        assert next(told).data["version"] == 1
        session.push(rows((60, "ELM", 1)))
        session.push(rows((80, "ELM", 1)))
        latest = next(told)
        version = ask(server, "/queries/best").json["version"]
        assert (latest.data["version"], latest.data["missed"]) == (version, version - 2)


def test_the_end_is_told(windows) -> None:
    session, server = windows
    with events(server, "/queries/best/changes") as told:
        session.push(rows((0, "OAK", 5), (2, "FIR", 7)))
        next(told)
        server.catalog.find("best").close()
        assert next(told).kind == "end"


def test_figures_health_metrics_and_the_plan(windows) -> None:
    session, server = windows
    assert ask(server, "/health").json == {"live": True, "ready": False, "failed": False, "queries": 1}
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7), (0, "ASH", 1)))
    assert ask(server, "/health").json["ready"]
    (query,) = ask(server, "/queries").json["queries"]
    assert query["title"] == "top 2 by price"
    assert query["figures"]["rows_in"] == 4
    assert query["figures"]["algorithm"] == session.algorithm
    text = ask(server, "/metrics").body.decode()
    assert 'skyband_input_rows_total{query="best"} 4.0' in text
    assert 'skyband_query_up{query="best"} 1.0' in text
    plan = ask(server, "/queries/best/plan").json
    assert plan["algorithm"] == session.algorithm
    assert any(choice["chosen"] for choice in plan["considered"])


def test_expected_rows_are_those_of_all_groups_and_the_state_is_weighed() -> None:
    session = sb.TopK(k=2, by="price", window=sb.sliding(4, every=2, on="minute"), per="symbol").open(ROWS)
    with session.serve(name="best") as server:
        session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
        figures = ask(server, "/queries/best").json["figures"]
        plan = sb.explain(session.query, window_rows=1).plan  # one row of each group is in the window
        (expected,) = (choice.rows for choice in plan.considered if choice.algorithm == session.plan.base)
        assert figures["rows_expected"] == pytest.approx(3 * expected), "as rows_held is of all groups"
        assert 0 < figures["bytes_held"] <= len(session.snapshot()) + 1_000


def test_answers_of_the_past_are_given_with_their_age(windows) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
    session.push(rows((5, "ASH", 1)))
    answers = ask(server, "/queries/best/history?k=1").json["answers"]
    assert [(each["at"], [row["symbol"] for row in each["rows"]]) for each in answers] == [(2, ["ELM"]), (4, ["ELM"])]
    assert 0 <= answers[1]["age"] <= answers[0]["age"]
    assert ask(server, "/queries/best/history?group=ELM").status == 400


def test_the_staircase_has_every_step_also_of_when_nobody_looked(windows) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
    session.push(rows((3, "OAK", 6), (5, "ASH", 1), (7, "ASH", 2)))
    assert ask(server, "/queries/best/picture").json["kth"] == [[2, 5], [4, 7], [6, 6]]


def test_a_statement_is_explained_as_it_runs() -> None:
    """How many subscriptions there are decides what suits them."""
    catalog = Catalog("x")
    taxis = pa.table({"minute": [0, 1], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    people = pa.table({"id": [1, 2, 3], "x": [0.0, 1.0, 2.0], "y": [0.0, 1.0, 2.0]})
    feeds = {"taxis": table_feed("taxis", taxis, None), "people": table_feed("people", people, None)}
    workshop = Workshop(catalog, feeds)
    text = """SELECT q.id, t.x FROM taxis t [WINDOW 10 ON minute], people q
        ORDER BY POWER(t.x - q.x, 2) + POWER(t.y - q.y, 2) LIMIT 2 BY q.id"""
    planned = workshop.explain(text).plan.algorithm
    running = workshop.start(text)
    try:
        assert running.session.algorithm == planned == "scan"
    finally:
        workshop.close()


def test_titles_are_as_a_person_writes_them() -> None:
    catalog = Catalog("x")
    offers = pa.table({"id": [1], "city": ["x"], "price": [1.0]})
    workshop = Workshop(catalog, {"offers": table_feed("offers", offers, None)})
    pairs = """SELECT a.id, b.id FROM offers a [WINDOW 10 ROWS], offers b
        WHERE a.id < b.id AND a.city = b.city ORDER BY ABS(a.price - b.price) LIMIT 3"""
    assert workshop.check(pairs)["title"] == "top 3 pairs by ABS(a.price - b.price) (smallest first)"
    sums = (
        "SELECT city, SUM(price) AS s FROM offers [WINDOW 10 ROWS EVERY 5 ROWS] GROUP BY city ORDER BY s DESC LIMIT 3"
    )
    assert workshop.check(sums)["title"] == "top 3 by s: SUM(price) AS s for each offers.city"
    boxes = {node["head"]: node["said"] for node in plan_json(workshop.explain(sums))["nodes"]}
    assert boxes["window"] == "offers: a stream, the last 10 rows, every 5 rows: 2 panes", "without the columns' types"


def test_every_address_is_in_the_openapi_document(windows) -> None:
    _, server = windows
    document = ask(server, "/openapi.json").json
    assert {"/queries/{name}/top", "/queries/{name}/changes", "/health", "/metrics"} <= set(document["paths"])
    assert {"/queries/{name}/rows/{id}", "/queries/{name}/why"} <= set(document["paths"])
    assert "post" not in document["paths"]["/queries"], "a session runs no statements"
    assert ask(server, "/statements/check", "POST", {"sql": "SELECT 1"}).status == 409


def test_why_a_row_is_shown_or_held_or_dropped_or_gone() -> None:
    session = sb.TopK(k=1, by="price * 2", window=sb.sliding(4, on="minute")).open(ROWS)
    with session.serve(name="best") as server:
        session.push(rows((0, "PIN", 50), (1, "OAK", 9), (2, "ELM", 3), (3, "FIR", 5), (4, "ASH", 4)))
        said = {
            name: ask(server, f"/queries/best/rows/{position}").json
            for position, name in enumerate(("gone", "shown", "dropped", "held"))
        }
        assert {name: each["verdict"].partition(":")[0].partition(".")[0] for name, each in said.items()} == {
            "gone": "Gone",
            "shown": "Rank 1 of 1",
            "dropped": "Ruled out",
            "held": "Not shown, but held",
        }
        assert (said["shown"]["computed"], said["shown"]["leaves"]["in"]) == ("9 * 2", 1)
        assert [row["row"]["symbol"] for row in said["dropped"]["better"]] == ["OAK"]
        assert (said["dropped"]["dominators"], said["held"]["dominators"]) == (2, 0)
        found = ask(server, "/queries/best/rows?where=symbol%20=%20'FIR'").json["rows"]
        assert [(row["position"], row["is_held"]) for row in found] == [(3, True)]
        picture = ask(server, "/queries/best/picture").json
        assert (picture["now"], picture["size"], picture["rows_in_window"]) == (4, 4, 4)
        assert ask(server, "/queries/best/rows/99").status == 404


def test_the_picture_agrees_with_what_the_session_holds_whatever_the_window() -> None:
    for window in (
        sb.sliding(40, every=10),
        sb.sliding(40),
        sb.sliding(30, every=10, on="minute"),
        sb.landmark(every=9),
    ):
        session = sb.TopK(k=3, by="price", window=window).open(ROWS)
        with session.serve() as server:
            for minute in range(90):
                session.push(rows((minute, "OAK", minute * 7919 % 101)))
            picture = ask(server, "/queries/query/picture").json
            shown = {id for id, held in zip(picture["dots"]["id"], picture["dots"]["held"], strict=True) if held}
            assert shown == set(session.held().tolist())
            now = [row["score"] for row in ask(server, "/queries/query/top?now=1").json["rows"]]
            ranked = [ask(server, f"/queries/query/rows/{position}").json for position in shown]
            best = sorted((row["rank"], row["score"]) for row in ranked if row["is_shown"])
            assert [score for _, score in best] == now, window


def test_times_are_told_as_iso_8601_and_queries_by_time_are_asked_by_time() -> None:
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)
    data = pa.table({"ts": [start, start + timedelta(seconds=90)], "price": [1, 2]})
    session = sb.TopK(k=1, by="price", window=sb.tumbling("1 minute", on="ts")).open(data.schema)
    with session.serve() as server:
        session.push(data)
        reply = ask(server, "/queries/query/top").json
        assert reply["at"] == "2026-01-05T09:01:00+00:00"
        assert reply["watermark"] == "2026-01-05T09:01:30+00:00"
        again = ask(server, "/queries/query/top?at=2026-01-05T09:01:00%2B00:00").json
        assert again["rows"] == reply["rows"]


def test_a_server_lets_go_of_its_session_and_its_port(windows) -> None:
    session, server = windows
    with pytest.raises(EnvironmentProblem, match=f"Cannot serve at 127.0.0.1:{server.port}"):
        session.serve(port=server.port)
    server.close()
    session.push(rows((0, "OAK", 5)))
    with session.serve(port=server.port) as other:
        assert ask(other, "/health").status == 200


@pytest.mark.parametrize(("option", "value"), [("port", 99_999), ("port", True), ("name", "../x"), ("name", "")])
def test_options_are_checked(option: str, value: object) -> None:
    session = sb.TopK(k=1, by="price", window=sb.sliding(2)).open(ROWS)
    with pytest.raises(InvalidInput, match=option):
        session.serve(**{option: value})


def test_nulls_of_a_single_column_are_lines_of_csv() -> None:
    for values in ([1, None, 3], ["x", None, 'a"b']):
        rows = pa.table({"c": values})
        again = pyarrow.csv.read_csv(io.BytesIO(as_csv(rows)))
        assert again.num_rows == 3, "a reader passes over an empty line"
        assert again["c"].to_pylist()[::2] == values[::2]
    assert as_csv(pa.table({"c": [1, None]}), header=False) == b'1\n""\n'


def test_what_came_last_is_on_the_board_when_a_query_ends_and_nothing_after_it() -> None:
    for _ in range(5):
        watched = Watched(sb.TopK(k=1, by="x", window=sb.sliding(10)).open(pa.schema({"x": pa.int64()})), "best")
        for value in range(4):
            watched.session.push(pa.table({"x": [value]}))
        watched.close()
        assert watched.board.latest().table.column("score").to_pylist() == [3]
    quiet = Watched(sb.TopK(k=1, by="x", window=sb.sliding(10)).open(pa.schema({"x": pa.int64()})), "quiet")
    quiet.close()
    quiet._refresher.join()
    assert quiet.board.version == 0, "nothing has come, so there is no answer"


def test_a_stream_is_replayed_at_its_pace_also_if_a_condition_leaves_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    class Waits(Event):
        """Does not wait, but notes for how long it should."""

        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    monkeypatch.setattr(workshop, "Event", Waits)
    monkeypatch.setattr(workshop, "time", SimpleNamespace(monotonic=lambda: 0.0))
    feed = table_feed("rows", pa.table({"x": range(40)}), 250.0)  # ten rows a push
    bench = Workshop(Catalog("rows"), {"rows": feed})
    bench.start("SELECT x FROM rows [WINDOW 10 ROWS EVERY 10 ROWS] WHERE x < 0 ORDER BY x LIMIT 1")
    wait_until(lambda: len(waits) >= 4, "all rows")
    assert waits[:4] == [0.04, 0.08, 0.12, 0.16]


def test_a_server_that_is_closed_lets_its_readers_go_without_an_error(
    windows, caplog: pytest.LogCaptureFixture
) -> None:
    session, server = windows
    session.push(rows((0, "OAK", 5), (1, "ELM", 9), (2, "FIR", 7)))
    with events(server, "/queries/best/changes") as told:
        next(told)
        server.close()
        assert [event.kind for event in told if event.kind != "answer"] == []
    assert [record.message for record in caplog.records] == []
