"""What a thousand readers cost: how late answers reach them, how many get lost, and how much slower a session becomes.

Readers are in a process of their own, each with its own connection. A session is pushed to all the time; ten times a
second its board gets an answer that says when it was published. Turns without readers are taken between those with.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from skyband.errors import InvalidInput
from skyband.problems.rows.query import TopK
from skyband.serving.catalog import Catalog
from skyband.serving.server import Server
from skyband.serving.watching import Watched
from skyband.study.results import when_measured
from skyband.windows import sliding

_BATCH: Final = 20_000
_K: Final = 10
_UPDATES_PER_SECOND: Final = 10
_START: Final = "<!-- readers: skyband bench serving --report -->"
_END: Final = "<!-- end of readers -->"
_COLUMNS: Final = (
    *("readers", "answers × readers", "received", "skipped", "lost", "median delay", "p99 delay"),
    *("rows a second", "rows per CPU second of the pushing thread", "when, commit"),
)
_FILES: Final = 8_192  # open at once: a connection is one on each side


@dataclass(frozen=True)
class Found:
    """One turn."""

    readers: int
    updates: int
    rows_per_second: float  # that the session took meanwhile
    rows_per_cpu_second: float  # of the pushing thread: what readers cost it beside waiting for the machine
    received: int
    skipped: int  # answers that readers did not get because they were behind, and were told of
    lost: int  # answers that readers neither got nor were told of
    p50_ms: float
    p99_ms: float


def measure(readers: int, seconds: float) -> Found:
    """Push for so long, with so many readers."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    schema = pa.schema({"x": pa.float64()})
    session = TopK(k=_K, by="x", window=sliding(1_000_000, every=100_000)).open(schema)
    served = Watched(session, "best")
    clock = Watched(TopK(k=1, by="x", window=sliding(10, every=10)).open(schema), "clock")
    catalog = Catalog("load")
    catalog.add(served)
    catalog.add(clock)
    with Server(catalog) as server:
        ready, done = multiprocessing.get_context("spawn").Event(), multiprocessing.get_context("spawn").Queue()
        process = multiprocessing.get_context("spawn").Process(target=_read, args=(server.port, readers, ready, done))
        if readers:
            process.start()
            ready.wait()
        session.push(pa.record_batch({"x": np.zeros(200_000)}))  # compiles what there is to compile
        rows, cpu, updates, took = _push(session, clock, seconds)
        clock.close()
        received, missed, delays = done.get() if readers else (0, 0, [0.0])
        if readers:
            process.join()
    late = np.percentile(np.array(delays) * 1_000, [50, 99])
    lost = readers * updates - received - missed
    return Found(readers, updates, rows / took, rows / cpu, received, missed, lost, float(late[0]), float(late[1]))


def _push(session: Any, clock: Watched, seconds: float) -> tuple[int, float, int, float]:
    """Rows as fast as they are taken, and an answer on the clock's board ten times a second."""
    batch = pa.record_batch({"x": np.random.default_rng(1).random(_BATCH)})
    rows = updates = 0
    began, cpu = time.monotonic(), time.thread_time()
    while (now := time.monotonic() - began) < seconds:
        session.push(batch)
        rows += _BATCH
        if now * _UPDATES_PER_SECOND >= updates:
            updates += 1
            clock.board.publish(pa.table({"published": [time.time()], "rank": [1], "x": [1.0]}))
    return rows, time.thread_time() - cpu, updates, time.monotonic() - began


def _read(port: int, readers: int, ready: Any, done: Any) -> None:
    """In a process of its own."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    done.put(asyncio.run(_read_all(port, readers, ready)))


async def _read_all(port: int, readers: int, ready: Any) -> tuple[int, int, list[float]]:
    opened = 0
    all_there = asyncio.Event()

    async def one() -> tuple[int, int, list[float]]:
        nonlocal opened
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /queries/clock/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        opened += 1
        if opened == readers:
            all_there.set()
        missed, delays = 0, []
        while line := await reader.readline():
            if line.startswith(b"event: end"):
                break
            if line.startswith(b"data: "):
                told = json.loads(line[6:])
                delays.append(time.time() - told["rows"][0]["published"])
                missed += told["missed"]
        writer.close()
        return len(delays), missed, delays

    tasks = [asyncio.create_task(one()) for _ in range(readers)]
    await all_there.wait()
    ready.set()
    found = await asyncio.gather(*tasks)
    return sum(each[0] for each in found), sum(each[1] for each in found), [one for each in found for one in each[2]]


def report(found: Sequence[Found], path: Path) -> None:
    """Replace the table between the two marks of a Markdown page."""
    alone = _pushed(found, with_readers=False)
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    for each in sorted(found, key=lambda each: each.readers):
        seen = [f"{each.readers * each.updates:,}", f"{each.received:,}", f"{each.skipped:,}", f"{each.lost:,}"]
        late = [f"{each.p50_ms:,.0f} ms", f"{each.p99_ms:,.0f} ms"]
        pushed = f"{each.rows_per_second / 1e6:.1f} million"
        cpu = f"{each.rows_per_cpu_second / 1e6:.1f} million ({each.rows_per_cpu_second / alone:.2f})"
        cells = [f"{each.readers:,}", *(seen + late if each.readers else [""] * 6), pushed, cpu, when_measured()]
        lines.append(f"| {' | '.join(cells)} |")
    page = path.read_text(encoding="utf-8")
    before, start, rest = page.partition(_START)
    _, end, after = rest.partition(_END)
    if not start or not end:
        raise InvalidInput(f"{path} has no place for the table: a line {_START!r} and, after it, a line {_END!r}.")
    path.write_text("\n".join([before + start, *lines, end + after]), encoding="utf-8")


def _pushed(found: Sequence[Found], *, with_readers: bool) -> float:
    """The median of rows per CPU second of the turns with readers, or without."""
    return float(np.median([each.rows_per_cpu_second for each in found if bool(each.readers) == with_readers]))


def run(
    console: Console, *, readers: int, seconds: float, turns: int, json_file: Path | None, page: Path | None
) -> None:
    """Measure in turns, with readers and without, and print a table."""
    found = [measure(count, seconds) for _ in range(turns) for count in (0, readers)]
    table = Table(
        "readers", "updates", "received", "skipped", "lost", "p50 ms", "p99 ms", "M rows/s", "M rows/CPU s", box=None
    )
    for each in found:
        late = (f"{each.p50_ms:,.1f}", f"{each.p99_ms:,.1f}") if each.readers else ("", "")
        table.add_row(
            *(f"{each.readers:,}", f"{each.updates:,}", f"{each.received:,}"),
            *(f"{each.skipped:,}", f"{each.lost:,}"),
            *(*late, f"{each.rows_per_second / 1e6:.1f}", f"{each.rows_per_cpu_second / 1e6:.1f}"),
        )
    console.print(table)
    share = _pushed(found, with_readers=True) / _pushed(found, with_readers=False)
    console.print(f"Rows per CPU second of the pushing thread, with readers against without: {share:.3f}")
    if page is not None:
        report(found, page)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(each) for each in found], indent=1), encoding="utf-8")
