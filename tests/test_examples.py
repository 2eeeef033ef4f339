"""Examples: each project of examples/ runs, and its own check holds."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROJECTS = sorted((Path(__file__).parents[1] / "examples").glob("*/main.py"))


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.parent.name)
def test_the_project_runs_and_its_check_holds(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(project))["main"](["--rows", "3000"])
    assert capsys.readouterr().out


def test_every_project_is_listed() -> None:
    listed = (Path(__file__).parents[1] / "examples" / "README.md").read_text()
    assert len(PROJECTS) == 5
    assert all(f"]({project.parent.name}/main.py)" in listed for project in PROJECTS)
