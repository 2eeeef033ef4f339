"""From a query's answer to the columns of its statement, in this process and on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband import expressions
from skyband.core.encoding.inputs import read
from skyband.core.encoding.output import sorted_places
from skyband.core.encoding.schemas import is_value
from skyband.core.registry import problem_of
from skyband.dialect.lines import WINDOW
from skyband.dialect.query_spec import LINES, ONLY, QuerySpec, Shown, Turn, shown_schema
from skyband.dialect.reading import quoted
from skyband.sql.rows import condition_in_spark, prepared, value_in_spark


def projected(answer: pa.Table | pa.RecordBatchReader, spec: QuerySpec) -> pa.Table | pa.RecordBatchReader:
    """The lines of the answer that are kept, with the columns that are shown of it; of a table, which has all lines of
    each window in it, what is asked of them."""
    if spec.is_about_tables and isinstance(answer, pa.Table) and not answer.num_rows:
        answer = problem_of(spec.query).said_of_nothing(spec.query, answer.schema) or answer
    condition = None if spec.kept is None else expressions.bind_condition(spec.kept, answer.schema, used_as="WHERE")
    columns = [(None if one.is_plain else expressions.bind_value(one.text, answer.schema), one) for one in spec.shown]
    schema = shown_schema(spec.shown, answer.schema)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in answer.to_batches() if isinstance(answer, pa.Table) else answer:
            batch = batch if spec.turn is None else _turned(batch, spec.turn)
            batch = batch if condition is None else batch.filter(pa.array(condition.evaluate(batch)))
            batch = batch if spec.repeated is None else _repeated(batch, spec.repeated)
            arrays = [batch.column(one.text) if value is None else value.values(batch) for value, one in columns]
            yield pa.record_batch(arrays, schema=schema)

    if not isinstance(answer, pa.Table):
        return pa.RecordBatchReader.from_batches(schema, batches())
    shown = pa.Table.from_batches(batches(), schema)
    shown = shown if spec.then is None else _said_of(shown, spec.then)
    return shown.replace_schema_metadata(answer.schema.metadata)


def about_tables(spec: QuerySpec) -> QuerySpec:
    """The same about whole tables, where an aggregate of no rows has a value, too. HAVING comes after that."""
    query, condition = problem_of(spec.query).unfiltered(spec.query)
    kept = " AND ".join(f"({one})" for one in (spec.kept, condition) if one) or None
    then = None if spec.then is None else about_tables(spec.then)
    return replace(spec, query=query, kept=kept, then=then, is_about_tables=True)


def _said_of(lines: pa.Table, spec: QuerySpec) -> pa.Table:
    """What is asked of the lines of windows, all of each."""
    # If they tie, the last one comes first: that with the smallest values. No engine gives them in an order.
    order = np.argsort(sorted_places([column for column in lines.columns if is_value(column.type)]))[::-1]
    source = read(lines.take(pa.array(order))).plain()
    rows: dict[str, Any] = {name: prepared({LINES: source}, its) for name, its in spec.rows.items()}
    return projected(problem_of(spec.query).start(rows.get(ONLY, rows), spec.query).collected(), spec)


def _repeated(batch: pa.RecordBatch, count: str) -> pa.RecordBatch:
    """Each line as often as a column of it says."""
    times = batch.column(count).to_numpy()
    return batch.take(pa.array(np.repeat(np.arange(len(times)), times)))


def _turned(batch: pa.RecordBatch, turn: Turn) -> pa.RecordBatch:
    """Pairs with their rows in the order that the statement asks for."""
    compare = pc.less if turn.ascending else pc.greater
    straight = compare(batch.column(f"a_{turn.column}"), batch.column(f"b_{turn.column}"))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    width = (len(columns) - next(i for i, name in enumerate(columns) if name.startswith("a_"))) // 2
    for name in [name.removeprefix("a_") for name in batch.schema.names[-2 * width : -width]]:
        a, b = columns[f"a_{name}"], columns[f"b_{name}"]
        columns[f"a_{name}"], columns[f"b_{name}"] = pc.if_else(straight, a, b), pc.if_else(straight, b, a)
    return pa.record_batch(list(columns.values()), schema=batch.schema)


_COPY: Final = "__skyband_copy"


class Shower:
    """The same of a DataFrame; told once how, however often it is called."""

    def __init__(self, spec: QuerySpec) -> None:
        self._spec = spec
        self._texts: list[str] | None = None
        self._kept: str | None = None

    def __call__(self, answer: Any) -> Any:
        if self._spec.is_about_tables:
            answer = _with_what_is_said_of_nothing(answer, self._spec)
        if self._spec.turn is not None:
            answer = answer.selectExpr(*_turned_texts(answer.columns, self._spec.turn))
        if self._texts is None:
            from skyband.engines.spark import schema_of

            schema = schema_of(answer)
            self._texts = [_shown_in_spark(one, schema) for one in self._spec.shown]
            if self._spec.kept is not None:
                self._kept = condition_in_spark(self._spec.kept, schema)
        if self._kept is not None:
            answer = answer.where(self._kept)
        if self._spec.repeated is not None:
            times = f"array_repeat(0, CAST({quoted(self._spec.repeated)} AS INT))"
            answer = answer.selectExpr("*", f"explode({times}) AS {quoted(_COPY)}")
        answer = answer.selectExpr(*self._texts)
        return answer if self._spec.then is None else _said_in_spark(answer, self._spec.then)


def _with_what_is_said_of_nothing(answer: Any, spec: QuerySpec) -> Any:
    """The answer; if it has no line, that about no rows."""
    from skyband.engines.spark import schema_of

    line = problem_of(spec.query).said_of_nothing(spec.query, schema_of(answer))
    if line is None:
        return answer
    (values,) = line.to_pylist()
    said = answer.sparkSession.createDataFrame([tuple(values.values())], answer.schema)
    both = answer.selectExpr("*", f"0 AS {_COPY}").union(said.selectExpr("*", f"1 AS {_COPY}"))
    return both.orderBy(_COPY).limit(1).drop(_COPY)


def _said_in_spark(lines: Any, spec: QuerySpec) -> Any:
    """What is asked of the lines of windows, of each window in one place."""
    from skyband.engines.spark import schema_of
    from skyband.engines.spark.projection import by_window

    schema = schema_of(lines)
    kind = _said_of(schema.empty_table(), spec).schema
    return by_window(lines, WINDOW, lambda some: _said_of(some.cast(schema), spec), kind)


def _shown_in_spark(one: Shown, schema: pa.Schema) -> str:
    return f"{quoted(one.text) if one.is_plain else value_in_spark(one.text, schema)} AS {quoted(one.name)}"


def _turned_texts(names: list[str], turn: Turn) -> list[str]:
    order = "<" if turn.ascending else ">"
    straight = f"{quoted(f'a_{turn.column}')} {order} {quoted(f'b_{turn.column}')}"
    texts = []
    for name in names:
        other = {"a_": "b_", "b_": "a_"}.get(name[:2], "") + name[2:]
        turned = name[:2] in ("a_", "b_") and other in names
        text = f"CASE WHEN {straight} THEN {quoted(name)} ELSE {quoted(other)} END" if turned else quoted(name)
        texts.append(f"{text} AS {quoted(name)}")
    return texts
