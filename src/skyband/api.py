"""The functions users call: sugar over the frozen queries, sent to the engine their data belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

import pyarrow as pa

from skyband.core.checks import Emit, Order
from skyband.core.registry import problem_of
from skyband.engines.data_kinds import is_spark
from skyband.errors import InvalidInput, InvalidQuery
from skyband.problems.across import session as across
from skyband.problems.across.query import Bounds, Repeat, TopKAcross
from skyband.problems.joins import session as joins
from skyband.problems.joins.query import ONE_INPUT, JoinAggregate, Relation, StreamInput
from skyband.problems.pairs import session as pairs
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows import session as objects
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions import session as subscriptions
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import Span, Window

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    from pyspark.sql import Column, DataFrame

    # A frame gives a frame of its own kind. pyarrow and others with the Arrow C stream interface give a pyarrow Table,
    # streams a reader.
    Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame, pd.DataFrame, DataFrame)
    Stream: TypeAlias = "pa.RecordBatchReader | ds.Scanner | Iterator[pa.RecordBatch] | Iterator[pa.Table]"
    Rows: TypeAlias = (
        "pa.Table | pa.RecordBatch | ds.Dataset | Sequence[pa.RecordBatch] | Sequence[pa.Table] | HasArrowStream"
    )


class HasArrowStream(Protocol):
    """Anything with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@overload
def top_k(
    data: Frame,
    *,
    k: int | str,
    by: str | Column | Callable[..., Any],
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
    for_each: Any = None,
    key: str | Sequence[str] | None = None,
    size: str | None = None,
    every: str | None = None,
    where: str | None = None,
    backfill: bool = False,
    max_jump: Span | None = None,
) -> Frame: ...


@overload
def top_k(
    data: Stream,
    *,
    k: int | str,
    by: str | Callable[..., Any],
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
    for_each: Any = None,
    key: str | Sequence[str] | None = None,
    size: str | None = None,
    every: str | None = None,
    where: str | None = None,
    backfill: bool = False,
    max_jump: Span | None = None,
) -> pa.RecordBatchReader: ...


@overload
def top_k(
    data: Rows,
    *,
    k: int | str,
    by: str | Callable[..., Any],
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
    for_each: Any = None,
    key: str | Sequence[str] | None = None,
    size: str | None = None,
    every: str | None = None,
    where: str | None = None,
    backfill: bool = False,
    max_jump: Span | None = None,
) -> pa.Table: ...


def top_k(
    data: Any,
    *,
    k: int | str,
    by: Any,
    window: Window,
    per: str | Sequence[str] = (),
    ascending: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
    error: float | None = None,
    expect: Order | None = None,
    for_each: Any = None,
    key: str | Sequence[str] | None = None,
    size: str | None = None,
    every: str | None = None,
    where: str | None = None,
    backfill: bool = False,
    max_jump: Span | None = None,
) -> Any:
    """The k best rows of a window, as it slides over `data`.

    `data` is a pandas or polars DataFrame, a polars LazyFrame or a Spark DataFrame, batch or streaming, and the answer
    is one, too; or a pyarrow Table, RecordBatch or Dataset, a list of batches or anything else with the Arrow C stream
    interface (the answer is a pyarrow Table); or a stream: a RecordBatchReader, a Scanner, an iterator of record
    batches (a RecordBatchReader). What is not a stream is put in the order of the window's column first, so that no row
    is late. Late rows of a stream are warned of: `LateRows`. The other arguments are those of `TopK`.

    Columns of the answer: `window_start, window_end, <per>, rank, score, <the other columns>`; with emit="changes"
    `at, change, <per>, rank, score, …`; with emit="entries" `at, <per>, rank, score, …`.

    With `for_each`, a table of queries, there is a ranking for each of its rows, whose columns are `q.…` in `by`, and
    may be `k`, `size` and `every` ("q.k"): see `TopKForEach`. The answer begins with the queries' key columns. On
    Spark the queries may be a DataFrame, too; a streaming one adds and removes them, by its column `_change_type`.
    """
    if for_each is not None:
        changes = None
        if is_spark(for_each):
            if not is_spark(data):
                raise InvalidQuery("The rows are not a Spark DataFrame, so the queries are none: queries.toArrow().")
            from skyband.problems.subscriptions import spark

            for_each, changes = spark.queries_of(for_each)
        _refuse_with_queries(per=per or None, error=error, expect=expect)
        asked = TopKForEach(
            queries=for_each,
            k=k,
            by=by,
            window=window,
            key=key,
            size=size,
            every=every,
            where=where,
            ascending=ascending,
            emit=emit,
            lateness=lateness,
            backfill=backfill,
            algorithm=algorithm,
            max_jump=max_jump,
        )
        if is_spark(data):
            return problem_of(asked).run_on_spark(data, asked, changes)
        return subscriptions.top_k(data, asked)
    if key is not None or size is not None or every or where or backfill or isinstance(k, str):
        raise InvalidQuery(
            "key=, size=, every=, where=, backfill= and k as a column are about queries: give them, for_each=queries."
        )
    column = None
    if on_spark := is_spark(data):
        from skyband.problems.rows import spark as rows_on_spark

        column, by = rows_on_spark.as_column(by)
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
        max_jump=max_jump,
    )
    return problem_of(query).run_on_spark(data, query, column) if on_spark else objects.top_k(data, query)


@overload
def top_k_pairs(
    data: Frame,
    *,
    k: int,
    by: str | Callable[..., Any],
    window: Window,
    ascending: bool = False,
    same: str | Sequence[str] = (),
    different: str | Sequence[str] = (),
    where: str | None = None,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
) -> Frame: ...


@overload
def top_k_pairs(
    data: Stream,
    *,
    k: int,
    by: str | Callable[..., Any],
    window: Window,
    ascending: bool = False,
    same: str | Sequence[str] = (),
    different: str | Sequence[str] = (),
    where: str | None = None,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
) -> pa.RecordBatchReader: ...


@overload
def top_k_pairs(
    data: Rows,
    *,
    k: int,
    by: str | Callable[..., Any],
    window: Window,
    ascending: bool = False,
    same: str | Sequence[str] = (),
    different: str | Sequence[str] = (),
    where: str | None = None,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
) -> pa.Table: ...


def top_k_pairs(
    data: Any,
    *,
    k: int,
    by: str | Callable[..., Any],
    window: Window,
    ascending: bool = False,
    same: str | Sequence[str] = (),
    different: str | Sequence[str] = (),
    where: str | None = None,
    emit: Emit | None = None,
    lateness: Span | None = None,
    algorithm: str | None = None,
) -> Any:
    """The k best pairs of rows of a window, as it slides over `data`.

    `data` is as for `top_k`; the other arguments are those of `TopKPairs`.

    Columns of the answer: `window_start, window_end, rank, score, a_<column>…, b_<column>…`, where a is the earlier
    row; with emit="changes" `at, change, rank, score, …`; with emit="entries" `at, rank, score, …`.
    """
    query = TopKPairs(
        k=k,
        by=by,
        window=window,
        ascending=ascending,
        same=same,
        different=different,
        where=where,
        emit=emit,
        lateness=lateness,
        algorithm=algorithm,
    )
    if is_spark(data):
        return problem_of(query).run_on_spark(data, query)
    return pairs.top_k_pairs(data, query)


@overload
def top_k_across(
    data: Frame | Mapping[str, Frame],
    *,
    k: int,
    id: str,
    value: str,
    window: Window,
    streams: Sequence[str] | None = None,
    stream: str | None = None,
    combine: str | Mapping[str, float] = "sum",
    bounds: Bounds | Mapping[str, Bounds] = (0.0, 1.0),
    repeat: Repeat | None = None,
    max_repeats: int | None = None,
    clip: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    idle_after: Span | None = None,
    max_jump: Span | None = None,
    recall: float | None = None,
    algorithm: str | None = None,
) -> Frame: ...


@overload
def top_k_across(
    data: Stream | Mapping[str, Stream],
    *,
    k: int,
    id: str,
    value: str,
    window: Window,
    streams: Sequence[str] | None = None,
    stream: str | None = None,
    combine: str | Mapping[str, float] = "sum",
    bounds: Bounds | Mapping[str, Bounds] = (0.0, 1.0),
    repeat: Repeat | None = None,
    max_repeats: int | None = None,
    clip: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    idle_after: Span | None = None,
    max_jump: Span | None = None,
    recall: float | None = None,
    algorithm: str | None = None,
) -> pa.RecordBatchReader: ...


@overload
def top_k_across(
    data: Rows | Mapping[str, Rows],
    *,
    k: int,
    id: str,
    value: str,
    window: Window,
    streams: Sequence[str] | None = None,
    stream: str | None = None,
    combine: str | Mapping[str, float] = "sum",
    bounds: Bounds | Mapping[str, Bounds] = (0.0, 1.0),
    repeat: Repeat | None = None,
    max_repeats: int | None = None,
    clip: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    idle_after: Span | None = None,
    max_jump: Span | None = None,
    recall: float | None = None,
    algorithm: str | None = None,
) -> pa.Table: ...


def top_k_across(
    data: Any,
    *,
    k: int,
    id: str,
    value: str,
    window: Window,
    streams: Sequence[str] | None = None,
    stream: str | None = None,
    combine: str | Mapping[str, float] = "sum",
    bounds: Bounds | Mapping[str, Bounds] = (0.0, 1.0),
    repeat: Repeat | None = None,
    max_repeats: int | None = None,
    clip: bool = False,
    emit: Emit | None = None,
    lateness: Span | None = None,
    idle_after: Span | None = None,
    max_jump: Span | None = None,
    recall: float | None = None,
    algorithm: str | None = None,
) -> Any:
    """The k best objects of a window, each scored by what several streams say of it, each at its own time.

    `data` is a mapping of the streams' names to their rows (whole tables, which are put in order by the window's
    column), or one stream as `top_k` takes it, in which the column `stream` names the source of each row. The other
    arguments are those of `TopKAcross`.

    Columns of the answer: `window_start, window_end, rank, score, <id>, <a column for each stream>`, in which null says
    that the object has no value there; with emit="changes" `at, change, rank, score, <id>, …`; with `recall`, a column
    `recall` at the end.
    """
    if isinstance(data, Mapping):
        if stream is not None:
            raise InvalidInput(
                "A mapping names the streams already: leave out stream=, or give one stream with that column."
            )
        streams = tuple(data) if streams is None else streams
        if set(streams) != set(data):
            raise InvalidInput(f"The streams are {', '.join(streams)}, but rows are given for {', '.join(data)}.")
    query = TopKAcross(
        k=k,
        id=id,
        value=value,
        window=window,
        streams=streams,
        stream=stream,
        combine=combine,
        bounds=bounds,
        repeat=repeat,
        max_repeats=max_repeats,
        clip=clip,
        emit=emit,
        lateness=lateness,
        idle_after=idle_after,
        max_jump=max_jump,
        recall=recall,
        algorithm=algorithm,
    )
    if is_spark(next(iter(data.values()), None) if isinstance(data, Mapping) else data):
        return problem_of(query).run_on_spark(data, query)
    return across.top_k_across(data, query)


@overload
def join_aggregate(
    data: Frame | Mapping[str, Frame],
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
) -> Frame: ...


@overload
def join_aggregate(
    data: Stream | Mapping[str, Stream],
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
) -> pa.RecordBatchReader: ...


@overload
def join_aggregate(
    data: Rows | Mapping[str, Rows],
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
) -> pa.Table: ...


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
    if isinstance(data, Mapping) and any(is_spark(each) for each in data.values()):
        return problem_of(query).run_on_spark(data, query)
    return joins.join_aggregate(data, query)


def _refuse_with_queries(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidQuery(f"{name}={value!r} cannot go with for_each=: every query has a ranking of its own.")
