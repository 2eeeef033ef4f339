"""Example tests of the source itself: nothing of a user's is ever executed, and nothing is left behind."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import skyband

SOURCE = Path(skyband.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# FAILURES 14: pickle in state, expressions that reach eval.
NOT_IMPORTED = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
NOT_CALLED = {"eval", "exec", "compile", "__import__"}
# Loops are made here, from a checked tree; tests/test_pair_expressions.py shows that no text of a user's gets in.
COMPILES = {SOURCE / "kernels" / "generating.py"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nothing_is_unpickled_or_evaluated(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & NOT_IMPORTED
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in NOT_IMPORTED
            assert not {alias.name for alias in node.names} & NOT_IMPORTED
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in NOT_CALLED - ({"exec", "compile"} if file in COMPILES else set())
        elif isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_nothing_is_left_to_do(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", text)
    assert "NotImplementedError" not in text
    assert not re.search(r"/(work|home|tmp)/", text), "no paths of a machine"


def test_no_file_is_a_drawer() -> None:
    assert not {file.stem for file in FILES} & {"utils", "util", "helpers", "common", "misc"}


def test_few_files_know_what_a_window_kind_is() -> None:
    """The others ask a window, its ticks or its clock: until when does a row live, when is an answer due?"""
    kinds, knowing = {"by_count", "FOREVER", "landmark"}, []
    for file in FILES:
        nodes = ast.walk(ast.parse(file.read_text()))
        said = {getattr(node, field, None) for node in nodes for field in ("id", "attr", "arg", "name")}
        if kinds & said and "study" not in file.parts:
            knowing.append(str(file.relative_to(SOURCE)))
    assert len(knowing) <= 24, knowing


def test_the_public_names_are_all_there() -> None:
    assert sorted(skyband.__all__) == skyband.__all__
    assert all(hasattr(skyband, name) for name in skyband.__all__)
