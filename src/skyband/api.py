"""The functions that users call. Each builds a frozen query, and runs it on the engine that fits its data.

The queries declare the options with their checks, defaults and texts. Two functions take more than the options of one
query: `TopKOptions` and `JoinOptions` describe these to type checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, Required, TypeAlias, TypedDict, TypeVar, overload

import pyarrow as pa

from skyband.core.emit import Emit
from skyband.core.query import Query, QueryOption, given_types, options_of, signature_of, with_parameters
from skyband.core.registry import problem_of
from skyband.engines import is_spark, outside_table_functions
from skyband.errors import InvalidInput, InvalidQuery
from skyband.problems.across.query import TopKAcross
from skyband.problems.joins.query import ONE_INPUT, Inputs, JoinAggregate, StreamInput
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import Order, Ties, TopK
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import Span, Window

P = ParamSpec("P")

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds
    from pyspark.sql import Column, DataFrame

    Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame, pd.DataFrame, DataFrame)
    Stream: TypeAlias = "pa.RecordBatchReader | ds.Scanner | Iterator[pa.RecordBatch] | Iterator[pa.Table]"
    Rows: TypeAlias = (
        "pa.Table | pa.RecordBatch | ds.Dataset | Sequence[pa.RecordBatch] | Sequence[pa.Table] | HasArrowStream"
    )

    class HasArrowStream(Protocol):
        """Anything with the Arrow C stream interface."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    class OfRows(Protocol[P]):
        """A function over rows: a frame gives a frame of the same type, a stream a reader, other rows a Table."""

        @overload
        def __call__(self, data: Frame, *args: P.args, **options: P.kwargs) -> Frame: ...
        @overload
        def __call__(self, data: Stream, *args: P.args, **options: P.kwargs) -> pa.RecordBatchReader: ...
        @overload
        def __call__(self, data: Rows, *args: P.args, **options: P.kwargs) -> pa.Table: ...

    class OfInputs(Protocol[P]):
        """The same for one input, or for several inputs by name."""

        @overload
        def __call__(self, data: Frame | Mapping[str, Frame], *args: P.args, **options: P.kwargs) -> Frame: ...
        @overload
        def __call__(
            self, data: Stream | Mapping[str, Stream], *args: P.args, **options: P.kwargs
        ) -> pa.RecordBatchReader: ...
        @overload
        def __call__(self, data: Rows | Mapping[str, Rows], *args: P.args, **options: P.kwargs) -> pa.Table: ...


class TopKOptions(TypedDict, total=False):
    """The options of `top_k`: those of `TopK` and, with `for_each`, those of `TopKForEach`."""

    k: Required[int | str]
    by: Required[str | Sequence[str] | Column | Callable[..., Any]]
    window: Required[Window]
    per: str | Sequence[str]
    ascending: bool
    emit: Emit | None
    lateness: Span | None
    algorithm: str | None
    error: float | None
    expect: Order | None
    max_jump: Span | None
    ties: Ties | None
    forget_after: Span | None
    for_each: Any
    key: str | Sequence[str] | None
    size: str | None
    every: str | None
    where: str | None
    backfill: bool


class JoinOptions(TypedDict, total=False):
    """The options of `join_aggregate`: those of `JoinAggregate`, or a window instead of `inputs`."""

    inputs: Inputs | None
    aggregates: Required[Mapping[str, str]]
    on: str | Sequence[str]
    group_by: str | Sequence[str]
    having: str | None
    order_by: str | Sequence[str]
    k: int | None
    every: Span | None
    emit: Emit | None
    lateness: Span | None
    how: Mapping[str, str]
    plan: str | None
    window: Window | None
    where: str | None


_ONE_RANKING: Final = {each.name: each for each in options_of(TopK) if each.name != "ad_hoc"}
_FOR_EACH: Final = {each.name: each for each in options_of(TopKForEach)}
_QUERIES: Final = replace(
    _FOR_EACH.pop("queries"),
    name="for_each",
    default=None,
    doc="A table of queries, one per row. `by` and other expressions read its columns as `q.name`. The answer has a "
    "ranking for each query and begins with the queries' key columns; the options are those of `TopKForEach`. On Spark "
    "the queries may be a DataFrame; a streaming one adds and removes queries by its column `_change_type`.",
)
_ONLY_FOR_EACH: Final = {name: each for name, each in _FOR_EACH.items() if name not in _ONE_RANKING}
_ONLY_ONE_RANKING: Final = {name: each for name, each in _ONE_RANKING.items() if name not in _FOR_EACH}
_TOP_K: Final = (*_ONE_RANKING.values(), _QUERIES, *_ONLY_FOR_EACH.values())
_JOIN: Final = (
    *(replace(each, default=None) if each.name == "inputs" else each for each in options_of(JoinAggregate)),
    QueryOption("window", "Instead of `inputs`: the window over a single input.", default=None),
    QueryOption("where", "With `window`: only rows that meet this condition count.", default=None),
)
_TYPES: Final[Mapping[object, Mapping[str, Any]]] = {
    TopKOptions: {**given_types(TopK), **given_types(TopKForEach), "by": given_types(TopK)["by"], "for_each": Any},
    JoinOptions: {**given_types(JoinAggregate), "inputs": Inputs | None, "window": Window | None, "where": str | None},
}


def _of_rows(takes: Callable[P, Any], *options: QueryOption) -> Callable[[Callable[..., Any]], OfRows[P]]:
    """Give a function over rows a signature and docstring with its options: the given ones, or those of a query."""
    return lambda function: _shown(function, takes, options)


def _of_inputs(takes: Callable[P, Any], *options: QueryOption) -> Callable[[Callable[..., Any]], OfInputs[P]]:
    """The same for a function that also takes several inputs by name."""
    return lambda function: _shown(function, takes, options)


# The errors that every function raises: the first lines of its section Raises.
_RAISES: Final = """Raises
------
InvalidQuery
    An option is out of range, or two options contradict each other. Skyband has not read any row.
UnknownColumn
    The query names a column that the rows do not have.
"""


_DATA: Final = QueryOption("data", "The rows, as described above.", default=None)


def _shown(function: Any, takes: Any, options: Iterable[QueryOption]) -> Any:
    options = options or options_of(takes)
    doc = cleandoc(function.__doc__).replace("Raises\n------\n", _RAISES)
    function.__signature__ = signature_of(options, _TYPES.get(takes) or given_types(takes), first="data")
    function.__doc__ = with_parameters(doc, (_DATA, *options))
    return function


@_of_rows(TopKOptions, *_TOP_K)
def top_k(data: Any, **options: Any) -> Any:
    """Rank the k best rows of a window, as it slides over `data`.

    The type of the answer follows the type of `data`:

    - a pandas or polars DataFrame, a polars LazyFrame or a Spark DataFrame, batch or streaming, gives the same type;
    - a pyarrow Table, RecordBatch or Dataset, a list of batches or anything else with the Arrow C stream interface
      gives a pyarrow Table;
    - a stream (a RecordBatchReader, a Scanner, an iterator of record batches) gives a RecordBatchReader.

    Skyband sorts data that is not a stream by the window's column first, so no row is late. If rows of a stream are
    late, Skyband drops them and warns with `LateRows`.

    The answer has the columns `window_start, window_end, <per>, rank, score, <the other columns>`; with emit="changes"
    `at, change, <per>, rank, score, …`; with emit="entries" `at, <per>, rank, score, …`.

    Returns
    -------
    The ranked rows, as the same type of data.

    Raises
    ------
    InvalidExpression
        A score or condition cannot be read, or does not give numbers.
    InvalidInput
        The rows do not fit the query.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> trades = pa.table({"minute": [0, 0, 1, 3], "symbol": ["OAK", "ELM", "OAK", "FIR"], "price": [10, 20, 30, 5]})
    >>> best = sb.top_k(trades, k=1, by="price", window=sb.tumbling(2, on="minute"))
    >>> best.select(["window_end", "rank", "score", "symbol"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'window_end': 2, 'rank': 1, 'score': 30, 'symbol': 'OAK'},
     {'window_end': 4, 'rank': 1, 'score': 5, 'symbol': 'FIR'}]

    A ranking for each symbol, and one for each row of a table of queries:

    >>> best = sb.top_k(trades, k=1, by="price", per="symbol", window=sb.tumbling(4, on="minute"))
    >>> best["symbol"].to_pylist(), best["score"].to_pylist()
    (['OAK', 'ELM', 'FIR'], [30, 20, 5])
    >>> wanted = pa.table({"id": ["ann", "bob"], "price": [9, 22]})
    >>> nearest = sb.top_k(
    ...     trades, for_each=wanted, k=1, by="abs(price - q.price)", ascending=True, window=sb.tumbling(4, on="minute")
    ... )
    >>> nearest["id"].to_pylist(), nearest["symbol"].to_pylist()
    (['ann', 'bob'], ['OAK', 'ELM'])
    """
    if "ad_hoc" in options:
        raise TypeError("top_k() has no option ad_hoc: only a session answers at any time. Open TopK(ad_hoc=True, …).")
    queries = options.pop("for_each", None)
    return _one_ranking(data, options) if queries is None else _ranking_for_each(data, queries, options)


def _one_ranking(data: Any, options: dict[str, Any]) -> Any:
    _drop(options, _ONLY_FOR_EACH, "cannot go without for_each=: it describes the queries. Pass them: for_each=queries")
    if isinstance(options.get("k"), str):
        raise InvalidQuery(f"k={options['k']!r} names a column of the queries. Pass them: for_each=queries.")
    column = None
    if is_spark(data):
        from skyband.problems.rows.spark import as_column

        column, options["by"] = as_column(options.get("by"))
    return _answer(data, TopK(**options), column)


def _ranking_for_each(data: Any, queries: Any, options: dict[str, Any]) -> Any:
    _drop(options, _ONLY_ONE_RANKING, "cannot go with for_each=: every query has its own ranking")
    changes = None
    if is_spark(queries):
        if not is_spark(data):
            raise InvalidQuery("The queries are a Spark DataFrame, but the rows are not: pass queries.toArrow().")
        from skyband.problems.subscriptions.spark import queries_of

        queries, changes = queries_of(queries)
    return _answer(data, TopKForEach(queries=queries, **options), changes)


def _drop(options: dict[str, Any], others: Mapping[str, QueryOption], why: str) -> None:
    """Take out the options of the other kind of query; raise if one of these is set."""
    for name, other in others.items():
        value = options.pop(name, other.default)
        if value is not None and value != other.default and value != []:
            raise InvalidQuery(f"{name}={value!r} {why}.")


@_of_rows(TopKPairs)
def top_k_pairs(data: Any, **options: Any) -> Any:
    """Rank the k best pairs of rows of a window, as it slides over `data`.

    The type of the answer follows the type of `data`, as in `top_k`.

    The answer has the columns `window_start, window_end, <per…>, rank, score, a_<column>…, b_<column>…`, where a is the
    earlier row; with emit="changes" `at, change, <per…>, rank, …`; with emit="entries" `at, <per…>, rank, …`.

    Returns
    -------
    The ranked pairs, as the same type of data.

    Raises
    ------
    InvalidExpression
        A score or condition cannot be read, or does not give numbers.
    InvalidInput
        The rows do not fit the query.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> readings = pa.table({"mote": [1, 2, 1, 2], "temp": [20.0, 21.5, 24.0, 23.5]})
    >>> nearest = sb.top_k_pairs(
    ...     readings, k=1, by="abs(a.temp - b.temp)", ascending=True, window=sb.sliding(3, every=1), different="mote"
    ... )
    >>> nearest.select(["window_end", "score", "a_temp", "b_temp"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'window_end': 2, 'score': 1.5, 'a_temp': 20.0, 'b_temp': 21.5},
     {'window_end': 3, 'score': 1.5, 'a_temp': 20.0, 'b_temp': 21.5},
     {'window_end': 4, 'score': 0.5, 'a_temp': 24.0, 'b_temp': 23.5}]
    """
    return _answer(data, TopKPairs(**options))


@_of_inputs(TopKAcross)
def top_k_across(data: Any, **options: Any) -> Any:
    """Rank the k best objects of a window, whose scores combine values from several streams.

    The streams need not be in step. `data` is a mapping from the streams' names to their rows, or one input as in
    `top_k`, whose column `stream` names the stream of each row. The answer has the same type. Skyband sorts whole
    tables by the window's column first.

    The answer has the columns `window_start, window_end, rank, score, <id>, <a column for each stream>`, where null
    means that the stream has no value for the object; with emit="changes" `at, change, rank, score, <id>, …`; with
    `recall` a column `recall` at the end.

    Returns
    -------
    The ranked objects, as the same type of data.

    Raises
    ------
    InvalidInput
        A value is out of bounds, or the mapping does not match `streams`.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> r1 = pa.table({"t": [1, 2], "flow": ["x", "y"], "size": [5.0, 4.0]})
    >>> r2 = pa.table({"t": [3], "flow": ["y"], "size": [3.0]})
    >>> best = sb.top_k_across(
    ...     {"r1": r1, "r2": r2}, k=2, id="flow", value="size", window=sb.tumbling(10, on="t"), bounds=(0, 9)
    ... )
    >>> best.select(["rank", "score", "flow", "r1", "r2"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'rank': 1, 'score': 7.0, 'flow': 'y', 'r1': 4.0, 'r2': 3.0},
     {'rank': 2, 'score': 5.0, 'flow': 'x', 'r1': 5.0, 'r2': None}]
    """
    if isinstance(data, Mapping):
        if options.get("stream") is not None:
            raise InvalidInput(
                "A mapping already names the streams. Leave out stream=, or pass one stream that has this column."
            )
        if options.get("streams") is None:
            options["streams"] = tuple(data)
        if set(options["streams"]) != set(data):
            named = ", ".join(options["streams"])
            raise InvalidInput(f"The streams are {named}, but rows are given for {', '.join(data)}.")
    return _answer(data, TopKAcross(**options))


@_of_inputs(JoinOptions, *_JOIN)
def join_aggregate(data: Any, **options: Any) -> Any:
    """Aggregate by group over a join of windows, as they slide; or, without a join, over one window.

    For a join, `data` is a mapping from the inputs' names to their rows, each as in `top_k`. For one window, `data` is
    the rows, and you pass `window` and `where` instead of `inputs`. The answer has the same type as the rows.

    The answer has the columns `window_end, <group_by>, <aggregates>`, and with `order_by` a `rank` after `window_end`;
    with emit="changes" `at, change, <group_by>, <aggregates>`, where `change` is upsert or delete.

    Returns
    -------
    The groups of each window, or their changes, as the same type of data.

    Raises
    ------
    InvalidExpression
        A score or condition cannot be read, or does not give numbers.
    AggregateOverflow
        A sum of whole numbers exceeds 64 bits.
    TooManyGroups
        There are more than 20 million groups at once.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sales = pa.table({"t": [1, 2, 3, 11], "item": ["pen", "ink", "pen", "ink"]})
    >>> counts = {"sold": "COUNT(*)"}
    >>> best = sb.join_aggregate(
    ...     sales, window=sb.tumbling(10, on="t"), group_by="item", aggregates=counts, order_by="sold", k=1
    ... )
    >>> best.to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'window_end': 10, 'rank': 1, 'item': 'pen', 'sold': 2},
     {'window_end': 20, 'rank': 1, 'item': 'ink', 'sold': 1}]

    A join takes its inputs by name:

    >>> prices = pa.table({"item": ["pen", "ink"], "price": [2, 5]})
    >>> sb.join_aggregate(
    ...     {"sale": sales, "list": prices},
    ...     inputs={"sale": sb.tumbling(10, on="t"), "list": sb.relation()},
    ...     on="sale.item = list.item", aggregates={"turnover": "SUM(list.price)"},
    ... ).to_pylist()
    [{'window_end': 10, 'turnover': 9}, {'window_end': 20, 'turnover': 5}]
    """
    window, where = options.pop("window", None), options.pop("where", None)
    if options.get("inputs") is None:
        if window is None:
            raise InvalidQuery("Pass window= for one input or, for a join, inputs= with a window for each name.")
        options["inputs"], data = {ONE_INPUT: StreamInput(window, where)}, {ONE_INPUT: data}
    elif window is not None or where is not None:
        raise InvalidQuery("With inputs=, each input has its own window and where: stream_input(window, where=…).")
    return _answer(data, JoinAggregate(**options))


@outside_table_functions()
def _answer(data: Any, query: Query, given: Any = None) -> Any:
    """Run a query on the engine of its data. `given` is a part of the query that only Spark has, such as a Column."""
    problem = problem_of(query)
    if any(map(is_spark, data.values() if isinstance(data, Mapping) else (data,))):
        return problem.run_on_spark(data, query, given)
    return problem.start(data, query).answer()
