"""Fault tests of the note beside a checkpoint: a run that is killed between any two steps leaves one that can go on.

On this machine it is a plain file; elsewhere Spark's own readers and writers bring it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from skyband.errors import PipelineChanged
from skyband.pipelines import checkpoints
from skyband.pipelines.checkpoints import Asked, Checkpoint
from skyband.pipelines.files import LocalFiles, SparkFiles, files_at


class Killed(BaseException):
    """The process is gone."""


class Elsewhere:
    """Spark's files as they are while a run is killed: a folder is gone, then there, whole, under its name."""

    def __init__(self, folder: Path, changes: int) -> None:
        self._folder, self.left = folder, changes

    def _change(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def read(self, place: str) -> str | None:
        return LocalFiles().read(place)

    def write(self, place: str, text: str) -> None:
        for name in (f"{place}.new", place):
            self._change()
            Path(name).unlink(missing_ok=True)
            self._change()
            Path(name).write_text(text)

    def exists(self, place: str) -> bool:
        return LocalFiles().exists(place)

    def exists_in(self, folder: str, beginning: str) -> bool:
        return LocalFiles().exists_in(folder, beginning)


class Here(LocalFiles):
    """A disk whose changes are counted."""

    def __init__(self, changes: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, replace, sync = changes, os.replace, os.fsync

        def step(change: Any) -> Any:
            def changed(*given: Any) -> None:
                if self.left == 0:
                    raise Killed
                self.left -= 1
                change(*given)

            return changed

        monkeypatch.setattr("skyband.pipelines.files.os.replace", step(replace))
        monkeypatch.setattr("skyband.pipelines.files.os.fsync", step(sync))  # before it, nothing is sure


def checkpoint(
    folder: Path, monkeypatch: pytest.MonkeyPatch, changes: int = 1000, kind: str = "here"
) -> tuple[Checkpoint, Here | Elsewhere]:
    monkeypatch.undo()
    files = Here(changes, monkeypatch) if kind == "here" else Elsewhere(folder, changes)
    monkeypatch.setattr(checkpoints, "files_at", lambda *_: files)
    return Checkpoint(None, str(folder), "trades"), files  # type: ignore[arg-type]  # no Spark is asked


def asked(statement: str = "SELECT 1") -> dict[str, Asked]:
    return {"top": Asked(statement, {"trades": "files"}, {"x": "bigint"}, "16")}


@pytest.mark.parametrize("kind", ["here", "elsewhere"])
def test_a_run_that_is_killed_between_any_two_steps_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It was refused when the old note was gone and the new one had no name yet."""
    reached = 0
    for changes in range(200):
        folder = tmp_path / str(changes)
        folder.mkdir()
        first, _ = checkpoint(folder, monkeypatch, kind=kind)
        assert not first.begin({**asked(), "other": asked()["top"]})
        (folder / "trades").mkdir()
        (folder / "trades" / "metadata").write_text("Spark's")
        second, files = checkpoint(folder, monkeypatch, changes, kind)
        try:
            assert second.begin(asked())  # without the other query
        except Killed:
            reached += 1
        third, _ = checkpoint(folder, monkeypatch, kind=kind)
        assert "top" in third.queries()
        with pytest.raises(PipelineChanged, match="has changed since it wrote"):
            third.begin(asked("SELECT 2"))
        assert third.begin(asked())
        if files.left:
            break
    assert reached == {"here": 2, "elsewhere": 4}[kind], "it was killed before, in the middle of and after each write"


@pytest.mark.parametrize(("kind", "steps"), [("here", 2), ("elsewhere", 4)])
def test_a_first_run_that_is_killed_while_it_notes_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, steps: int
) -> None:
    for changes in range(steps):
        folder = tmp_path / str(changes)
        folder.mkdir()
        first, _ = checkpoint(folder, monkeypatch, changes, kind)
        with pytest.raises(Killed):
            first.begin(asked())
        again, _ = checkpoint(folder, monkeypatch, kind=kind)
        assert again.queries() in (set(), {"top"})
        assert not again.begin(asked())


def test_a_checkpoint_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "metadata").write_text("Spark's")
    with pytest.raises(PipelineChanged, match="did not write"):
        checkpoint(tmp_path, monkeypatch)[0].begin(asked())


def test_the_note_of_an_earlier_version_is_read_and_replaced(tmp_path: Path) -> None:
    """Hadoop wrote it, with a checksum beside that would be wrong of ours."""
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "metadata").write_text("Spark's")
    checksum = tmp_path / ".trades.json.crc"
    place = tmp_path.as_uri()
    (tmp_path / "trades.json.new").write_text(json.dumps(dict.fromkeys(("top", "other"), vars(asked()["top"]))))
    checksum.write_text("of the old one")
    old = Checkpoint(None, place, "trades")  # type: ignore[arg-type]
    assert old.queries() == {"top", "other"}
    assert old.begin(asked())
    assert set(json.loads((tmp_path / "trades.json").read_text())) == {"top"}
    assert not checksum.exists()


@pytest.mark.spark
def test_elsewhere_spark_reads_and_writes(spark: SparkSession, tmp_path: Path) -> None:
    """By a folder of this machine that is taken for another's."""
    files, place = SparkFiles(spark), f"{tmp_path.as_uri()}/note.json"
    assert files.read(place) is None
    assert not files.exists(place)
    assert not files.exists_in(tmp_path.as_uri(), "note")
    (tmp_path / "note.json").write_text('{"an earlier": "version"}')
    assert files.read(place) == '{"an earlier": "version"}'
    assert files.exists(place)
    for text in ('{"one": 1,\n "two": "…"}\n', '{"three": 3}\n'):
        files.write(place, text)
        assert json.loads(str(files.read(place))) == json.loads(text)
        assert json.loads(str(files.read(f"{place}.new"))) == json.loads(text)
    assert files.exists_in(tmp_path.as_uri(), "note")
    assert not files.exists_in(tmp_path.as_uri(), "other")
    # A run through Spark Connect leaves a folder; one on this machine reads it, and puts a file there.
    files.write(place, "through Spark")
    assert LocalFiles().read(place) == "through Spark\n"
    LocalFiles().write(place, "here")
    assert LocalFiles().read(place) == files.read(place) == "here"
    assert isinstance(files_at(spark, str(tmp_path)), LocalFiles), "Spark finds a path without a scheme on this machine"
    assert isinstance(files_at(spark, "hdfs://name/state"), SparkFiles)
