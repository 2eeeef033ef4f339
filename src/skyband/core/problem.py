"""A problem: all that is different between two kinds of query, for planning, EXPLAIN, SQL, pipelines and engines.

A problem is a package `skyband.problems.<name>` whose `problem.py` has `PROBLEM`, an instance of `Problem`. Whoever has
a query asks `registry.problem_of(query)`, and then knows nothing else of its kind:

    problem_of(query).start(table, query).answer()     # in this process
    problem_of(query).run_on_spark(df, query)          # the same on Spark

How it reads a statement is in its `sql.py`; how it runs on Spark is in its `spark.py`, the only file of it that imports
pyspark and that is therefore imported when it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import pyarrow as pa

from skyband.core.codec import Codec
from skyband.core.distribution import Distribution
from skyband.core.plan import Draft, Plan, Step
from skyband.core.session import Session
from skyband.expressions import Score

if TYPE_CHECKING:
    from skyband.dialect.query_spec import QuerySpec
    from skyband.dialect.statement import Statement

Q = TypeVar("Q")  # the problem's query class


class Running(Protocol):
    """A query that runs over its input in this process."""

    @property
    def session(self) -> Any: ...

    @property
    def answers(self) -> Iterator[pa.Table]:
        """A table for each time that rows are pushed."""
        ...

    @property
    def is_whole(self) -> bool:
        """Is the input a table, and no stream?"""
        ...

    @property
    def like(self) -> Any:
        """The kind of what was asked of: pandas, polars, Arrow."""
        ...

    def collected(self) -> pa.Table | pa.RecordBatchReader:
        """All answers: a table for a table, a reader for a stream."""
        ...

    def answer(self) -> Any:
        """All answers, in the kind of what was asked of."""
        ...


class Problem(ABC, Generic[Q]):
    """One kind of question."""

    name: ClassVar[str]  # of its package
    query: ClassVar[type[Any]]  # every query of this kind is one
    chooses: ClassVar[str] = "algorithm"  # what EXPLAIN calls the thing that is chosen
    has_one_window: ClassVar[bool] = False  # for all its inputs: see `problems.one_window`
    takes_bounds: ClassVar[bool] = False  # does WITH BOUNDS mean something to its statements?
    takes_part_of_answer: ClassVar[bool] = False  # can its statements choose lines and columns of the answer?

    # -- EXPLAIN ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def title(self, query: Q) -> str:
        """The first line: what the query asks for."""

    @abstractmethod
    def summary(self, query: Q) -> str:
        """Which problem it is, in a few words."""

    @abstractmethod
    def windows(self, query: Q) -> tuple[Step, ...]:
        """The windows and their panes, a step each."""

    @abstractmethod
    def holds(self, query: Q, plan: Plan, draft: Draft) -> str:
        """What the plan is expected to hold, in words."""

    def costs_if(self, query: Q) -> str:
        """The condition under which a row costs what the plan says, in words; "": there is none."""
        return ""

    # -- planning --------------------------------------------------------------------------------------------------

    @abstractmethod
    def choose(self, query: Q, draft: Draft) -> Plan:
        """The plan that a session of this query runs from, as far as it is known without columns."""

    def refuses_spark(self, query: Q) -> str | None:
        """What a query lacks to run on Spark, or None."""
        return None

    @abstractmethod
    def distribution(self, query: Q, schemas: Mapping[str, pa.Schema] | None = None) -> Distribution:
        """How it is distributed on Spark; `schemas` of its inputs, by name, if they are known."""

    # -- answers ---------------------------------------------------------------------------------------------------

    def groups(self, query: Q) -> tuple[str, ...]:
        """The columns of the answer that have a ranking for each of their values."""
        return ()

    def key(self, query: Q) -> tuple[str, ...]:
        """The columns that tell apart the rows of what windows show; some of them may not be there."""
        return "window_end", *self.groups(query), "rank"

    def size(self, query: Any) -> int | timedelta | None:
        """How long its windows are; None: they go back to the start, or are of different sizes."""
        size: int | timedelta | None = query.window.size
        return size

    def row_score(self, query: Q, schema: Any) -> Score | None:
        """What a row is worth by itself; None: something else than single rows is ranked."""
        return None

    # -- in this process -------------------------------------------------------------------------------------------

    session: ClassVar[type[Session]] = Session  # with what users may do only to queries of this kind

    @abstractmethod
    def codec(self, query: Q, schema: Any) -> Codec[Any, Any]:
        """The query bound to rows of `schema`; of several inputs, schemas by name."""

    def open(self, query: Q, schema: Any, state: bytes | None = None) -> Any:
        """The session of a query over rows of `schema`, or one that goes on from a snapshot."""
        return self.session(self.codec(query, schema), state)

    @abstractmethod
    def start(self, data: Any, query: Q) -> Running:
        """The query over `data`: rows of whatever kind, or, of several inputs, those of each by its name."""

    def alike(self, query: Q, columns: Sequence[str]) -> Hashable | None:
        """What queries over rows with these columns have in common that one state can answer together; None: this one
        is answered alone."""
        return None

    def start_together(self, data: Any, queries: Sequence[Q]) -> Sequence[Running]:
        """Queries that are alike, from one state."""
        raise AssertionError(f"no two queries of {self.name} are alike")

    # -- on Spark --------------------------------------------------------------------------------------------------

    @abstractmethod
    def run_on_spark(self, data: Any, query: Q, given: Any = None) -> Any:
        """The answers as a DataFrame, over a DataFrame or, of several inputs, those of each by its name.

        `given` is what only Spark has of the query: a score that is a Column, or a DataFrame of queries.
        """

    def sieve_on_spark(self, data: Any, query: Q) -> str | None:
        """Where rows of the DataFrame that cannot be shown are ruled out, in words; None: there is nothing to say."""
        return None

    def clock_column(self, query: Q) -> str | None:
        """The column whose watermark closes the windows of `query`; "" if none does; None: it cannot share a pass."""
        return None

    def projection_on_spark(self, called: str, data: Mapping[str, Any], query: Q) -> Any:
        """The query `called` so as a `Part` of a pass that it shares with others, over one stream and tables beside it,
        by the names that the query gives them."""
        raise AssertionError(f"a query of {self.name} shares no pass")

    # -- SQL -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def matches(self, statement: Statement) -> bool:
        """Does the statement ask a question of this kind? No two problems say so of one statement."""

    @abstractmethod
    def ask(self, statement: Statement, schemas: Mapping[str, pa.Schema]) -> QuerySpec:
        """The query that the statement asks of inputs with these columns, by alias."""
