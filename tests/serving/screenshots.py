"""Makes the pictures of docs/console.md: python tests/serving/screenshots.py, or with the name of a part only that."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

import notebooks  # noqa: E402
from serving.browser import chromium  # noqa: E402
from serving.five import STATEMENTS, feeds  # noqa: E402
from test_notebooks import console_cells  # noqa: E402

from skyband.cli.console import DEMO_STATEMENT  # noqa: E402
from skyband.serving.catalog import Catalog  # noqa: E402
from skyband.serving.server import Server  # noqa: E402
from skyband.serving.workshop import Feed, Workshop  # noqa: E402
from skyband.streams.trades import SCHEMA, trades  # noqa: E402

FOLDER = ROOT / "docs" / "images"
SECONDS = 26  # until the window is full and rows have come and gone


def console() -> None:
    """The page over the generated trades."""
    FOLDER.mkdir(exist_ok=True)
    catalog = Catalog("trades")
    feed = Feed("trades", SCHEMA, lambda rows: trades(2**50, batch_rows=rows), 1_500.0)
    catalog.workshop = Workshop(catalog, {"trades": feed})
    catalog.workshop.start(DEMO_STATEMENT)
    with Server(catalog) as server, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark", reduced_motion="reduce")
        page.goto(server.url)
        page.wait_for_timeout(1_000 * SECONDS)
        page.screenshot(path=FOLDER / "console-dark.png")
        page.locator("#board button").nth(4).click()
        page.wait_for_selector("#reason .said")
        page.screenshot(path=FOLDER / "console-why.png")
        page.keyboard.press("Escape")
        page.locator("#text").fill(DEMO_STATEMENT.replace("volume DESC", "volum DESC"))
        page.wait_for_selector(".verdict.bad")
        page.locator("#sql").scroll_into_view_if_needed()
        page.screenshot(path=FOLDER / "console-mistake.png")
        page.locator("#text").fill(DEMO_STATEMENT)
        page.locator("#explain").click()
        page.wait_for_selector("#plan svg")
        page.locator("#plan").scroll_into_view_if_needed()
        page.screenshot(path=FOLDER / "console-plan.png")
        page.evaluate("window.scrollTo(0, 0)")
        page.locator("#theme").click()
        page.wait_for_timeout(500)
        page.screenshot(path=FOLDER / "console-light.png")
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce")
        phone.goto(server.url)
        phone.wait_for_timeout(6_000)
        phone.screenshot(path=FOLDER / "console-phone.png", full_page=True)
        catalog.workshop.close()


def pictures() -> None:
    """The picture of each of the other problems, alone."""
    catalog = Catalog("five")
    catalog.workshop = Workshop(catalog, feeds(80.0))
    with Server(catalog) as server, chromium() as browser:
        for problem in ("pairs", "across", "subscriptions", "joins"):
            running = catalog.workshop.start(STATEMENTS[problem])
            page = browser.new_page(
                viewport={"width": 1180, "height": 900}, color_scheme="dark", reduced_motion="reduce"
            )
            page.goto(server.url)
            page.wait_for_timeout(12_000)
            page.locator("#picture-card").screenshot(path=FOLDER / f"console-{problem}.png")
            page.close()
            catalog.workshop.stop(running.name)


def notebook() -> None:
    """What the cells of the page on the console return, run in a kernel."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme="light")
        page.set_content(notebooks.drawn(notebooks.execute(console_cells(), Path(folder))))
        page.wait_for_selector(".skyband-widget .board li")
        page.wait_for_timeout(1_000)
        page.screenshot(path=FOLDER / "notebook.png", full_page=True)


PARTS = {"console": console, "pictures": pictures, "notebook": notebook}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
