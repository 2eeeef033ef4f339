"""The tables of `--input`, and on a terminal the progress of reading them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from skyband.core.encoding.inputs import Source, read
from skyband.errors import InvalidInput
from skyband.sql.files import open_table

_PATIENCE: Final = 1.0  # seconds that may pass before anything is said


def named_paths(given: Iterable[str] | None) -> dict[str, str]:
    """The names that tables are given, and where they are."""
    paths: dict[str, str] = {}
    for each in given or ():
        name, equals, path = each.partition("=")
        if not equals or not name.isidentifier():  # a folder may be called day=1
            name, path = Path(each).name.partition(".")[0], each
        if not name.isidentifier() or not path:
            raise InvalidInput(f"--input takes a name and a file, such as trades=trades.csv; got {each!r}.")
        if name.lower() in (one.lower() for one in paths):
            raise InvalidInput(f"Two inputs are called {name!r}. Give one another name: --input {name}2={path}.")
        paths[name] = path
    return paths


def open_inputs(given: Iterable[str] | None) -> dict[str, Any]:
    """The tables, by the names that statements give them."""
    return {name: open_table(path) for name, path in named_paths(given).items()}


@contextmanager
def progress(tables: Mapping[str, Any]) -> Iterator[dict[str, Source]]:
    """The same tables. On a terminal, if it takes long, one sees how many of their rows have been read."""
    sources = {name: read(table).plain() for name, table in tables.items()}
    console = Console(stderr=True)
    if not console.is_terminal:
        yield sources
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), _Rows(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    began = time.monotonic()

    def counted(name: str, source: Source) -> Source:
        task = bar.add_task(f"Reading {name}", total=_known_rows(tables[name]))

        def count(batch: pa.RecordBatch) -> pa.RecordBatch:
            bar.advance(task, batch.num_rows)
            if not bar.live.is_started and time.monotonic() - began > _PATIENCE:
                bar.start()
            return batch

        return source.mapped(source.schema, count)

    try:
        yield {name: counted(name, source) for name, source in sources.items()}
    finally:
        bar.stop()


def _known_rows(table: Any) -> int | None:
    """How many rows there are, where that can be known without reading them."""
    if isinstance(table, pa.Table):
        return table.num_rows
    return None if table.format.default_extname == "csv" else table.count_rows()


class _Rows(ProgressColumn):
    def render(self, task: Task) -> Text:
        of = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{of} rows", no_wrap=True)
