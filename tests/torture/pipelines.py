"""A pipeline on Spark that asks all five problems and writes to every kind of sink that is to be had here, and what it
has to have written in the end: what the embedded engine answers over the same rows.

`python -m torture.pipelines FILE` runs it as a user would, with the bug that is planted, if one is.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from engines.spark.streams import START_US, split, trades, write_batches

import skyband as sb

ROWS, BATCHES = 960, 8
LAST_US = START_US + (ROWS - 1) * 250_000  # what the watermark reaches
NAME = "market"

WINDOW = "[WINDOW 20 SECONDS EVERY 10 SECONDS]"
STATEMENTS = {
    "rows": "SELECT price, seq FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 2 BY symbol",
    "pairs": (
        "SELECT a.seq AS one, b.seq AS other FROM trades a, trades b WHERE a.seq < b.seq AND a.symbol <> b.symbol "
        "ORDER BY abs(a.price - b.price) + (b.seq - a.seq) / 1000 LIMIT 3 WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "subscriptions": (
        f"SELECT seq, price FROM trades t {WINDOW}, watches q WHERE t.symbol <> q.ignored "
        "ORDER BY abs(t.price - q.near) LIMIT 2 BY q.id"
    ),
    "changes": "SELECT seq, symbol, price FROM trades [WINDOW 25 SECONDS EVERY 10 SECONDS] ORDER BY price DESC LIMIT 5 "
    "EMIT CHANGES",
    "across": (
        "SELECT seq FROM trades FULL JOIN others USING (seq) ORDER BY trades.price + others.price DESC LIMIT 2 "
        "WINDOW [20 SECONDS EVERY 10 SECONDS]"
    ),
    "joins": (
        f"SELECT t.symbol, COUNT(*) AS n, SUM(o.price) AS paid FROM trades t {WINDOW}, others o {WINDOW} "
        "WHERE t.symbol = o.symbol GROUP BY t.symbol"
    ),
}
# The streams of Spark's, by the queries that a pipeline asks: what is asked of trades alone shares a pass.
PIPELINES = (
    {"trades_1": ("rows", "pairs", "changes")},
    {"query_across": ("across",), "query_subscriptions": ("subscriptions",)},
    {"query_joins": ("joins",), "trades_1": ("rows",)},
)
WATCHES = pa.table({"id": ["a", "b", "c"], "near": [1.0, 20.0, 39.0], "ignored": ["S0", "S1", "nowhere"]})
KEY = ("seq",)  # by which sinks find the rows of `changes` again

SINKS = {
    **{kind: f'format = "{kind}"\npath = "answers/{kind}/{{query}}"\n' for kind in ("parquet", "json", "orc")},
    "csv": 'format = "csv"\npath = "answers/csv/{query}"\noptions = { header = true }\n',
    "delta": 'format = "delta"\npath = "answers/delta/{query}"\n',
    "iceberg": 'format = "iceberg"\ntable = "market.{query}"\npath = "answers/iceberg"\n',
    "postgresql": 'format = "jdbc"\nurl = "${TORTURE_DATABASE}"\ntable = "{run}.{query}"\n'
    'options = { user = "${TORTURE_USER}", password = "${TORTURE_PASSWORD}" }\n',
}
KEYED = {f"{kind}, keyed": SINKS[kind] for kind in ("delta", "iceberg", "postgresql")}
SPARK = """
[spark]
"spark.master" = "local[2,4]"
"spark.sql.shuffle.partitions" = 2
"spark.skyband.buckets" = 2
"spark.sql.adaptive.enabled" = false
"spark.sql.codegen.wholeStage" = false
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.driver.memory" = "1g"
"""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Line = tuple[Any, ...]


@dataclass(frozen=True)
class Servers:
    """The servers that run here, and what a pipeline needs to know of each."""

    database: Any = None
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def kinds(self) -> list[str]:
        """The kinds of sinks that can be written to."""
        return [*(["postgresql"] if self.database else []), *("parquet", "delta", "csv", "iceberg", "json", "orc")]


@contextmanager
def servers() -> Iterator[Servers]:
    """Those whose programs are on this machine."""
    from servers import postgresql

    with ExitStack() as stack:
        try:
            database = stack.enter_context(postgresql.database())
        except pytest.skip.Exception:
            yield Servers()
            return
        secrets = {
            "TORTURE_DATABASE": database.url,
            "TORTURE_USER": postgresql.USER,
            "TORTURE_PASSWORD": postgresql.PASSWORD,
        }
        yield Servers(database, tuple(secrets.items()))


class Campaign:
    """One pipeline in a folder of its own: its input, its file, and what has to come of it."""

    def __init__(self, folder: Path, seed: int, servers: Servers) -> None:
        self.folder, self._seed, self._servers = folder, seed, servers
        self.name, self.streams = f"run{seed}", PIPELINES[seed % len(PIPELINES)]
        self.file, self.answers = folder / f"{NAME}.toml", folder / "answers"
        self.checkpoint = folder / ".skyband" / NAME
        self.inputs = {"trades": trades(ROWS, seed=2 * seed), "others": trades(ROWS, seed=2 * seed + 1)}
        for name, table in self.inputs.items():
            write_batches(folder / name, split(table, BATCHES))
        pq.write_table(WATCHES, folder / "watches.parquet")
        if servers.database is not None:
            servers.database.ask(f"CREATE SCHEMA IF NOT EXISTS {self.name}")
        self.file.write_text(self._text())

    @cached_property
    def sinks(self) -> dict[str, list[str]]:
        """The sinks of each query: three of all kinds, others for other queries and seeds."""
        kinds, chosen = self._servers.kinds, {}
        for number, name in enumerate(name for several in self.streams.values() for name in several):
            chosen[name] = [kinds[(self._seed // len(PIPELINES) + number + 2 * more) % len(kinds)] for more in range(3)]
            if name == "changes":
                chosen[name] = [f"{kind}, keyed" for kind in ("delta", "iceberg", "postgresql") if kind in kinds]
        return chosen

    def _text(self) -> str:
        text = 'trigger = "available now"\n'
        for name in self.inputs:
            text += f'[sources.{name}]\nformat = "parquet"\npath = "{name}"\noptions = {{ maxFilesPerTrigger = 2 }}\n'
        text += '[sources.watches]\nformat = "parquet"\npath = "watches.parquet"\nstream = false\n'
        for name in self.sinks:
            to = ", ".join(f'"{_plain(kind)}"' for kind in self.sinks[name])
            text += f'[queries.{name}]\nsql = """{STATEMENTS[name]}"""\nto = [{to}]\n'
        for kind in dict.fromkeys(kind for several in self.sinks.values() for kind in several):
            key = f"key = {json.dumps(KEY)}\n" if kind in KEYED else ""
            text += f"[sinks.{_plain(kind)}]\n{(SINKS | KEYED)[kind].replace('{run}', self.name)}{key}"
        return text + SPARK

    @property
    def environment(self) -> dict[str, str]:
        return dict(self._servers.environment)

    def places(self, stream: str) -> list[Path]:
        """Where the sinks of a stream are on this machine."""
        kinds = {(query, kind.partition(",")[0]) for query in self.streams[stream] for kind in self.sinks[query]}
        return [self.answers / kind / ("" if kind == "iceberg" else query) for query, kind in kinds]

    # -- what is right -------------------------------------------------------------------------------------------------

    def wrong(self) -> tuple[Counter[str], list[str]]:
        """How many rows of each kind of sink are right, and what is wrong with the others."""
        right, wrong = Counter[str](), list[str]()
        for query, kinds in self.sinks.items():
            expected = self._expected(query)
            for kind in kinds:
                found = Counter(self._found(query, kind, expected))
                asked = Counter(_lines(expected))
                lost, more = (asked - found).total(), found - asked
                doubled = sum(count for line, count in more.items() if line in asked)
                right[kind] += (asked & found).total()
                if lost or more:
                    said = f"{query} in {kind}: {lost} rows lost, {doubled} doubled, {more.total() - doubled} others"
                    wrong.append(f"{said}; {[*(asked - found), *more][:2]}")
        return right, wrong

    def _expected(self, query: str) -> pa.Table:
        """The answers of the embedded engine, as far as the watermark closes windows."""
        answers: pa.Table = sb.sql(STATEMENTS[query], **self.inputs, watches=WATCHES)
        ends = answers["at" if query == "changes" else "window_end"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        closed = answers.filter(pa.compute.less_equal(ends, LAST_US))
        return _folded(closed) if query == "changes" else closed

    def _found(self, query: str, kind: str, expected: pa.Table) -> list[Line]:
        """What any reader of the sink sees."""
        schema = expected.schema
        if kind.startswith("postgresql"):
            columns = ", ".join(f'"{name}"' for name in schema.names)
            rows = self._servers.database.ask(f"SELECT {columns} FROM {self.name}.{query}")
            return [tuple(_value(text, field.type) for text, field in zip(row, schema, strict=True)) for row in rows]
        found = READERS[kind.partition(",")[0]](self.answers, query)
        if isinstance(found, pa.Table):
            return _lines(found.select(schema.names))
        return [tuple(_value(row.get(field.name), field.type) for field in schema) for row in found]


def _plain(kind: str) -> str:
    return kind.replace(", ", "_")


def _folded(changes: pa.Table) -> pa.Table:
    """What is left of rows that came and went."""
    left: dict[Any, dict[str, Any]] = {}
    for row in changes.to_pylist():
        if row.pop("change") == "leave":
            left.pop(row[KEY[0]])
        else:
            left[row[KEY[0]]] = row
    return pa.Table.from_pylist([*left.values()], changes.drop_columns(["change"]).schema)


def _lines(table: pa.Table) -> list[Line]:
    return [tuple(_value(row[field.name], field.type) for field in table.schema) for row in table.to_pylist()]


def _value(value: Any, kind: pa.DataType) -> Any:
    """A value as it is compared, from whatever a sink makes of it; instants as microseconds."""
    if value is None or value == "":
        return None
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)
    if pa.types.is_floating(kind):
        return float(value)
    return int(value) if pa.types.is_integer(kind) else value


# -- what readers of a sink see ----------------------------------------------------------------------------------------


def _files(answers: Path, query: str, kind: str) -> list[Path]:
    return sorted((answers / kind / query).glob(f"batch=*/part-*.{kind}"))


def _parquet(answers: Path, query: str) -> pa.Table:
    return pq.read_table(answers / "parquet" / query).drop_columns(["batch"])


def _orc(answers: Path, query: str) -> pa.Table:
    return pa.concat_tables([orc.read_table(file) for file in _files(answers, query, "orc")])


def _json(answers: Path, query: str) -> list[dict[str, Any]]:
    return [json.loads(line) for file in _files(answers, query, "json") for line in file.read_text().splitlines()]


def _csv(answers: Path, query: str) -> list[dict[str, Any]]:
    import csv

    return [row for file in _files(answers, query, "csv") for row in csv.DictReader(file.read_text().splitlines())]


def _delta(answers: Path, query: str) -> pa.Table:
    from deltalake import DeltaTable

    return DeltaTable(answers / "delta" / query).to_pyarrow_table()


def _iceberg(answers: Path, query: str) -> pa.Table:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("skyband", type="sql", uri=f"sqlite:///{answers / 'iceberg' / 'catalog.db'}")
    return catalog.load_table(f"{NAME}.{query}").scan().to_arrow()


READERS: dict[str, Callable[[Path, str], Any]] = {
    "parquet": _parquet,
    "orc": _orc,
    "json": _json,
    "csv": _csv,
    "delta": _delta,
    "iceberg": _iceberg,
}


def main(file: str) -> None:
    from skyband.cli import app
    from torture.planted import planted_here

    with planted_here():
        app(["run", file, "--log", "json"])


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(sys.argv[1])
