"""Golden: snapshots that this version wrote. A later one goes on from them as this one did, or refuses them by name.

`python tests/core/test_golden_snapshots.py` writes them anew. Do so when the format changes, and add one to its version
then: a version that reads an old snapshot in another way than it was written is what this guards against.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from torture.corpus import Case, cases

from skyband.core import registry
from skyband.core.snapshots import VERSION
from skyband.errors import SnapshotMismatch

FOLDER = Path(__file__).parents[1] / "golden"
ANSWERS = FOLDER / "answers.json"
BATCHES = 3  # of six; the others come after the snapshot
# Beside one for each algorithm: other windows and ways to emit.
MORE = ("rows/relaxed/each arrival", "rows/partitioned/count, changes", "across/totals/sum")
NAMES: dict[str, str] = json.loads(ANSWERS.read_text())  # and what came after each


def case_of(name: str) -> Case:
    return cases(name)[name]


def file_of(name: str) -> Path:
    return FOLDER / f"{name.replace('/', '-').replace(',', '').replace(' ', '-')}.snapshot"


def went_on(case: Case, state: bytes) -> str:
    """What is answered to the rows after the snapshot, in a few digits."""
    session, said = case.open(state), list[Any]()
    for batch, options in case.pushes[BATCHES:]:
        said += session.push(batch, **options).to_pylist()
    said += session.finish().to_pylist()
    return f"{len(said)} lines, {hashlib.sha256(repr(said).encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_of_an_earlier_version_goes_on_or_is_refused_by_name(name: str) -> None:
    case, state = case_of(name), file_of(name).read_bytes()
    if int.from_bytes(state[8:12], "little") < VERSION:
        with pytest.raises(SnapshotMismatch, match="of an earlier version of Skyband"):
            case.open(state)
    else:
        assert went_on(case, state) == NAMES[name]


def test_every_algorithm_has_a_snapshot() -> None:
    kept = {tuple(name.split("/")[:2]) for name in NAMES}
    assert kept == {(problem, name) for problem in registry.problems() for name in registry.algorithms_of(problem)}


def write() -> None:
    answers = {}
    names = [f"{problem}/{name}/" for problem in registry.problems() for name in registry.algorithms_of(problem)]
    each = [next(iter(cases(name)), f"{name} has no case in torture/corpus.py") for name in names]
    for name in dict.fromkeys([*each, *MORE]):
        state = case_of(name).snapshot(BATCHES)
        file_of(name).write_bytes(state)
        answers[name] = went_on(case_of(name), state)
    ANSWERS.write_text(json.dumps(answers, indent=2) + "\n")


if __name__ == "__main__":
    write()
