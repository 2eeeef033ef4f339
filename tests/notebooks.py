"""Writes the tutorials as notebooks: `python tests/notebooks.py`. Tests run the pages, and the notebooks in a kernel.

A notebook has the words and the blocks of its page, with what they print.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = DOCS / "tutorials"
CONSOLE = DOCS / "console.md"  # its cells show what a notebook draws
BLOCK = re.compile(r"^```(?:python|py)\b[^\n]*\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)

WIDGET = "application/vnd.jupyter.widget-view+json"

# A part of a page that gives the widget a model, as a notebook does.
_WIDGET_PAGE = """<style>%s</style><div id="widget"></div><script type="module">
const widget = (await import(URL.createObjectURL(new Blob([%s], { type: "text/javascript" })))).default;
const data = %s;
widget.render({ model: { get: (name) => data[name], on: () => {} }, el: document.getElementById("widget") });
</script>"""


def pages() -> list[Path]:
    return [page for page in sorted(TUTORIALS.glob("*.md")) if BLOCK.search(page.read_text())]


def notebook(page: Path) -> str:
    """The page as a notebook of the format's version 4.5."""
    text, cells, done = page.read_text(), [], 0
    for count, block in enumerate(BLOCK.finditer(text), start=1):
        cells.append(_cell("markdown", text[done : block.start()], len(cells)))
        code = _cell("code", block[1], len(cells))
        code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": _lines(block[2])}] if block[2] else []
        cells.append(code | {"execution_count": count})
        done = block.end()
    cells.append(_cell("markdown", text[done:], len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": [each for each in cells if each["source"]], "metadata": {"kernelspec": kernel}}
    return json.dumps({**whole, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str, number: int) -> dict[str, Any]:
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": _lines(text.strip("\n"))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def cells_of(notebook: str) -> list[dict[str, Any]]:
    """Its cells of code."""
    return [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]


def printed(cell: dict[str, Any]) -> str:
    """What a cell wrote to standard output."""
    texts = [each["text"] for each in cell["outputs"] if each.get("name") == "stdout"]
    return "".join(text if isinstance(text, str) else "".join(text) for text in texts)


def execute(cells: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The cells with what they give in a kernel, one after the other; a widget also with its state."""
    import nbclient
    import nbformat

    made = [nbformat.v4.new_code_cell("".join(cell["source"])) for cell in cells]
    whole = nbformat.v4.new_notebook(cells=made)
    client = nbclient.NotebookClient(whole, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for data in (output["data"] for cell in made for output in cell["outputs"] if WIDGET in output.get("data", {})):
        data[WIDGET]["state"] = client.widget_state[data[WIDGET]["model_id"]]
    return made


def widget(state: Mapping[str, Any]) -> str:
    """A widget of anywidget in a page, from its state."""
    values = json.dumps({"answer": state["answer"], "picture": state["picture"]})
    return _WIDGET_PAGE % (state["_css"], json.dumps(state["_esm"]), values)


def drawn(cells: list[dict[str, Any]]) -> str:
    """A page with what the cells returned, as a notebook draws it."""
    parts = []
    for output in (output for cell in cells for output in cell["outputs"]):
        data = output.get("data", {})
        if WIDGET in data:
            parts.append(widget(data[WIDGET]["state"]))
        elif "text/html" in data:
            parts.append("".join(data["text/html"]))
        elif "image/png" in data:
            parts.append(f'<img src="data:image/png;base64,{data["image/png"]}">')
    body = "".join(f'<div class="cell">{part}</div>' for part in parts)
    return f"<!doctype html><style>body {{ margin: 16px }} .cell {{ margin: 0 0 20px }}</style>{body}"


if __name__ == "__main__":
    for each in pages():
        each.with_suffix(".ipynb").write_text(notebook(each))
