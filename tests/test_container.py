"""Example tests of the Dockerfile, which is not built here: what it copies, installs and runs is there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from typer.main import get_command

from skyband.cli import app
from skyband.pipelines.model import HERE

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


def test_what_it_copies_is_there_and_is_sent_to_docker() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", TEXT, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names == ["pyproject.toml", "README.md", "LICENSE", "constraints.txt", "src"]
    assert all((ROOT / name).exists() for name in names)
    assert (ROOT / ".dockerignore").read_text().split() == ["*", *(f"!{name}" for name in names)]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {project["readme"], *project["license-files"]} <= set(names), "what the build of the package reads"


def test_what_it_installs_is_declared() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (named,) = re.findall(r"'\.\[(.+)\]'", TEXT)
    assert set(named.split(",")) <= set(extras)
    (python,) = re.findall(r"^ARG PYTHON=3\.(\d+)$", TEXT, re.MULTILINE)
    assert 11 <= int(python) <= 14


def test_what_it_runs_is_a_command_with_its_options() -> None:
    (entry,), (words,) = (re.findall(rf"^{key} (\[.+\])$", TEXT, re.MULTILINE) for key in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["skyband"]
    command, file, *options = json.loads(words)
    run = get_command(app).commands[command]  # type: ignore[attr-defined]
    known = {name for parameter in run.params for name in parameter.opts}
    assert file == "pipeline.toml"
    assert {option for option in options if option.startswith("--")} <= known
    assert f"http://{HERE.host}:{HERE.port}/health" in TEXT, "where --serve serves"
