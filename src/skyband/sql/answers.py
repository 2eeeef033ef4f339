"""From a query's answer to the columns of its statement, in this process and on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband import expressions
from skyband.dialect.query_spec import QuerySpec, Shown, Turn
from skyband.dialect.reading import quoted
from skyband.sql.rows import condition_in_spark, value_in_spark


def projected(
    answer: pa.Table | pa.RecordBatchReader,
    shown: tuple[Shown, ...],
    turn: Turn | None,
    kept: str | None = None,
    repeated: str | None = None,
) -> pa.Table | pa.RecordBatchReader:
    """The lines of the answer that are kept, with the columns that are shown of it."""
    condition = None if kept is None else expressions.bind_condition(kept, answer.schema, used_as="WHERE")
    columns = [
        (one.name, None if one.is_plain else expressions.bind_value(one.text, answer.schema), one.text) for one in shown
    ]
    schema = pa.schema(
        [
            answer.schema.field(text).with_name(name) if value is None else pa.field(name, value.type)
            for name, value, text in columns
        ]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in answer.to_batches() if isinstance(answer, pa.Table) else answer:
            batch = batch if turn is None else _turned(batch, turn)
            batch = batch if condition is None else batch.filter(pa.array(condition.evaluate(batch)))
            batch = batch if repeated is None else _repeated(batch, repeated)
            arrays = [batch.column(text) if value is None else value.values(batch) for _, value, text in columns]
            yield pa.record_batch(arrays, schema=schema)

    if isinstance(answer, pa.Table):
        return pa.Table.from_batches(batches(), schema.with_metadata(answer.schema.metadata))
    return pa.RecordBatchReader.from_batches(schema, batches())


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
        return answer.selectExpr(*self._texts)


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
