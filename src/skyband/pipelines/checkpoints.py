"""The description of a query beside its checkpoint, so that a changed query is refused with a clear message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from skyband.dialect.text import read, write
from skyband.errors import PipelineChanged
from skyband.pipelines.files import NEW, files_at
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


def refusal(query: str, changed: list[str], checkpoint: str) -> str:
    """What is said of a query that has changed."""
    lines = "\n".join(f"  {line}" for line in changed)
    return (
        f"Query {query!r} has changed since it wrote its checkpoint:\n{lines}\n"
        "The checkpoint has the state of the old query. Possible: undo the change; give the query another name; or, to "
        f"start everything again, delete {checkpoint} and the answers."
    )


class Checkpoint:
    """The checkpoint of one stream, and the note beside it, wherever Spark can write."""

    def __init__(self, spark: SparkSession, folder: str, stream: str) -> None:
        self._spark, self._files = spark, files_at(spark, folder)
        self.location = f"{folder.rstrip('/')}/{stream}"
        self.note = f"{self.location}.json"

    def queries(self) -> set[str]:
        """The queries that it was written by; none if there is no such checkpoint."""
        return set(self._noted() or {})

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
            for name in now:
                changed = differences(noted.get(name, {}), now[name])
                if changed:
                    raise PipelineChanged(refusal(name, changed, self.location))
        if noted != now:
            self._files.write(self.note, json.dumps(now, indent=2) + "\n")
        return known

    def exists_in(self, folder: str, beginning: str) -> bool:
        """Is there something in `folder` whose name begins so?"""
        return files_at(self._spark, folder).exists_in(folder, beginning)

    def _is_known(self) -> bool:
        """Has Spark written a checkpoint there?"""
        return self._files.exists(f"{self.location}/metadata")

    def _noted(self) -> dict[str, Any] | None:
        """What the note says. It may have another name if a run was killed between two steps."""
        text = self._files.read(self.note)
        if text is None and self._is_known():
            text = self._files.read(f"{self.note}{NEW}")
        return None if text is None else json.loads(text)
