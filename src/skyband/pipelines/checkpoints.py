"""The description of a query beside its checkpoint, so that a changed query is refused with a clear message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from skyband.dialect.text import read, write
from skyband.errors import PipelineChanged
from skyband.pipelines.model import Pipeline, Query


@dataclass(frozen=True)
class Asked:
    """What must stay as it is while a checkpoint is used. Sinks, triggers and readers' options may change."""

    statement: str  # without the blanks and breaks that mean nothing
    sources: dict[str, dict[str, str | None]]
    columns: dict[str, str]
    buckets: str


def asked_by(pipeline: Pipeline, query: Query, columns: dict[str, str], buckets: str) -> Asked:
    """What `query` asks; `columns` of its sources, as Spark has them."""
    sources = {name: pipeline.sources[name].identity() for name in columns}
    return Asked(write(read(query.sql)), sources, columns, buckets)


def differences(before: dict[str, Any], now: dict[str, Any], path: str = "") -> list[str]:
    """What changed, a line each.

    >>> differences({"a": 1, "b": {"c": "x"}}, {"a": 1, "b": {"c": "y"}})
    ['b.c: was x, is y']
    """
    lines = []
    for key in [*before, *(key for key in now if key not in before)]:
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            lines += differences(old, new, f"{path}{key}.")
        elif old != new:
            lines.append(f"{path}{key}: was {old or 'not there'}, is {new or 'not there'}")
    return lines


class Checkpoint:
    """The checkpoint of one stream, and the note beside it, wherever Spark can write: on Hadoop's file systems."""

    def __init__(self, spark: SparkSession, folder: str, stream: str) -> None:
        self._jvm: Any = spark._jvm
        self._settings = spark._jsc.hadoopConfiguration()
        self.location = f"{folder.rstrip('/')}/{stream}"
        self.note = f"{self.location}.json"
        self._new = f"{self.note}.new"

    def queries(self) -> set[str]:
        """The queries that it was written by; none if there is no such checkpoint."""
        noted = self._noted()
        return set() if noted is None else set(json.loads(self._read(noted)))

    def begin(self, asked: Mapping[str, Asked]) -> bool:
        """Note what is asked; refuse if something else was. True: there is something to go on from."""
        now = json.loads(json.dumps({name: asdict(one) for name, one in asked.items()}))
        known, noted = self._is_known(), self._noted()
        if known and noted is None:
            raise PipelineChanged(
                f"{self.location} is a checkpoint that `skyband run` did not write. Name another folder: "
                'checkpoint = "…".'
            )
        if known and noted is not None:
            self._compare(json.loads(self._read(noted)), now)
        self._write(json.dumps(now, indent=2) + "\n")
        return known

    def _compare(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        for name, asked in now.items():
            changed = differences(before.get(name, {}), asked)
            if changed:
                lines = "\n".join(f"  {line}" for line in changed)
                raise PipelineChanged(
                    f"Query {name!r} is not the one that its checkpoint was written by:\n{lines}\n"
                    "The checkpoint has the state of the old query. Possible: undo the change; give the query "
                    f"another name; or, to start everything again, delete {self.location} and the answers."
                )

    def exists_in(self, folder: str, beginning: str) -> bool:
        """Is there something in `folder` whose name begins so?"""
        path = self._path(folder)
        files = path.getFileSystem(self._settings)
        return files.exists(path) and any(
            each.getPath().getName().startswith(beginning) for each in files.listStatus(path)
        )

    def _exists(self, place: str) -> bool:
        path = self._path(place)
        return bool(path.getFileSystem(self._settings).exists(path))

    def _is_known(self) -> bool:
        """Has Spark written a checkpoint there?"""
        return self._exists(f"{self.location}/metadata")

    def _noted(self) -> str | None:
        """Where the note is: under its new name if a run was killed between the last two steps of `_write`."""
        if self._exists(self.note):
            return self.note
        return self._new if self._is_known() and self._exists(self._new) else None

    def _read(self, place: str) -> str:
        path = self._path(place)
        stream = path.getFileSystem(self._settings).open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _write(self, text: str) -> None:
        """Whole or not at all: a new file takes the name when it is done."""
        path, new = self._path(self.note), self._path(self._new)
        files = path.getFileSystem(self._settings)
        stream = files.create(new, True)
        stream.write(text.encode())
        stream.close()
        files.delete(path, False)
        files.rename(new, path)

    def _path(self, place: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(place)
