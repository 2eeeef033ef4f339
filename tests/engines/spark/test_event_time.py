"""Example tests of event time on Spark: watermarks, boundaries, late rows, missing times, column types."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines.spark.streams import INSTANTS, START_US, Outcome, lines, run_stream, split, trades, write_batches
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skyband as sb

pytestmark = pytest.mark.spark

TEN_SECONDS = sb.sliding("20 seconds", every="10 seconds", on="ts")


def instants(seconds: list[float | None]) -> pa.Array:
    return pa.array([None if s is None else START_US + round(s * 1e6) for s in seconds], INSTANTS)


def batch(seconds: list[float | None], scores: list[float | None]) -> pa.Table:
    return pa.table({"ts": instants(seconds), "score": pa.array(scores, pa.float64())})


def windows(outcome: Outcome) -> dict[float, list[float]]:
    """The scores of each window, by its end in seconds."""
    shown: dict[float, list[float]] = {}
    for line in outcome.lines:
        shown.setdefault((line[1] - START_US) / 1e6, []).append(line[3])
    return shown


def ask(rows: DataFrame, **options: Any) -> DataFrame:
    return sb.top_k(rows, **{"k": 2, "by": "score", "window": TEN_SECONDS} | options)


def test_a_row_counts_in_those_of_its_windows_that_are_still_open(spark: SparkSession, tmp_path: Path) -> None:
    # After the first batch the watermark is at 20 s exactly: the window [0, 20) has closed, [10, 30) has not.
    batches = [
        batch([1, 12, 20], [1.0, 2.0, 3.0]),
        batch([9.999999, 10, 20], [90.0, 91.0, 92.0]),
        batch([50], [0.0]),
    ]
    outcome = run_stream(spark, write_batches(tmp_path / "in", batches), ask)
    assert windows(outcome) == {10: [1.0], 20: [2.0, 1.0], 30: [92.0, 91.0], 40: [92.0, 3.0]}
    assert outcome.observed("rows_late") == 1, "the row at 9.999999 s"


def test_a_window_ends_where_the_watermark_stands(spark: SparkSession, tmp_path: Path) -> None:
    just_before, exactly = batch([1, 9.999], [1.0, 2.0]), batch([10], [3.0])
    outcome = run_stream(spark, write_batches(tmp_path / "before", [just_before]), ask)
    assert windows(outcome) == {}
    outcome = run_stream(spark, write_batches(tmp_path / "at", [just_before, exactly]), ask)
    assert windows(outcome) == {10: [2.0, 1.0]}


def test_rows_out_of_order_within_the_watermark_give_the_exact_answer(spark: SparkSession, tmp_path: Path) -> None:
    table = trades(480)
    # Each batch has its rows backwards, and rows of the one before: 120 rows take 30 s.
    mixed = pa.concat_tables([table.slice(start, 60).take(pa.array(range(59, -1, -1))) for start in (60, 0, 180, 120)])
    mixed = pa.concat_tables([mixed, table.slice(240)])
    options: dict[str, Any] = {"k": 3, "by": "price", "window": TEN_SECONDS, "per": "symbol"}
    expected = [line for line in lines(sb.top_k(table, **options)) if line[1] <= START_US + 89_750_000]
    folder = write_batches(tmp_path / "in", split(mixed, 8))

    by_lateness = run_stream(spark, folder, lambda rows: sb.top_k(rows, lateness="30 seconds", **options))
    assert sorted(by_lateness.lines) == sorted(expected)
    assert by_lateness.observed("rows_late") == 0
    by_the_user = run_stream(spark, folder, lambda rows: sb.top_k(rows.withWatermark("ts", "30 seconds"), **options))
    assert sorted(by_the_user.lines) == sorted(expected)


def test_rows_that_cannot_be_ranked_are_counted_by_reason(spark: SparkSession, tmp_path: Path) -> None:
    nan = float("nan")
    batches = [
        batch([1, None, 2, 3, None, 25], [1.0, 5.0, None, nan, None, 4.0]),
        # Before the shuffle one row stands for those of its pane, so late rows that share one are counted with it.
        batch([1, 2, 2, 3, 3.5, 4, 26], [9.0, 8.0, 7.0, 6.0, 5.0, nan, 1.0]),
        batch([60], [1.0]),
    ]
    outcome = run_stream(spark, write_batches(tmp_path / "in", batches), ask)
    assert windows(outcome)[10] == [1.0]
    counted = {name: outcome.observed(name) for name in ("rows_in", "rows_null_time", "rows_unranked", "rows_late")}
    assert counted == {"rows_in": 14, "rows_null_time": 2, "rows_unranked": 3, "rows_late": 5}


@pytest.mark.parametrize("rows", [[], [None, None]], ids=["none", "without a time"])
def test_nothing_to_rank(spark: SparkSession, tmp_path: Path, rows: list[None]) -> None:
    folder = write_batches(tmp_path / "in", [batch(list(rows), [1.0] * len(rows))])
    assert run_stream(spark, folder, ask).lines == []
    assert ask(spark.read.parquet(str(folder))).count() == 0


@pytest.mark.parametrize("first", [-60, 2**40], ids=["negative", "beyond milliseconds"])
def test_an_integer_column_may_hold_any_numbers(spark: SparkSession, tmp_path: Path, first: int) -> None:
    table = pa.table({"t": pa.array(range(first, first + 40), pa.int64()), "score": pa.array(range(40), pa.float64())})
    folder = write_batches(tmp_path / "in", split(table, 3))
    window = sb.sliding(10, every=3, on="t")
    expected = [line for line in lines(sb.top_k(table, k=2, by="score", window=window)) if line[1] <= first + 39 - 2]
    outcome = run_stream(spark, folder, lambda rows: ask(rows, window=window, lateness=2))
    assert outcome.lines == expected
    assert len(expected) > 20


@pytest.mark.parametrize(
    ("type_", "name"), [(pa.timestamp("us"), "timestamp_ntz"), (INSTANTS, "timestamp")], ids=["wall clock", "instants"]
)
def test_the_time_zone_of_the_session_changes_nothing(
    spark: SparkSession, tmp_path: Path, type_: pa.DataType, name: str
) -> None:
    # Through a night in which New York's clocks skip an hour, and with it as the session's zone.
    start = datetime(2024, 3, 10, 1, 59, 30, tzinfo=UTC).timestamp()
    times = pa.array([round((start + second) * 1e6) for second in range(90)], type_)
    table = pa.table({"ts": times, "score": pa.array([second % 17 for second in range(90)], pa.float64())})
    folder = write_batches(tmp_path / "in", split(table, 3))
    latest = times[-1].value
    expected = [line for line in lines(sb.top_k(table, k=2, by="score", window=TEN_SECONDS)) if line[1] <= latest]
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        answer = ask(spark.read.parquet(str(folder)))
        assert answer.schema["window_end"].dataType.typeName() == name
        outcome = run_stream(spark, folder, ask)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert outcome.lines == expected


def test_the_answer_of_another_stateful_query_can_be_asked(spark: SparkSession, tmp_path: Path) -> None:
    """The busiest symbols of the last 20 s, from a count of trades for each 5 s."""
    table = trades(400)
    folder = write_batches(tmp_path / "in", split(table, 3))

    def busiest(rows: DataFrame) -> DataFrame:
        fives = rows.withWatermark("ts", "0 seconds").groupBy(sf.window("ts", "5 seconds"), "symbol").count()
        counts = fives.select(sf.window_time("window").alias("ts"), "symbol", "count")
        return ask(counts, by=sf.col("count") * 100 + sf.right("symbol", sf.lit(1)).cast("int"))

    encoding = spark.conf.get("spark.sql.streaming.stateStore.encodingFormat")
    spark.conf.set("spark.sql.streaming.stateStore.encodingFormat", "unsaferow")
    try:
        outcome = run_stream(spark, folder, busiest)
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.encodingFormat", encoding)
    expected = lines(busiest(spark.read.parquet(str(folder))).toArrow())
    assert outcome.lines == [line for line in expected if line[1] <= max(line[1] for line in outcome.lines)]
    assert len(outcome.lines) >= 10


def test_windows_before_1970_close_when_the_watermark_comes_by(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's watermark starts at 0: a timer at or before it went off before there was a watermark."""
    seconds = [-3_600, -60, -1, 0, 3_600]
    table = pa.table({"ts": pa.array([s * 1_000_000 for s in seconds], INSTANTS), "score": [5.0, 4.0, 3.0, 2.0, 1.0]})
    question = {"k": 1, "by": "score", "window": sb.tumbling("1 minute", on="ts")}
    for cuts in ([table], [table.slice(0, 2), table.slice(2)]):
        folder = write_batches(tmp_path / str(len(cuts)), cuts)
        outcome = run_stream(spark, folder, lambda rows: sb.top_k(rows, **question))
        shown = sorted((line[1], line[3]) for line in outcome.lines)
        assert shown == [(-3_540_000_000, 5.0), (0, 4.0), (60_000_000, 2.0)]


@pytest.mark.parametrize(("start", "every"), [(1_772_323_200_000_000_000, 10**9), (-(2**61), 10**6), (2**61, 10**4)])
def test_integers_far_from_zero_measure_windows(spark: SparkSession, tmp_path: Path, start: int, every: int) -> None:
    """Nanoseconds since 1970, with a lateness that is no multiple of the slide."""
    start -= start % every
    times = [start + step for step in (1, every - 1, every, every + 3, 2 * every, 2 * every + 3, 5 * every)]
    table = pa.table({"t": times, "score": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]})
    question = {"k": 2, "by": "score", "window": sb.sliding(2 * every, every=every, on="t"), "lateness": 3}
    expected = sorted(line for line in lines(sb.top_k(table, **question)) if line[1] <= start + 4 * every)
    outcome = run_stream(
        spark, write_batches(tmp_path / "in", split(table, 3)), lambda rows: sb.top_k(rows, **question)
    )
    assert sorted(outcome.lines) == expected


def test_integers_too_far_from_zero_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "in", [pa.table({"t": [2**61], "score": [1.0]})])
    with pytest.raises(Exception, match="the window's column 't' may have values up to"):
        run_stream(spark, folder, lambda rows: sb.top_k(rows, k=1, by="score", window=sb.sliding(20, every=10, on="t")))
