"""A table of PostgreSQL as a sink: rows are inserted or, by their key, replaced, all those of a micro-batch at once.

The rows of a micro-batch are copied into a temporary table, and moved from there, in one transaction: a reader sees all
of them or none. A restart does the same once more, and finds the table as it left it. What changed (groups of a join
that come and go) is applied as such: the last change of a key in a micro-batch counts. What leaves, or is deleted, is
taken away. Null is a value of a key like any other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import EnvironmentProblem, PipelineFailed
from skyband.pipelines.answers import Answers
from skyband.pipelines.checking import check_address, check_key
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.postgresql import connection
from skyband.pipelines.secrets import resolve
from skyband.pipelines.tables import latest

try:
    import psycopg
    from psycopg import sql
except ImportError as error:
    raise EnvironmentProblem("PostgreSQL needs the package psycopg: pip install 'skyband[postgresql]'.") from error

Cursor: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
Pattern: TypeAlias = tuple[bool, ...]  # of a key: which of its columns are null

_LONGEST_NAME: Final = 63  # bytes; PostgreSQL cuts what is longer
_NULLS_NOT_DISTINCT: Final = 150_000  # the version since when an index can take nulls for equal
_PATIENCE_S: Final = 30  # for a server to answer
_ROWS, _GONE = sql.Identifier("pg_temp", "skyband_rows"), sql.Identifier("pg_temp", "skyband_gone")


class PostgresqlTarget:
    """The table as one query uses it; the first rows make it."""

    def __init__(self, pipeline: Pipeline, query: str, sink: Sink, key: tuple[str, ...] | None) -> None:
        url = resolve(str(sink.url))
        options = {name: resolve(value) for name, value in sink.options.items()}
        check_address(pipeline, replace(sink, url=url, options=options))
        self._key = check_key(pipeline, sink, key)
        self._name = resolve(str(sink.table)).replace("{query}", query)
        self._parts = name_parts(self._name)
        self._table = sql.Identifier(*self._parts)
        self._connection: dict[str, Any] = {**connection(url, options)}
        if "connect_timeout" not in url:
            self._connection.setdefault("connect_timeout", _PATIENCE_S)
        with self._connected():  # what is refused is refused before anything is read
            pass

    def write(self, answers: Answers, batch: int) -> None:
        rows, gone = latest(answers.table, self._key)
        with self._connected() as cursor:
            nulls_are_equal = self._prepare(cursor, rows.schema)
            if gone.num_rows:
                self._copy(cursor, _GONE, gone)
                for pattern in _patterns(gone, self._key):
                    self._delete(cursor, _GONE, pattern)
            if rows.num_rows:
                self._copy(cursor, _ROWS, rows)
                for pattern in _patterns(rows, self._key):
                    if any(pattern) and not nulls_are_equal:
                        self._delete(cursor, _ROWS, pattern)  # an index that tells nulls apart finds no conflict
                self._insert(cursor, rows.column_names)

    @contextmanager
    def _connected(self) -> Iterator[Cursor]:
        """One transaction: all that is done inside, or nothing."""
        try:
            opened = psycopg.connect(**self._connection)
        except psycopg.Error as error:
            raise EnvironmentProblem(f"PostgreSQL cannot be reached for {self._name!r}: {_said(error)}") from error
        try:
            with opened, opened.cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            raise PipelineFailed(f"PostgreSQL refused the rows for {self._name!r}: {_said(error)}") from error

    def _prepare(self, cursor: Cursor, schema: pa.Schema) -> bool:
        """Make the table and its index unless they are there. True: the index takes nulls for equal."""
        table = self._found(cursor)
        if table is None:
            columns = [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(_type(one))) for one in schema]
            make = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})")
            cursor.execute(make.format(self._table, sql.SQL(", ").join(columns)))
            table = self._found(cursor)
        can_be_equal = cursor.connection.info.server_version >= _NULLS_NOT_DISTINCT
        found = self._indexes(cursor, table, can_be_equal=can_be_equal)
        if found:
            return any(found)
        make = sql.SQL("CREATE UNIQUE INDEX IF NOT EXISTS {} ON {} ({})")
        made = make.format(sql.Identifier(index_name(self._parts, self._key)), self._table, _listed(self._key))
        cursor.execute(made + sql.SQL(" NULLS NOT DISTINCT" if can_be_equal else ""))
        return can_be_equal

    def _found(self, cursor: Cursor) -> int | None:
        """PostgreSQL's number of the table; None: there is none."""
        row = cursor.execute("SELECT to_regclass(%s)::oid", [self._table.as_string()]).fetchone()
        return None if row is None else row[0]

    def _indexes(self, cursor: Cursor, table: int | None, *, can_be_equal: bool) -> list[bool]:
        """The unique indexes over exactly the key: does each take nulls for equal?"""
        cursor.execute("SELECT attnum, attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0", [table])
        names: dict[int, str] = dict(cursor.fetchall())
        ask = sql.SQL(
            "SELECT indkey::text, indnkeyatts, {} FROM pg_index WHERE indrelid = %s AND indisunique AND indisvalid "
            "AND indimmediate AND indpred IS NULL AND indexprs IS NULL"
        )
        cursor.execute(ask.format(sql.SQL("indnullsnotdistinct" if can_be_equal else "false")), [table])
        return [
            nulls_are_equal
            for numbers, length, nulls_are_equal in cursor.fetchall()
            if {names[int(number)] for number in numbers.split()[:length]} == {*self._key}
        ]

    def _copy(self, cursor: Cursor, to: sql.Identifier, rows: pa.Table) -> None:
        """Into a table of this connection, with the columns of the one that people read."""
        columns = _listed(rows.column_names)
        make = sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
        cursor.execute(make.format(to, columns, self._table))
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(to, columns)) as copy:
            for some in rows.to_batches():
                for row in zip(*(column.to_pylist() for column in some.columns), strict=True):
                    copy.write_row(row)

    def _delete(self, cursor: Cursor, given: sql.Identifier, pattern: Pattern) -> None:
        """The rows with a key in `given` whose nulls are in these columns. An index serves each condition, as it would
        not serve IS NOT DISTINCT FROM."""
        same = [
            sql.SQL("t.{0} IS NULL AND g.{0} IS NULL" if is_null else "t.{0} = g.{0}").format(sql.Identifier(name))
            for name, is_null in zip(self._key, pattern, strict=True)
        ]
        delete = sql.SQL("DELETE FROM {} t USING {} g WHERE {}")
        cursor.execute(delete.format(self._table, given, sql.SQL(" AND ").join(same)))

    def _insert(self, cursor: Cursor, columns: list[str]) -> None:
        others = [name for name in columns if name not in self._key]
        sets = sql.SQL(", ").join(sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in others)
        action = sql.SQL("DO UPDATE SET {}").format(sets) if others else sql.SQL("DO NOTHING")
        insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} ON CONFLICT ({}) {}")
        listed = _listed(columns)
        cursor.execute(insert.format(self._table, listed, listed, _ROWS, _listed(self._key), action))


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a table's name. What is in quotes is one part, dots and all; the case of letters is kept.

    >>> name_parts("sales.best"), name_parts('sales."q1.best"')
    (('sales', 'best'), ('sales', 'q1.best'))
    """
    parts = re.findall(r'"((?:[^"]|"")*)"(?:\.|$)|([^.]+)(?:\.|$)', name)
    return tuple(quoted.replace('""', '"') or plain for quoted, plain in parts)


def index_name(table: tuple[str, ...], key: tuple[str, ...]) -> str:
    """A name for the index of a table over a key: no other table or key has it, however long the names are. An index is
    always in the schema of its table, so the name has none.

    >>> index_name(("sales", "best"), ("window_end", "rank"))
    'best_27c1d24e_key'
    """
    digest = hashlib.sha256("\0".join((*table, "", *key)).encode()).hexdigest()[:8]
    ending = f"_{digest}_key"
    return table[-1].encode()[: _LONGEST_NAME - len(ending)].decode(errors="ignore") + ending


def _listed(names: list[str] | tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _patterns(rows: pa.Table, key: tuple[str, ...]) -> list[Pattern]:
    """Which columns of the key are null, in some row."""
    nulls = pa.table([pc.is_null(rows[name]) for name in key], names=[str(n) for n in range(len(key))])
    found = nulls.group_by(nulls.column_names).aggregate([])
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _type(column: pa.Field) -> str:
    """As Spark's own writer chose it."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"{_type(kind.value_field)}[]"
    for is_kind, name in _TYPES:
        if is_kind(kind):
            return name
    raise PipelineFailed(f"PostgreSQL has no type for the column {column.name!r}, which is {kind}: leave it out.")


_TYPES: Final = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_int32, "integer"),
    (lambda kind: pa.types.is_int8(kind) or pa.types.is_int16(kind), "smallint"),
    (pa.types.is_uint64, "numeric(20)"),
    (pa.types.is_unsigned_integer, "bigint"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_floating, "real"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view(), "text"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), "bytea"),
    (pa.types.is_date, "date"),
)


def _said(error: psycopg.Error) -> str:
    """PostgreSQL's words, on one line."""
    told = [error.diag.message_primary, error.diag.message_detail]
    return " ".join(filter(None, told)) or " ".join(str(error).split())
