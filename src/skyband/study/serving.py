"""What a thousand readers cost: how late answers reach them, how many get lost, and how much slower they make a
pipeline on Spark (`serving_pipeline.py`) or an embedded session.

Readers are in a process of their own, each with its own connection. A session is pushed to all the time; ten times a
second an answer is published. Turns without readers are taken between those with.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from skyband.errors import InvalidInput
from skyband.problems.rows.query import TopK
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.watching import Watched
from skyband.study.readers import Publisher, allow_connections, reading
from skyband.study.results import when_measured
from skyband.study.serving_pipeline import PipelineTurn
from skyband.study.serving_pipeline import measure as measure_pipeline
from skyband.windows import sliding

_BATCH: Final = 20_000
_K: Final = 10
_START: Final = "<!-- readers: skyband bench serving --report -->"
_PIPELINE_START: Final = "<!-- readers of a pipeline: skyband bench serving --report -->"
_END: Final = "<!-- end of readers -->"
_SEEN: Final = ("readers", "answers × readers", "received", "skipped", "lost", "median delay", "p99 delay")
_QUIET_CORES: Final = 0.25  # that other jobs use in a turn that counts
_CORES: Final = ("cores: pipeline", "serving thread", "fan-out process", "readers", "other jobs")

Turn = TypeVar("Turn", "Found", PipelineTurn)


@dataclass(frozen=True)
class Found:
    """One turn."""

    readers: int
    updates: int
    rows_per_second: float  # that the session took meanwhile
    rows_per_cpu_second: float  # of the pushing thread: what readers cost it beside waiting for the machine
    received: int
    skipped: int
    lost: int  # answers that readers neither got nor were told of
    p50_ms: float
    p99_ms: float


def measure(readers: int, seconds: float) -> Found:
    """Push to a session for so long, with so many readers."""
    allow_connections()
    schema = pa.schema({"x": pa.float64()})
    session = TopK(k=_K, by="x", window=sliding(1_000_000, every=100_000)).open(schema)
    served = Watched(session, "best")
    clock = Watched(TopK(k=1, by="x", window=sliding(10, every=10)).open(schema), "clock")
    catalog = Catalog("load")
    catalog.add(served)
    catalog.add(clock)
    with Server(catalog) as server, reading(server.port, "clock", readers) as connected:
        session.push(pa.record_batch({"x": np.zeros(200_000)}))  # compiles what there is to compile
        publisher = Publisher(clock.board)
        rows, cpu, took = _push(session, publisher, seconds)
        clock.close()
        read = connected.result()
    updates = len(publisher.published)
    lost = readers * updates - read.received - read.skipped
    late = read.late_ms(publisher.published)
    return Found(readers, updates, rows / took, rows / cpu, read.received, read.skipped, lost, *late)


def _push(session: Any, publisher: Publisher, seconds: float) -> tuple[int, float, float]:
    """Rows as fast as they are taken, and an answer on the clock's board ten times a second."""
    batch = pa.record_batch({"x": np.random.default_rng(1).random(_BATCH)})
    rows, began, cpu = 0, time.monotonic(), time.thread_time()
    while time.monotonic() - began < seconds:
        session.push(batch)
        rows += _BATCH
        publisher.tick(pa.table({"rank": [1], "x": [1.0]}))
    return rows, time.thread_time() - cpu, time.monotonic() - began


def report(found: Sequence[Found], page: Path) -> None:
    """Replace the table of sessions on a Markdown page."""
    alone = _median(found, False)
    rows = []
    for each in _in_order(found):
        cpu = f"{each.rows_per_cpu_second / 1e6:.1f} million ({each.rows_per_cpu_second / alone:.2f})"
        rows.append([*_reading(each), f"{each.rows_per_second / 1e6:.1f} million", cpu])
    replace_table(page, _START, [*_SEEN, "rows a second", "rows per CPU second of the pushing thread"], rows)


def report_pipeline(found: Sequence[PipelineTurn], page: Path) -> None:
    """Replace the table of pipelines on a Markdown page."""
    alone = _median(found, False)
    rows = []
    for each in _in_order(found):
        rate = f"{each.rows_per_second / 1e6:.2f} million ({each.rows_per_second / alone:.3f})"
        rows.append([*_reading(each), rate, str(each.batches), *(f"{share:.3f}" for share in each.cores)])
    replace_table(page, _PIPELINE_START, [*_SEEN, "rows a second", "micro-batches", *_CORES], rows)


def replace_table(page: Path, start: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Put a table between the mark `start` and the next end, each line with the date and the commit."""
    lines = [f"| {' | '.join([*columns, 'when, commit'])} |", f"|{'---|' * (len(columns) + 1)}"]
    lines += [f"| {' | '.join([*row, when_measured()])} |" for row in rows]
    text = page.read_text(encoding="utf-8")
    before, mark, rest = text.partition(start)
    _, end, after = rest.partition(_END)
    if not mark or not end:
        raise InvalidInput(f"{page} has no place for the table: a line {start!r} and, after it, a line {_END!r}.")
    page.write_text("\n".join([before + mark, *lines, end + after]), encoding="utf-8")


def _reading(turn: Found | PipelineTurn) -> list[str]:
    """What readers saw of a turn, as cells."""
    if not turn.readers:
        return ["0", *[""] * 6]
    seen = [f"{turn.readers * turn.updates:,}", f"{turn.received:,}", f"{turn.skipped:,}", f"{turn.lost:,}"]
    return [f"{turn.readers:,}", *seen, f"{turn.p50_ms:,.0f} ms", f"{turn.p99_ms:,.0f} ms"]


def _in_order(found: Sequence[Turn]) -> list[Turn]:
    return sorted(found, key=lambda each: each.readers)


def _median(found: Sequence[Found] | Sequence[PipelineTurn], with_readers: bool) -> float:
    """Of the turns with readers, or without: of sessions rows per CPU second, of pipelines rows per second."""
    rates = [
        each.rows_per_cpu_second if isinstance(each, Found) else each.rows_per_second
        for each in found
        if bool(each.readers) == with_readers
    ]
    return float(np.median(rates))


def run(
    console: Console,
    *,
    readers: int,
    seconds: float,
    turns: int,
    of_session: bool,
    of_pipeline: bool,
    json_file: Path | None,
    page: Path | None,
) -> None:
    """Measure in turns, with readers and without, and print a table of each."""
    written: dict[str, Any] = {}
    with console.status("") as status:
        if of_pipeline:
            status.update("a pipeline")
            pipeline = measure_pipeline(readers, seconds, turns, status.update)
            console.print(_table(pipeline, "rows/s", *_CORES))
            console.print(_pipeline_summary(pipeline))
            written["pipeline"] = [asdict(each) | {"cores": each.cores._asdict()} for each in pipeline]
            if page is not None:
                report_pipeline(pipeline, page)
        if of_session:
            status.update("a session")
            session = [measure(count, seconds) for _ in range(turns) for count in (0, readers)]
            console.print(_table(session, "rows/s", "rows/CPU s"))
            console.print(_session_summary(session))
            written["session"] = [asdict(each) for each in session]
            if page is not None:
                report(session, page)
    if json_file is not None:
        json_file.write_text(json.dumps(written, indent=1), encoding="utf-8")


def _table(found: Sequence[Found] | Sequence[PipelineTurn], *more: str) -> Table:
    table = Table(*_SEEN, *more, box=None)
    for each in found:
        if isinstance(each, Found):
            figures = [f"{each.rows_per_second / 1e6:.1f} M", f"{each.rows_per_cpu_second / 1e6:.1f} M"]
        else:
            figures = [f"{each.rows_per_second / 1e6:.3f} M", *(f"{share:.3f}" for share in each.cores)]
        table.add_row(*_reading(each), *figures)
    return table


def _session_summary(found: Sequence[Found]) -> str:
    share = _median(found, True) / _median(found, False)
    return f"Rows per CPU second of the pushing thread, with readers against without: {share:.3f}"


def _pipeline_summary(found: Sequence[PipelineTurn]) -> str:
    quiet = [each for each in found if each.cores.others < _QUIET_CORES]
    judged = quiet if {bool(each.readers) for each in quiet} == {False, True} else found
    share = _median(judged, True) / _median(judged, False)
    served = [each for each in judged if each.readers]
    own, serving = (
        np.median([each.cores.pipeline for each in served]),
        np.median([each.cores.server + each.cores.fanout for each in served]),
    )
    return (
        f"Turns in which other jobs used less than {_QUIET_CORES} of a core: {len(quiet)} of {len(found)}\n"
        f"Rows per second of the pipeline, with readers against without: {share:.3f}\n"
        f"CPU time that serves readers, against that of the pipeline: {serving / own:.3f}"
    )
