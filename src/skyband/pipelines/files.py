"""The few files of our own beside checkpoints: plain files on this machine, and Spark's readers and writers elsewhere.

Spark knows the addresses and secrets of every place that a checkpoint can be in. Its public readers and writers are
enough for a note: it is a folder with one file of text, as Spark writes them.
"""

from __future__ import annotations

import os
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from skyband.engines.spark.session import is_connect

NEW: Final = ".new"  # behind the name of a text that is not in its place yet
_NOT_FOUND: Final = "PATH_NOT_FOUND"


class Files(Protocol):
    def read(self, place: str) -> str | None:
        """A text that was written; None: there is none, or no whole one."""
        ...

    def write(self, place: str, text: str) -> None:
        """Put a text in the place of another: whoever is killed meanwhile leaves one of them."""
        ...

    def exists(self, place: str) -> bool:
        """Is this file there?"""
        ...

    def exists_in(self, folder: str, beginning: str) -> bool:
        """Is there something in `folder` whose name begins so?"""
        ...


def files_at(spark: SparkSession, folder: str) -> Files:
    """For the files in a folder, or at an address. Without a scheme they are where Spark's driver finds them, which is
    not this machine if `spark` is a session of Spark Connect."""
    if is_connect(spark):
        return SparkFiles(spark)
    scheme = urlsplit(folder).scheme or _default_scheme(spark)
    return LocalFiles() if scheme == "file" else SparkFiles(spark)


class LocalFiles:
    """Files of this machine."""

    def read(self, place: str) -> str | None:
        path = _path(place)
        if path.is_dir():  # a run through Spark Connect wrote it
            path = next(iter(sorted(path.glob("part-*"))), path / "part-")
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, place: str, text: str) -> None:
        path = _path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's, of the text before
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(new, path)

    def exists(self, place: str) -> bool:
        return _path(place).exists()

    def exists_in(self, folder: str, beginning: str) -> bool:
        path = _path(folder)
        return path.is_dir() and any(each.name.startswith(beginning) for each in path.iterdir())


class SparkFiles:
    """Files wherever Spark reads and writes. What is in a folder of Spark's is whole: it gets its name when it is done.

    But a folder is gone while it is replaced. So a text is written under another name first.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def read(self, place: str) -> str | None:
        if not self._listed(place):
            return None
        ((text,),) = self._spark.read.text(place, wholetext=True).collect()
        return str(text)

    def write(self, place: str, text: str) -> None:
        row = self._spark.range(1).select(sf.lit(text).alias("value")).coalesce(1)
        for name in (f"{place}{NEW}", place):
            row.write.mode("overwrite").text(name)

    def exists(self, place: str) -> bool:
        return bool(self._listed(place))

    def exists_in(self, folder: str, beginning: str) -> bool:
        name = folder.rstrip("/").rpartition("/")[2]
        below = self._listed(folder, recursive=True)
        return any(path.rpartition(f"/{name}/")[2].startswith(beginning) for path in below)

    def _listed(self, place: str, *, recursive: bool = False) -> list[str]:
        """The files in a folder, or the file itself; none if nothing is there."""
        reader = self._spark.read.format("binaryFile").option("recursiveFileLookup", recursive)
        try:
            return [str(path) for (path,) in reader.load(place).select("path").collect()]
        except AnalysisException as error:
            if error.getCondition() != _NOT_FOUND:
                raise
            return []


@lru_cache(maxsize=1)
def _default_scheme(spark: SparkSession) -> str:
    """Where Spark looks for a path without a scheme: on a cluster it may be another place than this machine. What it
    says of a path that is not there begins with it."""
    try:
        spark.read.text(f"/skyband-{uuid4().hex}").schema  # noqa: B018
    except AnalysisException as error:
        if error.getCondition() == _NOT_FOUND:
            return urlsplit((error.getMessageParameters() or {}).get("path", "file:")).scheme
    return "file"


def _path(place: str) -> Path:
    address = urlsplit(place)
    return Path(unquote(address.path) if address.scheme else place)
