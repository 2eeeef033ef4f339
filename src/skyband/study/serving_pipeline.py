"""What a thousand readers cost a pipeline on Spark: rows per second with them and without, and who uses the cores.

One pipeline runs all the time, by the code behind `skyband run --serve`, on one core (`local[1]`): it reads files as
fast as it can. Beside its own query the server has one more, which shows the pipeline's newest answer anew ten times a
second: Spark's micro-batches take longer than that. Readers of it come and go in turns.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyband.errors import EnvironmentProblem
from skyband.problems.rows.query import TopK
from skyband.serving.server import Server
from skyband.serving.watching import Watched
from skyband.study.processes import Shares, shares
from skyband.study.readers import Publisher, reading
from skyband.study.spark_runs import instants
from skyband.windows import sliding

if TYPE_CHECKING:
    from skyband.pipelines.running import Running

_ROWS: Final = 300_000  # of a file, and of a micro-batch
_MOST_ROWS_PER_SECOND: Final = 1_200_000  # that one core reads and ranks: there are files for so many
_EVENTS_PER_SECOND: Final = 20_000  # rows of a second of the stream's own time
_WARM_SECONDS: Final = 40.0  # Java compiles for so long
_BETWEEN_SECONDS: Final = 8.0  # turns: to connect readers, and to see them go
_PIPELINE: Final = """
[sources.trades]
format = "parquet"
path = "{folder}/rows"
schema = "ts TIMESTAMP, id BIGINT, symbol STRING, price DOUBLE"
options = {{ maxFilesPerTrigger = 1 }}

[queries.best]
sql = "SELECT * FROM trades [WINDOW 1 MINUTE EVERY 5 SECONDS ON ts] ORDER BY price DESC LIMIT 10"
to = "files"

[sinks.files]
format = "parquet"
path = "answers"
"""


@dataclass(frozen=True)
class PipelineTurn:
    """One turn."""

    readers: int
    updates: int
    rows_per_second: float  # of the micro-batches that lie in the turn as a whole
    batches: int
    cores: Shares  # CPU seconds a second
    received: int
    skipped: int
    lost: int
    p50_ms: float
    p99_ms: float


def measure(readers: int, seconds: float, turns: int, say: Callable[[str], None]) -> list[PipelineTurn]:
    """So many turns without readers, and as many with them; which of both comes first changes."""
    if not Path("/proc/self/stat").exists():
        raise EnvironmentProblem(
            "CPU times come from /proc, which only Linux has. Run `skyband bench serving session`."
        )
    with tempfile.TemporaryDirectory(prefix="skyband-bench-", ignore_cleanup_errors=True) as name:
        say("a pipeline: writing rows, starting Spark")
        rows = _MOST_ROWS_PER_SECOND * (_WARM_SECONDS + 2 * turns * (seconds + _BETWEEN_SECONDS))
        _write_rows(Path(name, "rows"), ceil(rows / _ROWS))
        with _running(Path(name)) as (running, server):
            say("a pipeline: warming up")
            time.sleep(_WARM_SECONDS)
            found: list[PipelineTurn] = []
            for turn in range(turns):
                for count in (0, readers) if turn % 2 == 0 else (readers, 0):
                    say(f"a pipeline: turn {turn + 1} of {turns}, {count:,} readers")
                    found.append(_turn(running, server, f"latest{len(found)}", count, seconds))
            return found


def _turn(running: Running, server: Server, name: str, count: int, seconds: float) -> PipelineTurn:
    latest = Watched(TopK(k=1, by="x", window=sliding(10)).open(pa.schema({"x": pa.float64()})), name)
    server.catalog.add(latest)
    best = server.catalog.find("best")
    assert best is not None, "the pipeline has begun"
    with reading(server.port, name, count) as connected:
        publisher = Publisher(latest.board)
        before, began = shares(server.thread, connected.pid), time.monotonic()
        from_wall = time.time()
        while (now := time.monotonic()) < began + seconds:
            answer = best.board.latest()
            assert answer is not None, "the pipeline is warm"
            publisher.tick(answer.table)
            time.sleep(max(0.0, publisher.due - time.monotonic()))
        cores = shares(server.thread, connected.pid).since(before).each_second(now - began)
        until_wall = time.time()
        latest.close()
        read = connected.result()
    server.catalog.remove(name)
    rates = [rows / took for start, took, rows in _reports(running) if from_wall <= start and start + took < until_wall]
    updates = len(publisher.published)
    lost = count * updates - read.received - read.skipped
    assert rates, "a turn has micro-batches: the pipeline has files for all turns"
    rate = float(np.median(rates))
    return PipelineTurn(
        count, updates, rate, len(rates), cores, read.received, read.skipped, lost, *read.late_ms(publisher.published)
    )


@contextmanager
def _running(folder: Path) -> Iterator[tuple[Running, Server]]:
    """A pipeline that runs on one core, and its server."""
    from skyband.engines.spark.session import local_session
    from skyband.pipelines.file import load
    from skyband.pipelines.metrics import Metrics
    from skyband.pipelines.running import Running
    from skyband.pipelines.served import ServedPipeline
    from skyband.pipelines.session import settings

    file = folder / "bench.toml"
    file.write_text(_PIPELINE.format(folder=folder))
    pipeline, metrics = load(file), Metrics()
    spark: Any = local_session("skyband bench", cores=1, log_file=folder / "spark.log", **settings(pipeline))  # type: ignore[arg-type]
    served = ServedPipeline(pipeline, metrics.text)
    running, stopped = Running(spark, pipeline, print, served=served), Event()

    def follow() -> None:
        for figures in running.follow(stopped.is_set):
            metrics.take(figures)

    try:
        with Server(served.catalog) as server:
            running.start()
            thread = Thread(target=follow, name="skyband follows")
            thread.start()
            try:
                yield running, server
            finally:
                stopped.set()
                thread.join()
    finally:
        spark.stop()


def _reports(running: Running) -> list[tuple[float, float, int]]:
    """Of each micro-batch with rows: when it began, how many seconds it took, and its rows."""
    found = (report for reports in running.reports().values() for report in reports)
    return [
        (_moment(report["timestamp"]), report["durationMs"]["triggerExecution"] / 1_000, report["numInputRows"])
        for report in found
        if report["numInputRows"]
    ]


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _write_rows(folder: Path, files: int) -> None:
    folder.mkdir()
    random = np.random.default_rng(1)
    names = pa.array([f"name-{number:03}" for number in range(500)])
    symbol = names.take(pa.array(random.integers(500, size=_ROWS)))
    number = np.arange(_ROWS)
    for file in range(files):
        id = number + file * _ROWS
        columns = {"ts": instants(id * 1_000 // _EVENTS_PER_SECOND), "id": id, "symbol": symbol}
        table = pa.table({**columns, "price": random.lognormal(4, 1, _ROWS)})
        path = folder / f"rows-{file:05}.parquet"
        pq.write_table(table, path, compression="none", use_dictionary=["symbol"], write_statistics=False)
        os.utime(path, (file + 1, file + 1))  # Spark reads files in the order of their times
