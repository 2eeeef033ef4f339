"""Fault tests of the note beside a checkpoint: a run that is killed between any two steps leaves one that can go on."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skyband.errors import PipelineChanged
from skyband.pipelines.checkpoints import Asked, Checkpoint


class Killed(BaseException):
    """The process is gone."""


class Files:
    """A folder as Hadoop's file systems show it, for so many changes; then the process is killed."""

    def __init__(self, changes: int = 1000) -> None:
        self.left = changes

    def _change(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def exists(self, path: Path) -> bool:
        return path.exists()

    def open(self, path: Path) -> Any:
        content = io.BytesIO(path.read_bytes())
        return SimpleNamespace(readAllBytes=content.read, close=content.close)

    def create(self, path: Path, overwrite: bool) -> Any:
        assert overwrite
        self._change()
        path.write_bytes(b"")

        def write(text: bytes) -> None:
            for n in range(len(text)):  # torn anywhere
                if n % 16 == 0:
                    self._change()
                path.write_bytes(text[: n + 1])

        return SimpleNamespace(write=write, close=lambda: None)

    def delete(self, path: Path, recursive: bool) -> None:
        self._change()
        path.unlink(missing_ok=True)

    def rename(self, old: Path, new: Path) -> None:
        assert not new.exists(), "not every file system renames over another file"
        self._change()
        old.rename(new)


class Place(type(Path())):  # type: ignore[misc]
    """A path that knows its file system, as Hadoop's do."""

    files: Files

    def getFileSystem(self, _: Any) -> Files:
        return self.files


def checkpoint(folder: Path, changes: int = 1000) -> tuple[Checkpoint, Files]:
    files = Files(changes)
    place = type("Here", (Place,), {"files": files})
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=place))))
    )
    spark = SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    return Checkpoint(spark, str(folder), "trades"), files  # type: ignore[arg-type]


def asked(statement: str = "SELECT 1") -> dict[str, Asked]:
    return {"top": Asked(statement, {"trades": "files"}, {"x": "bigint"}, "16")}


def test_a_run_that_is_killed_between_any_two_steps_can_go_on(tmp_path: Path) -> None:
    """It was refused when the old note was gone and the new one had no name yet."""
    reached = 0
    for changes in range(200):
        folder = tmp_path / str(changes)
        folder.mkdir()
        first, _ = checkpoint(folder)
        assert not first.begin(asked())
        (folder / "trades").mkdir()
        (folder / "trades" / "metadata").write_text("Spark's")
        second, files = checkpoint(folder, changes)
        try:
            assert second.begin(asked())
        except Killed:
            reached += 1
        third, _ = checkpoint(folder)
        assert third.queries() == {"top"}
        with pytest.raises(PipelineChanged, match="is not the one"):
            third.begin(asked("SELECT 2"))
        assert third.begin(asked())
        if files.left:
            break
    assert reached > 3, "it was killed before, in the middle of and after each write"


def test_a_first_run_that_is_killed_while_it_notes_starts_anew(tmp_path: Path) -> None:
    for changes in range(10):
        folder = tmp_path / str(changes)
        folder.mkdir()
        first, _ = checkpoint(folder, changes)
        with pytest.raises(Killed):
            first.begin(asked())
        again, _ = checkpoint(folder)
        assert again.queries() in (set(), {"top"})
        assert not again.begin(asked())


def test_a_checkpoint_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "metadata").write_text("Spark's")
    with pytest.raises(PipelineChanged, match="did not write"):
        checkpoint(tmp_path)[0].begin(asked())
