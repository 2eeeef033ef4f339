"""A real browser for tests: the system's Chromium, without a window. It notes what a page does that it should not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page, sync_playwright
from servers.missing import missing


@dataclass
class Noticed:
    """What went wrong in a page."""

    messages: list[str] = field(default_factory=list)  # errors and warnings of its console
    outside: list[str] = field(default_factory=list)  # requests to other hosts

    def watch(self, page: Page, own: str) -> None:
        page.on("console", lambda said: self.messages.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(own) else self.outside.append(request.url))


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser until the end of the block."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        missing("chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()
