"""Examples: what the README and the docs show is what happens."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> Iterator[tuple[str, str | None]]:
    """Each python block, and the text block right after it, which is what it prints."""
    for code, _, printed in re.findall(r"```python\n(.*?)```(\n+```text\n(.*?)```)?", page.read_text(), re.DOTALL):
        yield code, printed or None


def without_costs(text: str) -> str:
    """What a row costs is measured anew now and then, and so is the order of algorithms that is made of it."""
    text = re.sub(r"[\d.,]+ [nµ]s a row( \([\d.,]+x\))?", "… a row", text)
    return re.sub(r"( +\S+ +… a row.*\n)+", lambda lines: "".join(sorted(lines[0].splitlines(keepends=True))), text)


def test_the_two_commands_come_first() -> None:
    first_block = README.read_text().split("```")[1]
    assert [line.split("#")[0].strip() for line in first_block.splitlines()[1:]] == ["make demo", "make test"]


def test_the_first_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """In a process of its own, as a new user would."""
    code, printed = next(python_blocks(README))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed


@pytest.mark.parametrize(
    "page",
    ["top-k.md", "sql.md", "coming-from.md", "pairs.md", "across.md", "joins.md", "subscriptions.md", "console.md"],
)
def test_the_examples_print_what_the_page_shows(page: str) -> None:
    names: dict[str, Any] = {}
    for code, printed in python_blocks(ROOT / "docs" / page):
        out = StringIO()
        with redirect_stdout(out):
            exec(code, names)
        assert without_costs(out.getvalue()) == without_costs(printed or ""), code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target
