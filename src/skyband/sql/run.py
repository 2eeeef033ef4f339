"""Run a statement where its inputs are: on Arrow data in this process, or on Spark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from skyband.core.encoding.inputs import read
from skyband.core.problem import Running
from skyband.dialect.query_spec import QuerySpec
from skyband.dialect.statement import Statement, understand
from skyband.engines import outside_table_functions
from skyband.sql.analyze import explain
from skyband.sql.answers import about_tables, projected
from skyband.sql.embedded import answer_of, start_embedded
from skyband.sql.inputs import Inputs, as_one_window, find, open_inputs, with_variables
from skyband.sql.plain import plain_answer
from skyband.sql.recognise import recognise
from skyband.sql.spark import run_on_spark
from skyband.sql.variables import NO_VARIABLES, Variables


def sql(text: str, /, *, spark: Any = None, **inputs: Any) -> Any:
    """Run an SQL statement. docs/sql.md explains the language.

    Pass each input under the name that the statement uses. An input may be anything that `top_k` takes, but either all
    inputs are on Spark or none. Skyband looks for a name that you do not pass, in this order:

    - a table or view in the Spark session `spark`, or in the session of the DataFrames that you pass;
    - a local variable of the caller, or one of its module, that is a pyarrow Table, RecordBatch, Dataset, Scanner or
      RecordBatchReader, or a DataFrame of pandas, polars or Spark;
    - a table or view in the running Spark session, if there is one.

    Parameters
    ----------
    text
        One statement.
    spark
        A Spark session, whose tables and views the statement may name.
    inputs
        The rows of each input, under the name that the statement uses.

    Returns
    -------
    The answer, as the same type of data as the inputs. For EXPLAIN, the plan; print it to read it.

    Raises
    ------
    InvalidSql
        The statement cannot be parsed, or Skyband cannot answer it. The message shows the place.
    UnknownColumn
        The statement names a column that its inputs do not have.
    InvalidInput
        An input is missing, has another type than the others, or does not fit.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> trades = pa.table({"minute": [0, 1, 3], "symbol": ["OAK", "ELM", "FIR"], "price": [10, 20, 5]})
    >>> statement = "SELECT symbol FROM trades [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
    >>> best = sb.sql(statement, trades=trades)
    >>> best.select(["window_end", "rank", "symbol"]).to_pylist()
    [{'window_end': 2, 'rank': 1, 'symbol': 'ELM'}, {'window_end': 4, 'rank': 1, 'symbol': 'FIR'}]
    """
    return answer_found(text, inputs, Variables(sys._getframe(1), write="sb.sql(text, {name}=…)"), spark)


def answer_found(text: str, inputs: Mapping[str, Any], variables: Variables, spark: Any = None) -> Any:
    """The answer over inputs that are given, and over those of the variables that the statement names."""
    statement = understand(text)
    return answer_to(statement, with_variables([statement], inputs, spark, variables), spark, variables)


def answer_given(text: str, inputs: Mapping[str, Any], elsewhere: Variables = NO_VARIABLES) -> Any:
    """The same of inputs that are given: no variables are looked at. `elsewhere` says how others can be given."""
    return answer_to(understand(text), inputs, None, elsewhere)


def plan(text: str, inputs: Mapping[str, Any], elsewhere: Variables = NO_VARIABLES) -> Any:
    """What EXPLAIN says of a statement, whether or not it stands in front of it."""
    statement = understand(text)
    return answer_to(replace(statement, explain=statement.explain or "PLAN"), inputs, None, elsewhere)


def ask(text: str, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
    """What a statement asks of inputs with these columns, by the names it calls them; nothing is read or run."""
    return recognise(understand(text), schemas)


@outside_table_functions()
def answer_to(
    statement: Statement,
    given: Mapping[str, Any],
    spark: Any = None,
    variables: Variables = NO_VARIABLES,
    spec: QuerySpec | None = None,
) -> Any:
    """The answer over inputs that are given, or tables of a Spark session. `spec`: what the statement asks of them,
    where that is known."""
    inputs = open_inputs(statement, given, spark, variables)
    is_plain = statement.is_plain or (statement.takes_any and (inputs.are_tables or not inputs.on_spark))
    if is_plain and statement.explain is None:
        return plain_answer(statement, inputs.data, inputs.schemas, on_spark=inputs.on_spark)
    if spec is None:
        statement, inputs = as_one_window(statement, inputs)
        spec = _recognised(statement, inputs)
    if statement.explain is not None:
        return explain(spec, inputs, analyze=statement.explain == "ANALYZE")
    return run_on_spark(spec, inputs) if inputs.on_spark else answer_of(start_embedded(spec, inputs.data), spec)


def _recognised(statement: Statement, inputs: Inputs) -> QuerySpec:
    spec = recognise(statement, inputs.schemas)
    return about_tables(spec) if statement.is_about_tables else spec


class Started(NamedTuple):
    """A statement that runs over its inputs, batch by batch, as its answers are taken."""

    running: Running
    spec: QuerySpec

    def shown(self, answer: pa.Table) -> pa.Table:
        """What the statement shows of an answer, or of what `top` says of its session: that has no changes."""
        there = [one for one in self.spec.shown if not one.is_plain or one.text in answer.schema.names]
        return projected(answer, replace(self.spec, shown=tuple(there)))


def start(text: str, given: Mapping[str, Any], *, batch_rows: int) -> Started:
    """Begin a statement over Arrow data; tables are taken `batch_rows` at a time."""
    statement = understand(text)
    if statement.explain is not None:
        statement.refuse("EXPLAIN does not run a statement, but this call does", None, "Leave EXPLAIN out.")
    cut = {name: read(one).plain().cut(lambda _: batch_rows) for name, one in find(statement, given).items()}
    statement, inputs = as_one_window(statement, open_inputs(statement, cut))
    spec = _recognised(statement, inputs)
    return Started(start_embedded(spec, inputs.data), spec)
