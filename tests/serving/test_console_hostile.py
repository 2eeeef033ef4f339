"""Example tests of the console with what a curious or hostile person does, and with data that nobody expects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, Route, expect
from serving.browser import Noticed
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.watching import Watched
from skyband.serving.workshop import MOST_STATEMENT

STATEMENT = "SELECT symbol, price, volume, ts FROM trades [WINDOW 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 5"
ROWS = pa.schema({"t": pa.int64(), "name": pa.string(), "x": pa.float64()})


def opened(browser: Browser, server: Server, width: int = 1280) -> tuple[Page, Noticed]:
    page, noticed = browser.new_page(viewport={"width": width, "height": 800}), Noticed()
    page.set_default_timeout(1_000 * PATIENCE_S)
    noticed.watch(page, server.url)
    page.goto(server.page)
    return page, noticed


def best(k: int = 3, **options: Any) -> Any:
    """A session whose answer is a window of two units of `t`."""
    return sb.TopK(k=k, by="x", window=sb.tumbling(2, on="t"), **options).open(ROWS)


def push(session: Any, t: int, *rows: tuple[str | None, float]) -> None:
    """Rows at `t`, and one that closes their window."""
    names, values = [name for name, _ in rows], [value for _, value in rows]
    session.push(pa.table({"t": [t] * len(rows), "name": names, "x": values}, schema=ROWS))
    session.push(pa.table({"t": [t + 2], "name": ["later"], "x": [0.0]}, schema=ROWS))


def test_values_are_written_as_what_they_are(browser: Browser, server: Server) -> None:
    page, _ = opened(browser, server)
    said = page.evaluate(
        """async () => {
          const { asJson, clock, exact, number, sharedDay, span, text, textsOf, title } =
            await import("/assets/format.js");
          const row = exact('{"id":9007199254740993,"x":"NaN","amount":"12.50","name":"Größe 東京"}');
          const days = [{ ts: "1969-12-31T23:59:58.250000" }, { ts: "1969-12-31T10:00:00" }];
          return {
            id: [number(row.id), asJson(row), number(1e20), number(1234567890123456)],
            title: [title(row).title, title({ code: "600519", x: 1.5 }).title, title({ name: null, x: 2 }).title],
            words: textsOf([{ name: null, x: 1 }, { name: "OAK", x: 2 }]),
            times: [text("1969-12-31T23:59:58.250000"), text("2026-01-05T00:00:00+00:00"), sharedDay(days)],
            brief: text(days[0].ts, sharedDay(days), true),
            infinite: [text("+INF"), number("-INF"), text("NaN"), text(null)],
            clocks: [clock(-1), clock(0, 30 * 86400), clock(0.25, 5), clock(1e20)],
            spans: [span(0.5), span(60), span(5400), span(86400 * 30)],
            long: text("x".repeat(9000)).length,
          };
        }"""
    )
    assert said == {
        "id": [
            "9,007,199,254,740,993",
            '{"id":9007199254740993,"x":"NaN","amount":"12.50","name":"Größe 東京"}',
            "1.00e+20",
            "1,234,567,890,123,456",
        ],
        "title": ["Größe 東京", "600519", "∅"],
        "words": ["name"],
        "times": ["1969-12-31 23:59:58.250000", "2026-01-05", "1969-12-31"],
        "brief": "23:59:58",
        "infinite": ["∞", "−∞", "NaN", "∅"],
        "clocks": ["23:59:59", "1970-01-01", "00:00:00.250", "1.00e+20"],
        "spans": ["0.5 s", "60 s", "90 min", "30 days"],
        "long": 400,
    }
    page.close()


def test_the_grid_is_sorted_by_a_slow_click_while_answers_come(browser: Browser) -> None:
    session = best()
    with session.serve(name="best") as server:
        push(session, 0, ("a", 1.0), ("b", 3.0), ("c", 2.0))
        page, noticed = opened(browser, server)
        page.locator("[data-view=grid]").click()
        head = page.locator("#grid th button", has_text="name")
        expect(head).to_be_visible()
        head.hover()
        page.mouse.down()
        push(session, 2, ("delta", 1.0), ("echo", 3.0), ("fox", float("nan")))
        expect(page.locator("#grid td", has_text="echo")).to_be_visible()
        page.mouse.up()
        expect(page.locator("#grid th[aria-sort=ascending]")).to_have_text("name ↑")
        names = [
            text for text in page.locator("#grid tbody td").all_inner_texts() if text in ("delta", "echo", "later")
        ]
        assert names == sorted(names)
        assert page.locator("#grid th").last.inner_text() == "window_end", "columns in which all rows agree come last"
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_nulls_and_nan_come_last_whatever_the_order(browser: Browser, server: Server) -> None:
    page, _ = opened(browser, server)
    ordered = page.evaluate(
        """async () => {
          const { Grid } = await import("/assets/board.js");
          const place = document.createElement("div"), grid = new Grid(place);
          grid.show([2, null, 10, "NaN", "+INF", "-INF"].map((x) => ({ x })));
          const read = () => [...place.querySelectorAll("td")].map((cell) => cell.textContent);
          grid.sort("x");
          const up = read();
          grid.sort("x");
          return [up, read()];
        }"""
    )
    assert ordered == [["−∞", "2", "10", "∞", "∅", "NaN"], ["∞", "10", "2", "−∞", "∅", "NaN"]]
    page.close()


def test_a_page_that_is_paused_stands_still_and_counts_what_it_skips(browser: Browser) -> None:
    session = best()
    with session.serve(name="best") as server:
        push(session, 0, ("a", 1.0), ("b", 3.0))
        page, _ = opened(browser, server)
        expect(page.locator("#board b").first).to_have_text("b")
        page.locator("#pause").click()
        expect(page.locator("#status")).to_have_text("paused")
        for t in (2, 4, 6):
            push(session, t, (f"n{t}", 9.0))
            wait_until(lambda t=t: page.evaluate("window.skyband.state.latest.at") == t + 2, "the answer")
        assert page.locator("#board b").first.inner_text() == "b"
        page.locator("#pause").click()
        expect(page.locator("#board b").first).to_have_text("n6")
        expect(page.locator("#skipped")).to_have_text("2 skipped")
        expect(page.locator("#status")).to_have_text("live")
        page.close()


def test_long_and_foreign_names_fit_and_a_row_is_still_found_by_them(browser: Browser) -> None:
    names = ["x" * 5_000, "<b>عربى</b>", "Größe 東京 🏆", None, ""]
    session = best(k=5)
    with session.serve(name="best") as server:
        push(session, 0, *((name, 9.0 - place) for place, name in enumerate(names)))
        page, noticed = opened(browser, server, width=390)
        expect(page.locator("#board li")).to_have_count(5)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        shown = page.locator("#board b").all_inner_texts()
        assert len(shown[0]) == 80
        assert shown[1:3] == names[1:3]
        page.locator("#board button").first.click()
        expect(page.locator("#reason .said")).to_contain_text("Gone: the window has moved past it.")
        page.keyboard.press("Escape")
        push(session, 2, ("short", 1.0))
        expect(page.locator(".board-out")).to_contain_text("▼ 1")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_of_five_hundred_columns_the_grid_shows_as_many_rows_as_one_can_draw(browser: Browser) -> None:
    names = [f"column_{number:03}" for number in range(500)]
    schema = pa.schema({"t": pa.int64(), **dict.fromkeys(names, pa.float64())})
    session = sb.TopK(k=200, by="column_000", window=sb.tumbling(2, on="t")).open(schema)
    with session.serve(name="wide") as server:
        page, noticed = opened(browser, server)
        page.locator("[data-view=grid]").click()
        for t in (0, 2):
            values = {name: [float(row) for row in range(200)] for name in names}
            session.push(pa.table({"t": [t] * 200, **values}, schema=schema))
        expect(page.locator("#grid .note")).to_have_text("The grid shows 23 of 200 rows.")
        assert page.locator("#grid tbody tr").count() == 23
        page.locator("[data-view=board]").click()
        page.locator("#board button").first.click()
        expect(page.locator("#reason .facts dt").first).to_be_visible()
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_each_of_many_groups_can_be_chosen(browser: Browser) -> None:
    session = best(k=2, per="name")
    with session.serve(name="best") as server:
        push(session, 0, *((f"g{number:04}", float(number)) for number in range(1_500)))
        page, _ = opened(browser, server)
        expect(page.locator("#group-choice")).to_contain_text("of 1,50")
        expect(page.locator("#board-note")).to_contain_text("Window until 2")
        page.locator("#group-field").fill("g1400")
        page.locator("#group-field").press("Enter")
        expect(page.locator("#board .score")).to_have_text(["1,400"])
        push(session, 2, ("g0001", 1.0))
        expect(page.locator("#board-note")).to_contain_text("The answer has no rows.")
        expect(page.locator("#group-field")).to_have_value("g1400")
        page.close()


def test_with_two_columns_of_groups_one_ranking_is_shown_at_a_time(browser: Browser) -> None:
    schema = pa.schema({"t": pa.int64(), "name": pa.string(), "side": pa.int64(), "x": pa.float64()})
    session = sb.TopK(k=2, by="x", per=("name", "side"), window=sb.tumbling(2, on="t")).open(schema)
    rows = [(0, "a", 1, 5.0), (0, "a", 2, 6.0), (0, "b", 1, 7.0), (2, "a", 1, 0.0)]
    with session.serve(name="best") as server:
        session.push(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema))
        page, _ = opened(browser, server)
        expect(page.locator("#group option")).to_have_text(["a · 1", "a · 2", "b · 1"])
        expect(page.locator("#board .score")).to_have_text(["5"])
        page.locator("#group").select_option("a · 2")
        expect(page.locator("#board .score")).to_have_text(["6"])
        page.close()


def test_a_huge_statement_is_refused_here_and_does_not_hang_the_page(browser: Browser, server: Server) -> None:
    page, noticed = opened(browser, server)
    asked: list[str] = []
    expect(page.locator("#sql")).to_be_visible()
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.locator("#text").fill("SELECT " + "price + " * 100_000 + "1")
    said = f"A statement has at most {MOST_STATEMENT:,} characters here; this one has 800,008."
    expect(page.locator("#verdict")).to_have_text(said)
    assert page.locator("#paint span").count() == 0, "nobody colours it"
    page.locator("#run").click()
    page.locator("#explain").click()
    expect(page.locator("#verdict")).to_have_text(said)
    page.locator("#text").fill("")
    expect(page.locator("#verdict")).to_have_text("")
    assert (asked, noticed.messages) == ([], [])
    page.close()


def test_what_was_said_of_an_earlier_text_is_not_told_of_a_later_one(browser: Browser, server: Server) -> None:
    page, _ = opened(browser, server)
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "volum DESC" in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/statements/check", hold)
    page.locator("#text").fill(STATEMENT.replace("volume DESC", "volum DESC"))
    for _ in range(100):
        if held:
            break
        page.wait_for_timeout(50)
    page.locator("#text").fill(STATEMENT)
    expect(page.locator(".verdict.good")).to_contain_text("top 5 by price * volume")
    with page.expect_response("**/statements/check"):
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(page.locator(".verdict.good")).to_contain_text("top 5 by price * volume")
    expect(page.locator(".t-bad")).to_have_count(0)
    page.close()


def test_two_clicks_run_one_query_and_explain_in_front_of_it_shows_its_plan(browser: Browser, server: Server) -> None:
    page, noticed = opened(browser, server)
    page.locator("#text").fill(f"EXPLAIN {STATEMENT}")
    page.locator("#run").click()
    expect(page.locator("#plan svg")).to_be_visible()
    expect(page.locator(".verdict.good")).to_have_text("top 5 by price * volume")
    page.locator("#text").fill(STATEMENT)
    page.locator("#run").dblclick()
    expect(page.locator("#board li")).to_have_count(5)
    assert [query.name for query in server.catalog.queries()] == ["query1"]
    expect(page.locator("#verdict")).to_have_text("query1 is running")
    assert (noticed.messages, noticed.outside) == ([], [])
    page.close()


def test_a_page_whose_server_stops_says_so_and_goes_on_when_it_is_back(browser: Browser) -> None:
    first = best()
    server = first.serve(name="best")
    push(first, 0, ("a", 1.0), ("b", 3.0))
    page, _ = opened(browser, server)
    expect(page.locator("#board b").first).to_have_text("b")
    server.close()
    expect(page.locator("#status")).to_have_text("no connection, trying again")
    page.locator("#board button").first.click()
    expect(page.locator("#reason")).to_have_text("The server does not answer. Has it been stopped?")
    page.keyboard.press("Escape")
    second = best()
    with second.serve(name="best", port=server.port):
        push(second, 0, ("c", 8.0), ("d", 3.0))
        expect(page.locator("#board b").first).to_have_text("c")
        expect(page.locator("#status")).to_have_text("live")
        page.close()


def test_with_the_keyboard_alone_a_row_is_asked_about_and_left_again(browser: Browser) -> None:
    session = best()
    with session.serve(name="best") as server:
        push(session, 0, ("a", 1.0), ("b", 3.0), ("c", 2.0))
        page, noticed = opened(browser, server)
        expect(page.locator("#board li")).to_have_count(3)
        row = page.locator("#board button", has_text="c")
        row.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#why")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator("#why-close")).to_be_focused()
        page.keyboard.press("Escape")
        expect(row).to_be_focused()
        for t, value in ((2, 9.0), (4, 0.5)):  # it moves up, and down
            push(session, t, ("a", 1.0), ("b", 3.0), ("c", value))
            expect(page.locator("#board-note")).to_contain_text(f"Window until {t + 2}")
        expect(page.locator("#board button", has_text="c")).to_be_visible()
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_a_query_without_rows_and_one_that_failed_say_so(browser: Browser, server: Server) -> None:
    text = STATEMENT.replace("1 MINUTE ON", "1 MINUTE EVERY 1 SECOND ON").replace(" ORDER", " WHERE price < 0 ORDER")
    watched = server.catalog.workshop.start(text)
    page, _ = opened(browser, server)
    expect(page.locator("#board-note")).to_have_text("No answer yet: no row has come that the query takes.")
    expect(page.locator("#status")).to_have_text("live")
    watched.close("failed", "price is no number any more.\nLook at the source.")
    expect(page.locator("#failure")).to_have_text("price is no number any more.\nLook at the source.")
    expect(page.locator("#status")).to_have_text("failed")
    page.close()


def test_a_page_that_opens_before_its_pipeline_has_started_waits_for_its_queries(browser: Browser) -> None:
    catalog = Catalog("market")
    with Server(catalog) as server:
        page, noticed = opened(browser, server)
        expect(page.locator("#empty")).to_contain_text("The pipeline is starting")
        expect(page.locator("#sql")).to_be_hidden()
        session = best()
        watched = Watched(session, "best", statement="SELECT name FROM rows [WINDOW 2 ON t] ORDER BY x DESC LIMIT 3")
        watched.picture = None  # as a pipeline's queries have none
        catalog.add(watched)
        push(session, 0, ("a", 1.0), ("b", 3.0))
        expect(page.locator("#board b").first).to_have_text("b")
        expect(page.locator("#empty")).to_be_hidden()
        expect(page.locator("#board button").first).to_be_disabled()  # nobody can say why
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_the_page_of_the_api_writes_code_as_code_and_links_what_can_be_looked_at(
    browser: Browser, server: Server
) -> None:
    page, noticed = opened(browser, server)
    page.goto(f"{server.url}docs")
    expect(page.locator("section")).not_to_have_count(0)
    assert "`" not in page.locator("main").inner_text()
    assert page.locator("section code").count() > 5
    links = page.locator("section h2 a").all_inner_texts()
    assert links == ["/health", "/metrics", "/catalog", "/queries"]
    assert (noticed.messages, noticed.outside) == ([], [])
    page.close()
