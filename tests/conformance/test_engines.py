"""Oracle tests: one question, the embedded engine and Spark, batch and streaming, the answer of recomputing it all."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from conformance.asked import Asked
from engines.spark.streams import Line, lines, read_batches, run_answer, shuffled, split, write_batches

from skyband.core import registry
from skyband.expressions import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED = {
    f"{problem}: {name}": asked
    for problem in registry.problems()
    for name, asked in importlib.import_module(f"conformance.{problem}.questions").QUESTIONS.items()
}
every_question = pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
every_stream = pytest.mark.parametrize(
    "asked", [each for each in ASKED.values() if each.streams], ids=[n for n, each in ASKED.items() if each.streams]
)
Answers = Callable[[Asked], pa.Table]


@pytest.fixture(params=["embedded", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Answers:
    """Answers a question over tables whose rows are in whichever order."""
    if request.param == "embedded":
        return lambda asked: asked.of({name: shuffled(table) for name, table in asked.inputs.items()})
    spark: SparkSession = request.getfixturevalue("spark")
    folder: Callable[[pa.Table], Path] = request.getfixturevalue("folder")

    def answer(asked: Asked) -> pa.Table:
        with spread(spark, asked):
            frames = {name: spark.read.parquet(str(folder(table))) for name, table in asked.inputs.items()}
            return asked.of(frames).toArrow()

    return answer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[pa.Table], Path]:
    """Where a table is, as the files of three micro-batches that interleave."""
    places: dict[int, Path] = {}

    def place(table: pa.Table) -> Path:
        if id(table) not in places:
            places[id(table)] = write_batches(tmp_path_factory.mktemp("table") / "input", split(table, 3))
        return places[id(table)]

    return place


@pytest.fixture(autouse=True)
def known_for_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(functions._known, "half_of", lambda x: x / 2)


@contextmanager
def spread(spark: SparkSession, asked: Asked) -> Iterator[None]:
    """Over as many buckets as the question says: each costs a second."""
    if asked.buckets is not None:
        spark.conf.set("spark.skyband.buckets", str(asked.buckets))
    try:
        yield
    finally:
        spark.conf.unset("spark.skyband.buckets")


def in_any_order(found: list[Line]) -> list[Line]:
    return sorted(found, key=repr)


@every_question
def test_a_table_is_answered_as_recomputing_answers_it(engine: Answers, asked: Asked) -> None:
    answer = engine(asked)
    assert answer.column_names == asked.expected.column_names
    assert in_any_order(lines(answer)) == in_any_order(lines(asked.expected))
    assert answer.num_rows >= asked.least


@pytest.mark.spark
@every_stream
def test_a_stream_is_answered_as_a_table_is(
    spark: SparkSession, folder: Callable[[pa.Table], Path], asked: Asked
) -> None:
    expected = asked.closed()
    inputs: dict[str, Any] = {
        name: table if name in asked.tables else read_batches(spark, folder(table))
        for name, table in asked.inputs.items()
    }
    with spread(spark, asked):
        outcome = run_answer(spark, asked.of(inputs, **asked.when_streamed), mode=asked.mode)
    assert in_any_order(outcome.lines) == in_any_order(expected)
    if asked.in_order:
        assert outcome.lines == expected, "one ranking comes in the order in which it became known"
    assert len(expected) >= asked.least
    streamed = sum(table.num_rows for name, table in asked.inputs.items() if name not in asked.tables)
    assert outcome.observed("rows_in") == streamed - asked.filtered, (
        "a row is counted once, however many buckets it is sent to"
    )
    assert outcome.observed("rows_late") == 0
    if asked.most_states is not None:
        assert outcome.state_rows() <= asked.most_states
