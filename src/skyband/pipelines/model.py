"""The contents of a pipeline file as values: sources, queries, sinks. Nothing here has been resolved or run.

`Places` finds their lines, and `together` makes one error of several mistakes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from skyband.errors import InvalidPipeline
from skyband.pipelines.secrets import references

TEXT_FILES: Final = ("json", "csv")  # whose records are lines that can be bad

REMOTE: Final = "spark.remote"  # the setting that names a server of Spark Connect

AVAILABLE_NOW: Final = "available now"  # as a trigger: what is there, and then stop

Options = Mapping[str, str]


@dataclass(frozen=True)
class Source:
    """Where rows come from. Which of the fields there are depends on the format."""

    name: str
    format: str  # of files: Spark's name for it; else rate, socket, kafka, table
    path: str | None = None
    table: str | None = None
    servers: str | None = None
    topic: str | None = None
    schema: str | None = None  # columns as Spark SQL writes them: "ts TIMESTAMP, price DOUBLE"
    time: str | None = None  # the column of event time: a record without it is a bad one
    lateness: str | None = None
    dead_letters: str | None = None  # the sink for bad records
    stream: bool = True  # else all of it is read at the start, as a table to join with
    options: Options = field(default_factory=dict)

    @property
    def is_text(self) -> bool:
        """Do rows come as text to be parsed? Then the schema says what is in it."""
        return self.format in ("kafka", "socket") or (self.format in TEXT_FILES and self.dead_letters is not None)

    def identity(self) -> dict[str, str | None]:
        """What makes it the same source the next time; readers' options may change."""
        return {key: getattr(self, key) for key in ("format", "path", "table", "topic", "lateness")}


@dataclass(frozen=True)
class Query:
    name: str
    sql: str
    to: tuple[str, ...]  # names of sinks


@dataclass(frozen=True)
class Sink:
    """Where answers go. In `path`, `table`, `topic` and `board`, {query} stands for the query's name."""

    name: str
    format: str  # of files: Spark's name for it; else delta, iceberg, console, memory, kafka, jdbc, leaderboard
    path: str | None = None
    table: str | None = None
    url: str | None = None
    servers: str | None = None
    topic: str | None = None
    board: str | None = None
    member: str | None = None
    key: tuple[str, ...] = ()
    options: Options = field(default_factory=dict)

    @property
    def place(self) -> str | None:
        """What two queries must not share, unless {query} is part of it."""
        return self.table or self.path or self.board  # a table of Iceberg may have a path, which is its catalog's


class Address(NamedTuple):
    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> Address | None:
        """From host:port; None: it is none."""
        host, _, port = text.rpartition(":")
        if not host or not port.isascii() or not port.isdecimal() or int(port[:6]) > 65_535:
            return None
        return cls(host.strip("[]"), int(port))


HERE: Final = Address("127.0.0.1", 8765)  # where answers are served unless another address is named


@dataclass(frozen=True)
class Pipeline:
    """One file."""

    file: Path
    name: str
    checkpoint: str
    trigger: str | None  # a duration, AVAILABLE_NOW, or None: a micro-batch as soon as there are rows
    sources: Mapping[str, Source]
    queries: Mapping[str, Query]
    sinks: Mapping[str, Sink]
    spark: Options
    places: Places
    serve: Address | None = None  # where answers are served over HTTP
    broken: frozenset[tuple[str, str]] = frozenset()  # ("sources", name): what is in the file and could not be read

    def wrong(self, problem: str, *path: str) -> InvalidPipeline:
        """The error for what is wrong with the key at `path`."""
        return InvalidPipeline(f"{self.file.name}:{self.places.line(path)}: {problem}")

    @property
    def broken_sources(self) -> list[str]:
        """Sources that could not be read, which was said: nothing more is said of whoever reads them."""
        return sorted(name for kind, name in self.broken if kind == "sources")

    def secret_names(self) -> set[str]:
        """All that the file takes from the environment."""
        return {name for text in self._texts() for name in references(text)}

    @property
    def remote(self) -> str | None:
        """The server of Spark Connect that it runs on; None: it has a session of its own."""
        given = None if "spark.master" in self.spark else os.environ.get("SPARK_REMOTE")
        return self.spark.get(REMOTE, given) or None

    def located(self, text: str) -> str:
        """A path of the file as seen from anywhere: what is relative is so to the file's folder."""
        if "://" in text or Path(text).is_absolute():
            return text
        if self.remote is not None:
            raise self.wrong(
                f"{text!r} is relative to this file, which the server of Spark Connect does not have. Write a whole "
                "path of the server, or an address."
            )
        return str(self.file.parent.resolve() / text)

    def on_this_machine(self, text: str) -> Path | None:
        """Where a path of the file is on this machine; None: it is elsewhere, or only the environment tells."""
        if self.remote is not None:
            return None
        place = urlsplit(self.located(text))
        if "$" in text or place.scheme not in ("", "file"):
            return None
        return Path(unquote(place.path) if place.scheme else self.located(text))

    def _texts(self) -> Iterator[str]:
        yield self.checkpoint
        yield from self.spark.values()
        parts: list[Source | Sink] = [*self.sources.values(), *self.sinks.values()]
        for part in parts:
            yield from part.options.values()
            yield from (value for value in vars(part).values() if isinstance(value, str))


def together(mistakes: Sequence[InvalidPipeline]) -> InvalidPipeline:
    """All of them, one below the other.

    >>> print(together([InvalidPipeline("a.toml:1: No."), InvalidPipeline("a.toml:3: Nor this.")]))
    a.toml:1: No.
    a.toml:3: Nor this.
    """
    return mistakes[0] if len(mistakes) == 1 else InvalidPipeline("\n".join(map(str, mistakes)))


_HEADER: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$")
_KEY: Final = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART: Final = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_QUOTES: Final = ('"""', "'''")

Place = tuple[str, ...]


class Places:
    """The lines of the tables and keys of a TOML text, counted from 1: tomllib returns only values."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Place, int] = {}
        table: Place = ()
        closing: str | None = None  # what ends the string of several lines that we are in
        for number, line in enumerate(text.splitlines(), start=1):
            if closing is not None:
                closing = None if closing in line else closing
                continue
            if header := _HEADER.match(line):
                table = _parts(header[1])
                self._note(table, number)
            elif key := _KEY.match(line):
                self._note(table + _parts(key[1]), number)
                value = line[key.end() :].lstrip()
                quote = next((quote for quote in _QUOTES if value.startswith(quote)), None)
                closing = quote if quote and quote not in value[3:] else None

    def line(self, path: Sequence[str]) -> int:
        """The line of a key; of what it is in, if it has none of its own, as in an inline table."""
        key = tuple(path)
        while key and key not in self._lines:
            key = key[:-1]
        return self._lines.get(key, 1)

    def _note(self, path: Place, number: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], number)


def _parts(text: str) -> Place:
    return tuple(part.strip("\"'") for part in _PART.findall(text))
