"""Examples: `sb.sql` finds data frames by the names that variables have where it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import skyband as sb

ROWS = pa.table({"t": [0, 1, 3], "x": [10, 20, 5]})
OTHERS = pa.table({"t": [0, 1, 3], "x": [1, 2, 3]})
BEST = "SELECT x FROM {} [WINDOW 4 EVERY 4 ON t] ORDER BY x DESC LIMIT 1"


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.Table.to_pandas, pa.table, lambda rows: rows.to_batches()[0], ds.dataset, pa.Table.to_reader),
        *(pl.from_arrow, lambda rows: pl.from_arrow(rows).lazy(), lambda rows: ds.dataset(rows).scanner()),
    ],
)
def test_whatever_is_a_data_frame_is_found(kind: Any) -> None:
    found = kind(ROWS)
    given = kind(ROWS)
    answer = sb.sql(BEST.format("found"))
    assert type(answer) is type(sb.sql(BEST.format("given"), given=given))
    if isinstance(answer, pd.DataFrame):
        assert answer["x"].to_list() == [20]
    assert found is not None


def test_local_variables_come_before_those_of_the_module_and_arguments_before_both() -> None:
    def best(text: str, **inputs: Any) -> list[int]:
        ROWS = OTHERS  # noqa: F841, N806  # the statement names it
        return sb.sql(text, **inputs)["x"].to_pylist()

    assert sb.sql(BEST.format("ROWS"))["x"].to_pylist() == [20]
    assert best(BEST.format("ROWS")) == [3]
    assert best(BEST.format("ROWS"), ROWS=ROWS) == [20]
    assert best(BEST.format("rows"), rows=ROWS) == [20]


def test_a_name_is_found_in_any_case_unless_two_differ_only_there() -> None:
    trades = ROWS
    assert sb.sql(BEST.format("Trades"))["x"].to_pylist() == [20]
    Trades = OTHERS  # noqa: N806
    assert sb.sql(BEST.format("Trades"))["x"].to_pylist() == [3]
    assert sb.sql(BEST.format("trades"))["x"].to_pylist() == [20]
    with pytest.raises(sb.InvalidSql, match="There is no input 'TRADES'"):
        sb.sql(BEST.format("TRADES"))
    assert trades is not Trades


def test_only_the_caller_is_looked_at_not_who_called_it() -> None:
    trades = ROWS

    def ask() -> Any:
        return sb.sql(BEST.format("trades"))

    with pytest.raises(sb.InvalidSql, match="There is no input 'trades'"):
        ask()
    assert trades is ROWS


@pytest.mark.parametrize("value", [[ROWS], iter([ROWS]), {"x": [1]}, pa.Table, ROWS["x"], pl.Series([1]), None, 7])
def test_what_is_no_data_frame_is_not_taken_and_the_message_says_what_it_is(value: Any) -> None:
    trades = value
    with pytest.raises(sb.InvalidSql) as caught:
        sb.sql(BEST.format("trades"))
    said = f"The variable 'trades' is not a table or data frame, but has type {type(trades).__name__}."
    assert said in str(caught.value)


def test_the_message_lists_what_was_looked_at() -> None:
    trades = ROWS
    with pytest.raises(sb.InvalidSql) as caught:
        sb.sql(BEST.format("tradez"), quotes=ROWS)
    assert str(caught.value).splitlines()[-1] == (
        "Did you mean 'trades'? Given: quotes. Variables: trades, ROWS, OTHERS. Write sb.sql(text, tradez=…)."
    )
    assert trades is ROWS


def test_statements_that_run_together_share_a_variable() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()

    reader = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    answers = sb.run_all({"a": BEST.format("reader"), "b": BEST.format("READER").replace("DESC", "ASC")})
    assert [answers[name].read_all()["x"].to_pylist() for name in "ab"] == [[20], [5]]
    assert reader is not None


def test_a_query_that_with_makes_hides_a_variable() -> None:
    trades = OTHERS
    statement = f"WITH trades AS (SELECT t, x FROM ROWS) {BEST.format('trades')}"
    assert sb.sql(statement)["x"].to_pylist() == [20]
    assert trades is OTHERS


@pytest.mark.spark
def test_on_spark_variables_and_views_are_found(spark: Any) -> None:
    """A view of the session that is given comes before a variable, and that before a view of the session that runs."""
    trades = spark.createDataFrame([(0, 10), (1, 20)], "t long, x long")
    spark.createDataFrame([(0, 7), (1, 8)], "t long, x long").createOrReplaceTempView("seen")
    rows = ROWS
    try:
        assert sb.sql(BEST.format("trades")).toPandas()["x"].to_list() == [20]
        assert sb.sql(BEST.format("seen")).toPandas()["x"].to_list() == [8]
        seen = rows
        assert sb.sql(BEST.format("seen"))["x"].to_pylist() == [20]
        assert sb.sql(BEST.format("seen"), spark=spark).toPandas()["x"].to_list() == [8]
        assert (trades, seen) != (None, None)
    finally:
        spark.catalog.dropTempView("seen")


def test_inputs_whose_names_differ_only_in_case_are_refused() -> None:
    one, two = pa.table({"x": [1]}), pa.table({"x": [2]})
    with pytest.raises(sb.InvalidInput, match="Two inputs are called 'A'"):
        sb.sql("SELECT x FROM a", a=one, A=two)


def test_an_input_may_be_called_text_but_not_spark() -> None:
    rows = pa.table({"x": [1]})
    assert sb.sql("SELECT x FROM text", text=rows).equals(rows)
    with pytest.raises(sb.InvalidInput, match="spark= takes a Spark session, got Table"):
        sb.sql("SELECT x FROM spark", spark=rows)
