"""Writes the tutorials as notebooks: `python tests/notebooks.py`.

A notebook has the words and the blocks of its page, with what they print. The page is what the tests run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
BLOCK = re.compile(r"^```(?:python|py)\b[^\n]*\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


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


if __name__ == "__main__":
    for each in pages():
        each.with_suffix(".ipynb").write_text(notebook(each))
