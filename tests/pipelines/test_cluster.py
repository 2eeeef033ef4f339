"""Oracle test on a standalone cluster: the four problems give the same rows there, also if a worker dies in a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from engines.spark.streams import Line, lines, split, trades, write_batches
from pipelines.test_running import LAST_US, ROWS, closed
from servers.cluster import cluster
from typer.testing import CliRunner
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.cli import app

# A driver of its own, so it need not wait for the one session that others share.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("drivers")]

STATEMENTS = {
    "rows": "SELECT price FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol",
    "pairs": (
        "SELECT a.seq, b.seq FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol = b.symbol "
        "ORDER BY abs(a.price - b.price) + abs(a.seq - b.seq) / 1000 LIMIT 3 WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "across": (
        "SELECT seq FROM trades FULL JOIN others USING (seq) ORDER BY trades.price + others.price DESC LIMIT 2 "
        "WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "joins": (
        "SELECT t.symbol, COUNT(*) AS n FROM trades t [WINDOW 10 SECONDS EVERY 10 SECONDS], "
        "others o [WINDOW 10 SECONDS EVERY 10 SECONDS] WHERE t.symbol = o.symbol GROUP BY t.symbol"
    ),
}


def expected(name: str) -> list[Line]:
    return closed(sb.sql(STATEMENTS[name], trades=trades(ROWS), others=trades(ROWS, seed=2)), LAST_US)


def test_a_cluster_gives_the_same_rows_although_a_worker_dies(tmp_path: Path) -> None:
    for name, seed in (("trades", 1), ("others", 2)):
        write_batches(tmp_path / name, split(trades(ROWS, seed=seed), 3))
    with cluster(tmp_path) as running:
        file = tmp_path / "cluster.toml"
        file.write_text(_file(running.master))
        line = CliRunner().invoke(app, ["submit", str(file)]).output  # as a person copies it
        command = ["sh", "-c", f"{line.strip()} --log json"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # of an active environment
        with (tmp_path / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=os.environ | {"PATH": path}
            )
            try:
                _wait_for_a_batch(tmp_path / ".skyband" / "cluster", process)
                os.killpg(running.workers[0].pid, signal.SIGKILL)  # with its executor, in whatever it is doing
                process.wait(PATIENCE_S)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, (tmp_path / "log.txt").read_text()[-3_000:]
    for name in STATEMENTS:
        given = pq.read_table(tmp_path / "answers" / name).drop_columns(["batch"])
        assert sorted(lines(given)) == expected(name), name


def _file(master: str) -> str:
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\noptions = {{ maxFilesPerTrigger = 2 }}\n'
        for name in ("trades", "others")
    )
    queries = "".join(f'[queries.{name}]\nsql = """{text}"""\nto = "files"\n' for name, text in STATEMENTS.items())
    return f"""trigger = "available now"
{sources}{queries}
[sinks.files]
format = "parquet"
path = "answers/{{query}}"

[spark]
"spark.master" = "{master}"
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.ui.enabled" = false
"spark.sql.shuffle.partitions" = 2
"spark.skyband.buckets" = 3
"spark.python.daemon.module" = "skyband.engines.spark.daemon"
"spark.executor.memory" = "700m"
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def _wait_for_a_batch(checkpoints: Path, process: subprocess.Popen[bytes]) -> None:
    """Until a stream has committed its first micro-batch and begun its second."""
    wait_until(lambda: any(checkpoints.glob("*/offsets/1")), "a second micro-batch", process)
