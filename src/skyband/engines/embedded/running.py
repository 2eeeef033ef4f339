"""The loop that runs a session over rows in their order, collects its answers, and warns about late rows.

A whole table is sorted by time first, so that none of its rows is late. Most tables are sorted already. One pass over
the column finds out, before any row is read. A table that is not sorted is sorted in memory.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import tee
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.calls import Stats
from skyband.core.encoding.inputs import Like, Source, WholeRows, in_batches, read
from skyband.core.encoding.schemas import is_value, plain_schema
from skyband.core.encoding.times import ascends
from skyband.core.encoding.value_types import as_values
from skyband.core.problem import Running
from skyband.core.session import Session
from skyband.errors import InvalidQuery, LateRows
from skyband.windows import Window

if TYPE_CHECKING:
    from rich.console import Console


_ROWS_AT_ONCE: Final = 1 << 18  # of a table that is put in order
_FEW: Final = 1 << 13  # numbers, for which a kernel does not pay


def run(data: Any, open_session: Callable[[pa.Schema], Session], window: Window) -> Running:
    """A session's answers over a table or a stream, of which the window measures a column."""
    source = read(data)
    source = source.plain() if source.is_whole else source
    session = open_session(source.schema)
    check_order(window, source.schema)
    rows = data.num_rows if isinstance(data, pa.Table | pa.RecordBatch) else None
    return started(session, _answers(session, source, window), source.is_whole, source.like, rows)


def started(session: Any, answers: Iterator[pa.Table], is_whole: bool, like: Like, rows: int | None = None) -> Running:
    """The answers of a session, with a word about rows that are late; `rows`: how many there are, if that is known."""
    answers = with_progress(session, answers, rows)
    return Running(session, answers if is_whole else _watched(session, answers), is_whole, like)


def _answers(session: Session, source: Source, window: Window) -> Iterator[pa.Table]:
    session.in_order = source.is_whole and window.on is not None
    for batch in ordered(source, window):
        yield session.push(batch)
    yield session.finish()


def _watched(session: Session, answers: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same answers. Rows that are late are warned of when the first come, and at the end if more have come."""
    told = 0
    for answer in answers:
        if not told and session.rows_late:
            told = _warn(session)
        yield answer
    if session.rows_late > told:
        _warn(session)


def _warn(session: Session) -> int:
    stats, query = session.stats(), cast(Any, session.query)
    if query.window.every is None:
        advice = "Sort the rows by time, or pass a table, which Skyband sorts first."
    else:
        waits = "no lateness" if query.lateness is None else f"lateness={str(query.lateness)!r}"
        advice = f"Windows wait `lateness` for rows out of order ({waits} now): raise it."
    warnings.warn(
        f"{stats.rows_late:,} of {stats.rows_in:,} rows so far arrived after all their windows had closed, so Skyband "
        f"dropped them. {advice}",
        LateRows,
        stacklevel=2,
    )
    return stats.rows_late


class _Seen(NamedTuple):
    """What one of several queries gives out."""

    output_schema: pa.Schema
    stats: Callable[[], Stats]


def apart(together: Running, queries: int) -> list[Running]:
    """The answers of a session to each of its queries, whose number is the first column."""
    seen = _Seen(together.session.output_schema.remove(0), together.session.stats)
    copies = tee(together.answers, queries)
    return [together._replace(session=seen, answers=_of_question(number, copy)) for number, copy in enumerate(copies)]


def _of_question(number: int, answers: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for answer in answers:
        yield answer.filter(pc.equal(answer.column(0), number)).remove_column(0)


# -- the order of arrival --------------------------------------------------------------------------------------------


def arrival_columns(window: Window) -> list[str]:
    """The columns that put the rows of a table in order. A window of arrivals has none, unless it names one."""
    return [name for name in (window.on, window.order) if name is not None]


def check_order(window: Window, schema: pa.Schema) -> None:
    """Raise unless the column that a window names for it can put rows in order."""
    kind = plain_schema(schema).field(window.order).type if window.order in schema.names else None
    if kind is not None and not is_value(kind):
        raise InvalidQuery(f"order={window.order!r} cannot put rows in order: the column is {kind}.")


def ordered(source: Source, window: Window) -> Iterable[pa.RecordBatch]:
    """The rows of a source in the order in which they arrive; of a table, in that of the window's columns.

    Rows that are equal there keep their order. Those without a time come last.
    """
    names = arrival_columns(window)
    if not isinstance(source.batches, WholeRows):
        return in_batches(source.batches)
    if not names:
        return source.batches
    if names == [window.on] and _is_in_order(source.batches.column(names[0])):
        return source.batches
    batches = list(source.batches)
    keys = pa.table({name: _comparable(batches, source.schema.field(name)) for name in names})
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]).to_numpy()
    return batches if _ascends(order) else _taken(batches, order)


def _is_in_order(column: Iterable[pa.Array]) -> bool:
    """Numbers and instants: is none, in pieces as they come, before an earlier one?"""
    last: Any = None
    for piece in column:
        numbers = _numbers(piece)
        if not len(numbers):
            continue
        if (last is not None and numbers[0] < last) or not _ascends(numbers):
            return False
        last = numbers[-1]
    return True


def _ascends(numbers: npt.NDArray[Any]) -> bool:
    """Of few numbers, numpy sees it before a kernel is there."""
    return bool((numbers[1:] >= numbers[:-1]).all()) if len(numbers) < _FEW else ascends(numbers)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """The column's values that are not null, as they lie in memory; none at all where they cannot be read so."""
    if pa.types.is_run_end_encoded(column.type):
        column = column.values.take(pa.array(_runs(column)))
    if column.null_count:
        column = column.drop_null()
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_numpy(zero_copy_only=False)


def _runs(column: pa.Array) -> npt.NDArray[np.int64]:
    """Which runs a column in runs has a part of."""
    first = column.find_physical_offset()
    return np.arange(first, first + column.find_physical_length())


def _comparable(batches: list[pa.RecordBatch], field: pa.Field) -> pa.ChunkedArray:
    """A column as what can be sorted by."""
    return as_values(pa.chunked_array([batch.column(field.name) for batch in batches], field.type), field.name)


def _taken(batches: list[pa.RecordBatch], order: npt.NDArray[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of all batches in this order, some at once. Batch by batch: of a table, Arrow would copy all of them
    together for each part, and strings of more than 2 GB cannot be copied together."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    at_once = min(_ROWS_AT_ONCE, max(batch.num_rows for batch in batches))
    for first in range(0, len(order), at_once):
        wanted = order[first : first + at_once].astype(np.int64)
        batch_of = np.searchsorted(starts, wanted, side="right") - 1
        by_batch = np.argsort(batch_of, kind="stable")
        parts = []
        for number in np.unique(batch_of).tolist():
            here = wanted[batch_of == number] - starts[number]
            parts.append(batches[number].take(pa.array(here)))
        if len(parts) == 1:
            yield parts[0]
            continue
        back = np.empty(len(wanted), np.int64)
        back[by_batch] = np.arange(len(wanted))
        yield pa.concat_batches(parts).take(pa.array(back))


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
