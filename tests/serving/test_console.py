"""Example tests of the console as a person uses it, in a real browser: open, type, mend, run, ask why, stop."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, expect
from serving.browser import Noticed
from serving.five import STATEMENTS, feeds
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.workshop import Workshop

STATEMENT = "SELECT symbol, price, volume, ts FROM trades [WINDOW 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 5"


def opened(browser: Browser, server: Server, width: int, **options: object) -> tuple[Page, Noticed]:
    page, noticed = browser.new_page(viewport={"width": width, "height": 800}, **options), Noticed()
    page.set_default_timeout(1_000 * PATIENCE_S)
    noticed.watch(page, server.url)
    page.goto(server.page)
    return page, noticed


def test_a_person_types_mends_runs_asks_why_and_stops(browser: Browser, server: Server) -> None:
    page, noticed = opened(browser, server, 1280, color_scheme="dark")
    expect(page.locator("#empty")).to_be_visible()
    page.locator("#text").fill(STATEMENT.replace("volume DESC", "volum DESC"))
    expect(page.locator(".verdict.bad")).to_contain_text("Did you mean 'volume'?")
    expect(page.locator(".t-bad")).to_have_text("volum")
    page.locator("#text").fill(STATEMENT)
    expect(page.locator(".verdict.good")).to_contain_text("top 5 by price * volume")
    page.locator("#explain").click()
    expect(page.locator("#plan svg")).to_be_visible()
    expect(page.locator("#plan .name.chosen")).to_have_text("relaxed")
    page.locator("#text").press("Control+Enter")
    expect(page.locator("#board li")).to_have_count(5)
    first = page.locator("#log li")
    page.locator("[data-view=log]").click()
    expect(first.first).to_be_visible()  # rows move
    page.locator("[data-view=grid]").click()
    page.locator("#grid th button", has_text="price").click()
    prices = [float(text.replace(",", "")) for text in page.locator("#grid td:nth-child(4)").all_inner_texts()]
    assert prices == sorted(prices)
    page.locator("[data-view=board]").click()
    wait_until(lambda: page.evaluate("document.getElementById('meter-held').textContent") != "", "the meter")
    page.locator("#board button").first.click()
    expect(page.locator("#reason .said")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#why")).to_be_hidden()
    page.locator("#picture").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")  # the newest held row, by keyboard alone
    expect(page.locator("#reason .said")).to_be_visible()
    page.locator("#where-text").fill("volume = 1 AND price < 0")
    page.locator("#search button").click()
    expect(page.locator("#reason .said")).to_have_text("No row that is remembered meets this condition.")
    page.locator("#why-close").click()
    page.locator("#tabs .stop").click()
    expect(page.locator("#empty")).to_be_visible()
    # Browsers note refusals in the console: 400 of a statement that cannot be read, and 404 of a look at the query that
    # was on its way when the query was stopped.
    assert [text for text in noticed.messages if "status of 400" not in text and "status of 404" not in text] == []
    assert noticed.outside == []
    page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen_dark_or_light(browser: Browser, server: Server, width: int) -> None:
    server.catalog.workshop.start(STATEMENT)
    page, noticed = opened(browser, server, width, color_scheme="light")
    expect(page.locator("#board li")).to_have_count(5)
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("#theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert (noticed.messages, noticed.outside) == ([], [])
    page.close()


@pytest.mark.parametrize("problem", ["pairs", "across", "subscriptions", "joins"])
def test_each_problem_has_its_picture_and_its_reasons_by_mouse_and_keyboard(browser: Browser, problem: str) -> None:
    catalog = Catalog("five")
    catalog.workshop = Workshop(catalog, feeds(1_000.0))
    catalog.workshop.start(STATEMENTS[problem])
    with Server(catalog) as server:
        page, noticed = opened(browser, server, 390, color_scheme="dark", reduced_motion="reduce")
        canvas = page.locator("#picture" if problem == "pairs" else "#lanes")
        expect(canvas).to_be_visible()
        expect(page.locator("#board li").first).to_be_visible()
        drawn = "window.skyband.lanes.dots.length" if problem != "pairs" else "window.skyband.dots.dots.size"
        wait_until(lambda: page.evaluate(drawn) > 20, "the dots")

        def asked() -> bool:  # of a row that leaves meanwhile, the page says so
            page.locator("#board button").first.click()
            expect(page.locator("#reason .said")).to_be_visible()
            said = page.locator("#reason .facts dt").count() > 0
            page.keyboard.press("Escape")
            return said

        wait_until(asked, "the reason of a row")
        canvas.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        expect(page.locator("#reason .said")).to_be_visible()
        page.keyboard.press("Escape")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        # A row may leave between the click and the question: then the page says so, and the browser notes the 404.
        assert [text for text in noticed.messages if "status of 404" not in text] == []
        assert noticed.outside == []
        page.close()
        catalog.workshop.close()


def test_completion_offers_tables_columns_and_functions(browser: Browser, server: Server) -> None:
    page, _ = opened(browser, server, 1280)
    area = page.locator("#text")
    area.click()  # waits until the editor is there: keys that come before are lost
    area.press_sequentially("SELECT sy")
    expect(page.locator("#complete li").first).to_contain_text("symbol")
    area.press("Tab")
    expect(area).to_have_value("SELECT symbol")
    area.press_sequentially(" FROM tra")
    area.press("Enter")
    expect(area).to_have_value("SELECT symbol FROM trades")
    for beginning, word in ((" QUAL", "QUALIFY"), (" DENSE", "DENSE_RANK("), (" UNIO", "UNION"), (" DIST", "DISTINCT")):
        area.press_sequentially(beginning)
        expect(page.locator("#complete li").first).to_contain_text(word)
        area.press("Escape")
    page.close()


def test_small_numbers_keep_their_digits(browser: Browser, server: Server) -> None:
    page, _ = opened(browser, server, 1280)
    written = """async (values) => {
      const { number } = await import("/assets/format.js");
      return values.map((value) => number(value));
    }"""
    values = [0.0004, 0.00012345, 0.5, 0, 3.14159, 42.4242, 12345.6, -0.0003]
    said = ["0.0004", "0.000123", "0.5", "0", "3.142", "42.42", "12,346", "-0.0003"]
    assert page.evaluate(written, values) == said
    page.close()


def test_a_page_that_opens_late_shows_the_answers_of_before_and_tells_departures(browser: Browser) -> None:
    rows = pa.table({"t": list(range(9)), "name": list("abcdefghi"), "x": [9, 1, 8, 2, 7, 3, 6, 4, 5]})
    session = sb.TopK(k=2, by="x", window=sb.sliding(3, every=1, on="t")).open(rows.schema)
    with session.serve(name="best") as server:
        session.push(rows)
        page, noticed = opened(browser, server, 1280)
        expect(page.locator("#board li")).to_have_count(2)
        wait_until(lambda: page.evaluate("window.skyband.bump.answers.length") > 5, "ranks over time")
        session.push(pa.table({"t": [9, 10], "name": ["j", "k"], "x": [20, 21]}))
        expect(page.locator(".board-out")).to_contain_text("▼")
        assert (noticed.messages, noticed.outside) == ([], [])
        page.close()


def test_on_another_address_the_page_works_with_its_token_and_not_without(browser: Browser) -> None:
    rows = pa.table({"t": [1, 2, 3], "name": ["<b>a</b>", "b", "c"], "x": [7, 6, 5]})
    session = sb.TopK(k=2, by="x", window=sb.sliding(2, every=1, on="t")).open(rows.schema)
    with session.serve(host="0.0.0.0", name="best") as server:
        session.push(rows)
        page = browser.new_page()
        page.set_default_timeout(1_000 * PATIENCE_S)
        refused = page.goto(f"http://127.0.0.1:{server.port}/")
        assert refused.status == 401
        page.goto(f"http://127.0.0.1:{server.port}/?token={server.token}")
        expect(page.locator("#board li")).to_have_count(2)
        expect(page.locator("#board b").first).to_have_text("<b>a</b>")  # text of the data is text
        assert server.token not in page.url
        assert page.evaluate("document.cookie") == ""
        page.close()
