"""What a pipeline file says about things outside it, as far as this machine shows them: servers, jars, checkpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from skyband.dialect.text import read, write
from skyband.errors import InvalidPipeline, SkybandError
from skyband.pipelines.checkpoints import differences, refusal
from skyband.pipelines.model import Pipeline, Query, Sink, Source


def outside(pipeline: Pipeline) -> Iterator[InvalidPipeline]:
    """What `skyband run` would refuse, or Spark would fail over, after a minute."""
    for source in pipeline.sources.values():
        try:
            check_servers(pipeline, source)
        except InvalidPipeline as mistake:
            yield mistake
    yield from _missing_jars(pipeline)
    yield from _changed_queries(pipeline)


def check_servers(pipeline: Pipeline, part: Source | Sink) -> None:
    """Raise unless the servers of Kafka are hosts with ports."""
    for server in [] if part.servers is None or "$" in part.servers else part.servers.split(","):
        if not re.fullmatch(r"\s*[^\s:/]+:\d+\s*", server):
            kind = "sources" if isinstance(part, Source) else "sinks"
            raise pipeline.wrong(
                f'servers = {part.servers!r}: each is a host and a port, as in "localhost:9092".',
                *(kind, part.name, "servers"),
            )


def _missing_jars(pipeline: Pipeline) -> Iterator[InvalidPipeline]:
    """Spark looks for jars from the folder in which it is started."""
    for jar in pipeline.spark.get("spark.jars", "").split(","):
        path = Path(jar.strip().removeprefix("file://").removeprefix("file:"))
        if jar.strip() and not re.search(r"[$*?\[{]|^(?!file:)\w+:", jar.strip()) and not path.is_file():
            yield pipeline.wrong(
                f"spark.jars names {jar.strip()!r}, which is no file"
                + ("." if path.is_absolute() else f" in {Path.cwd()}: write its whole path."),
                *("spark", "spark.jars"),
            )


def _changed_queries(pipeline: Pipeline) -> Iterator[InvalidPipeline]:
    """Queries that are not those that a checkpoint on this machine was written by, as its note says."""
    folder = pipeline.on_this_machine(pipeline.checkpoint)
    for note in sorted(folder.glob("*.json")) if folder is not None else []:
        checkpoint = note.with_suffix("")
        if not (checkpoint / "metadata").exists():
            continue  # no run has begun it
        try:
            noted: dict[str, Any] = json.loads(note.read_text())
        except (OSError, ValueError):
            continue  # `run` says what is wrong with it
        for query in (pipeline.queries[name] for name in noted if name in pipeline.queries):
            changed = differences(noted[query.name], _now(pipeline, query, noted[query.name]))
            if changed:
                yield pipeline.wrong(refusal(query.name, changed, str(checkpoint)), "queries", query.name, "sql")


def _now(pipeline: Pipeline, query: Query, before: dict[str, Any]) -> dict[str, Any]:
    """What the note would say now, of what is known without Spark."""
    now = dict(before)
    with suppress(SkybandError):  # which is said elsewhere
        now["statement"] = write(read(query.sql))
    known = {name: source.identity() for name, source in pipeline.sources.items()}
    return now | {"sources": {name: known.get(name, was) for name, was in before.get("sources", {}).items()}}
