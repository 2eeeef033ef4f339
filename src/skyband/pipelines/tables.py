"""A table of Delta Lake or Apache Iceberg as a sink: a micro-batch is one commit, which says which one it was.

Rows are appended. With a `key` they are merged instead: the last row of a key replaces the one that is there, and what
left or was deleted is taken away. A restart that repeats a micro-batch finds it in the table, and writes nothing.
The answers of a query about a table, which is asked once, replace all rows.
"""

from __future__ import annotations

from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import PipelineChanged, PipelineFailed, SkybandError
from skyband.pipelines.answers import GONE, Answers
from skyband.pipelines.checkpoints import Checkpoint
from skyband.pipelines.model import Pipeline, Sink

_POSITION: Final = "__skyband_position"


class LakeTable(Protocol):
    """A table that one query writes to; it is made by the first rows."""

    place: str

    def schema(self) -> pa.Schema | None:
        """Its columns; None: it is not there yet."""
        ...

    def last_batch(self) -> int | None:
        """The last micro-batch of this query that was written to it."""
        ...

    def append(self, rows: pa.Table, batch: int) -> None: ...

    def merge(self, rows: pa.Table, gone: pa.Table, key: tuple[str, ...], batch: int) -> None:
        """Put `rows` where rows with their key are, or beside, and take away those with a key of `gone`."""
        ...

    def replace(self, rows: pa.Table) -> None:
        """Let these be all rows."""
        ...


class TableTarget:
    """The sink as one query uses it."""

    def __init__(self, table: LakeTable, key: tuple[str, ...], *, is_stream: bool) -> None:
        self._table, self._key, self._is_stream = table, key, is_stream

    def refuse_leftovers(self, checkpoint: Checkpoint) -> None:
        """Micro-batches are numbered from 0 on with each new checkpoint: they would pass for those written before."""
        if self._table.last_batch() is not None:
            raise PipelineChanged(
                f"{self._table.place} has answers of this query already, but there is no checkpoint at "
                f"{checkpoint.location} to continue from. Drop the table, name another table, rename the query, or "
                "restore the checkpoint."
            )

    def write(self, answers: Answers, batch: int) -> None:
        try:
            self._write(answers.table, batch)
        except SkybandError:
            raise
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise PipelineFailed(
                f"{self._table.place} did not take the answers of micro-batch {batch}: {said}"
            ) from error

    def _write(self, rows: pa.Table, batch: int) -> None:
        if self._is_stream:
            last = self._table.last_batch()
            if last is not None and last >= batch:
                return  # a run wrote it, and was killed before Spark knew
        gone = None
        if self._key:
            rows, gone = latest(rows, self._key)
        stored = self._as_stored(rows)
        if not self._is_stream:
            self._table.replace(stored)
        elif gone is None:
            self._table.append(stored, batch)
        else:
            self._table.merge(stored, plain(gone), self._key, batch)

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns of the table, in its order; raises if it has others."""
        rows, there = plain(rows), self._table.schema()
        if there is None:
            return rows
        problems = differences(plain_schema(there), rows.schema)
        if problems:
            raise PipelineChanged(
                f"{self._table.place} has columns that differ from the answers: {'; '.join(problems)}. Change the "
                "table, or "
                "name another."
            )
        return rows.select(there.names)


def open_table(pipeline: Pipeline, sink: Sink, query: str, *, is_stream: bool) -> TableTarget:
    """The table of a sink, for the answers of a query."""
    writer = f"{pipeline.name}.{query}"
    table: LakeTable
    if sink.format == "delta":
        from skyband.pipelines.delta import DeltaLakeTable

        table = DeltaLakeTable(pipeline, sink, query, writer)
    else:
        from skyband.pipelines.iceberg import IcebergTable

        table = IcebergTable(pipeline, sink, query, writer)
    return TableTarget(table, sink.key, is_stream=is_stream)


def latest(rows: pa.Table, key: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """The last row of each key, and the keys whose last row says that it went. A column `change` is left out.

    >>> rows = pa.table({"at": [1, 1, 2], "change": ["leave", "enter", "leave"], "symbol": ["OAK", "OAK", "ELM"]})
    >>> [part.to_pylist() for part in latest(rows, ("symbol",))]
    [[{'at': 1, 'symbol': 'OAK'}], [{'symbol': 'ELM'}]]
    """
    # Later windows and times count; in one window the best rank does; of the rest, what comes later.
    order = ["window_end", "at", *([] if "change" in rows.column_names else ["rank"])]
    ways = [(name, "descending" if name == "rank" else "ascending") for name in order if name in rows.column_names]
    ordered = _numbered(rows).sort_by([*ways, (_POSITION, "ascending")]).drop_columns([_POSITION])
    last = _numbered(ordered).group_by(list(key)).aggregate([(_POSITION, "max")])[f"{_POSITION}_max"]
    kept = ordered.take(last.sort())
    if "change" not in kept.column_names:
        return kept, kept.slice(0, 0).select(list(key))
    went = pc.is_in(kept["change"], pa.array(GONE))
    kept = kept.drop_columns(["change"])
    return kept.filter(pc.invert(went)), kept.filter(went).select(list(key))


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(_POSITION, pa.array(range(rows.num_rows), pa.int64()))


def differences(there: pa.Schema, here: pa.Schema) -> list[str]:
    """What is different about the columns of a table and those of answers; their order is not.

    >>> differences(pa.schema([("a", pa.int64())]), pa.schema([("a", pa.string()), ("b", pa.int64())]))
    ["'a' is int64 there, and string in the answers", "'b' (int64) is not there"]
    """
    problems = [
        f"{name!r} is {there.field(name).type} there, and {here.field(name).type} in the answers"
        for name in there.names
        if name in here.names and there.field(name).type != here.field(name).type
    ]
    problems += [f"{name!r} ({here.field(name).type}) is not there" for name in here.names if name not in there.names]
    return problems + [f"the answers have no {name!r}" for name in there.names if name not in here.names]


def plain(rows: pa.Table) -> pa.Table:
    """The rows in types that both kinds of tables have."""
    return rows.cast(plain_schema(rows.schema))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns, each in the one type that stands for all that hold the same values."""
    return pa.schema([pa.field(each.name, _plain(each.type)) for each in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_int8(kind) or types.is_int16(kind):
        return pa.int32()  # Iceberg has no shorter
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if types.is_struct(kind):
        return pa.struct([(each.name, _plain(each.type)) for each in kind])
    return kind
