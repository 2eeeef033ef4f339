"""A browser, and a server that replays trades, for the tests of the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from waiting import PATIENCE_S

from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.workshop import Feed, Workshop
from skyband.streams.trades import SCHEMA, trades

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect  # here, because other tests of this folder need no browser
    from serving.browser import chromium

    expect.set_options(timeout=1_000 * PATIENCE_S)
    with chromium() as browser:
        yield browser


@pytest.fixture
def server() -> Iterator[Server]:
    catalog = Catalog("trades")
    feed = Feed("trades", SCHEMA, lambda rows: trades(2**50, batch_rows=rows), 2_000.0)
    catalog.workshop = Workshop(catalog, {"trades": feed})
    with Server(catalog) as server:
        yield server
        catalog.workshop.close()
