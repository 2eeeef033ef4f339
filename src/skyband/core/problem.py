"""The interface of a problem: everything that planning, EXPLAIN, SQL, pipelines and engines ask of a kind of query.

A problem is a package `skyband.problems.<name>` whose `problem.py` has `PROBLEM`, an instance of `Problem`. Other code
finds it with `registry.problem_of(query)`, and then works with any kind of query in the same way:

    problem_of(query).start(table, query).answer()     # in this process
    problem_of(query).run_on_spark(df, query)          # the same on Spark

Its `sql.py` reads statements. Its `spark.py` runs queries on Spark; only this file imports pyspark, so `problem.py`
imports it when a query needs it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.distribution import Distribution
from skyband.core.encoding.inputs import COUNTS, Like
from skyband.core.plan import Draft, Plan, Step
from skyband.core.session import Session
from skyband.errors import InvalidQuery
from skyband.windows import Span

if TYPE_CHECKING:
    from skyband.core.picture import Picture
    from skyband.dialect.query_spec import QuerySpec
    from skyband.dialect.statement import Statement

Q = TypeVar("Q")  # the problem's query class


_COUNTED: Final = ("rows_in", "rows_used", "rows_late", "rows_null_time", "rows_jumped", "rows_unranked")


class Running(NamedTuple):
    """A query that runs over its input in this process."""

    session: Any
    answers: Iterator[pa.Table]  # one table for each batch of rows that is pushed
    is_whole: bool  # is the input a table rather than a stream?
    like: Like  # the type of the input, which the answer will have too: pandas, polars or Arrow

    def collected(self) -> pa.Table | pa.RecordBatchReader:
        """Return all answers: as a table if the input is a table, as a reader if it is a stream.

        The metadata of a table says what became of the rows. That of a reader has to be known before its rows are.
        """
        batches = (batch for answer in self.answers for batch in answer.to_batches())
        if not self.is_whole:
            return pa.RecordBatchReader.from_batches(self.session.output_schema, batches)
        table = pa.Table.from_batches(batches, self.session.output_schema)
        stats = self.session.stats()
        return table.replace_schema_metadata({COUNTS: json.dumps({name: getattr(stats, name) for name in _COUNTED})})

    def answer(self) -> Any:
        """Return all answers in the type of the input."""
        return self.like.give(self.collected())


class Problem(ABC, Generic[Q]):
    """One kind of question."""

    name: ClassVar[str]  # the name of its package
    query: ClassVar[type[Any]]  # the class of its queries
    chooses: ClassVar[str] = "algorithm"  # EXPLAIN's word for what the planner chooses
    has_one_window: ClassVar[bool] = False  # all inputs share one window: see `problems.one_window`
    takes_bounds: ClassVar[bool] = False  # do its statements take WITH BOUNDS?
    takes_partners: ClassVar[bool] = False  # do its statements take LEFT, SEMI and ANTI JOIN of windows?
    takes_part_of_answer: ClassVar[bool] = False  # can its statements choose rows and columns of the answer?

    # -- EXPLAIN ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def title(self, query: Q) -> str:
        """Say what the query asks for: the first line of EXPLAIN."""

    @abstractmethod
    def summary(self, query: Q) -> str:
        """Name the problem in a few words."""

    @abstractmethod
    def windows(self, query: Q) -> tuple[Step, ...]:
        """Describe each window and its panes as a step of EXPLAIN."""

    @abstractmethod
    def holds(self, query: Q, plan: Plan, draft: Draft) -> str:
        """Say how much state the plan is expected to hold."""

    def costs_if(self, query: Q) -> str:
        """Say under which condition the plan's cost of a row holds; "" if it always does."""
        return ""

    # -- planning --------------------------------------------------------------------------------------------------

    @abstractmethod
    def choose(self, query: Q, draft: Draft) -> Plan:
        """Choose the plan that a session of this query will run. The draft may not know the columns yet."""

    def refuses_spark(self, query: Q) -> str | None:
        """Say why the query cannot run on Spark; None if it can."""
        return None

    @abstractmethod
    def distribution(self, query: Q, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        """Decide how Spark distributes the query. `schemas` are those of its inputs by name, if they are known."""

    # -- answers ---------------------------------------------------------------------------------------------------

    def groups(self, query: Q) -> tuple[str, ...]:
        """The columns of the answer by whose values the rankings are grouped."""
        return ()

    def key(self, query: Q) -> tuple[str, ...]:
        """The columns that identify a row among the answers of all windows. An answer may lack some of them."""
        return "window_end", *self.groups(query), "rank"

    def size(self, query: Any) -> int | timedelta | None:
        """The length of its windows; None if they begin with the stream or differ in length."""
        size: int | timedelta | None = query.window.size
        return size

    def said_of_nothing(self, query: Q, answer: pa.Schema) -> pa.Table | None:
        """The answer about a table without rows, where SQL gives one: an aggregate of all rows has a value, or null.
        None: there is no line."""
        return None

    def unfiltered(self, query: Q) -> tuple[Q, str | None]:
        """The query without the condition on such a line, and that condition: both lines have to meet it."""
        return query, None

    # -- to look at ------------------------------------------------------------------------------------------------

    def picture(self, session: Any) -> Picture | None:
        """What a person sees of a session of this kind beside its answer; None: there is nothing to draw."""
        return None

    # -- in this process -------------------------------------------------------------------------------------------

    session: ClassVar[type[Session]] = Session  # a subclass adds what users can do only with queries of this kind

    @abstractmethod
    def codec(self, query: Q, schema: Any) -> Codec[Any, Any]:
        """Bind the query to rows of `schema`, or with several inputs to a mapping from their names to schemas."""

    def open(self, query: Q, schema: Any, state: bytes | None = None) -> Any:
        """Open a session over rows of `schema`. With `state`, it continues from that snapshot."""
        return self.session(self.codec(query, schema), state)

    @abstractmethod
    def start(self, data: Any, query: Q) -> Running:
        """Run the query over `data`: rows of any type, or with several inputs a mapping from their names to rows."""

    def alike(self, query: Q, columns: Sequence[str]) -> Hashable | None:
        """A key that is equal for all queries over these columns that one operator can answer together; None if this
        query needs an operator of its own."""
        return None

    def start_together(self, data: Any, queries: Sequence[Q]) -> Sequence[Running]:
        """Run queries with equal keys from one operator."""
        raise AssertionError(f"no two queries of {self.name} are alike")

    # -- on Spark --------------------------------------------------------------------------------------------------

    @abstractmethod
    def run_on_spark(self, data: Any, query: Q, given: Any = None) -> Any:
        """Return the answers as a DataFrame. `data` is a DataFrame, or a mapping from the inputs' names to DataFrames.

        `given` is a part of the query that only Spark has: a Column as the score, or a DataFrame of queries.
        """

    def bucket_on_spark(self, query: Q, schema: Any, snapshot: bytes, *, external_clock: bool) -> Any:
        """The session of a bucket, from its snapshot. `query` and `schema` are what a bucket is asked."""
        raise InvalidQuery(f"The state of this kind of query ({self.summary(query)}) cannot be read.")

    def answer_on_spark(self, query: Q, sessions: Sequence[Any], k: int | None, size: Span | None) -> pa.Table:
        """The answer right now, from the sessions of all buckets."""
        raise InvalidQuery(f"The state of this kind of query ({self.summary(query)}) cannot be asked for an answer.")

    def sieve_on_spark(self, data: Any, query: Q) -> str | None:
        """Say where Spark drops rows that no answer can show; None if there is nothing to say."""
        return None

    def clock_column(self, query: Q) -> str | None:
        """The column whose watermark closes the query's windows; "" if no watermark does; None if the query cannot
        share a pass over the stream with other queries."""
        return None

    def projection_on_spark(self, called: str, data: Mapping[str, Any], query: Q) -> Any:
        """The query, under the name `called`, as an `InputProjection` of a pass that it shares with other queries.

        `data` has the stream and the tables beside it, by the names that the query gives them.
        """
        raise AssertionError(f"a query of {self.name} shares no pass")

    # -- SQL -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def matches(self, statement: Statement) -> bool:
        """Does the statement ask a question of this kind? At most one problem may claim a statement."""

    @abstractmethod
    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        """Turn the statement into a query. `schemas` are those of its inputs, by alias."""
