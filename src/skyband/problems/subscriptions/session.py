"""Top-k for many queries over Arrow data, in this process."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core import snapshots
from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.output import Layout, many_layout, row_score_type
from skyband.core.encoding.rows import RowStore
from skyband.core.encoding.schemas import check_keys, fitted, plain_batch, plain_schema, whole_batch
from skyband.core.encoding.scores import Scores, is_wide
from skyband.core.operator import Answer, Floats, Ints
from skyband.core.registry import find
from skyband.core.session import Jumps, Saved, Session, Stats, check_schema, entry, measured_type, with_times
from skyband.engines.embedded.inputs import rows_for
from skyband.engines.embedded.running import Running, run
from skyband.errors import InvalidExpression, InvalidInput, InvalidQuery, SkybandError
from skyband.expressions import as_floats, check_exact, subscriptions
from skyband.problems.subscriptions.compared import Compared
from skyband.problems.subscriptions.drivers.scoring import scoring_of
from skyband.problems.subscriptions.drivers.thresholds import Thresholds
from skyband.problems.subscriptions.operator import Batch, Queries, SubscriptionOperator
from skyband.problems.subscriptions.planning import plan, score_groups_of, specify
from skyband.problems.subscriptions.query import (
    ADDS,
    CHANGE,
    FEED,
    MOST_ROWS,
    PASSED_OVER,
    REMOVES,
    TopKForEach,
    as_table,
    check_backfill,
)
from skyband.windows import FOREVER, Span, parse_span, span_ticks, whole_number

_NO_PARAMETERS = np.empty((0, 0))
_KINDS = f"{', '.join(ADDS)}, {', '.join(REMOVES)} or {', '.join(PASSED_OVER)}"


class ForEachSession(Session):
    """Many queries, running: fed by `push`; `add` and `remove` change the queries, `snapshot` saves all."""

    query: TopKForEach
    _operator: SubscriptionOperator

    def __init__(
        self, query: TopKForEach, schema: pa.Schema, state: bytes | None = None, *, external_clock: bool = False
    ) -> None:
        check_schema(schema)
        self.query = query
        self.schema = schema
        self._plain = plain_schema(schema)
        query.window.check_columns(schema.names)
        self._queries_schema = plain_schema(query.queries.schema)
        check_keys(query.key, self._queries_schema, "key")
        score = subscriptions.bind(query.score, query.ascending, self._plain, self._queries_schema)
        self._score = score
        self._spec = specify(query, self._plain, scoring_of(score), external_clock=external_clock)
        self._ticks = self._spec.window
        self._given = _given_score(query, self._plain)
        score_type = row_score_type(query, self._plain)
        self._shown_scores = Scores(score_type, query.by, ascending=query.ascending, is_fixed=True)
        self._layout = many_layout(query, self._plain, str(query.emit))
        self._answer_layout = many_layout(query, self._plain, "windows")
        on_type = measured_type(query.window.on, self._plain)
        fingerprint = query.fingerprint(schema) + (" by keys" if self._given else "")
        saved = self._begin(fingerprint, on_type, state, external_clock=external_clock)
        queries = fitted(query.queries, self._queries_schema)
        chosen = plan(self._spec, len(queries), query.algorithm, score_groups=score_groups_of(queries, score))
        self.algorithm = saved.algorithm if saved else chosen.algorithm
        self._operator = find(self.algorithm, "subscriptions").open(self._spec)
        self._rows = RowStore(self._layout.rows_schema)
        self._keys_schema = pa.schema([self._queries_schema.field(name) for name in query.key])
        self._keys = GroupCodes(self._keys_schema)
        self._sizes: Ints = np.empty(0, np.int64)
        self._compared = Compared()
        self._of_queries = np.empty((len(score.compared_parameters), 0))  # the numbers of their values, by query
        self._jumps = Jumps(query.max_jump, query.window, self._on_type)
        self._position = 0
        self._stats = Stats()
        self._resume(saved)
        if saved is None:
            self.add(query.queries)

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    @property
    def queries(self) -> pa.Table:
        """The keys of the queries there are, in the order in which they came."""
        return self._keys.keys

    @property
    def sizes(self) -> Ints:
        """How far each of them looks back, in ticks of what the window measures."""
        return self._sizes

    # -- queries ---------------------------------------------------------------------------------------------------

    @entry
    def add(self, queries: Any, *, backfill: bool | None = None) -> pa.Table:
        """More queries, one a row, in the columns of the first ones. They see the rows that come from now on.

        With `backfill` (as the query says, if it is not said here) they see those that are in the window, too: where
        answers come with each arrival, what they show at once is returned.
        """
        table = fitted(as_table(queries), self.query.queries.schema)
        backfill = self.query.backfill if backfill is None else backfill
        if backfill:
            check_backfill(backfill, self.query.window)
        batch = plain_batch(whole_batch(table), self._queries_schema)
        return self._begin_with(batch, self._in_numbers(batch), backfill)

    def _begin_with(self, batch: pa.RecordBatch, in_numbers: Queries, backfill: bool) -> pa.Table:
        before = len(self._keys)
        known, of_queries = self._keys.keys, self._of_queries
        changed, self._changing = self._changing, True
        codes = self._keys.encode(batch)
        if len(self._keys) != before + len(codes):
            self._keys.load(known)
            self._changing = changed
            raise InvalidQuery(
                f"Queries are told apart by {', '.join(self.query.key)}, and two of these have the same. Give key=, or "
                "remove() the one that is there first."
            )
        try:
            answer = self._operator.add(self._with_parameters(in_numbers, batch, backfill), backfill=backfill)
        except SkybandError:
            self._keys.load(known)
            self._of_queries = of_queries
            self._compared.keep(of_queries)
            self._changing = changed
            raise
        self._sizes = np.concatenate([self._sizes, in_numbers.size])
        return self._table(answer)

    def _with_parameters(self, queries: Queries, batch: pa.RecordBatch, backfill: bool) -> Queries:
        """The same with what the score reads of each."""
        score, parameters, any_new = self._score, [], False
        for name in score.parameters:
            values = batch.column(name)
            if name in score.compared_parameters:
                numbers, new = self._compared.of_queries(values)
                any_new |= new
            else:
                check_exact(values, f"q.{name}")
                numbers = as_floats(values, len(values), name)
            parameters.append(numbers)
        found = np.array(parameters).reshape(len(parameters), batch.num_rows)
        compared = [score.parameters.index(name) for name in score.compared_parameters]
        self._of_queries = np.concatenate([self._of_queries, found[compared]], axis=1)
        if any_new and backfill and isinstance(self._operator, Thresholds):  # others do not keep them
            # Rows that came before had another number, that of all values that no query has.
            held = self._operator.held()
            self._rows.join()
            rows = self._rows.take(held)
            for name in score.compared_columns:
                numbers = self._compared.of_rows(rows.column(name))
                self._operator.put(score.columns.index(name), held, numbers)
        return queries._replace(parameters=found)

    @entry
    def remove(self, keys: Any) -> None:
        """Forget queries: their keys, as a table with the key columns, or as a list if there is one such column."""
        names = list(self.query.key)
        if isinstance(keys, (list, tuple)) and len(names) == 1:
            field = self._keys_schema.field(names[0])
            try:
                keys = pa.table({names[0]: pa.array(keys, field.type)})
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise InvalidInput(f"These are not values of the key {names[0]!r} ({field.type}): {error}") from None
        table = as_table(keys)
        if missing := [name for name in names if name not in table.column_names]:
            raise InvalidInput(f"Queries are told apart by {', '.join(names)}; {missing[0]!r} is missing.")
        gone = self._find(whole_batch(table.select(names).cast(self._keys_schema)))
        if (gone < 0).any():
            unknown = table.slice(int(np.flatnonzero(gone < 0)[0]), 1).to_pylist()[0]
            raise InvalidInput(f"There is no query {unknown}.")
        self._forget(gone)

    @entry
    def change(
        self, changes: Any, *, set_aside: bool = False, elsewhere: npt.NDArray[np.bool_] | None = None
    ) -> pa.Table:
        """Queries that come and go, one change after the other: a table with the queries' columns and `_change_type`.

        That is "insert" or "update_postimage" of a query that comes, and takes the place of one with the same key;
        "delete" of one that goes, if it is there, of which only the key is read; "update_preimage" says nothing. So the
        change data feed of a table can be passed on. Returns what `add` returns.

        A change that cannot be taken, such as one with a k of 0, raises, and nothing of the table is taken; with
        `set_aside` it is passed over, and counted in `queries_refused`.

        Where the queries are spread over several sessions, all of which are told of every change, `elsewhere` says
        which changes are another's: a query that comes there goes from here, if it was here, and another counts it.
        """
        table = as_table(changes)
        if CHANGE not in table.column_names:
            raise InvalidInput(f"Of changes of queries, the column {CHANGE!r} says what each does: {_KINDS}.")
        kinds = np.array(table.column(CHANGE).to_pylist(), dtype=object)
        table = table.select([name for name in table.column_names if name not in FEED])
        table = fitted(table, self.query.queries.schema)
        batch = plain_batch(whole_batch(table), self._queries_schema)
        refused = self._refused(batch, kinds)
        if refused and not set_aside:
            raise next(iter(refused.values()))
        self._changing = True
        here = np.ones(len(kinds), np.bool_) if elsewhere is None else ~elsewhere
        self._stats.queries_refused += int(here[list(refused)].sum())
        # With no row in between, of changes with the same key only the last one can be noticed.
        counts = [i for i, kind in enumerate(kinds) if i not in refused and kind not in PASSED_OVER]
        keys = batch.select(self._keys_schema.names)
        codes = GroupCodes(self._keys_schema).encode(keys.take(pa.array(counts, pa.int64())))
        last = sorted(dict(zip(codes.tolist(), counts, strict=True)).values())
        coming = batch.take(pa.array([i for i in last if kinds[i] in ADDS and here[i]], pa.int64()))
        numbers = self._find(keys.take(pa.array(last, pa.int64())))
        self._forget(numbers[numbers >= 0])
        return self._begin_with(coming, self._in_numbers(coming), self.query.backfill)

    def _refused(self, batch: pa.RecordBatch, kinds: npt.NDArray[Any]) -> dict[int, SkybandError]:
        """The changes that cannot be taken, by their number, and why."""
        refused: dict[int, SkybandError] = {}
        for i, kind in enumerate(kinds):
            if kind not in (*ADDS, *REMOVES, *PASSED_OVER):
                refused[i] = InvalidInput(f"{CHANGE} says what a change does: {_KINDS}; got {kind!r}.")
        coming = [i for i, kind in enumerate(kinds) if kind in ADDS]
        try:
            self._in_numbers(batch.take(pa.array(coming, pa.int64())))
        except SkybandError:
            for i in coming:
                try:
                    self._in_numbers(batch.slice(i, 1))
                except SkybandError as error:
                    refused[i] = error
        return refused

    @entry
    def forget_rows(self) -> None:
        """Forget the window's rows if there is no query, and those that come see only what comes after them."""
        if not len(self._keys) and not self.query.backfill and isinstance(self._operator, Thresholds):
            self._changing = True
            self._operator.forget_rows()
            self._rows.keep(self._operator.held())

    def _find(self, keys: pa.RecordBatch) -> Ints:
        """The numbers of these queries, -1 of those that there are not."""
        known, before = self._keys.keys, len(self._keys)
        changed, self._changing = self._changing, True
        numbers = self._keys.encode(keys).astype(np.int64)
        if len(self._keys) > before:
            self._keys.load(known)
        self._changing = changed
        numbers[numbers >= before] = -1
        return numbers

    def _forget(self, gone: Ints) -> None:
        if not len(gone):
            return
        self._changing = True
        kept = np.setdiff1d(np.arange(len(self._keys)), gone)
        self._operator.compact(kept)
        self._keys.keep(kept)
        self._sizes, self._of_queries = self._sizes[kept], self._of_queries[:, kept]
        self._compared.keep(self._of_queries)

    def _in_numbers(self, batch: pa.RecordBatch) -> Queries:
        """All but what the score reads of each. Raises for one that cannot be."""
        n = batch.num_rows
        k = self.query.k
        ks = _whole(batch, subscriptions.parameter(k, "k"), "k") if isinstance(k, str) else np.full(n, k, np.int64)
        if n and not 1 <= ks.min() <= ks.max() <= MOST_ROWS:
            wrong = ks[(ks < 1) | (ks > MOST_ROWS)][0]
            raise InvalidQuery(
                f"k must be at least 1, and at most {MOST_ROWS:,} for each of many queries; got {wrong:,}."
            )
        window, asked = self._ticks, self.query
        sizes, slides = np.full(n, window.size, np.int64), np.full(n, window.every, np.int64)
        if asked.every is not None:
            name = subscriptions.parameter(asked.every, "every")
            slides = self._spans(batch, name, "every")
            if (wrong := np.flatnonzero((slides % window.every != 0) | (slides > window.size))).size:
                raise InvalidQuery(
                    f"every={batch.column(name)[wrong[0]]} is no multiple of the window's slide, up to its size "
                    f"({asked.window}): a query is answered at some of its slides."
                )
        if asked.size is not None:
            name = subscriptions.parameter(asked.size, "size")
            sizes = self._spans(batch, name, "size")
            if (wrong := np.flatnonzero(sizes > window.size)).size:
                raise InvalidQuery(
                    f"size={batch.column(name)[wrong[0]]} is larger than the window ({asked.window}), which bounds all."
                )
            if (wrong := np.flatnonzero(sizes < slides)).size:
                raise InvalidQuery(
                    f"size={batch.column(name)[wrong[0]]} is less than the slide ({asked.every or asked.window}): rows "
                    "would never be seen."
                )
        return Queries(ks, sizes, slides, _NO_PARAMETERS)

    def _spans(self, batch: pa.RecordBatch, name: str, what: str) -> Ints:
        """In ticks."""
        column = batch.column(name)
        if column.null_count:
            raise InvalidQuery(f"{what}=q.{name} must be said by each query; one is null.")
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
            ticks[span] = span_ticks(given, self.query.window.on, self._on_type, what)
        return np.array([ticks[span] for span in spans], np.int64)

    # -- rows ------------------------------------------------------------------------------------------------------

    @entry
    def push(self, rows: Any) -> pa.Table:
        """Take rows in, in arrival order; return what they make known, always as a pyarrow Table.

        Rows are whatever `top_k` takes; of a stream, all there are.
        """
        rows = rows_for(rows, self.schema)
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.combine_chunks().to_batches()
        results = [self._push(batch) for batch in batches]
        return pa.concat_tables(results) if results else self.output_schema.empty_table()

    def _push(self, batch: pa.RecordBatch) -> pa.Table:
        rows_in = batch.num_rows
        batch = batch if self._plain is self.schema else plain_batch(batch, self._plain)
        batch, time = with_times(batch, self.query.window.on, in_order=self.in_order)
        timed = batch.num_rows
        if (kept := self._jumps.keep(time)) is not None:
            batch, time = batch.filter(pa.array(kept)), time[kept]
        columns = self._columns(batch)
        # A batch that is refused is refused before this line, and leaves the session as it was.
        self._changing = True
        first = self._position
        try:
            answer = self._operator.push(Batch(columns, time, first))
        except SkybandError:
            raise
        except Exception as error:
            if self._spec.scoring.may_raise:
                raise InvalidExpression(
                    f"A function that {self._score.text!r} calls failed: {type(error).__name__}: {error}. The session "
                    "cannot go on: open the query again with its last snapshot."
                ) from error
            raise
        self._stats.rows_in += rows_in
        self._stats.rows_null_time += rows_in - timed
        self._stats.rows_jumped += timed - batch.num_rows
        self._jumps.accept()
        self._position += batch.num_rows
        self._rows.append(first, batch.select(self._layout.rows_schema.names))
        return self._table(answer)

    def _columns(self, batch: pa.RecordBatch) -> Floats:
        """What the score reads of rows, by column."""
        columns = np.empty((len(self._score.columns), batch.num_rows))
        for i, name in enumerate(self._score.columns):
            values = batch.column(name)
            if name in self._score.compared_columns:
                columns[i] = self._compared.of_rows(values)
            elif name == self._given:
                columns[i] = self._shown_scores.near_keys(values)
            else:
                check_exact(values, name)
                columns[i] = as_floats(values, batch.num_rows, name)
        return columns

    @entry
    def top(self, k: int | None = None, size: Span | None = None) -> pa.Table:
        """The best right now for each query, up to its own k and size: of the window that closes next, or of the last
        `size`, which by value is what is later than now - size, now being the latest time seen."""
        if k is not None:
            number = whole_number(k)
            if number is None or number < 1:
                raise InvalidQuery(f"k must be a whole number, at least 1, got {k!r}.")
            k = number
        if size is None:
            return self._shown(self._operator.top(k, None), self._answer_layout, self._sizes)
        if self._ticks.size == FOREVER:
            raise InvalidQuery("A window from the start on is asked as a whole: of its parts, few rows are kept.")
        ticks = span_ticks(parse_span(size, "size"), self.query.window.on, self._on_type, "size")
        return self._shown(self._operator.top(k, ticks), self._answer_layout, np.minimum(self._sizes, ticks))

    # -- answers and state -----------------------------------------------------------------------------------------

    def _table(self, answer: Answer) -> pa.Table:
        result = self._shown(answer, self._layout, self._sizes)
        if self._rows.is_wasteful(5 * self._operator.rows_held() // 8):
            self._rows.keep(self._operator.held())
        return result

    def _shown(self, answer: Answer, layout: Layout, sizes: Ints) -> pa.Table:
        if not len(answer.at):
            return layout.schema.empty_table()
        self._rows.join()
        rows = self._rows.take(answer.position)
        keys = whole_batch(self._keys.keys).take(pa.array(answer.group)).columns
        score = self._shown_score(answer.score)
        return layout.table(
            answer, rows, self._ticks, self.query.ascending, sizes[answer.group], keys=keys, score=score
        )

    def _shown_score(self, score: Floats) -> pa.Array:
        if pa.types.is_decimal(self._shown_scores.type) and self._given is None:  # they were computed with as floats
            return pa.array(-score if self.query.ascending else score).cast(self._shown_scores.type)
        return self._shown_scores.column(score)

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now. A row may be worth something to one query and nothing to
        another, so none is counted as unranked; `groups` counts queries."""
        self._stats.rows_late = self._operator.late
        dropped = self._stats.rows_null_time + self._stats.rows_jumped + self._stats.rows_late
        self._stats.rows_used = self._stats.rows_in - dropped
        self._stats.rows_held = len(self._operator.held())
        self._stats.groups = len(self._keys)
        return Stats(**asdict(self._stats))

    def _saved(self) -> Saved:
        held = self._operator.held()
        self._changing = True
        self._rows.keep(held)
        tables = {"rows": pa.Table.from_batches([self._rows.take(held)]), "keys": self._keys.keys}
        return Saved(
            {"position": self._position, **self._jumps.state(), "compared": self._compared.following},
            {"held": held, "sizes": self._sizes, "of_queries": self._of_queries},
            tables | self._compared.tables(),
        )

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._rows.load(arrays.pop("held"), whole_batch(saved.tables["rows"]))
        self._sizes, self._of_queries = arrays.pop("sizes"), arrays.pop("of_queries")
        self._operator.restore(arrays)
        self._keys.load(saved.tables["keys"])
        counters = dict(saved.counters)
        self._position = counters.pop("position")
        self._jumps.restore(counters)
        self._compared.restore(saved.tables, counters.pop("compared"))
        self._stats = Stats(**counters)


def _given_score(query: TopKForEach, schema: pa.Schema) -> str | None:
    """The column of 64-bit numbers or decimals that is the score, if it is nothing else: then it is ranked by keys."""
    if query.by not in schema.names or not is_wide(schema.field(query.by).type):
        return None
    read = () if query.where is None else subscriptions.columns_read(query.where)
    return None if query.by in read else query.by


def _whole(batch: pa.RecordBatch, name: str, what: str) -> Ints:
    column = batch.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise InvalidQuery(f"{what}=q.{name} must be whole numbers, none of them null; the column is {column.type}.")
    return pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)


def top_k(data: Any, query: TopKForEach) -> Any:
    """The answers of `query` over Arrow data, in the kind of the data."""
    return start(data, query).answer()


def start(data: Any, query: TopKForEach) -> Running:
    """The same, as it runs."""
    return run(data, query.open, query.window)
