"""A table of Apache Iceberg. The number of a micro-batch is a property of the table, committed with its rows.

A property stays when snapshots expire, so a repetition is found however old it is; the snapshots have it, too, for
people. Written by the library pyiceberg in this process, from what a micro-batch hands over: no jar is needed.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from skyband.errors import EnvironmentProblem
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.secrets import resolve

try:
    from pyiceberg import expressions
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.table import Table
except ImportError as error:
    raise EnvironmentProblem("An Iceberg table needs the package pyiceberg: pip install 'skyband[iceberg]'.") from error

_make: Any = expressions  # classes of pydantic's, which mypy knows only with its plugin
_NAN: Final = object()  # in a key
CATALOG: Final = "catalog"  # the option that names one of pyiceberg's own file of settings


class IcebergTable:
    """A table of a catalog, as one writer uses it."""

    def __init__(self, pipeline: Pipeline, sink: Sink, query: str, writer: str) -> None:
        self._name = resolve(str(sink.table)).replace("{query}", query)
        self._catalog = _catalog(pipeline, sink, query)
        self.place = f"{self._catalog.name}.{self._name}"
        self._written = f"skyband.batch.{writer}"

    def schema(self) -> pa.Schema | None:
        table = self._open()
        return None if table is None else table.schema().as_arrow()

    def last_batch(self) -> int | None:
        table = self._open()
        found = None if table is None else table.properties.get(self._written)
        return None if found is None else int(found)

    def append(self, rows: pa.Table, batch: int) -> None:
        said = {self._written: str(batch)}
        with self._made(rows.schema).transaction() as commit:
            commit.append(rows, snapshot_properties=said)
            commit.set_properties(said)

    def merge(self, rows: pa.Table, gone: pa.Table, key: tuple[str, ...], batch: int) -> None:
        """Rows whose columns each have a value of some key are few: they go, and those come back that have no key."""
        said = {self._written: str(batch)}
        table = self._made(rows.schema)
        keys = {*_keys(rows, key), *_keys(gone, key)}
        each = [_with_values(name, {one[number] for one in keys}) for number, name in enumerate(key)]
        near = each[0] if len(each) == 1 else _make.And(*each)
        there = table.scan(row_filter=near).to_arrow().cast(rows.schema)
        kept = there.filter(pa.array([one not in keys for one in _keys(there, key)], pa.bool_()))
        put = pa.concat_tables([kept, rows])
        with table.transaction() as commit:
            if there.num_rows:
                commit.delete(near, snapshot_properties=said)
            if put.num_rows:
                commit.append(put, snapshot_properties=said)
            commit.set_properties(said)

    def replace(self, rows: pa.Table) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no row was there before
            self._made(rows.schema).overwrite(rows)

    def _open(self) -> Table | None:
        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def _made(self, schema: pa.Schema) -> Table:
        self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        return self._catalog.create_table_if_not_exists(self._name, schema=schema)


def _with_values(name: str, values: set[Any]) -> expressions.BooleanExpression:
    """Has the column one of these values? Null is a value like others.

    The condition is true or false of every row: when pyiceberg deletes rows, it loses others of which the condition
    is neither.
    """
    simple = {value for value in values if value is not None and value is not _NAN}
    found = [_make.And(_make.NotNull(name), _make.In(name, simple))] if simple else []
    found += [_make.IsNull(name)] if None in values else []
    found += [_make.And(_make.NotNull(name), _make.IsNaN(name))] if _NAN in values else []
    return found[0] if len(found) == 1 else _make.Or(*found)


def _keys(rows: pa.Table, key: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The key of each row; NaN equals NaN."""
    columns = [[_comparable(value) for value in rows.column(name).to_pylist()] for name in key]
    return list(zip(*columns, strict=True))


def _comparable(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _catalog(pipeline: Pipeline, sink: Sink, query: str) -> Catalog:
    """That of the sink's options or, with a path, one in a file of SQLite beside the tables."""
    options = {name: resolve(value) for name, value in sink.options.items()}
    if sink.path is None:
        name = options.pop(CATALOG, None)
        try:
            return load_catalog(name, **options)
        except Exception as error:
            said = str(error).strip().splitlines()[0]
            raise EnvironmentProblem(
                f"There is no Iceberg catalog for sink {sink.name!r}: {said} Name one, by pyiceberg's names: options = "
                '{ type = "rest", uri = "…", warehouse = "…" }; or a folder: path = "…".'
            ) from error
    folder = Path(pipeline.located(resolve(sink.path).replace("{query}", query)))
    folder.mkdir(parents=True, exist_ok=True)
    return load_catalog("skyband", type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=folder.as_uri())
