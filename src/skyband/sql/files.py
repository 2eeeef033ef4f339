"""Files as inputs of a statement: a file, a folder or a pattern of names is one whole table.

Parquet, CSV and Arrow files are datasets, read as they go by if they are in order of time; JSON is read into memory.
ISO 8601 times in text are times: with a zone they are instants (UTC), without one they are local, as in Parquet.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Mapping
from json import dumps
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from skyband.errors import InvalidInput
from skyband.sql.text_types import TIMES, csv_schema, later_type, wide_numbers

_KINDS: Final[Mapping[str, str]] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "ipc",
    ".feather": "ipc",
}
_POSSIBLE: Final = ".parquet, .csv, .json or .jsonl (an object a line), .arrow or .feather; those of text also with .gz"
_PATTERN: Final = re.compile(r"[*?\[]")
_FILE_OF_ARROW: Final = b"ARROW1"  # begins a file; a stream, as --format arrow prints it, begins otherwise


def open_table(given: str | Path) -> Any:
    """The rows of a file, of all files of a folder, or of those that a pattern names, as a pyarrow Dataset or Table.

    The kind of file is known by the ending of its name. Folders called `day=1` give a column `day`. Several files are
    read in the order of their names; a column that one of them lacks is null there.
    """
    base, paths = files_of(str(given))
    kinds = {kind_of(path) for path in paths}
    if len(kinds) > 1:
        raise InvalidInput(f"{str(given)!r} has files of several kinds: {', '.join(sorted(kinds))}. Name one: '*.csv'.")
    (kind,) = kinds
    try:
        if kind == "json" or any(_is_stream(path) for path in paths):
            return pa.concat_tables([read_file(path, base) for path in paths], promote_options="permissive")
        return _dataset(paths, kind, base)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"Cannot read {str(given)!r}: {error}") from error


def read_file(path: Path, base: Path) -> pa.Table:
    """The rows of one file; folders below `base` may name columns."""
    if kind_of(path) == "json":
        return read_json(lambda: pa.input_stream(path, compression="detect"))
    if _is_stream(path):
        with path.open("rb") as file:
            return pa.ipc.open_stream(file).read_all()
    return _dataset([path], kind_of(path), base).to_table()


def kind_of(path: Path) -> str:
    """The kind of a file, by the ending of its name."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if ending.lower() not in _KINDS:
        raise InvalidInput(f"Cannot tell what kind of file {str(path)!r} is. Possible: {_POSSIBLE}.")
    return _KINDS[ending.lower()]


def files_of(given: str) -> tuple[Path, list[Path]]:
    """The files that are meant, in the order of their names, and the folder below which folders may name columns."""
    path = Path(given)
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            raise InvalidInput(f"{given!r} is a Delta table, whose files also contain deleted rows. Query it on Spark.")
        found = [each for each in path.rglob("*") if each.is_file() and not _is_hidden(each.relative_to(path))]
        known = sorted(each for each in found if _is_known(each))
        if not known:
            raise InvalidInput(f"The folder {given!r} has no file that can be read. Possible: {_POSSIBLE}.")
        return path, known
    if path.is_file():
        return path.parent, [path]
    if not _PATTERN.search(given):
        raise InvalidInput(f"There is no file and no folder {given!r}.")
    matching = sorted(Path(each) for each in glob.glob(given, recursive=True) if Path(each).is_file())
    if not matching:
        raise InvalidInput(f"No file matches {given!r}.")
    return Path(_PATTERN.split(given)[0] + "x").parent, matching


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _is_known(path: Path) -> bool:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower() in _KINDS


# -- datasets: Parquet, CSV, Arrow ------------------------------------------------------------------------------------


def _dataset(paths: list[Path], kind: str, base: Path) -> Any:
    from pyarrow import dataset

    names = [str(path) for path in paths]
    folders: dict[str, Any] = {"partitioning": "hive", "partition_base_dir": str(base)}
    found = dataset.dataset(names, format=kind, **folders)
    schemas = [fragment.physical_schema for fragment in found.get_fragments()] if len(paths) > 1 else []
    schema = _unified([found.schema, *schemas])
    if kind == "csv":

        def of_text(columns: list[str]) -> Any:
            kinds = {name: pa.string() for name in columns}
            fields = [each.with_type(kinds.get(each.name, later_type(each.type))) for each in schema]
            return dataset.dataset(names, format=kind, schema=pa.schema(fields), **folders)

        schema = csv_schema(found, schema, of_text)
    return found if schema.equals(found.schema) else dataset.dataset(names, format=kind, schema=schema, **folders)


def _unified(schemas: Iterable[pa.Schema]) -> pa.Schema:
    return pa.unify_schemas([each.remove_metadata() for each in schemas], promote_options="permissive")


# -- tables: JSON, streams of Arrow -----------------------------------------------------------------------------------


def read_json(open_stream: Callable[[], Any]) -> pa.Table:
    """The rows of JSON lines, whose times are times."""
    table = parse_json(open_stream)
    # Arrow takes times in whole seconds for times, and drops their zones: they are read as they were written instead.
    taken = [pa.field(each.name, pa.string()) for each in table.schema if pa.types.is_timestamp(each.type)]
    wide = wide_numbers(table)
    if taken or wide:
        try:
            table = parse_json(open_stream, explicit_schema=pa.schema([*taken, *wide]))
        except pa.ArrowInvalid:  # not all of them are written as whole numbers, so they are floats
            table = parse_json(open_stream, explicit_schema=pa.schema(taken))
    return _with_times(_with_infinities(table))


_INFINITIES: Final = {"+INF": "Infinity", "-INF": "-Infinity", "NaN": "NaN"}  # as we write and as Arrow reads them
_MIXED: Final = re.compile(r"Column\(/(.+)\) changed from (?:string to number|number to string)")


def parse_json(open_stream: Callable[[], Any], **options: Any) -> pa.Table:
    """The rows of JSON lines. JSON has no infinite numbers and no NaN: among numbers, their names in quotes stand for
    them."""
    from pyarrow import json

    def parse(stream: Any) -> pa.Table:
        return json.read_json(stream, parse_options=json.ParseOptions(**options))

    data, tried = b"", set[str]()
    while True:
        try:
            with open_stream() if not tried else pa.BufferReader(data) as stream:
                return parse(stream)
        except pa.ArrowInvalid as error:
            mixed = _MIXED.search(str(error))
            if mixed is None or mixed[1] in tried:
                raise
            if not tried:
                with open_stream() as stream:
                    data = stream.read()
            tried.add(mixed[1])
            data = _unquoted(data, mixed[1])


def _unquoted(data: bytes, column: str) -> bytes:
    """JSON lines with the infinities of a column as Arrow reads them."""
    names = b"|".join(re.escape(name.encode()) for name in _INFINITIES)
    key = re.escape(dumps(column, ensure_ascii=False).encode())
    found = re.compile(rb"(" + key + rb'\s*:\s*)"(' + names + rb')"')
    return found.sub(lambda one: one[1] + _INFINITIES[one[2].decode()].encode(), data)


def _with_infinities(table: pa.Table) -> pa.Table:
    """The same table; a column of text that holds nothing but infinities holds numbers."""
    for place, each in enumerate(table.schema):
        column = table.column(place)
        if not pa.types.is_string(each.type) or _first(column) not in _INFINITIES:
            continue
        if {one.as_py() for one in column.unique()} <= {None, *_INFINITIES}:
            numbers = [None if one is None else float(one) for one in column.to_pylist()]
            table = table.set_column(place, each.name, pa.array(numbers, pa.float64()))
    return table


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def _with_times(table: pa.Table) -> pa.Table:
    """The same table; a column of text that holds nothing but ISO 8601 days or times holds days or times."""
    for place, each in enumerate(table.schema):
        if pa.types.is_string(each.type) and _DAY.match(_first(table.column(place))):
            table = table.set_column(place, each.name, _as_time(table.column(place)))
    return table


def _first(column: pa.ChunkedArray) -> str:
    """The first text that is not null."""
    return next((value.as_py() for value in column if value.is_valid), "")


def _as_time(column: pa.ChunkedArray) -> pa.ChunkedArray:
    for kind in TIMES:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def _is_stream(path: Path) -> bool:
    """Does it hold Arrow as it is sent, not as it is stored?"""
    if kind_of(path) != "ipc":
        return False
    with path.open("rb") as file:
        return file.read(len(_FILE_OF_ARROW)) != _FILE_OF_ARROW
