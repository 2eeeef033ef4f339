"""Files that grow, as streams: the lines that are added to a file, or the files that are added to a folder.

Rows come in the order in which they are added. A line counts once it has its end, a file once two looks find it of the
same length.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import pyarrow as pa
from pyarrow import csv

from skyband.core.encoding.inputs import Source
from skyband.errors import InvalidInput
from skyband.sql.files import files_of, kind_of, parse_json, read_file, read_json
from skyband.sql.text_types import later_type

_LOOK_SECONDS: Final = 0.2
_MOST_BYTES: Final = 1 << 20  # of lines that are read at once

T = TypeVar("T")
Wait = Callable[[], object]


def _sleep() -> None:
    time.sleep(_LOOK_SECONDS)


def follow(given: str, wait: Wait = _sleep) -> Source:
    """The rows of a file or a folder, those that are there and those that come. Waits until there is one.

    `wait` is called between two looks. What it raises ends the stream.
    """
    path = Path(given)
    if not path.is_file():
        return _follow_folder(given, wait)
    kind = kind_of(path)
    if kind not in ("csv", "json") or path.suffix == ".gz":
        raise InvalidInput(f"{given!r} cannot be followed: rows are added to .csv and .jsonl files, or to a folder.")
    lines = _Lines(path)
    while not (first := lines.more()).count(b"\n") > (kind == "csv"):
        lines.take_back(first)
        wait()
    parse: _Parse = _Csv(given, first) if kind == "csv" else _Json(given, first)
    return Source(parse.schema, _rows(lines, parse, first, wait), is_whole=False)


# -- lines of a file --------------------------------------------------------------------------------------------------


class _Lines:
    """Whole lines of a file as it grows. One that is cut, or replaced by another, is read from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("rb")
        self._rest = b""  # of a line that has no end yet
        self.is_new = True  # does what comes next stand at the start of the file?

    def more(self) -> bytes:
        """The lines that have come since the last look."""
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._from_start(self._file)
        read = self._file.read(_MOST_BYTES)
        if not read and self._is_replaced():
            self._file.close()
            self._from_start(self._path.open("rb"))
            read = self._file.read(_MOST_BYTES)
        data = self._rest + read
        end = _end_of_lines(data) if read else 0
        self._rest = data[end:]
        return data[:end]

    def take_back(self, lines: bytes) -> None:
        """Give these lines once more."""
        self._rest = lines + self._rest

    def _is_replaced(self) -> bool:
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:  # it is being replaced
            return False

    def _from_start(self, file: BinaryIO) -> None:
        self._file, self._rest, self.is_new = file, b"", True
        self._file.seek(0)


def _end_of_lines(data: bytes) -> int:
    """Behind the last end of a line that is not inside quotes."""
    end = data.rfind(b"\n") + 1
    while end and data.count(b'"', 0, end) % 2:
        end = data.rfind(b"\n", 0, end - 1) + 1
    return end


class _Csv:
    """Lines of CSV, in the columns of the first ones."""

    def __init__(self, name: str, first: bytes) -> None:
        self._name = name
        found = _readable(name, lambda: csv.read_csv(pa.BufferReader(first)).schema)
        self.schema = pa.schema([each.with_type(later_type(each.type)) for each in found])

    def __call__(self, lines: bytes, *, is_new: bool) -> pa.Table:
        if is_new:
            heading, _, lines = lines.partition(b"\n")
            names = _readable(self._name, lambda: csv.read_csv(pa.BufferReader(heading + b"\n")).column_names)
            if names != self.schema.names:
                before = ", ".join(self.schema.names)
                raise InvalidInput(f"{self._name!r} now has different columns: {', '.join(names)}; before: {before}.")
        if not lines:
            return self.schema.empty_table()
        options = csv.ReadOptions(column_names=self.schema.names)
        types = csv.ConvertOptions(column_types=self.schema)
        return _readable(self._name, lambda: csv.read_csv(pa.BufferReader(lines), options, convert_options=types))


class _Json:
    """Lines of JSON, in the columns of the first ones."""

    def __init__(self, name: str, first: bytes) -> None:
        self._name = name
        found = _readable(name, lambda: read_json(lambda: pa.BufferReader(first))).schema
        self.schema = pa.schema([each.with_type(later_type(each.type)) for each in found])

    def __call__(self, lines: bytes, *, is_new: bool) -> pa.Table:
        is_time = [pa.types.is_temporal(each.type) for each in self.schema]
        read = [each.with_type(pa.string()) if told else each for each, told in zip(self.schema, is_time, strict=True)]
        options = {"explicit_schema": pa.schema(read), "unexpected_field_behavior": "ignore"}
        return _readable(self._name, lambda: parse_json(lambda: pa.BufferReader(lines), **options).cast(self.schema))


_Parse = _Csv | _Json


def _rows(lines: _Lines, parse: _Parse, first: bytes, wait: Wait) -> Iterator[pa.RecordBatch]:
    found = first
    while True:
        if found:
            is_new, lines.is_new = lines.is_new, False
            yield from parse(found, is_new=is_new).to_batches()
        else:
            wait()
        found = lines.more()


def _readable(name: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"Cannot read the new rows of {name!r}: {error}") from error


# -- files of a folder ------------------------------------------------------------------------------------------------


def _follow_folder(given: str, wait: Wait) -> Source:
    base, _ = files_of(given)
    tables = _tables(given, base, wait)
    first = next(tables)
    return Source(first.schema, _aligned(given, first, tables), is_whole=False)


def _tables(given: str, base: Path, wait: Wait) -> Iterator[pa.Table]:
    """The rows of each file, once it stays as it is; those found by one look in the order of their names."""
    lengths: dict[Path, int] = {}  # when one last looked
    tried: set[Path] = set()
    unread: dict[Path, int] = {}  # of those, files that could not be read, and how long they were
    while True:
        for path in files_of(given)[1]:
            length = path.stat().st_size if path.exists() else 0
            if length and lengths.get(path) == length and path not in tried:
                tried.add(path)
                try:
                    table = read_file(path, base)
                except (pa.ArrowException, OSError) as error:
                    warnings.warn(f"Cannot read {str(path)!r}, unless it changes: {error}", stacklevel=2)
                    unread[path] = length
                else:
                    yield table
            elif unread.get(path, length) != length:
                tried.remove(path)
                del unread[path]
            lengths[path] = length
        wait()


def _aligned(given: str, first: pa.Table, others: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Rows in the columns of the first file: a column that a later one lacks is null there."""
    yield from first.to_batches()
    for table in others:
        yield from _readable(given, partial(_in_columns, table, first.schema)).to_batches()


def _in_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    there = table.column_names
    columns = [
        table.column(each.name).cast(each.type) if each.name in there else pa.nulls(len(table), each.type)
        for each in schema
    ]
    return pa.table(columns, schema=schema)
