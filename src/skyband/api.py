"""The functions users call: sugar over the frozen queries, sent to the engine their data belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from skyband.engines.embedded import joins, objects
from skyband.errors import InvalidInput, InvalidQuery
from skyband.queries import Emit, JoinAggregate, Order, Relation, StreamInput, TopK
from skyband.queries.joins import ONE_INPUT
from skyband.windows import Span, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@overload
def top_k(
    data: DataFrame,
    *,
    k: int,
    by: str | Column | Callable[..., Any],
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
) -> DataFrame: ...


@overload
def top_k(
    data: Any,
    *,
    k: int,
    by: str | Callable[..., Any],
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
) -> pa.Table: ...


def top_k(
    data: Any,
    *,
    k: int,
    by: Any,
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
) -> Any:
    """The k best rows of a window, as it slides over `data`.

    `data` is a pyarrow Table, a pandas or polars DataFrame or anything else with the Arrow C stream interface (the
    answer is a pyarrow Table), a RecordBatchReader or an iterator of record batches (a RecordBatchReader), or a Spark
    DataFrame, batch or streaming (a Spark DataFrame). The other arguments are those of `TopK`.

    Columns of the answer: `window_start, window_end, <per>, rank, score, <the other columns>`; with emit="changes"
    `at, change, <per>, rank, score, …`; with emit="entries" `at, <per>, rank, score, …`.
    """
    column = None
    if is_spark := _is_spark(data):
        from skyband.engines import spark

        column, by = spark.as_column(by)
    query = TopK(
        k=k,
        by=by,
        window=window,
        per=per,
        ascending=ascending,
        emit=emit,
        lateness=lateness,
        algorithm=algorithm,
        error=error,
        expect=expect,
    )
    return spark.top_k(data, query, column) if is_spark else objects.top_k(data, query)


def join_aggregate(
    data: Any,
    *,
    aggregates: Mapping[str, str],
    inputs: Mapping[str, StreamInput | Relation | Window] | None = None,
    window: Window | None = None,
    where: str | None = None,
    on: str | Sequence[str] = (),
    group_by: str | Sequence[str] = (),
    having: str | None = None,
    order_by: str | Sequence[str] = (),
    k: int | None = None,
    every: Span | None = None,
    emit: Emit | None = None,
    lateness: Span | None = None,
    plan: str | None = None,
) -> Any:
    """Aggregates by group over a join of windows, as they slide; or, without a join, over one window.

    `data` has the rows of each input, by its name; each is what `top_k` takes. Over one window, `data` is the rows, and
    `window` and `where` stand for `inputs`. The other arguments are those of `JoinAggregate`.

    Columns of the answer: `window_end, <group_by>, <aggregates>`, with `order_by` also `rank` after `window_end`; with
    emit="changes" `at, change, <group_by>, <aggregates>`, where `change` is upsert or delete.
    """
    if inputs is None:
        if window is None:
            raise InvalidQuery(
                "Give the window of the rows, or for a join inputs=: a window for each input, by its name."
            )
        inputs, data = {ONE_INPUT: StreamInput(window, where)}, {ONE_INPUT: data}
    elif window is not None or where is not None:
        raise InvalidQuery("With inputs=, each input has its own window and where: stream_input(window, where=…).")
    query = JoinAggregate(
        inputs=inputs,
        aggregates=aggregates,
        on=on,
        group_by=group_by,
        having=having,
        order_by=order_by,
        k=k,
        every=every,
        emit=emit,
        lateness=lateness,
        plan=plan,
    )
    if isinstance(data, Mapping) and any(_is_spark(each) for each in data.values()):
        raise InvalidInput("Joins do not run on Spark yet: give Arrow data, such as DataFrame.toArrow().")
    return joins.join_aggregate(data, query)


def _is_spark(data: object) -> bool:
    """Is it a Spark DataFrame, classic or Connect? Asked by name, so that pyspark is not imported for others."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.sql") for base in type(data).__mro__
    )
