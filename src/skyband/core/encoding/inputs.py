"""Reads rows from any input (Arrow, frames, datasets, readers, iterators), and returns answers in the input's type.

Skyband recognises the types of other libraries by the names of their classes, so it imports only those libraries that
the user has imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from skyband.core.encoding.schemas import cast_batch, check_same, fitted, plain_schema
from skyband.errors import InvalidInput

POSSIBLE = (
    "a pyarrow Table, RecordBatch, Dataset, Scanner or RecordBatchReader, a pandas or polars DataFrame, a polars "
    "LazyFrame, anything else with the Arrow C stream interface, a list or an iterator of record batches"
)

Kind = Literal["table", "pandas", "polars", "lazy polars"]
COUNTS = b"skyband"  # the key in an answer's metadata under which `Stats` are, as JSON


@dataclass(frozen=True)
class Like:
    """The type of an input, in which the answer is returned."""

    kind: Kind = "table"
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)  # pandas' own metadata of each column
    types: dict[str, pa.DataType] = field(default_factory=dict)  # and its type

    def give(self, answer: pa.Table | pa.RecordBatchReader) -> Any:
        """Convert an answer to the user's type; a reader stays one."""
        if self.kind == "table" or not isinstance(answer, pa.Table):
            return answer
        if self.kind == "pandas":
            return self._as_pandas(answer)
        import polars as pl

        frame = pl.from_arrow(answer)
        assert isinstance(frame, pl.DataFrame)
        return frame.lazy() if self.kind == "lazy polars" else frame

    def _as_pandas(self, answer: pa.Table) -> Any:
        counts = (answer.schema.metadata or {}).get(COUNTS)
        noted = {
            "index_columns": [],
            "column_indexes": [],
            "columns": [self.columns[each.name] for each in answer.schema if self._is_same(each)],
        }
        # With the metadata of an input's column, pandas restores columns of its own types, such as Int64.
        frame = answer.replace_schema_metadata({"pandas": json.dumps(noted)}).to_pandas()
        if counts is not None:
            frame.attrs[COUNTS.decode()] = json.loads(counts)
        return frame

    def _is_same(self, column: pa.Field) -> bool:
        """Is it a column of the input, rather than another one of that name?"""
        before = self.types.get(column.name)
        return before is not None and _as_compared(before) == _as_compared(column.type)


def _as_compared(kind: pa.DataType) -> pa.DataType:
    """Types that hold the same values are one type here."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.timestamp("ns", kind.tz) if pa.types.is_timestamp(kind) else kind


TABLE = Like()


def common(likes: Sequence[Like]) -> Like:
    """The type of an answer to several inputs: theirs if it is the same, or else a pyarrow Table."""
    if len({like.kind for like in likes}) != 1:
        return TABLE
    columns = {name: each for like in reversed(likes) for name, each in like.columns.items()}
    return Like(likes[0].kind, columns, {name: each for like in reversed(likes) for name, each in like.types.items()})


MapBatch = Callable[[pa.RecordBatch], pa.RecordBatch]


class HeldRows:
    """Rows in memory, which can be read any number of times."""

    def __init__(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> None:
        self._given = batches
        self._batches: list[pa.RecordBatch] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            self._batches = list(in_batches(self._given))
        return iter(self._batches)

    def column(self, name: str) -> Iterator[pa.Array]:
        """Iterate over one column. It may contain further rows, which `__iter__` leaves out."""
        return (batch.column(name) for batch in self)


class ScannedRows:
    """Rows of a pyarrow Dataset. It may be larger than memory, so each iteration reads it again."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._scan()

    def column(self, name: str) -> Iterator[pa.Array]:
        return (batch.column(name) for batch in self._scan(columns=[name]))

    def _scan(self, **options: Any) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._dataset.to_batches(**options)
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"Cannot read {self._guilty(**options)}: {error}") from error

    def _guilty(self, **options: Any) -> str:
        """The first file that cannot be read."""
        for fragment in self._dataset.get_fragments() if hasattr(self._dataset, "files") else ():
            try:
                for _ in fragment.to_batches(schema=self._dataset.schema, **options):
                    pass
            except (pa.ArrowException, OSError):
                return repr(str(fragment.path))
        return f"this {type(self._dataset).__name__}"


class MappedRows:
    """Rows made from others by a function of a batch, which may also leave rows out."""

    def __init__(self, rows: WholeRows, change: MapBatch, names: Mapping[str, str]) -> None:
        """`names` maps each column that the function only renames to its name before."""
        self._rows, self._change, self._names = rows, change, names

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return map(self._change, self._rows)

    def column(self, name: str) -> Iterator[pa.Array]:
        if name not in self._names:  # the function computes it
            return (batch.column(name) for batch in self)
        return self._rows.column(self._names[name])


WholeRows = HeldRows | ScannedRows | MappedRows


class Source(NamedTuple):
    """An input: batches of rows, and their schema."""

    schema: pa.Schema
    batches: WholeRows | Iterable[pa.RecordBatch | pa.Table]
    is_whole: bool  # are all rows there, as in a table? A reader or an iterator may still get more
    like: Like = TABLE  # the type of the answer

    def mapped(self, schema: pa.Schema, change: MapBatch, names: Mapping[str, str] | None = None) -> Source:
        """Apply `change` to each batch. `names` maps each column that it only renames to its name before; None: it
        renames no column."""
        if isinstance(self.batches, WholeRows):
            called = {name: name for name in schema.names} if names is None else names
            return self._replace(schema=schema, batches=MappedRows(self.batches, change, called))
        return self._replace(schema=schema, batches=map(change, in_batches(self.batches)))

    def plain(self) -> Source:
        """Convert to the plain types in which rows are kept."""
        plain = plain_schema(self.schema)
        return (
            self if plain is self.schema else self.mapped(plain, lambda batch: cast_batch(self._checked(batch), plain))
        )

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.is_whole:  # each batch of a stream has a schema of its own
            check_same(batch.schema, self.schema)
        return batch

    def cut(self, rows_at_once: Callable[[int], int]) -> Source:
        """The same rows, a whole input in batches of so many; the function is told how many there are."""
        if not self.is_whole:
            return self
        table = pa.Table.from_batches(in_batches(self.batches), self.schema)
        return self._replace(batches=HeldRows(table.to_batches(max_chunksize=rows_at_once(len(table)))))

    def held(self) -> Source:
        """Keep the rows of a whole input in memory, so that it is read only once."""
        return self._replace(batches=HeldRows(self.batches)) if self.is_whole else self


def read(data: Any, known: pa.Schema | None = None) -> Source:
    """Recognise the type of `data`. This reads no rows, except the first batch of an iterator, for its schema.

    `known` is the schema to use for a list or an iterator without any batch.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return Source(data.schema, HeldRows([data]), is_whole=True)
    if isinstance(data, pa.RecordBatchReader):
        return Source(data.schema, data, is_whole=False)
    if is_pandas(data):
        table = from_pandas(data)
        return Source(table.schema, HeldRows([table]), is_whole=True, like=like_pandas(table))
    if is_a(data, "LazyFrame", "polars"):
        return read(from_lazy(data))._replace(like=Like("lazy polars"))
    if is_a(data, "Dataset", "pyarrow"):
        return Source(data.schema, ScannedRows(data), is_whole=True)
    if is_a(data, "Scanner", "pyarrow"):
        return read(data.to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        like = Like("polars") if is_a(data, "DataFrame", "polars") else TABLE
        if like.kind == "polars":
            check_polars(data)
        reader = _stream(data)
        return Source(reader.schema, HeldRows(reader), is_whole=True, like=like)
    if isinstance(data, (list, tuple)):
        return _read_list(data, known)
    if isinstance(data, Iterator):
        return _read_iterator(data, known)
    raise InvalidInput(f"Cannot read rows from {type(data).__name__}. Possible: {POSSIBLE}, or a Spark DataFrame.")


def in_batches(batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
    """Split tables among these into batches."""
    for batch in batches:
        if isinstance(batch, pa.Table):
            yield from batch.to_batches()
        else:
            yield batch


def _stream(data: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowException as error:
        raise InvalidInput(f"Cannot read this {type(data).__name__} as Arrow data: {error}") from error


def _read_list(batches: Sequence[Any], known: pa.Schema | None) -> Source:
    schema = _schema_of(batches, "list", known)
    for batch in batches[1:]:
        check_same(batch.schema, schema)
    return Source(schema, HeldRows(batches), is_whole=True)


def _read_iterator(batches: Iterator[Any], known: pa.Schema | None) -> Source:
    first = list(next(zip(batches, strict=False), ()))
    return Source(_schema_of(first, "iterator", known), chain(first, batches), is_whole=False)


def _schema_of(batches: Sequence[Any], what: str, known: pa.Schema | None) -> pa.Schema:
    """The schema of the first batch, or `known` if there is no batch."""
    for batch in batches:
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise InvalidInput(f"The {what} must give pyarrow record batches, got {type(batch).__name__}.")
    if batches:
        return batches[0].schema
    if known is None:
        raise InvalidInput(
            f"The {what} gave no batch, so its columns are unknown. Pass a Table or a RecordBatchReader, which has a "
            "schema even without rows."
        )
    return known


def rows_for(data: Any, schema: pa.Schema) -> pa.RecordBatch | pa.Table:
    """Read rows that a user pushes into a session with this schema."""
    if isinstance(data, (pa.RecordBatch, pa.Table)):
        return fitted(data, schema)
    if is_pandas(data):
        return fitted(from_pandas(data, schema), schema)
    source = read(data, schema)
    check_same(source.schema, schema)
    return fitted(pa.Table.from_batches(in_batches(source.batches), source.schema), schema)


# -- frames ----------------------------------------------------------------------------------------------------------


def is_a(data: object, name: str, package: str) -> bool:
    """Is `data` an instance of the class with this name in this package?"""
    return any(base.__name__ == name and base.__module__.partition(".")[0] == package for base in type(data).__mro__)


def is_pandas(data: object) -> bool:
    return is_a(data, "DataFrame", "pandas")


def from_pandas(frame: Any, schema: pa.Schema | None = None) -> pa.Table:
    """Convert a frame without its index. If it has the columns of `schema`, they get its types."""
    if schema is not None and list(frame.columns) != schema.names:
        schema = None
    try:
        return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"Cannot read this {type(frame).__name__} as Arrow data: {error}") from error


def like_pandas(table: pa.Table) -> Like:
    noted = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    columns = {str(each["name"]): each for each in noted.get("columns", ())}
    return Like("pandas", columns, {each.name: each.type for each in table.schema})


def check_polars(frame: Any) -> None:
    """Raise if a column has Python objects, of which polars would export only the addresses."""
    import polars as pl

    objects = [name for name, kind in frame.schema.items() if kind == pl.Object]
    if objects:
        raise InvalidInput(
            f"Column {objects[0]!r} contains Python objects, which Arrow cannot represent. Leave it out, or cast it to "
            "a type of polars."
        )


def from_lazy(frame: Any) -> Any:
    """Collect a polars LazyFrame."""
    import polars as pl

    try:
        return frame.collect()
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"polars cannot collect this LazyFrame: {error}") from error
