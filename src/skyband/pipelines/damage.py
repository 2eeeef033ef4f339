"""Finds damaged files of a checkpoint, and says what is lost and what to do; Spark's own messages do not."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

_OF_A_CHECKPOINT: Final = re.compile(
    r"CANNOT_LOAD_STATE_STORE|STDS_\w+|CANNOT_READ_STREAMING_STATE|[Ll]og file was malformed|[Ii]ncomplete log file"
    r"|MALFORMED_(LOG|CHECKPOINT)\w*|INVALID_CHANGE_LOG\w*|Error reading (streaming )?(state|metadata)"
)
_PERHAPS: Final = re.compile(r"ChecksumException|EOFException|ZipException|[Mm]alformed|[Cc]orrupt")  # or of a source
_GONE: Final = re.compile(r"File (?:file:)?(/\S+) does not exist")
_LOGS: Final = ("offsets", "commits")  # one text a micro-batch: a version, then JSON


def explained(error: str, location: str, note: str) -> str | None:
    """What to say of an error that comes from a damaged checkpoint at `location`, with its note beside it; None: it
    comes from elsewhere."""
    is_sure, folder = _OF_A_CHECKPOINT.search(error), _local(location)
    gone = _gone(error, folder)
    if not is_sure and not _PERHAPS.search(error) and location not in error and gone is None:
        return None
    found = [] if folder is None or not folder.is_dir() else list(damaged(folder))
    if gone is not None and folder is not None:
        if not gone.is_relative_to(folder):
            return (
                f"The checkpoint {location} was written in another folder, and Spark keeps whole paths in it: {gone} "
                "is not there any more. Move the checkpoint back to where it was."
            )
        found.append((gone, "it is gone"))
    if not found and not is_sure:
        return None
    which = (
        "\n".join(f"  {path}: {why}" for path, why in found)
        if found
        else f"  Skyband cannot see which of its files is damaged: {error.strip().splitlines()[0]}"
    )
    is_state = any("state" in path.parts for path, _ in found)
    lost = "what the query has read and held" if is_state else "how far it has read"
    return (
        f"The checkpoint {location} cannot be read:\n{which}\n"
        f"With it, {lost} is lost. If you have a copy of the whole folder, restore it. Otherwise remove the folder and "
        f"{note}: the query then starts again at the beginning of its sources. Sinks with a key replace repeated "
        "answers; empty the other sinks first."
    )


def _gone(error: str, folder: Path | None) -> Path | None:
    """The file that an error misses, if it is one of this checkpoint, or was one where the checkpoint was before."""
    missed = _GONE.search(error)
    if missed is None or folder is None:
        return None
    path = Path(missed[1])
    _, name, rest = str(path).rpartition(f"/{folder.name}/")
    return path if path.is_relative_to(folder) or (name and (folder / rest).exists()) else None


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files of a checkpoint on this machine that cannot be what Spark wrote, and why."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        why = _wrong_with(path, path.relative_to(folder).parts)
        if why is not None:
            yield path, why


def _wrong_with(path: Path, parts: tuple[str, ...]) -> str | None:
    if path.stat().st_size == 0:
        return "it is empty"
    if not _checksum_fits(path):
        return "its checksum does not match: it is truncated, or somebody changed it"
    if path.suffix == ".zip":
        return _wrong_with_zip(path)
    if parts[0] == "metadata" or (parts[0] in _LOGS and path.name.isdigit()):
        return _wrong_with_text(path, has_version=parts[0] in _LOGS)
    return None


def _checksum_fits(path: Path) -> bool:
    """Hadoop writes the checksum of each piece of a file on a local disk into a file beside it."""
    beside = path.with_name(f".{path.name}.crc")
    known = beside.read_bytes() if beside.is_file() else b""
    if known[:4] != b"crc\0" or len(known) < 8:
        return True  # nothing is known
    size, data = int.from_bytes(known[4:8], "big"), path.read_bytes()
    sums = b"".join(zlib.crc32(data[at : at + size]).to_bytes(4, "big") for at in range(0, len(data), max(1, size)))
    return sums == known[8:]


def _wrong_with_zip(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
    except (zipfile.BadZipFile, OSError) as error:
        return f"it is not a complete archive of a state ({error})"
    return None if broken is None else f"{broken} in it does not match its checksum"


def _wrong_with_text(path: Path, *, has_version: bool) -> str | None:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        return f"it is not text ({error})"
    if has_version and not re.fullmatch(r"v\d+", lines[0]):
        return "it does not begin with a version"
    for line in lines[has_version:]:
        try:
            if line != "-":  # a source that had not begun
                json.loads(line)
        except ValueError:
            return "it is truncated, or contains something that Spark did not write"
    return None if len(lines) > has_version else "it is truncated"


def _local(location: str) -> Path | None:
    """Where a checkpoint is on this machine; None: it is elsewhere."""
    place = urlparse(location)
    return Path(unquote(place.path) if place.scheme else location) if place.scheme in ("", "file") else None
