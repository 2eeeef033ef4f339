"""Example: files of a checkpoint that are cut short, emptied or changed, and what is said of them."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pytest

from skyband.pipelines.damage import damaged, explained

PIECE = 8  # bytes that have a checksum of their own; Hadoop's are larger


def put(path: Path, content: bytes, *, with_checksum: bool = True) -> None:
    """As Hadoop writes a file on a local disk: its checksums are in another one beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if with_checksum:
        pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
        sums = b"".join(zlib.crc32(piece).to_bytes(4, "big") for piece in pieces)
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + PIECE.to_bytes(4, "big") + sums)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "trades_1"
    put(folder / "metadata", b'{"id":"7"}')
    put(folder / "offsets" / "0", b'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}\n-')
    put(folder / "commits" / "0", b'v1\n{"nextBatchWatermarkMs":0}', with_checksum=False)
    put(folder / "state" / "0" / "0" / "1.changelog", bytes(range(40)))
    put(folder / "sources" / "0" / "0", b"v1\nanything")
    with zipfile.ZipFile(folder / "state" / "0" / "0" / "1.zip", "w") as archive:
        archive.writestr("000008.sst", "x" * 100)
    return folder


def test_a_checkpoint_as_spark_writes_it(checkpoint: Path) -> None:
    assert list(damaged(checkpoint)) == []


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("metadata", lambda whole: b"", "it is empty"),
        ("offsets/0", lambda whole: whole[:-3], "its checksum does not match"),
        ("commits/0", lambda whole: whole[:-3], "it is truncated"),
        ("commits/0", lambda whole: whole[:2], "it is truncated"),
        ("commits/0", lambda whole: b"\xff" + whole, "it is not text"),
        ("commits/0", lambda whole: b"x" + whole, "it does not begin with a version"),
        ("state/0/0/1.changelog", lambda whole: whole[:9] + b"!" + whole[10:], "its checksum does not match"),
        ("state/0/0/1.changelog", lambda whole: whole[:16], "its checksum does not match"),
        ("state/0/0/1.zip", lambda whole: whole[: len(whole) // 2], "it is not a complete archive of a state"),
        ("state/0/0/1.zip", lambda whole: whole.replace(b"xxx", b"xyx", 1), "does not match its checksum"),
    ],
)
def test_the_file_is_named(checkpoint: Path, name: str, change: object, why: str) -> None:
    path = checkpoint / name
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    found = list(damaged(checkpoint))
    assert [where for where, _ in found] == [path]
    assert why in found[0][1]
    said = explained("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error\n\tat x", str(checkpoint), "trades_1.json")
    assert said is not None
    assert f"{path}: " in said
    lost = "what the query has read and held" if "state" in name else "how far it has read"
    assert f"With it, {lost} is lost. If you have a copy of the whole folder, restore it" in said
    assert "remove the folder and trades_1.json" in said
    assert "\tat " not in said


def test_a_file_that_is_gone_is_named(checkpoint: Path) -> None:
    gone = checkpoint / "state" / "0" / "0" / "1.changelog"
    gone.unlink()
    said = explained(f"java.io.FileNotFoundException: File file:{gone} does not exist", str(checkpoint), "note")
    assert said is not None
    assert f"{gone}: it is gone" in said
    assert "what the query has read and held is lost" in said
    assert (
        explained("java.io.FileNotFoundException: File /in/1.parquet does not exist", str(checkpoint), "note") is None
    )


def test_a_checkpoint_that_was_moved_is_to_be_moved_back(checkpoint: Path) -> None:
    """Spark keeps the whole path of a state's schema."""
    before = "/elsewhere/trades_1/state/0/0/1.zip"
    said = explained(f"java.io.FileNotFoundException: File file:{before} does not exist", str(checkpoint), "note")
    assert said is not None
    assert f"{checkpoint} was written in another folder" in said
    assert f"{before} is not there any more. Move the checkpoint back" in said
    assert "lost" not in said


def test_errors_of_others_are_not_taken_for_damage(checkpoint: Path) -> None:
    assert explained("Connection refused", str(checkpoint), "note") is None
    assert explained("java.io.EOFException", str(checkpoint), "note") is None, "all of its files are whole"
    said = explained("[CANNOT_LOAD_STATE_STORE.X] No.\nmore", "s3a://bucket/checkpoint", "note")
    assert said is not None
    assert "cannot see which of its files is damaged: [CANNOT_LOAD_STATE_STORE.X] No." in said
    (checkpoint / "offsets" / "0").write_bytes(b"")
    assert "offsets/0: it is empty" in str(explained("java.io.EOFException", f"file://{checkpoint}", "note"))
