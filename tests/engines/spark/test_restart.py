"""Restart tests: a query that stops or is killed and goes on from its checkpoint writes what it would have written."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines.spark.driver import Driver, joins, numbers, rows, start
from engines.spark.streams import START_US, Line, lines, read_batches, split, trades, write_batches
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from waiting import wait_until

import skyband as sb

pytestmark = pytest.mark.spark

BATCHES = 6


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batches(tmp_path_factory.mktemp("restart") / "input", split(trades(1_200), BATCHES))


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, source: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    folder = tmp_path_factory.mktemp("undisturbed")
    start(spark, "rows", source, folder / "output", folder / "checkpoint").awaitTermination()
    written = read(spark, folder / "output")
    watermark = START_US + 1_199 * 250_000 - 5_000_000
    expected = lines(rows(lambda _: spark.read.parquet(str(source))).toArrow())
    assert written == sorted(line for line in expected if line[1] <= watermark)
    assert len(written) > 100
    return written


def read(spark: SparkSession, folder: Path) -> list[Line]:
    """What readers of the sink see: files that were committed."""
    return sorted(lines(spark.read.parquet(str(folder)).toArrow()))


def test_stopped_in_the_middle(spark: SparkSession, source: Path, undisturbed: list[Line], tmp_path: Path) -> None:
    """Half of the input is there when the query is stopped: then it is in the middle, however late that is."""
    batches, half = split(trades(1_200), BATCHES), BATCHES // 2
    folders = write_batches(tmp_path / "input", batches[:half]), tmp_path / "output", tmp_path / "checkpoint"
    query = start(spark, "rows", *folders, ends=False)
    wait_until(lambda: len(numbers(tmp_path / "checkpoint" / "commits")) > 0, "a batch is committed")
    query.stop()
    assert read(spark, tmp_path / "output") != undisturbed
    write_batches(tmp_path / "input", batches[half:], first=half)
    start(spark, "rows", *folders).awaitTermination()
    assert read(spark, tmp_path / "output") == undisturbed


def test_killed_in_the_middle_of_batches(
    spark: SparkSession, source: Path, undisturbed: list[Line], tmp_path: Path
) -> None:
    driver = Driver("rows", source, tmp_path)
    # At once, when the state is read; later, when it may be written; and in the batch that was killed before.
    for batch, writing in ((1, False), (3, True), (3, True)):
        driver.kill_in(batch, writing=writing)
    assert read(spark, driver.target) != undisturbed
    start(spark, "rows", source, driver.target, driver.checkpoint).awaitTermination()
    assert read(spark, driver.target) == undisturbed


@pytest.mark.xdist_group("drivers")  # it needs no session but its own
def test_a_join_that_is_killed_goes_on(tmp_path: Path) -> None:
    tables = {name: trades(600, seed=seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        write_batches(tmp_path / "input" / name, split(table, 4))
    driver = Driver("joins", tmp_path / "input", tmp_path)
    driver.kill_in(2, writing=True)
    watermark = START_US + 599 * 250_000 - 5_000_000
    expected = sorted(line for line in lines(joins(tables.__getitem__)) if line[0] <= watermark)
    assert sorted(lines(driver.written())) != expected
    driver.run()
    assert sorted(lines(driver.written())) == expected


def test_a_checkpoint_of_another_question_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def run(folder: Path, k: int) -> None:
        answer = sb.top_k(read_batches(spark, folder), k=k, by="price", window=sb.tumbling("10 seconds", on="ts"))
        writer = answer.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    first, second = split(trades(400), 2)
    folder = write_batches(tmp_path / "input", [first])
    run(folder, k=2)
    for path in write_batches(tmp_path / "more", [second]).iterdir():
        path.rename(folder / f"more-{path.name}")
    with pytest.raises(StreamingQueryException, match="Another query wrote this checkpoint"):
        run(folder, k=3)
