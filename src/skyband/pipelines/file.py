"""A pipeline file, read and checked for shape: every mistake comes with its line and with what is possible there."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from skyband.errors import InvalidPipeline, SkybandError
from skyband.pipelines.model import (
    AVAILABLE_NOW,
    HERE,
    TEXT_FILES,
    Address,
    Options,
    Pipeline,
    Places,
    Query,
    Sink,
    Source,
    together,
)
from skyband.pipelines.secrets import is_exposed
from skyband.windows import parse_span

Part = TypeVar("Part")

_TOP: Final = ("name", "checkpoint", "trigger", "sources", "queries", "sinks", "spark", "serve")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

# What each format needs, and what it may have besides. `options` go to Spark's reader or writer by Spark's own names.
_FILES: Final = ("parquet", "csv", "json", "orc", "avro", "text", "delta")
_OF_ROWS: Final = ("schema", "time", "lateness", "dead_letters", "options")
_SOURCES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    **dict.fromkeys(_FILES, (("path",), ("schema", "time", "lateness", "stream", "options"))),
    **dict.fromkeys(TEXT_FILES, (("path",), (*_OF_ROWS, "stream"))),
    "rate": ((), ("options",)),
    "socket": (("schema",), _OF_ROWS),
    "kafka": (("servers", "topic", "schema"), _OF_ROWS),
    "table": (("table",), ("time", "lateness", "stream", "options")),
}
_SINKS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    **dict.fromkeys(_FILES, (("path",), ("options",))),
    "delta": (("path",), ("key", "options")),
    "iceberg": (("table",), ("path", "key", "options")),
    "console": ((), ("options",)),
    "memory": ((), ()),
    "kafka": (("servers", "topic"), ("key", "options")),
    "jdbc": (("url", "table"), ("key", "options")),
    "leaderboard": (("url", "board", "member"), ()),
}


def load(file: Path) -> Pipeline:
    """The pipeline in `file`; raises all mistakes of its shape."""
    pipeline, mistakes = read(file)
    if mistakes:
        raise together(mistakes)
    return pipeline


def read(file: Path) -> tuple[Pipeline, list[InvalidPipeline]]:
    """The pipeline in `file` as far as it can be read, and the mistakes of its shape. Raises if nothing can be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidPipeline(f"Cannot read {file}: {error.strerror}. `skyband init` writes a first one.") from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPipeline(_not_toml(file, text, str(error))) from error
    reader = _Reader(file, Places(text))
    return reader.pipeline(content), reader.mistakes


def _not_toml(file: Path, text: str, why: str) -> str:
    found = re.search(r"\(at line (\d+), column \d+\)", why)
    number = int(found[1]) if found else max(1, len(text.splitlines()))
    lines = text.splitlines()
    shown = f"\n  {lines[number - 1]}" if 0 < number <= len(lines) else ""
    return f"{file.name}:{number}: This is not TOML: {re.sub(r' *[(]at .*[)]$', '', why)}.{shown}"


class _Unusable(InvalidPipeline):
    """A part of the file cannot be read, and it was said why."""


class _Reader:
    """Turns what TOML gave into a pipeline, and remembers what is wrong with it: each mistake, and no other because of
    it. A part that cannot be used is left out, and is `broken`."""

    def __init__(self, file: Path, places: Places) -> None:
        self._file, self._places = file, places
        self.mistakes: list[InvalidPipeline] = []
        self._broken: set[tuple[str, str]] = set()

    def wrong(self, problem: str, *path: str) -> InvalidPipeline:
        return InvalidPipeline(f"{self._file.name}:{self._places.line(path)}: {problem}")

    def say(self, problem: str, *path: str) -> None:
        """Remember a mistake that leaves the part that it is in usable."""
        self.mistakes.append(self.wrong(problem, *path))

    def pipeline(self, content: dict[str, Any]) -> Pipeline:
        self._known(content, _TOP, "a pipeline")
        name = self._tried(lambda: self._text(content, "name")) or re.sub(r"\W", "_", self._file.stem)
        if not _NAME.fullmatch(name):
            self.say(f"name = {name!r}: a name has letters, digits and _, a letter first.", "name")
        sources = self._each(content, "sources", self._source)
        sinks = self._each(content, "sinks", self._sink)
        queries = self._each(content, "queries", partial(self._query, sinks=content.get("sinks", {})))
        spark = self._tried(lambda: self._options(content.get("spark", {}), "spark")) or {}
        trigger = self._tried(lambda: self._trigger(self._text(content, "trigger")))
        checkpoint = self._tried(lambda: self._text(content, "checkpoint"))
        if not content.get("queries"):
            self.say('There is no query. A query: [queries.best], sql = "SELECT …", to = "screen".', "queries")
        self._check_dead_letters(sources, sinks)
        self._check_places(queries, sinks, sources)
        return Pipeline(
            file=self._file,
            name=name,
            checkpoint=checkpoint or f".skyband/{name}",
            trigger=trigger,
            sources=sources,
            queries=queries,
            sinks=sinks,
            spark=spark,
            places=self._places,
            serve=self._tried(lambda: self._serve(content.get("serve", False))),
            broken=frozenset(self._broken),
        )

    def _each(self, content: dict[str, Any], key: str, read: Callable[[str, dict[str, Any]], Part]) -> dict[str, Part]:
        """All parts of a kind; the mistakes of each are remembered."""
        found = {name: self._tried(partial(read, name, table)) for name, table in self._tables(content, key)}
        self._broken |= {(key, name) for name, part in found.items() if part is None}
        return {name: part for name, part in found.items() if part is not None}

    def _tried(self, read: Callable[[], Part]) -> Part | None:
        try:
            return read()
        except _Unusable:
            return None
        except InvalidPipeline as mistake:
            self.mistakes.append(mistake)
            return None

    # -- the parts -----------------------------------------------------------------------------------------------------

    def _source(self, name: str, table: dict[str, Any]) -> Source:
        path = ("sources", name)
        kind = self._format(table, _SOURCES, path)
        texts = self._fields(table, _SOURCES[kind], path, f"a source of format {kind}")
        if texts.get("lateness"):
            self._tried(lambda: self._duration(texts["lateness"], *path, "lateness"))
        if texts.get("lateness") and not texts.get("time"):
            self.say('lateness needs time, the column that holds a row\'s time: time = "ts".', *path, "lateness")
        if texts.get("dead_letters") and not texts.get("schema"):
            self.say("dead_letters needs a schema: without one, every record is valid.", *path, "dead_letters")
        stream = table.get("stream", kind != "table")
        if not isinstance(stream, bool):
            self.say(f"stream is true or false, got {stream!r}.", *path, "stream")
            stream = True
        options = self._options(table.get("options", {}), *path, "options")
        if texts.get("dead_letters"):
            self._check_can_be_bad(stream, options, *path)
        return Source(name, kind, stream=stream, options=options, **texts)

    def _check_can_be_bad(self, stream: bool, options: Options, *path: str) -> None:
        if not stream:
            self.say("dead_letters is for streams; Spark reads a table as it is.", *path, "dead_letters")
        if any(name.lower() == "multiline" and value == "true" for name, value in options.items()):
            self.say("With dead_letters each line is a record: leave out multiLine.", *path, "options")

    def _sink(self, name: str, table: dict[str, Any]) -> Sink:
        path = ("sinks", name)
        kind = self._format(table, _SINKS, path)
        key = table.pop("key", [])
        texts = self._fields(table | ({"key": ""} if key else {}), _SINKS[kind], path, f"a sink of format {kind}")
        texts.pop("key", None)
        key = [key] if isinstance(key, str) else key
        if not isinstance(key, list) or not all(isinstance(column, str) for column in key):
            self.say(f"key is a column or a list of columns, got {key!r}.", *path, "key")
            key = []
        options = self._options(table.get("options", {}), *path, "options")
        return Sink(name, kind, key=tuple(key), options=options, **texts)

    def _query(self, name: str, table: dict[str, Any], sinks: Mapping[str, Any]) -> Query:
        path = ("queries", name)
        is_known = self._known(table, ("sql", "to"), f"query {name!r}", *path)
        sql = self._text(table, "sql", *path)
        if not sql or not sql.strip():
            raise self.wrong(f"Query {name!r} has no sql.", *path) if is_known else _Unusable()
        to = table.get("to", [])
        to = [to] if isinstance(to, str) else to
        if not isinstance(to, list) or not to or not all(isinstance(sink, str) for sink in to):
            if is_known or "to" in table:
                self.say(
                    f'Query {name!r} must say where its answers go: to = "screen" or to = ["files", "screen"].', *path
                )
            to = []
        for sink in to:
            if sink not in sinks:
                self.say(f"There is no sink {sink!r}.{_near(sink, sinks, 'Sinks')}", *path, "to")
        return Query(name, sql, tuple(sink for sink in dict.fromkeys(to) if sink in sinks))

    def _check_dead_letters(self, sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> None:
        for source in sources.values():
            path = ("sources", source.name, "dead_letters")
            if source.dead_letters is None or ("sinks", source.dead_letters) in self._broken:
                continue
            if source.dead_letters not in sinks:
                near = _near(source.dead_letters, sinks, "Sinks")
                self.say(f"There is no sink {source.dead_letters!r}.{near}", *path)
            elif sinks[source.dead_letters].format == "leaderboard":
                self.say("Bad records have no rank, so they cannot go to a leaderboard.", *path)

    def _check_places(
        self, queries: Mapping[str, Query], sinks: Mapping[str, Sink], sources: Mapping[str, Source]
    ) -> None:
        """No two queries write to one folder, table or board: each has columns of its own."""
        users = [(query.name, sink) for query in queries.values() for sink in query.to]
        users += [(source.name, source.dead_letters) for source in sources.values() if source.dead_letters]
        first: dict[str, str] = {}
        for user, sink in users:
            if sink not in sinks or sinks[sink].place is None or "{query}" in str(sinks[sink].place):
                continue
            if sink in first:
                self.say(
                    f"{first[sink]!r} and {user!r} would both write to {sinks[sink].place!r}. Write {{query}} in its "
                    "name, which stands for the name of the query, or give each a sink.",
                    "sinks",
                    sink,
                )
            first.setdefault(sink, user)

    # -- keys and values -----------------------------------------------------------------------------------------------

    def _tables(self, content: dict[str, Any], key: str) -> Iterable[tuple[str, dict[str, Any]]]:
        tables = content.get(key, {})
        if not isinstance(tables, dict):
            self.say(f"{key} must consist of tables: [{key}.name].", key)
            return
        for name, table in tables.items():
            if not isinstance(table, dict):
                self.say(f"{key}.{name} must be a table: [{key}.{name}].", key, name)
                self._broken.add((key, name))
                continue
            if not _NAME.fullmatch(name):
                self.say(f"{name!r} is not a name: letters, digits and _, a letter first.", key, name)
            yield name, dict(table)

    def _format(self, table: dict[str, Any], formats: Iterable[str], path: tuple[str, str]) -> str:
        kind = self._text(table, "format", *path)
        known = list(formats)
        if kind is None:
            raise self.wrong(f"{'.'.join(path)} has no format. Possible: {', '.join(known)}.", *path)
        if kind not in known:
            raise self.wrong(f"There is no format {kind!r}.{_near(kind, known, 'Possible')}", *path, "format")
        del table["format"]
        return kind

    def _fields(
        self, table: dict[str, Any], keys: tuple[tuple[str, ...], tuple[str, ...]], path: tuple[str, str], what: str
    ) -> dict[str, Any]:
        """The texts of a table; `keys`: those it must have, and those it may."""
        needed, allowed = keys
        is_known = self._known(table, (*needed, *allowed), what, *path)
        texts = {key: self._text(table, key, *path) for key in (*needed, *allowed) if key not in ("options", "stream")}
        exposed = [key for key, text in texts.items() if text and is_exposed(key, text)]
        for key in exposed:
            self.say(_EXPOSED.format(key=key), *path, key)
        if exposed:
            raise _Unusable  # other messages would show it
        missing = [key for key in needed if not texts[key]]
        if missing:  # where a key is unknown, it is most likely the one that is missing
            said = f"{what[0].upper()}{what[1:]} needs {' and '.join(missing)}."
            raise self.wrong(said, *path) if is_known else _Unusable()
        return texts

    def _known(self, table: Mapping[str, Any], keys: Iterable[str], what: str, *path: str) -> bool:
        """Are all keys of a table known? Those that are not are remembered."""
        known = [*dict.fromkeys(keys)]
        unknown = [key for key in table if key not in known and key != "format"]
        for key in unknown:
            near = _near(key, ["format", *known] if path and path[0] != "queries" else known, "Possible")
            self.say(f"Unknown key {key!r} in {what}.{near}", *path, key)
        return not unknown

    def _text(self, table: Mapping[str, Any], key: str, *path: str) -> str | None:
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(f"{key} must be a text in quotes, got {value!r}.", *path, key)
        return value

    def _options(self, table: Any, *path: str) -> Options:
        """Options as Spark takes them: texts. A dotted name may be written with quotes or as TOML's own dots."""
        if not isinstance(table, dict):
            raise self.wrong(f"{path[-1]} must be a table of Spark's own names and values.", *path)
        options: dict[str, str] = {}
        for name, value in table.items():
            if isinstance(value, dict):
                for rest, text in self._options(value, *path, name).items():
                    options[f"{name}.{rest}"] = text
                    if is_exposed(f"{name}.{rest}", text) and not is_exposed(rest, text):  # api = { key = "…" }
                        self.say(_EXPOSED.format(key=f"{name}.{rest}"), *path, name, rest)
                        options[f"{name}.{rest}"] = ""
            elif isinstance(value, bool):
                options[name] = "true" if value else "false"
            elif isinstance(value, str | int | float):
                options[name] = str(value)
            else:
                self.say(f"{name} must be a text, a number, true or false; got {value!r}.", *path, name)
            if name in options and is_exposed(name, options[name]):
                self.say(_EXPOSED.format(key=name), *path, name)
                options[name] = ""  # other messages would show it
        return options

    def _serve(self, given: Any) -> Address | None:
        if isinstance(given, bool):
            return HERE if given else None
        found = Address.read(given) if isinstance(given, str) else None
        if found is None:
            raise self.wrong(f'serve is true, false or an address such as "127.0.0.1:8765", got {given!r}.', "serve")
        return found

    def _trigger(self, text: str | None) -> str | None:
        if text is not None and text != AVAILABLE_NOW:
            self._duration(text, "trigger", possible=f'"10 seconds", or "{AVAILABLE_NOW}" to stop when all is read')
        return text

    def _duration(self, text: str, *path: str, possible: str = '"10 seconds"') -> None:
        try:
            parse_span(text, path[-1])
        except SkybandError as error:
            raise self.wrong(f"{path[-1]} = {text!r} is not a duration. Possible: {possible}.", *path) from error


_EXPOSED: Final = (
    '{key} contains a secret, which does not belong in a file. Write {key} = "${{NAME}}", or ${{NAME}} where the '
    "secret is, and set NAME in the environment."
)


def _near(name: str, known: Iterable[str], what: str) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} {what}: {', '.join(names) or 'none'}."
