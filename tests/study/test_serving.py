"""Example test: the table of readers on a page is replaced as a whole, and the rest of the page stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyband.errors import InvalidInput
from skyband.study.serving import Found, report

TURNS = [Found(0, 10, 4e6, 8e6, 0, 0, 0, 0.0, 0.0), Found(20, 10, 3e6, 6e6, 190, 10, 0, 1.6, 9.4)]
PAGE = "before\n<!-- readers: skyband bench serving --report -->\nold\n<!-- end of readers -->\nafter\n"


def test_the_table_of_a_page_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    for _ in range(2):
        report(TURNS, page)
        before, _, _, _, alone, read, _, after = page.read_text().splitlines()
        assert (before, after) == ("before", "after")
        assert alone.startswith("| 0 |  |  |  |  |  |  | 4.0 million | 8.0 million (1.00) | 2")
        assert read.startswith("| 20 | 200 | 190 | 10 | 0 | 2 ms | 9 ms | 3.0 million | 6.0 million (0.75) | 2")


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(InvalidInput, match="has no place for the table"):
        report(TURNS, page)
