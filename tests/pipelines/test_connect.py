"""Restart and fault tests of pipelines through Spark Connect. The server is that of the tests' session; runs that are
stopped or killed are processes of their own, which know nothing of it but its port.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from engines.spark.streams import lines, split, trades, write_batches
from pipelines.test_running import ROWS, SECTORS, STATEMENTS, expected
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession
from servers.ports import free_port
from typer.testing import CliRunner
from waiting import PATIENCE_S, wait_until

import skyband as sb
from skyband.cli import app
from skyband.engines.spark.jvm import JAR
from skyband.errors import EnvironmentProblem, PipelineChanged, PipelineFailed
from skyband.pipelines.connect import connect
from skyband.pipelines.doctor import examine
from skyband.pipelines.file import load
from skyband.pipelines.held import held_by
from skyband.pipelines.running import Running

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STREAM = """trigger = "{trigger}"
[sources.trades]
format = "parquet"
path = "{folder}/trades"
options = {{ maxFilesPerTrigger = 2 }}
"""
SINKS = """
[sinks.files]
format = "parquet"
path = "{folder}/answers/{{query}}"
[sinks.lake]
format = "delta"
path = "${{LAKE}}/{{query}}"
[sinks.screen]
format = "console"
[sinks.memory]
format = "memory"
[sinks.bad]
format = "parquet"
path = "{folder}/bad"
"""


@pytest.fixture
def address(spark: SparkSession) -> str:
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"


@pytest.fixture
def as_client() -> Iterator[None]:
    """This process is a client of Spark Connect for a while, though it has the server in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        yield


def pipeline_file(folder: Path, address: str, queries: dict[str, list[str]], *, trigger: str, source: str = "") -> Path:
    """A pipeline of some statements, with the sinks of each."""
    text = f'checkpoint = "{folder}/checkpoint"\n' + (source or STREAM).format(folder=folder, trigger=trigger)
    text += f'[spark]\n"spark.remote" = "{address}"\n"spark.sql.shuffle.partitions" = 1\n'
    pq.write_table(SECTORS, folder / "sectors.parquet")
    text += f'[sources.sectors]\nformat = "parquet"\npath = "{folder}/sectors.parquet"\nstream = false\n'
    text += "".join(
        f'[queries.{name}]\nsql = """{STATEMENTS.get(name, name)}"""\nto = {json.dumps(to)}\n'
        for name, to in queries.items()
    )
    file = folder / "market.toml"
    file.write_text(text + SINKS.format(folder=folder))
    return file


def written(folder: Path, query: str) -> list[Any]:
    return sorted(lines(pq.read_table(folder / "answers" / query).drop_columns(["batch"])))


# -- processes --------------------------------------------------------------------------------------------------------


class Started:
    """A `skyband run`, as a user starts it on a machine without Java."""

    def __init__(self, file: Path, *options: str) -> None:
        self.log = file.parent / f"log{len([*file.parent.glob('log*')])}.txt"
        command = [sys.executable, "-m", "skyband.cli", "run", str(file), *options]
        environment = {**os.environ, "LAKE": str(file.parent / "lake"), "JAVA_HOME": "/nowhere"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def said(self) -> str:
        return self.log.read_text()

    def end(self, number: int | None = None) -> int:
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def commits(folder: Path, stream: str = "trades_1") -> int:
    return len([*(folder / "checkpoint" / stream / "commits").glob("[0-9]*")])


def asked(page: str, path: str) -> Any:
    with urlopen(page.rstrip("/") + path) as answer:
        return json.loads(answer.read())


def test_stopped_and_killed_and_nothing_is_lost_or_doubled(spark: SparkSession, address: str, tmp_path: Path) -> None:
    """SIGTERM stops the queries on the server. After SIGKILL they run on, and the next run takes them over."""
    parts = split(trades(ROWS), 5)
    write_batches(tmp_path / "trades", parts[:2])
    file = pipeline_file(tmp_path, address, {"best": ["files", "lake", "screen"]}, trigger="1 second")

    first = Started(file, "--serve", "--address", f"127.0.0.1:{free_port()}")
    wait_until(lambda: commits(tmp_path) >= 2, "two micro-batches", first.process)
    page = re.search(r"Serving at (\S+)", first.said())[1]
    wait_until(lambda: asked(page, "/queries/best/top")["rows"], "an answer is served", first.process)
    rows = asked(page, "/queries/best/top")["rows"]
    assert asked(page, "/queries/best")["state"] == "running"
    assert first.end(signal.SIGTERM) == 0, first.said()
    assert "Stopped. The next `skyband run` continues from here." in first.said()
    assert "best, batch " in first.said()
    ended = re.search(r"best: .*rows in (\d+), .*held (\d+), .*\(ended\)", first.said())
    assert int(ended[1]) == sum(part.num_rows for part in parts[:2])
    assert int(ended[2]) > 0
    assert {row["seq"] for row in rows} <= {row[-1] for row in written(tmp_path, "best")}

    write_batches(tmp_path / "trades", parts[2:4], first=2)
    second = Started(file, "--log", "json")
    before = commits(tmp_path)
    wait_until(lambda: commits(tmp_path) > before, "a micro-batch after the restart", second.process)
    assert second.end(signal.SIGKILL) == -signal.SIGKILL
    before = commits(tmp_path)
    write_batches(tmp_path / "trades", parts[4:], first=4)
    wait_until(lambda: commits(tmp_path) > before, "the server goes on without its client")

    third = Started(file, "--available-now")
    assert third.end() == 0, third.said()
    assert written(tmp_path, "best") == expected("best")
    lake = DeltaTable(tmp_path / "lake" / "best").to_pyarrow_table()
    assert sorted(lines(lake)) == expected("best")


# -- in this process --------------------------------------------------------------------------------------------------


@pytest.fixture
def client(address: str, as_client: None) -> Iterator[Callable[[Path], SparkSession]]:
    """The session of a pipeline on the server."""
    opened = []

    def open_one(file: Path) -> SparkSession:
        opened.append(connect(load(file), print))
        return opened[-1]

    yield open_one
    for session in opened:
        session.stop()


def run(client: SparkSession, file: Path, show: Callable[[Any], None] = print) -> Running:
    running = Running(client, load(file), show)
    running.start()
    try:
        assert [*running.follow()]
    finally:
        running.stop()
    return running


def test_sinks_of_all_kinds_figures_and_tables(
    address: str, client: Callable[[Path], SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries in one pass, one about tables alone, and bad records; what is shown is shown here."""
    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    table = "SELECT sector FROM sectors [WINDOW 10 ROWS EVERY 3 ROWS ORDER BY symbol] ORDER BY sector LIMIT 1"
    of_events = "SELECT price FROM events [WINDOW 10 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 1"
    good = [json.dumps({"ts": f"2023-11-14T22:15:{second:02}Z", "price": second}) for second in range(30)]
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "one.json").write_text("\n".join([*good, "{"]))
    write_batches(tmp_path / "trades", split(trades(200), 1))
    events = (
        '[sources.events]\nformat = "json"\npath = "{folder}/events"\nschema = "ts TIMESTAMP, price DOUBLE"\n'
        'time = "ts"\ndead_letters = "bad"\n'
    )
    queries = {"best": ["memory", "screen"], "waits": ["files"], "once": ["files"], "events_best": ["lake"]}
    file = pipeline_file(tmp_path, address, queries, trigger="available now", source=STREAM + events)
    text = file.read_text().replace('"""once"""', f'"""{table}"""').replace('"""events_best"""', f'"""{of_events}"""')
    file.write_text(text)
    shown: list[Any] = []
    sent = []
    monkeypatch.setattr("skyband.pipelines.connect.is_attached", lambda _: False)
    monkeypatch.setattr(RemoteSession, "addArtifacts", lambda _, *paths: sent.append(*paths))
    session = client(file)
    assert sent == [str(JAR)], "a server without the jar gets it"
    figures = run(session, file, shown.append).figures

    best = sb.sql(STATEMENTS["best"], trades=trades(200))
    found = lines(session.table("best").toArrow())
    assert {*found} < {*lines(best)}
    assert figures["best"].changes["shown"] == len(found) > 20
    assert [(each.row_count, each.caption) for each in shown] == [(20, "and more: the sink's option numRows is 20")]
    assert (figures["best"].rows_in, figures["waits"].rows_in) == (200, 200)
    assert figures["best"].rows_gathered < 200, "the sieve in the JVM rules rows out"
    assert 0 < figures["best"].rows_held < 200
    assert {*written(tmp_path, "waits")} < {*lines(sb.sql(STATEMENTS["waits"], trades=trades(200)))}
    assert [row[-1] for row in written(tmp_path, "once")] == ["glass"]
    lake = DeltaTable(tmp_path / "lake" / "events_best").to_pyarrow_table()
    assert lake["price"].to_pylist() == [9.0, 19.0]
    assert pq.read_table(tmp_path / "bad")["record"].to_pylist() == ["{"]
    assert figures["events_best"].rows_set_aside == 1

    held = {row["query"]: row["rows"] for row in held_by(session, load(file)).to_pylist()}
    assert held["best"] == figures["best"].rows_held

    # The answers of another checkpoint are refused before anything is read.
    file.write_text(file.read_text().replace("/checkpoint", "/another"))
    with pytest.raises(PipelineChanged, match="has answers already, but there is no checkpoint"):
        run(session, file)


def test_what_goes_wrong_on_the_server_is_said_in_words(
    address: str, client: Callable[[Path], SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", str(tmp_path / "secret_lake"))
    write_batches(tmp_path / "trades", split(trades(200), 1))
    file = pipeline_file(tmp_path, address, {"best": ["lake"]}, trigger="available now")
    write_deltalake(str(tmp_path / "secret_lake" / "best"), pa.table({"other": [1]}))
    session = client(file)
    with pytest.raises(PipelineFailed) as failed:
        run(session, file)
    said = str(failed.value)
    assert "best failed: ${LAKE}/best has columns that differ from the answers" in said
    assert "Traceback" not in said
    assert "secret_lake" not in said


def test_a_query_that_somebody_else_stops(
    address: str, client: Callable[[Path], SparkSession], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run on a checkpoint stops the queries of the first, which says so."""
    write_batches(tmp_path / "trades", split(trades(200), 1))
    file = pipeline_file(tmp_path, address, {"waits": ["files"]}, trigger="1 second")
    first = Running(client(file), load(file), print)
    first.start()
    news = first.follow()
    next(news)
    now = file.with_name("now.toml")
    now.write_text(file.read_text().replace('trigger = "1 second"', 'trigger = "available now"\nname = "market"'))
    run(client(now), now)
    with pytest.raises(PipelineFailed, match="waits failed: somebody else stopped it: another `skyband run`"):
        assert [*news]
    assert {*written(tmp_path, "waits")} < {*lines(sb.sql(STATEMENTS["waits"], trades=trades(200)))}


def test_settings_that_come_too_late_are_named(
    address: str, as_client: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trades").mkdir()
    file = pipeline_file(tmp_path, address, {"waits": ["files"]}, trigger="available now")
    file.write_text(file.read_text().replace("[spark]", '[spark]\n"spark.executor.memory" = "1g"'))
    with pytest.raises(EnvironmentProblem, match=r"takes no spark\.executor\.memory from a session"):
        connect(load(file), print)
    # `doctor` looks at the server, and not at this machine's Java.
    file.write_text(file.read_text().replace('"spark.executor.memory" = "1g"', ""))
    assert [one.fix for one in examine(load(file), metrics_port=None, start=True)][-2:] == ["export LAKE=…", None]
    monkeypatch.setenv("LAKE", "/lake")
    found = [*examine(load(file), metrics_port=None, start=True)]
    assert [finding.what for finding in found if finding.fix is not None and "memory free" not in finding.what] == []
    assert f"The server of Spark Connect answers at {address.removeprefix('sc://')}" in [one.what for one in found]
    assert not any("Java" in finding.what for finding in found)
    assert found[-1].what == "Spark starts, and its workers count to 10"


# -- before anything starts --------------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    port = free_port()
    file = pipeline_file(tmp_path, f"sc://127.0.0.1:{port}", {"waits": ["files"]}, trigger="available now")
    refused = CliRunner().invoke(app, ["run", str(file)])
    assert refused.exit_code != 0
    assert f"The server of Spark Connect does not answer at 127.0.0.1:{port}" in refused.output
