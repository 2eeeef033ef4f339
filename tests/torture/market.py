"""A pipeline of all five problems and every sink, its input, and the answers that its sinks must have at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import redis
from deltalake import DeltaTable
from engines.spark.streams import START_US, Line, lines, split, trades, write_batches
from pyiceberg.catalog import load_catalog
from servers.postgresql import PASSWORD, USER, Database, database
from servers.redis import server

import skyband as sb
from skyband.pipelines.postgresql import connection
from torture.pipelines import STATEMENTS, WATCHES

ROWS, BATCHES = 1_120, 14
LAST_US = START_US + (ROWS - 1) * 250_000
# By query; a Delta table comes first, so that a run can be killed between its commit and those of the others.
SINKS = {
    "rows": ("delta", "files", "table", "board"),
    "pairs": ("iceberg", "files", "table"),
    "subscriptions": ("delta", "files", "table"),
    "changes": ("files", "delta", "iceberg"),
    "across": ("delta", "files", "table"),
    "joins": ("iceberg", "files", "table", "latest", "merged"),
}
# Windows across streams follow the fastest stream, and a run that was killed while it listed files may read twice as
# many of one: the query waits for the other.
LATENESS_S = {"across": 100}
KEY = "symbol"  # of the tables that are merged: each has the last row of a symbol
_TEXT = """\
name = "market"
checkpoint = "state"
trigger = "available now"
[sources.trades]
format = "parquet"
path = "trades"
options = {{ maxFilesPerTrigger = 2 }}
[sources.others]
format = "parquet"
path = "others"
options = {{ maxFilesPerTrigger = 2 }}
[sources.watches]
format = "parquet"
path = "watches.parquet"
stream = false
[sinks.files]
format = "parquet"
path = "answers/files/{{query}}"
[sinks.delta]
format = "delta"
path = "answers/delta/{{query}}"
[sinks.latest]
format = "delta"
path = "answers/latest/{{query}}"
key = ["{key}"]
[sinks.iceberg]
format = "iceberg"
table = "market.{{query}}"
path = "answers/iceberg"
[sinks.merged]
format = "iceberg"
table = "market.{{query}}"
path = "answers/merged"
key = ["{key}"]
[sinks.table]
format = "jdbc"
url = "{postgresql}"
table = "{{query}}_{seed}"
options = {{ user = "{user}", password = "${{TORTURE_PASSWORD}}" }}
[sinks.board]
format = "leaderboard"
url = "{redis}"
board = "{seed}:{{symbol}}"
member = "seq"
[spark]
spark.master = "{master}"
spark.skyband.buckets = 2
spark.sql.shuffle.partitions = 2
spark.driver.memory = "1g"
spark.python.daemon.module = "torture.worker_daemon"
"""


@dataclass(frozen=True)
class Servers:
    postgresql: Database
    redis: str

    def environment(self) -> dict[str, str]:
        """The secret that the pipeline's file names."""
        return {"TORTURE_PASSWORD": PASSWORD}


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """They outlive the runs that write to them."""
    with ExitStack() as stack:
        yield Servers(stack.enter_context(database()), stack.enter_context(server(folder)))


def inputs(seed: int) -> dict[str, pa.Table]:
    return {name: trades(ROWS, seed=2 * seed + number) for number, name in enumerate(("trades", "others"), 1)}


def write(folder: Path, seed: int, at: Servers) -> Path:
    """The pipeline's file, with its input beside it."""
    for name, table in inputs(seed).items():
        write_batches(folder / name, split(table, BATCHES))
    pq.write_table(WATCHES, folder / "watches.parquet")
    # With 4 starts of a task Spark tries it again itself; by default Skyband starts the stream again.
    master = "local[2,4]" if seed % 2 else "local[2]"
    text = _TEXT.format(key=KEY, seed=seed, master=master, user=USER, postgresql=at.postgresql.url, redis=at.redis)
    for name in SINKS:
        text += f'[queries.{name}]\nsql = """{statement(name)}"""\nto = {list(SINKS[name])}\n'
    file = folder / "market.toml"
    file.write_text(text)
    return file


def statement(query: str) -> str:
    waits = f" LATENESS {LATENESS_S[query]} SECONDS]" if query in LATENESS_S else "]"
    return STATEMENTS[query].replace("]", waits)


def right(seed: int) -> dict[str, pa.Table]:
    """The answers of the embedded engine to each query, of windows that the watermark closes."""
    found = {}
    for name in SINKS:
        answers = sb.sql(statement(name), **inputs(seed), watches=WATCHES)
        end = answers["at" if name == "changes" else "window_end"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        found[name] = answers.filter(pc.less_equal(end, LAST_US - 1_000_000 * LATENESS_S.get(name, 0)))
    return found


def differences(folder: Path, seed: int, at: Servers) -> Iterator[str]:
    """What is lost in a sink, and what is there twice."""
    for query, answers in right(seed).items():
        assert answers.num_rows
        for sink in SINKS[query]:
            if sink == "board":
                yield from _on_boards(answers, seed, at.redis)
                continue
            expected = _latest(answers) if sink in ("latest", "merged") else answers
            yield from _compared(
                f"{query} in {sink}", lines(_content(folder, query, sink, seed, at, expected)), expected
            )


def _compared(where: str, found: list[Line], expected: pa.Table) -> Iterator[str]:
    right = sorted(lines(expected), key=str)
    if sorted(found, key=str) != right:
        lost, more = {*right} - {*found}, {*found} - {*right}
        yield (
            f"{where}: {len(found)} rows, not {len(right)}; {len(lost)} lost, {len(found) - len({*found})} doubled, "
            f"{len(more)} others; such as {[*lost, *more][:1]}"
        )


def _latest(answers: pa.Table) -> pa.Table:
    """The last row of each symbol."""
    rows = {row[KEY]: row for row in answers.sort_by("window_end").to_pylist()}
    return pa.Table.from_pylist([*rows.values()], answers.schema)


def _content(folder: Path, query: str, sink: str, seed: int, at: Servers, like: pa.Table) -> pa.Table:
    """What any reader of a sink sees, with the columns of `like`."""
    place = folder / "answers" / sink
    if sink == "files":
        found: pa.Table = pq.read_table(place / query)
    elif sink in ("delta", "latest"):
        found = DeltaTable(place / query).to_pyarrow_table()
    elif sink in ("iceberg", "merged"):
        catalog = load_catalog("skyband", type="sql", uri=f"sqlite:///{place}/catalog.db")
        found = catalog.load_table(f"market.{query}").scan().to_arrow()
    else:
        given: dict[str, Any] = {"user": USER, "password": PASSWORD}
        with psycopg.connect(**connection(at.postgresql.url, given)) as opened:
            cursor = opened.execute(f"SELECT * FROM {query}_{seed}")  # type: ignore[arg-type]  # a name of ours
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        found = pa.Table.from_pylist(rows, pa.schema([like.schema.field(name) for name in names]))
    return found.select(like.column_names).cast(like.schema)


def _on_boards(answers: pa.Table, seed: int, address: str) -> Iterator[str]:
    """Each symbol's board shows its last window."""
    last: dict[str, dict[Any, list[tuple[int, str]]]] = {}
    for row in answers.to_pylist():
        last.setdefault(row["symbol"], {}).setdefault(row["window_end"], []).append((row["rank"], str(row["seq"])))
    with redis.Redis.from_url(address, decode_responses=True) as client:
        for symbol, windows in last.items():
            expected = {member for _, member in windows[max(windows)]}
            found = client.zrange(f"{seed}:{symbol}", 0, -1)
            if {*found} != expected:  # type: ignore[misc]
                yield f"the board of {symbol} shows {found}, not {sorted(expected)}"
