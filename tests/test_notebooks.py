"""Examples: notebooks run in a kernel and print what they show, and a browser draws what cells return."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import notebooks
import pytest
from serving.browser import chromium
from waiting import PATIENCE_S

pytest.importorskip("nbclient")

# Spark's steps of the other tutorial run with its page, in test_docs.py.
TUTORIALS = [page.with_suffix(".ipynb") for page in notebooks.pages() if 'title="Spark"' not in page.read_text()]


# The widget looks at its session now and then: its last cell, which closes it, waits for the first look.
LOOKED = "import time\nwhile not (widget.answer.get('rows') and widget.picture):\n    time.sleep(0.05)\n"


def console_cells() -> list[dict[str, Any]]:
    """The cells of the page on the console."""
    *first, last = re.findall(r"^```python\n(.*?)^```$", notebooks.CONSOLE.read_text(), re.DOTALL | re.MULTILINE)
    return [{"source": [source]} for source in (*first, LOOKED + last)]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The cells of every notebook with what they gave, all from one kernel: it takes seconds to start."""
    cells = {notebook.stem: notebooks.cells_of(notebook.read_text()) for notebook in TUTORIALS}
    cells["console"] = console_cells()
    done = iter(
        notebooks.execute([cell for each in cells.values() for cell in each], tmp_path_factory.mktemp("kernel"))
    )
    return {name: [next(done) for _ in each] for name, each in cells.items()}


@pytest.mark.parametrize("notebook", TUTORIALS, ids=lambda notebook: notebook.stem)
def test_a_tutorial_prints_in_a_kernel_what_its_notebook_shows(notebook: Path, executed: dict[str, list[Any]]) -> None:
    shown = [notebooks.printed(cell) for cell in notebooks.cells_of(notebook.read_text())]
    assert [notebooks.printed(cell) for cell in executed[notebook.stem]] == shown
    assert any(shown)


def test_a_browser_draws_the_plan_the_widget_the_counts_and_the_chart(executed: dict[str, list[Any]]) -> None:
    with chromium() as browser:
        page, problems = browser.new_page(viewport={"width": 1000, "height": 1200}), []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
        page.set_content(notebooks.drawn(executed["console"]))
        page.wait_for_selector(".skyband-widget .board li", timeout=1_000 * PATIENCE_S)
        assert page.locator("svg[role=img] rect").count() == 4, "the plan"
        assert page.locator(".skyband-widget .board li").count() == 3
        assert page.locator(".skyband-widget canvas").bounding_box()["height"] == 300
        assert "200" in page.get_by_text("rows in", exact=True).locator("xpath=following-sibling::*[1]").inner_text()
        assert page.locator("img").last.evaluate("image => image.naturalWidth") > 300, "the chart"
        assert problems == []
