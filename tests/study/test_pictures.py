"""Example tests of the pictures of the documentation: their colours, and how a browser shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page
from serving.browser import chromium

from skyband.study.pictures import skyband
from skyband.study.pictures.drawing import DARK

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
NAMES = sorted(picture.stem for picture in FOLDER.glob("*.svg"))
VISIBLE = '(each) => getComputedStyle(each).visibility === "visible"'
# The texts that are visible, each as [words, left, top, right, bottom].
TEXTS = """() => [...document.querySelectorAll("text")].filter(%s).map((each) => {
  const box = each.getBoundingClientRect();
  return [each.textContent, box.left, box.top, box.right, box.bottom];
})"""
# At one moment of the animation: where the window ends, the dots as [x, colour], and the count.
MOMENT = """(ms) => {
  for (const each of document.getAnimations()) { each.pause(); each.currentTime = ms; }
  const dot = (each) => [each.getBoundingClientRect().left, getComputedStyle(each).fill];
  const counts = [...document.querySelectorAll(".count")].filter(%s);
  const window = document.querySelector(".window").getBoundingClientRect();
  return [window.right, [...document.querySelectorAll("circle")].map(dot), counts.map((each) => each.textContent)];
}"""
# The colours of rows that are kept, as a browser says them: those of the legend's first two dots.
KEPT = '() => [...document.querySelectorAll("circle")].slice(0, 2).map((each) => getComputedStyle(each).fill)'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def opened(browser: Browser, name: str, scheme: str = "light") -> Page:
    page = browser.new_page(color_scheme=scheme)
    page.goto((FOLDER / f"{name}.svg").as_uri())
    return page


@pytest.mark.parametrize("name", NAMES)
def test_colours_are_those_that_have_a_dark_one_and_nothing_is_animated_to_none(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text()
    used = set(re.findall(r'(?:fill|stroke)="([^"]*)"', text))
    assert used <= {*DARK, "none", "transparent"}
    # Browsers drop an animation that has a colour `none`: the picture then shows its last moment.
    assert not re.search(r'values="[^"]*none|fill: ?none', text)


@pytest.mark.parametrize("name", NAMES)
def test_no_text_lies_over_another_or_beyond_the_sheet(browser: Browser, name: str) -> None:
    page = opened(browser, name)
    texts = page.evaluate(TEXTS % VISIBLE)
    width, height = (float(size) for size in re.search(r'viewBox="0 0 (\d+) (\d+)"', page.content()).groups())
    for words, left, top, right, bottom in texts:
        assert min(left, top, width - right, height - bottom) >= 0, words
    for i, (words, left, top, right, bottom) in enumerate(texts):
        for other, left2, top2, right2, bottom2 in texts[i + 1 :]:
            apart = right <= left2 or right2 <= left or bottom <= top2 + 3 or bottom2 <= top + 3
            assert apart, f"{words!r} and {other!r}"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_moving_picture_is_true_at_every_moment(browser: Browser, scheme: str) -> None:
    page = opened(browser, "skyband", scheme)
    rows, window = skyband.ROWS, skyband.WINDOW
    for moment in (0, 17, 43, rows - window):
        end, dots, counts = page.evaluate(MOMENT % VISIBLE, 1_000 * skyband.SECONDS_A_ROW * (moment + 0.5))
        dots = dots[3:]  # without the legend
        seen = [(x, colour) for x, colour in dots if not colour.endswith(", 0)")]
        assert len(seen) == window + moment, "rows that have not come are not drawn"
        assert max(x for x, _ in seen) <= end
        kept = [x for x, colour in seen if colour in page.evaluate(KEPT)]
        assert counts == [f"{len(kept)} of {window} rows kept"]
    page.close()


def test_the_picture_stands_still_for_readers_who_prefer_that(browser: Browser) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto((FOLDER / "skyband.svg").as_uri())
    assert page.evaluate("document.getAnimations().length") == 0
    page.close()
