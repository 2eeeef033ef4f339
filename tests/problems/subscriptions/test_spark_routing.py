"""Oracle tests: many queries on Spark, where rows go only to the queries they can matter to, and the embedded engine:
the same answers and the same counts; also where the queries are a stream, which stops and goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engines.spark.streams import (
    INSTANTS,
    START_US,
    Line,
    lines,
    read_batches,
    run_stream,
    run_to_files,
    split,
    write_batches,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skyband as sb
from skyband.engines.spark.bucket_job import BUCKET, tie
from skyband.engines.spark.projection import WEIGHT
from skyband.problems.subscriptions import spark as subscriptions
from skyband.problems.subscriptions.codec import SubscriptionsCodec
from skyband.problems.subscriptions.session import SubscriptionsSession
from skyband.problems.subscriptions.spark_routing import bucket_of_row, buckets_of_table, sifted
from skyband.problems.subscriptions.spark_sifting import QuerySieve, panes_of

pytestmark = pytest.mark.spark

ROWS = 600
BATCHES = 4
BUCKETS = 16  # unless set


def trades(rows: int = ROWS) -> pa.Table:
    """150 s of rows, with few prices, so that many are equal; some without a time, a symbol or a lot, and some
    that come when their windows have closed. Most symbols end before the others."""
    rng = np.random.default_rng(3)
    number = np.arange(rows)
    second = number // (rows // 150)
    second = np.where(number % 50 == 7, second - 70, second)  # four micro-batches of 37 s, windows of 25 s
    code = rng.integers(0, 6, rows)
    code = np.where(second > 130, code % 2, code)
    return pa.table(
        {
            "ts": pa.array(START_US + second * 1_000_000, INSTANTS, mask=number % 60 == 11),
            "seq": pa.array(number),
            "symbol": pa.array([f"S{each}" for each in code], mask=number % 40 == 9),
            "lot": pa.array(rng.integers(0, 3, rows), pa.int32(), mask=number % 45 == 13),
            "price": pa.array(rng.integers(1, 30, rows).astype(np.float64)),
        }
    )


def queries(count: int = 30) -> pa.Table:
    """With a slide, size and k of their own. Lots are float64, where rows have int32, and 0 is -0.0."""
    rng = np.random.default_rng(4)
    symbols = [None if i % 13 == 12 else f"S{i % 8}" for i in range(count)]
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "symbol": pa.array(symbols, pa.string()),
            "lot": pa.array(
                [(-0.0, 1.0, 2.0)[i % 3] for i in range(count)], pa.float64(), mask=np.arange(count) % 14 == 13
            ),
            "price": pa.array(rng.integers(1, 30, count).astype(np.float64)),
            "k": pa.array(rng.integers(1, 4, count)),
            "last": pa.array([("25 seconds", "13 seconds", "20 seconds")[i % 3] for i in range(count)], pa.string()),
            "often": pa.array([("5 seconds", "10 seconds")[i % 2] for i in range(count)], pa.string()),
        }
    )


ASKED: dict[str, Any] = {  # one score: one to compile
    "k": "q.k",
    "size": "q.last",
    "every": "q.often",
    "by": "abs(price - q.price)",
    "where": "(symbol = q.symbol AND price < 28) AND q.lot = lot",
    "ascending": True,
    # Rows of equal time are in order of their numbers, here and there.
    "window": sb.sliding("25 seconds", every="5 seconds", on="ts", order="seq"),
}


def driven(rows: Sequence[pa.Table], changes: Sequence[pa.Table] = (), **options: Any) -> tuple[list[Line], Any]:
    """What the embedded engine says, told what came in each micro-batch, and its counts: windows close that the
    watermark has passed, then queries change, then rows come."""
    asked = {"queries": queries(0 if changes else 30)} | ASKED | options
    session = SubscriptionsSession(SubscriptionsCodec(sb.TopKForEach(**asked), rows[0].schema, external_clock=True))
    said, latest = [], 0
    for number, table in enumerate(rows):
        said += [session.advance(latest)] if latest else []
        if changes:
            in_order = changes[number].sort_by("_commit_version")
            said.append(session.change(in_order.drop_columns(["_commit_version"]), set_aside=True))
        said.append(session.push(table.sort_by([("ts", "ascending"), ("seq", "ascending")])))
        latest = max(latest, *(line[0] or 0 for line in lines(table.select(["ts"]))))
    said.append(session.advance(latest))
    return sorted((line for answer in said for line in lines(answer)), key=str), session.stats()


def of_rows(query_symbols: set[str | None]) -> int:
    """How many rows have a time and a lot, and a symbol that is one of these."""
    return sum(
        row["ts"] is not None and row["lot"] is not None and row["symbol"] in query_symbols - {None}
        for row in trades().to_pylist()
    )


def test_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "rows", split(trades(), BATCHES))
    in_order = trades().sort_by([("ts", "ascending"), ("seq", "ascending")])
    for emit in ("windows", "changes"):  # rows go everywhere where it matters to a query that others have come
        expected = lines(sb.top_k(in_order, **ASKED, for_each=queries(), emit=emit))
        answer = sb.top_k(spark.read.parquet(str(folder)), **ASKED, for_each=queries(), emit=emit)
        assert sorted(lines(answer.toArrow()), key=str) == sorted(expected, key=str)
        assert len(expected) > 300


@pytest.mark.parametrize("emit", ["windows", "changes"])
def test_streaming(spark: SparkSession, tmp_path: Path, emit: str) -> None:
    rows = split(trades(), BATCHES)
    expected, stats = driven(rows, emit=emit)
    folder = write_batches(tmp_path / "rows", rows)
    mode = "append" if emit == "windows" else "update"
    outcome = run_stream(spark, folder, lambda df: sb.top_k(df, **ASKED, for_each=queries(), emit=emit), mode=mode)
    assert sorted(outcome.lines, key=str) == expected
    assert len(expected) > 300
    for name in ("rows_in", "rows_late", "rows_null_time"):
        assert outcome.observed(name) == getattr(stats, name) > 0, name
    assert 0 < outcome.observed("rows_gathered") <= of_rows({f"S{i}" for i in range(6)}), "none was copied"


def test_rows_go_to_one_bucket_or_to_none(spark: SparkSession, tmp_path: Path) -> None:
    """Of one query, 16 buckets have none, and all rows but those of its own bucket are left out before the shuffle. It
    shows so many that none is left out for others that are better."""
    folder = write_batches(tmp_path / "rows", split(trades(), BATCHES))
    gathered = []
    for options in (
        {"for_each": queries().slice(3, 1)},
        {"for_each": queries().slice(3, 1), "where": "symbol = q.symbol AND lot < q.price"},
        {"for_each": queries(), "where": "symbol <> q.symbol"},
    ):
        outcome = run_stream(spark, folder, lambda df, options=options: sb.top_k(df, **ASKED | {"k": 1_000} | options))
        assert outcome.observed("rows_in") == ROWS
        gathered.append(outcome.observed("rows_gathered"))
    of_symbol, timed = of_rows({"S3"}), ROWS - 10
    assert 0 < gathered[0] < of_symbol, "of some lots"
    assert of_symbol <= gathered[1] < timed / 2, "of some symbols"
    assert gathered[2] == 4 * timed, "nothing says where they go"


# -- without such a condition ------------------------------------------------------------------------------------------

MANY_ROWS = 18_000
SIZES = pa.array(["13 seconds", "11 seconds", "25 seconds"] * 4)  # a slide is cut after 2, after 4 and after 5 s
ODD = queries(12).set_column(queries().schema.get_field_index("last"), "last", SIZES)
OTHERS: dict[str, Any] = {"where": "symbol <> q.symbol", "k": 1, "queries": ODD}  # most rows are not shown


def for_others(df: DataFrame, **options: Any) -> DataFrame:
    return sb.top_k(df, **{**ASKED, "where": OTHERS["where"], "k": 1, **options}, for_each=ODD)


def in_batches() -> list[pa.Table]:
    """The first has no row with a time. Each price comes twice, in the same second and file, and not again: if many
    rows were as good as the best, the latest of a pane would be all that matters."""
    table, number = trades(MANY_ROWS), np.arange(MANY_ROWS)
    price = 30 * np.random.default_rng(5).random(MANY_ROWS)[number // 4 * 2 + number % 2]
    table = table.set_column(table.schema.get_field_index("price"), "price", pa.array(price))
    timeless = table.slice(0, 10).set_column(0, "ts", pa.nulls(10, INSTANTS))
    return [timeless, *split(table, BATCHES)]


@pytest.mark.parametrize("where", [OTHERS["where"], ASKED["where"]])
def test_rows_that_no_query_shows_are_left_out_and_counted(spark: SparkSession, tmp_path: Path, where: str) -> None:
    rows, options = in_batches(), {"emit": "changes", "where": where}
    expected, stats = driven(rows, **OTHERS | options)
    folder = write_batches(tmp_path / "rows", rows)
    outcome = run_stream(spark, folder, lambda df: for_others(df, **options), mode="update")
    assert sorted(outcome.lines, key=str) == expected
    assert len(expected) > 300
    for name in ("rows_in", "rows_late", "rows_null_time"):
        assert outcome.observed(name) == getattr(stats, name) > 0, name
    assert 0 < outcome.observed("rows_gathered") < MANY_ROWS / 4, "of some, and not four of each"


def test_they_are_left_out_before_and_after_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    rows = in_batches()
    for begin, end in ((0, 3), (3, 5)):
        write_batches(tmp_path / "rows", rows[begin:end], first=begin)
        run_to_files(for_others(read_batches(spark, tmp_path / "rows")), tmp_path)
    written = lines(spark.read.parquet(str(tmp_path / "answers")).toArrow())
    assert sorted(written, key=str) == driven(rows, **OTHERS)[0]


def test_of_a_batch_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = in_batches()
    df = spark.read.parquet(str(write_batches(tmp_path / "rows", rows)))
    in_order = pa.concat_tables(rows).sort_by([("ts", "ascending"), ("seq", "ascending")])
    asked = {**ASKED, "where": OTHERS["where"], "k": 1}
    expected = lines(sb.top_k(in_order, **asked, for_each=ODD))
    assert sorted(lines(for_others(df).toArrow()), key=str) == sorted(expected, key=str)
    job = subscriptions.resolve(df, sb.TopKForEach(queries=ODD, **asked))
    columns = [sf.col(name).alias(plain) for name, plain in job.plain_names.items()]
    left = sifted(df.select(*columns, tie(df)), job).toArrow()
    on = job.plain_names["ts"]
    counted = left.filter(pc.less(left[BUCKET], 0))
    timeless = counted.filter(pc.is_null(counted[on]))
    assert left.num_rows - counted.num_rows < MANY_ROWS / 4
    assert sum(left[WEIGHT].to_pylist()) == sum(counted[WEIGHT].to_pylist()) == MANY_ROWS + 10
    assert sum(timeless[WEIGHT].to_pylist()) == pa.concat_tables(rows)["ts"].null_count


@pytest.mark.parametrize("worth", [0, 1.5])
def test_what_is_left_of_a_pane(worth: float) -> None:
    """For each query as many of the best as it shows, of the panes that have enough rows, and all of the others."""
    table = trades(900).filter(pc.is_valid(trades(900)["ts"]))
    asked = sb.TopKForEach(**ASKED | OTHERS | {"k": "q.k"})
    sizes = asked.open(table.schema).sizes
    panes, ks = panes_of(sizes, 5_000_000), ODD["k"].to_pylist()
    job: Any = SimpleNamespace(
        query=asked,
        schema=table.schema,
        window=asked.window,
        arrival_order=["ts", "seq"],
        panes=panes,
        meet_by=(),
        homes=np.arange(12) % 4,
        buckets=4,
    )
    expected, passed, number = set(), set(), panes.of(table["ts"].cast(pa.int64()).to_numpy())
    for pane in np.unique(number):
        rows = [(row, i) for i, row in enumerate(table.to_pylist()) if number[i] == pane]
        if len(rows) * 4 < worth * sum(ks):
            passed.update(i for _, i in rows)
            continue
        for j, query in enumerate(ODD.to_pylist()):
            seen = [
                (-abs(row["price"] - query["price"]), row["ts"], row["seq"], i)
                for row, i in rows
                if None not in (row["symbol"], query["symbol"]) and row["symbol"] != query["symbol"]
            ]
            expected.update((best[-1], j % 4) for best in sorted(seen)[-query["k"] :])
    sieve = QuerySieve(job, worth=worth)
    for _ in range(2):  # what it has seen before does not matter
        found = sieve.sift(table)
        assert found is not None
        assert set(zip(found.rows.tolist(), found.buckets.tolist(), strict=True)) == expected
        assert set(found.all_else.tolist()) == passed
    assert bool(passed) == bool(worth)


# -- queries that come and go ------------------------------------------------------------------------------------------


def changes(*changed: tuple[str, int, str | None, float | None, int | None, int]) -> pa.Table:
    """Kind, id, symbol, lot, k and version; the rest is as of the query with that id."""
    kinds, ids, symbols, lots, ks, versions = zip(*changed, strict=True) if changed else [[]] * 6
    same = queries(40).take(pa.array(ids, pa.int64()))
    table = pa.table({"_change_type": pa.array(kinds, pa.string()), **{name: same[name] for name in same.column_names}})
    for name, values in (("symbol", symbols), ("lot", lots), ("k", ks)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    return table.append_column("_commit_version", pa.array(versions, pa.int64()))


# One table for each micro-batch.
CHANGES = [
    changes(*(("insert", i, f"S{i % 6}", float(i % 3), 1 + i % 3, 1) for i in range(24))),
    changes(
        *(("update_preimage", i, f"S{i % 6}", float(i % 3), 1 + i % 3, 2) for i in range(6)),
        *(("update_postimage", i, f"S{(i + 1) % 6}", float(i % 3), 2, 2) for i in range(6)),  # to another bucket
        ("update_postimage", 6, "S0", 0.0, 0, 2),  # cannot be: k is 0, so that it stays where it is
        ("update_postimage", 7, "S5", 1.0, 2, 2),
        ("update_postimage", 7, "S2", 2.0, 1, 3),  # moves twice
        ("update_postimage", 8, None, 1.0, 1, 3),  # wants nothing that there is
        ("delete", 9, None, None, None, 3),
        ("insert", 10, "S3", 2.0, 2, 3),
        ("delete", 10, None, None, None, 4),
        ("what?", 11, "S1", 1.0, 1, 4),
    ),
    changes(),
    changes(("delete", 0, None, None, None, 5), ("insert", 30, "S4", 1.0, 3, 5), ("delete", 39, None, None, None, 5)),
]


def test_queries_move_to_other_buckets_and_the_stream_stops_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    rows = split(trades(), BATCHES)
    sources = {"rows": rows, "changes": CHANGES}
    for begin, end in ((0, 2), (2, 4)):
        for name, tables in sources.items():
            write_batches(tmp_path / name, tables[begin:end], first=begin)
        stream, changed = (read_batches(spark, tmp_path / name) for name in sources)
        run_to_files(sb.top_k(stream, **ASKED, for_each=changed), tmp_path)
    written = lines(spark.read.parquet(str(tmp_path / "answers")).toArrow())
    # What had stopped closes windows as if a micro-batch without rows came: those that it would close anyway.
    expected, _ = driven(rows, CHANGES)
    assert sorted(written, key=str) == expected
    assert {line[0] for line in expected} >= {*range(8), 30}


def test_queries_that_move_see_what_is_in_the_window(spark: SparkSession, tmp_path: Path) -> None:
    rows = split(trades(), BATCHES)
    folder, changed = write_batches(tmp_path / "rows", rows), write_batches(tmp_path / "changes", CHANGES)
    expected, stats = driven(rows, CHANGES, backfill=True)
    outcome = run_stream(
        spark, folder, lambda df: sb.top_k(df, **ASKED, backfill=True, for_each=read_batches(spark, changed))
    )
    assert sorted(outcome.lines, key=str) == expected
    assert outcome.observed("queries_refused") == stats.queries_refused == 2, "each is counted once, by one bucket"
    for name in ("rows_in", "rows_late", "rows_null_time"):
        assert outcome.observed(name) == getattr(stats, name) > 0, name


def test_what_is_equal_has_one_bucket_whatever_its_type(spark: SparkSession) -> None:
    instant, nan = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), float("nan")
    ints, floats = [0, 1, -7, 2**53 - 1, 2**53, None], [-0.0, 1.0, -7.0, 2.0**53 - 1, 2.0**53, None]
    rows = {
        "long": pa.array(ints),
        "double": pa.array(floats),
        "float": pa.array([0.0, 0.1, -7.5, nan, 2.0**62, None], pa.float32()),
        "tiny": pa.array([0, 1, -7, 3, 4, None], pa.int8()),
        "text": pa.array(["", "a", "ä", "a ", "A", None]),
        "bytes": pa.array([b"", b"a", b"\x00", b"a\x00", b"b", None]),
        "flag": pa.array([True, False, True, False, True, None]),
        "day": pa.array([date(1969, 1, 1), date(2026, 1, 2), *[date(1, 1, 1)] * 3, None]),
        "instant": pa.array([instant, *[datetime(1960, 1, 1, tzinfo=UTC)] * 4, None], INSTANTS),
        "clock": pa.array([instant.replace(tzinfo=None), *[datetime(1960, 1, 1)] * 4, None], pa.timestamp("us")),
        "cents": pa.array([0, 1, 2, 3, 4, None], pa.int32()).cast(pa.decimal128(20, 2)),
    }
    asked = rows | {
        "long": pa.array(floats),
        "double": pa.array(ints),
        "float": pa.array(rows["float"].cast(pa.float64())),
        "tiny": pa.array([0.0, 1.0, -7.0, 3.0, 4.0, None], pa.float32()),
    }
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        df = spark.createDataFrame(pa.table({"ts": pa.array(range(6)), "by": pa.array([1.0] * 6), **rows}))
        texts = spark.createDataFrame(pa.table({"ts": pa.array(range(6)), "text": rows["clock"].cast(pa.string())}))
        df = df.drop("clock").join(texts.select("ts", texts["text"].cast("timestamp_ntz").alias("clock")), "ts")
        routed = []
        for name in rows:
            query = sb.TopKForEach(
                queries=pa.table({"id": range(6), "x": asked[name]}),
                k=1,
                by="by",
                where=f"`{name}` = q.x",
                window=sb.tumbling(10, on="ts"),
            )
            job = subscriptions.resolve(df, query)
            if not job.meet_by:
                continue
            routed.append(name)
            found = df.select("ts", bucket_of_row(df, job.meet_by, BUCKETS)).toArrow().sort_by("ts")
            of_query = buckets_of_table(df, query.queries, job.meet_by, BUCKETS)
            assert found.column(1).to_pylist()[:5] == of_query.tolist()[:5], name
            assert found.column(1).to_pylist()[5] < 0, "null is equal to nothing"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert routed == [name for name in rows if name != "cents"], "decimals are not known to be cast alike"
