"""Examples: what the README and the docs show is what happens, and every link, picture and command is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import api_page
import error_index
import notebooks
import pytest
import site_versions
import typer.main
from markdown.extensions.toc import slugify

import skyband as sb
from skyband.cli import app
from skyband.expressions import functions
from skyband.study.pictures.__main__ import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of Python on a page, and the block of text right after it, which is what it prints."""

    code: str
    printed: str
    on_spark: bool  # its title says so


@cache
def blocks(page: Path) -> list[Block]:
    """The blocks that are run, in order. ```py blocks are not: they need what a test does not have."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        if fence[1] == "python":
            after = FENCE.match(text, re.compile(r"\s*").match(text, fence.end()).end())  # type: ignore[union-attr]
            printed = after[3] if after and after[1] == "text" else ""
            found.append(Block(fence[3], printed, "Spark" in fence[2]))
    return found


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_costs(text: str) -> str:
    """What a row costs is measured anew now and then, and so is the order of algorithms that is made of it."""
    text = re.sub(r"[\d.,]+ [nµ]s a row( \([\d.,]+x\))?", "… a row", text)
    return re.sub(r"( +\S+ +… a row.*\n)+", lambda lines: "".join(sorted(lines[0].splitlines(keepends=True))), text)


def run(page: Path, names: dict[str, Any]) -> None:
    for block in blocks(page):
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(block.code, str(page), "exec", dont_inherit=True), names)
        assert without_costs(out.getvalue()) == without_costs(block.printed), block.code


@pytest.fixture(autouse=True)
def _functions_of_examples_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_known", {})


def test_the_two_commands_come_first() -> None:
    first_block = README.read_text().split("```")[1]
    assert [line.split("#")[0].strip() for line in first_block.splitlines()[1:]] == ["make demo", "make test"]


def test_the_first_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """In a process of its own, as a new user would."""
    first = blocks(README)[0]
    run = subprocess.run([sys.executable, "-c", first.code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout == first.printed


def _runs(on_spark: bool) -> list[Path]:
    return [page for page in PAGES if blocks(page) and any(block.on_spark for block in blocks(page)) == on_spark]


@pytest.mark.parametrize("page", _runs(on_spark=False), ids=page_id)
def test_the_examples_print_what_the_page_shows(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, {})


@pytest.mark.spark
@pytest.mark.parametrize("page", _runs(on_spark=True), ids=page_id)
def test_the_examples_on_spark_print_what_the_page_shows(
    page: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, {"spark": spark})


def headings(page: Path) -> set[str]:
    """The anchors that the site and GitHub give to a page's headings."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "") for title in titles]
    return {slugify(title, "-") for title in plain}


def links(page: Path) -> Iterator[tuple[str, str]]:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield path, anchor


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            assert anchor in headings(target), f"{path}#{anchor}: has {sorted(headings(target))}"


def test_every_page_can_be_reached_from_the_menu_of_the_site() -> None:
    menu = set(re.findall(r"([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    listed = {page for page in pages if not page.startswith("decisions/0")}
    assert listed <= menu, f"not in mkdocs.yml: {sorted(listed - menu)}"
    assert menu <= pages, f"not there: {sorted(menu - pages)}"


def test_pages_of_the_site_link_only_to_pages_of_the_site() -> None:
    for page in DOCS.rglob("*.md"):
        for path, _ in links(page):
            assert (page.parent / path).resolve().is_relative_to(DOCS), f"{page.name}: {path}"


def test_the_api_reference_is_what_the_docstrings_say() -> None:
    assert api_page.PAGE.read_text() == api_page.page(), "run python tests/api_page.py"
    documented = re.findall(r"^### (\w+)$", api_page.PAGE.read_text(), re.MULTILINE)
    assert len(documented) == len(set(documented))


def test_the_error_index_is_what_the_errors_say() -> None:
    assert error_index.PAGE.read_text() == error_index.page(), "run python tests/error_index.py"


@pytest.mark.parametrize("page", notebooks.pages(), ids=page_id)
def test_notebooks_are_what_the_tutorials_say(page: Path) -> None:
    assert page.with_suffix(".ipynb").read_text() == notebooks.notebook(page), "run python tests/notebooks.py"


@pytest.mark.parametrize("name", drawn())
def test_pictures_are_what_the_code_draws(name: str) -> None:
    picture = DOCS / "pictures" / f"{name}.svg"
    assert picture.read_text() == drawn()[name](), "run python -m skyband.study.pictures"


def test_the_menu_calls_pages_as_they_call_themselves() -> None:
    """A menu may be shorter than a heading, but has no other words."""
    menu = re.findall(
        r'^ +- (?:"([^"]+)"|([^:\n"]+)): (\S+\.md)$', (DOCS.parent / "mkdocs.yml").read_text(), re.MULTILINE
    )
    assert len(menu) > 50
    for quoted, plain, path in menu:
        heading = (DOCS / path).read_text().partition("\n")[0].lower()
        assert path == "README.md" or (quoted or plain).lower() in heading, path


def test_the_site_leads_to_its_newest_version(tmp_path: Path) -> None:
    for name in ("0.9", "0.10", "0.2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("a version")
    site_versions.write(tmp_path)
    assert [each["version"] for each in json.loads((tmp_path / "versions.json").read_text())] == ["0.10", "0.9", "0.2"]
    assert "url=0.10/" in (tmp_path / "index.html").read_text()


def test_every_picture_is_shown_somewhere() -> None:
    shown = {(page.parent / path).resolve() for page in PAGES for path, _ in links(page) if path.endswith(".svg")}
    assert shown == {picture.resolve() for picture in (DOCS / "pictures").glob("*.svg")}


def test_commands_that_pages_show_are_there() -> None:
    """Every `skyband …` of a block for a shell names a command and options that the command line has."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    commands = {**commands, **commands["bench"].commands}
    for page in PAGES:
        for kind, _, code in FENCE.findall(page.read_text()):
            for line in code.splitlines() if kind == "sh" else ():
                words = line.partition(" #")[0].split()
                if words[:1] == ["skyband"]:
                    command = words[2] if words[1] == "bench" else words[1]
                    options = {name for each in commands[command].params for name in [*each.opts, *each.secondary_opts]}
                    unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - options - {"--help"}
                    assert not unknown, f"{page.name}: {line}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Every link and anchor, as the site sees them: `make docs`."""
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run(build, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / ".".join(sb.__version__.split(".")[:2]) / "index.html").exists()
