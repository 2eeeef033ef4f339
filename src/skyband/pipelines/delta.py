"""A table of Delta Lake. Its log knows transactions of applications: a micro-batch's number is committed with its rows.

Written by the library deltalake in this process, from what a micro-batch hands over: no jar is needed, and Spark reads
the table with its own.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from skyband.errors import EnvironmentProblem
from skyband.pipelines.model import Pipeline, Sink
from skyband.pipelines.secrets import resolve

try:
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import TableNotFoundError
except ImportError as error:
    raise EnvironmentProblem("A Delta Lake table needs the package deltalake: pip install 'skyband[delta]'.") from error

_GONE: Final = "__skyband_gone"


class DeltaLakeTable:
    """The table in a folder, of this machine or of an object store, as one writer uses it."""

    def __init__(self, pipeline: Pipeline, sink: Sink, query: str, writer: str) -> None:
        self.place = pipeline.located(resolve(str(sink.path)).replace("{query}", query))
        self._options = {name: resolve(value) for name, value in sink.options.items()}
        self._writer = f"skyband.{writer}"

    def schema(self) -> pa.Schema | None:
        table = self._open()
        return None if table is None else pa.schema(table.schema().to_arrow())

    def last_batch(self) -> int | None:
        table = self._open()
        return None if table is None else table.transaction_version(self._writer)

    def append(self, rows: pa.Table, batch: int) -> None:
        write_deltalake(
            self.place,
            rows,
            mode="append",
            storage_options=self._options or None,
            commit_properties=self._commit(batch),
        )

    def merge(self, rows: pa.Table, gone: pa.Table, key: tuple[str, ...], batch: int) -> None:
        table = self._open()
        if table is None:
            if rows.num_rows:
                self.append(rows, batch)
            return
        given = pa.concat_tables([_marked(rows, is_gone=False), _marked(gone, is_gone=True)], promote_options="default")
        same = " AND ".join(f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in key)
        columns = {_quoted(name): f"s.{_quoted(name)}" for name in rows.column_names}
        merger = table.merge(given, same, source_alias="s", target_alias="t", commit_properties=self._commit(batch))
        merger = merger.when_matched_delete(f"s.{_GONE}").when_matched_update(columns)
        merger.when_not_matched_insert(columns, f"NOT s.{_GONE}").execute()

    def replace(self, rows: pa.Table) -> None:
        write_deltalake(self.place, rows, mode="overwrite", storage_options=self._options or None)

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.place, storage_options=self._options or None)
        except TableNotFoundError:
            return None

    def _commit(self, batch: int) -> CommitProperties:
        return CommitProperties(app_transactions=[Transaction(self._writer, batch)])


def _marked(rows: pa.Table, *, is_gone: bool) -> pa.Table:
    return rows.append_column(_GONE, pa.array([is_gone] * rows.num_rows, pa.bool_()))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
