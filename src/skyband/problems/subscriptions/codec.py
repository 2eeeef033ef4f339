"""Turns rows and queries into the numbers that a score reads, and answers into the table that a user sees."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.codec import Codec
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import AdHoc, Outputs, OutputSchema
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys, fitted, plain_batch, plain_schema, whole_batch
from skyband.core.encoding.scores import Scores, is_wide
from skyband.core.encoding.times import measured_type
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.plan import TOOK_SNAPSHOT, Plan
from skyband.core.registry import find
from skyband.core.snapshots import Part
from skyband.core.validation import Saved
from skyband.errors import InvalidExpression, InvalidInput, InvalidQuery, SkybandError
from skyband.expressions import as_floats, check_exact, subscriptions
from skyband.problems.subscriptions.compared import Compared
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.drivers.thresholds import Thresholds
from skyband.problems.subscriptions.operator import Batch, Queries, SubscriptionOperator
from skyband.problems.subscriptions.planning import plan, score_groups_of, specify
from skyband.problems.subscriptions.query import ADDS, CHANGE, MOST_ROWS, PASSED_OVER, REMOVES, TopKForEach, as_table
from skyband.windows import Span, parse_span, span_ticks

_NO_PARAMETERS = np.empty((0, 0))
KINDS = f"{', '.join(ADDS)}, {', '.join(REMOVES)} or {', '.join(PASSED_OVER)}"


def row_score_type(query: TopKForEach, schema: pa.Schema) -> pa.DataType:
    """The type of the score column: that of the row's column if the score is just a column, else float64."""
    return schema.field(query.by).type if query.by in schema.names else pa.float64()


def kept_schema(query: TopKForEach, schema: pa.Schema) -> pa.Schema:
    """The row columns that answers show. A column that is itself the score is not shown twice."""
    return pa.schema([field for field in schema if field.name != query.by])


def output_of(query: TopKForEach, schema: pa.Schema, emit: str) -> OutputSchema:
    """The output columns of `query` over rows of `schema`: the queries' key columns, then the columns of `top_k`."""
    return OutputSchema.of(
        emit,
        measured_type(query.window.on, schema),
        row_score_type(query, schema),
        keys=[query.queries.schema.field(name) for name in query.key],
        others=list(kept_schema(query, schema)),
    )


class SubscriptionsCodec(Codec[Batch, Answer]):
    """The codec of subscriptions over rows of one schema. It keeps the queries, and what the score reads of them."""

    query: TopKForEach
    holds_window = True
    _operator: SubscriptionOperator
    _rows: RowStore

    def __init__(self, query: TopKForEach, schema: pa.Schema, *, external_clock: bool = False) -> None:
        super().__init__(query, schema, external_clock=external_clock)
        self._queries_schema = plain_schema(query.queries.schema)
        check_keys(query.key, self._queries_schema, "key")
        self._score = score = subscriptions.bind(query.score, query.ascending, self.plain, self._queries_schema)
        self._spec = specify(query, self.plain, scoring_of(score), external_clock=external_clock)
        self.window, self.k, self.max_jump = self._spec.window, MOST_ROWS, query.max_jump
        self.kept = kept_schema(query, self.plain)
        self._given = _given_score(query, self.plain)
        score_type = row_score_type(query, self.plain)
        self._scores = Scores(score_type, query.by, ascending=query.ascending, is_fixed=True)
        self.fingerprint += " by keys" if self._given else ""
        self._outputs = Outputs(str(query.emit), lambda emit: output_of(query, self.plain, emit))
        self.output_schema = self._outputs.emitted.schema
        self._keys_schema = pa.schema([self._queries_schema.field(name) for name in query.key])
        self._keys = GroupCodes(self._keys_schema)
        self.sizes: Ints = np.empty(0, np.int64)  # how far each query looks back, in ticks
        self._compared = Compared()
        self._of_queries = np.empty((len(score.compared_parameters), 0))  # the numbers of their values
        self.refused = 0  # how many changes of queries could not be applied

    def choose(self, saved: str | None) -> Plan:
        if saved is not None:
            return Plan.fixed(saved, TOOK_SNAPSHOT)
        queries = fitted(self.query.queries, self._queries_schema)
        groups = score_groups_of(queries, self._score)
        return plan(self._spec, len(queries), self.query.algorithm, score_groups=groups)

    def open(self, algorithm: str, rows: RowStore | None) -> SubscriptionOperator:
        assert rows is not None, "answers show rows"
        self._operator, self._rows = find(algorithm, "subscriptions").open(self._spec), rows
        return self._operator

    # -- queries come and go -----------------------------------------------------------------------------------------

    @property
    def keys(self) -> pa.Table:
        """The keys of the current queries, in the order in which they were added."""
        return self._keys.keys

    def queries_in(self, table: pa.Table) -> pa.RecordBatch:
        """The query columns of a table with one query per row."""
        return plain_batch(whole_batch(fitted(table, self.query.queries.schema)), self._queries_schema)

    def keys_in(self, keys: Any) -> pa.Table:
        """The keys in a table or, if there is one key column, in a list of its values."""
        names = list(self.query.key)
        if isinstance(keys, (list, tuple)) and len(names) == 1:
            field = self._keys_schema.field(names[0])
            try:
                keys = pa.table({names[0]: pa.array(keys, field.type)})
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise InvalidInput(f"These are not values of the key {names[0]!r} ({field.type}): {error}") from None
        table = as_table(keys)
        if missing := [name for name in names if name not in table.column_names]:
            raise InvalidInput(f"These columns identify a query: {', '.join(names)}; {missing[0]!r} is missing.")
        return table.select(names).cast(self._keys_schema)

    def find(self, queries: pa.Table | pa.RecordBatch) -> Ints:
        """Look queries up by their key columns: their numbers, and -1 for those that do not exist."""
        keys = queries.select(self._keys_schema.names)
        known, before = self._keys.keys, len(self._keys)
        numbers = self._keys.encode(whole_batch(keys) if isinstance(keys, pa.Table) else keys).astype(np.int64)
        if len(self._keys) > before:
            self._keys.load(known)
        numbers[numbers >= before] = -1
        return numbers

    def last_of_each(self, queries: pa.RecordBatch) -> Ints:
        """The last row of each key, as ascending row numbers."""
        codes = GroupCodes(self._keys_schema).encode(queries.select(self._keys_schema.names))
        last = dict(zip(codes.tolist(), range(len(codes)), strict=True))
        return np.array(sorted(last.values()), np.int64)

    def add(self, batch: pa.RecordBatch, numbers: Queries, backfill: bool) -> Answer:
        """Add queries and return their first answers. If it raises a `SkybandError`, nothing has changed."""
        before, known, of_queries = len(self._keys), self._keys.keys, self._of_queries
        try:
            codes = self._keys.encode(batch)
            if len(self._keys) != before + len(codes):
                raise InvalidQuery(
                    f"Two of these queries have the same {', '.join(self.query.key)}, which identifies a query. "
                    "Let more of their columns identify them, or remove the first one before."
                )
            answer = self._operator.add(self._with_parameters(numbers, batch, backfill), backfill=backfill)
        except SkybandError:
            self._keys.load(known)
            self._of_queries = of_queries
            self._compared.keep(of_queries)
            raise
        self.sizes = np.concatenate([self.sizes, numbers.size])
        return answer

    def _with_parameters(self, queries: Queries, batch: pa.RecordBatch, backfill: bool) -> Queries:
        """Add the parameters that the score reads of each query."""
        score, parameters = self._score, []
        for name in score.parameters:
            values = batch.column(name)
            if name in score.compared_parameters:
                numbers, _ = self._compared.of_queries(values)
            else:
                check_exact(values, f"q.{name}")
                numbers = as_floats(values, len(values), name)
            parameters.append(numbers)
        found = np.array(parameters).reshape(len(parameters), batch.num_rows)
        compared = [score.parameters.index(name) for name in score.compared_parameters]
        self._of_queries = np.concatenate([self._of_queries, found[compared]], axis=1)
        if backfill and isinstance(self._operator, Thresholds):  # other operators do not keep rows for backfill
            # Rows that arrived before any query had their value were given the number OTHER: number them again.
            held = self._operator.held()
            rows = self._rows.take(held)
            for name in score.compared_columns:
                numbers = self._compared.of_rows(rows.column(name))
                self._operator.put(score.columns.index(name), held, numbers)
        return queries._replace(parameters=found)

    def remove(self, gone: Ints) -> None:
        """Remove the queries with these numbers."""
        kept = np.setdiff1d(np.arange(len(self._keys)), gone)
        self._operator.compact(kept)
        self._keys.keep(kept)
        self.sizes, self._of_queries = self.sizes[kept], self._of_queries[:, kept]
        self._compared.keep(self._of_queries)

    def forget_rows(self) -> None:
        """Drop the window's rows if there is no query, and new queries see only later rows."""
        if not len(self._keys) and not self.query.backfill and isinstance(self._operator, Thresholds):
            self._operator.forget_rows()
            self._rows.keep(self._operator.held())

    def refusals(self, batch: pa.RecordBatch, kinds: npt.NDArray[Any]) -> dict[int, SkybandError]:
        """The changes that cannot be applied: by their number, the error that says why."""
        refused: dict[int, SkybandError] = {}
        for i, kind in enumerate(kinds):
            if kind not in (*ADDS, *REMOVES, *PASSED_OVER):
                refused[i] = InvalidInput(f"{CHANGE} must be {KINDS}; got {kind!r}.")
        coming = [i for i, kind in enumerate(kinds) if kind in ADDS]
        try:
            self.in_numbers(batch.take(pa.array(coming, pa.int64())))
        except SkybandError:
            for i in coming:
                try:
                    self.in_numbers(batch.slice(i, 1))
                except SkybandError as error:
                    refused[i] = error
        return refused

    def in_numbers(self, batch: pa.RecordBatch) -> Queries:
        """The queries in numbers, still without the parameters of the score. Raises if one of them is invalid."""
        n = batch.num_rows
        k = self.query.k
        ks = _whole(batch, subscriptions.parameter(k, "k"), "k") if isinstance(k, str) else np.full(n, k, np.int64)
        if n and not 1 <= ks.min() <= ks.max() <= MOST_ROWS:
            wrong = ks[(ks < 1) | (ks > MOST_ROWS)][0]
            raise InvalidQuery(f"k must be at least 1, and at most {MOST_ROWS:,} for each subscription; got {wrong:,}.")
        window, asked = self.window, self.query
        sizes, slides = np.full(n, window.size, np.int64), np.full(n, window.every, np.int64)
        if asked.every is not None:
            name = subscriptions.parameter(asked.every, "every")
            slides = self._spans(batch, name, "every")
            if (wrong := np.flatnonzero((slides % window.every != 0) | (slides > window.size))).size:
                raise InvalidQuery(
                    f"every={batch.column(name)[wrong[0]]} must be a multiple of the window's slide, up to its size "
                    f"({asked.window})."
                )
        if asked.size is not None:
            name = subscriptions.parameter(asked.size, "size")
            sizes = self._spans(batch, name, "size")
            if (wrong := np.flatnonzero(sizes > window.size)).size:
                raise InvalidQuery(
                    f"size={batch.column(name)[wrong[0]]} is larger than the window ({asked.window}), the largest for "
                    "all queries."
                )
            if (wrong := np.flatnonzero(sizes < slides)).size:
                raise InvalidQuery(
                    f"size={batch.column(name)[wrong[0]]} is less than the slide ({asked.every or asked.window}): some "
                    "rows would be in no window."
                )
        return Queries(ks, sizes, slides, _NO_PARAMETERS)

    def _spans(self, batch: pa.RecordBatch, name: str, what: str) -> Ints:
        """The window sizes or slides in the column `name`, in ticks."""
        column = batch.column(name)
        if column.null_count:
            raise InvalidQuery(f"{what}=q.{name} must have a value for each query; one is null.")
        if (
            pa.types.is_duration(column.type)
            or pa.types.is_string(column.type)
            or pa.types.is_large_string(column.type)
        ):
            spans: list[Any] = column.to_pylist()
        else:
            spans = _whole(batch, name, what).tolist()
        ticks = {}
        for span in dict.fromkeys(spans):
            given = parse_span(span if isinstance(span, (int, str, timedelta)) else timedelta(seconds=0), what)
            ticks[span] = span_ticks(given, self.query.window.on, self.on_type, what)
        return np.array([ticks[span] for span in spans], np.int64)

    # -- rows come in ------------------------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch, time: Ints, source: Any) -> tuple[pa.RecordBatch, Floats]:
        return batch, self._columns(batch)

    def encode(self, numbers: Floats, batch: pa.RecordBatch, time: Ints, first: int) -> Batch:
        return Batch(numbers, time, first)

    def _columns(self, batch: pa.RecordBatch) -> Floats:
        """The numbers that the score reads of rows, by column."""
        columns = np.empty((len(self._score.columns), batch.num_rows))
        for i, name in enumerate(self._score.columns):
            values = batch.column(name)
            if name in self._score.compared_columns:
                columns[i] = self._compared.of_rows(values)
            elif name == self._given:
                columns[i] = self._scores.near_keys(values)
            else:
                check_exact(values, name)
                columns[i] = as_floats(values, batch.num_rows, name)
        return columns

    def explain(self, error: Exception) -> SkybandError | None:
        if isinstance(error, SkybandError) or not self._spec.scoring.may_raise:
            return None
        return InvalidExpression(
            f"A function that {self._score.text!r} calls failed: {type(error).__name__}: {error}. The session "
            "cannot continue: open the query again with its last snapshot."
        )

    # -- answers go out ----------------------------------------------------------------------------------------------

    def positions(self, answer: Answer) -> Ints:
        return answer.position

    def decode(self, answer: Answer, rows: pa.RecordBatch | None, ad_hoc: AdHoc | None) -> pa.Table:
        assert rows is not None, "answers show rows"
        keys = whole_batch(self._keys.keys).take(pa.array(answer.group)).columns
        score, sizes = self._shown_score(answer.score), self.sizes[answer.group]
        if ad_hoc is not None and ad_hoc.size is not None:
            sizes = np.minimum(sizes, ad_hoc.size)
        return self._outputs.table(answer, rows.columns, score, self.window, ad_hoc, size=sizes, keys=keys)

    def _shown_score(self, score: Floats) -> pa.Array:
        if pa.types.is_decimal(self._scores.type) and self._given is None:  # they were computed with as floats
            return pa.array(-score if self.query.ascending else score).cast(self._scores.type)
        return self._scores.column(score)

    def check_question(self, k: int | None, ticks: int | None, size: Span | None) -> int:
        """Raise unless the question makes sense. A query answers at most its own k rows of at most its own window."""
        if k is not None and k < 1:
            raise InvalidQuery(f"k must be a whole number, at least 1, got {k!r}.")
        if ticks is not None and self.window.endless:
            raise InvalidQuery("A landmark window answers only as a whole: the session keeps few rows of its parts.")
        return MOST_ROWS if k is None else min(k, MOST_ROWS)

    # -- what it remembers -------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """No row is counted as unranked: one query may give a row a score where another gives it none."""
        return {"groups": len(self._keys), "queries_refused": self.refused}

    def state(self) -> Part:
        return Part(
            {
                "compared": self._compared.following,
                "compared_types": len(self._compared.tables()),
                "queries_refused": self.refused,
            },
            {"sizes": self.sizes, "of_queries": self._of_queries},
            {"keys": self._keys.keys, **self._compared.tables()},
        )

    def validate(self, operator: Saved, saved: Part) -> None:
        queries, sizes, of_queries = saved.tables["keys"].num_rows, saved.arrays["sizes"], saved.arrays["of_queries"]
        operator.promise(len(sizes) == queries, f"there are {queries} queries, and {len(sizes)} sizes")
        operator.promise(of_queries.shape == (len(self._of_queries), queries), "'of_queries' is not by query")
        operator.within("sizes", sizes, 1, self.window.size)
        known = next(
            (operator[name].shape[-1] for name in ("queries", "columns", "lists k") if name in operator), queries
        )
        operator.promise(known == queries, f"there are {queries} queries, and the algorithm knows {known}")

    def restore(self, saved: Part) -> None:
        self.sizes, self._of_queries = saved.arrays["sizes"], saved.arrays["of_queries"]
        self._keys.load(saved.tables["keys"])
        self._compared.restore(saved.tables, saved.counters["compared"])
        if len(self._compared.tables()) != saved.counters["compared_types"]:
            raise ValueError("values that queries are compared by are missing")
        self.refused = saved.counters["queries_refused"]


def _given_score(query: TopKForEach, schema: pa.Schema) -> str | None:
    """The column of 64-bit integers or decimals that is itself the score: it is ranked by keys, not as floats."""
    if query.by not in schema.names or not is_wide(schema.field(query.by).type):
        return None
    read = () if query.where is None else subscriptions.columns_read(query.where)
    return None if query.by in read else query.by


def _whole(batch: pa.RecordBatch, name: str, what: str) -> Ints:
    column = batch.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise InvalidQuery(f"{what}=q.{name} must be whole numbers, none of them null; the column is {column.type}.")
    return pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
