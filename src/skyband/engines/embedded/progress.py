"""A progress bar on the terminal while a query reads its rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

_SECONDS: Final = 0.1  # between two looks at the session
_on: ContextVar[bool] = ContextVar("skyband_progress", default=False)


@contextmanager
def progress() -> Iterator[None]:
    """Show a progress bar for each query that starts inside a `with` block and runs in this process.

    The bar shows the rows read and held and, for a pyarrow Table, how much is left. It goes to standard error, and only
    if that is a terminal or a notebook. Spark shows the progress of its own queries.

    Returns
    -------
    A context manager.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> trades = pa.table({"price": [10, 30, 20, 40]})
    >>> with sb.progress():
    ...     best = sb.top_k(trades, k=1, by="price", window=sb.sliding(2, every=2))
    >>> best["score"].to_pylist()
    [30, 40]
    """
    before = _on.set(True)
    try:
        yield
    finally:
        _on.reset(before)


def with_progress(session: Any, answers: Iterator[pa.Table], rows: int | None) -> Iterator[pa.Table]:
    """The same answers; inside `progress()` the terminal shows how far they are. `rows`: how many there are to read;
    None: nobody knows."""
    if not _on.get():
        return answers
    from rich.console import Console

    console = Console(stderr=True)
    return _shown(console, session, answers, rows) if console.is_terminal or console.is_jupyter else answers


def _shown(console: Console, session: Any, answers: Iterator[pa.Table], rows: int | None) -> Iterator[pa.Table]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task, looked = bar.add_task("rows", total=rows, said=""), 0.0
        for answer in answers:
            if time.monotonic() - looked >= _SECONDS:
                stats, looked = session.stats(), time.monotonic()
                said = f"{stats.rows_in:,} read, {stats.rows_held:,} held"
                bar.update(task, completed=stats.rows_in, said=said)
            yield answer
