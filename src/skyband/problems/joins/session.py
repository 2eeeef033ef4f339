"""Aggregates over joins of Arrow data, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core import snapshots
from skyband.core.encoding.schemas import cast_batch, common_type, plain_schema, whole_batch
from skyband.core.operator import Codes, Ints
from skyband.core.session import Saved, Session, Stats, as_ticks, check_schema, entry
from skyband.engines.embedded.frames import common
from skyband.engines.embedded.inputs import Source, in_batches, read, rows_for
from skyband.engines.embedded.merging import ready_until
from skyband.engines.embedded.ordering import check_order, ordered
from skyband.engines.embedded.running import Running, started
from skyband.errors import AggregateOverflow, InvalidInput, InvalidQuery, SkybandError, SnapshotMismatch
from skyband.problems.joins.algorithms.recompute import NAME as RECOMPUTE
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import bind
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.operator import UNMATCHED, Answer, Batch, JoinOperator, Rows
from skyband.problems.joins.output import Layout
from skyband.problems.joins.planning import better, choose, open_plan, specify
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.reading import Counts, RowReader

_LOOK_AT = 50_000  # rows, before it is worth asking whether another plan would be cheaper


class JoinSession(Session):
    """A join query, running: fed by `push`, saved by `snapshot`."""

    query: JoinAggregate
    _operator: JoinOperator
    few_groups = 4096  # cells, before it is worth asking how many of them are still in use

    def __init__(
        self,
        query: JoinAggregate,
        schemas: Mapping[str, pa.Schema],
        state: bytes | None = None,
        *,
        external_clock: bool = False,
    ) -> None:
        for schema in schemas.values():
            check_schema(schema)
        self.query = query
        self.schemas = dict(schemas)
        self._bound = bind(query, {name: plain_schema(schema) for name, schema in schemas.items()})
        self._spec = specify(query, self._bound, external_clock=external_clock)
        self._layout = Layout(query, self._bound)
        on_type = None if self._bound.by_count else self._bound.time_type
        saved = self._begin(query.fingerprint(schemas), on_type, state, external_clock=external_clock)
        self.algorithm = choose(query, self._spec) if saved is None or query.plan else saved.algorithm
        if saved and (saved.algorithm == RECOMPUTE) != (self.algorithm == RECOMPUTE):
            raise SnapshotMismatch(
                f"This snapshot was taken by {saved.algorithm!r}; {self.algorithm!r} cannot read it."
            )
        self._operator = open_plan(self.algorithm, query, self._spec)
        self._codes = JoinCodes(self._bound)
        self._reader = RowReader(self._bound, self.schemas, self._codes)
        self._position = 0
        self._started = False  # a row of a stream has come: relations are complete
        self._stats = Stats()
        self._forget_at, self._forget_after = self.few_groups, 0
        self._look_at = _LOOK_AT
        self._resume(saved)

    @property
    def output_schema(self) -> pa.Schema:
        return self._layout.schema

    # -- rows and time ---------------------------------------------------------------------------------------------

    @entry
    def push(self, rows: Any, input: str | None = None) -> pa.Table:
        """Take rows of an input in, in arrival order; return what they make known, always as a pyarrow Table.

        Rows are whatever `top_k` takes; of a stream, all there are. One stream alone needs no name. A relation is
        pushed before the first row of a stream.
        """
        i = self._which(input)
        rows = rows_for(rows, self.schemas[self.query.names[i]])
        if self._bound.inputs[i].is_relation and self._started:
            raise InvalidInput(
                f"{self.query.names[i]!r} is a relation: its rows come before the first row of a stream. "
                "Nothing was taken."
            )
        batch = whole_batch(rows) if isinstance(rows, pa.Table) else rows
        self._changing = True
        try:
            prepared, counts = self._reader.read(i, batch, self._position)
        except SkybandError:  # before anything was remembered
            self._changing = False
            raise
        return self._take({i: prepared}, None, counts)

    @entry
    def push_rows(self, rows: Mapping[int, tuple[Rows, pa.RecordBatch]], order: Codes) -> pa.Table:
        """Take rows that were read elsewhere, by input, which arrive in this order of inputs.

        With them come the columns that their cells are combinations of; those that match nothing say so.
        """
        self._changing = True
        for i, (each, keys) in rows.items():
            matched = each.cell != UNMATCHED
            if keys.num_columns:
                each.cell[matched] = self._codes.inputs[i].encode(keys.filter(pa.array(matched)))
        return self._take({i: each for i, (each, _) in rows.items()}, order, Counts(len(order), 0, 0))

    @entry
    def advance(self, watermark: int | datetime) -> pa.Table:
        """By value: no row before `watermark` is waited for. Closes the windows that end there or before."""
        if self._bound.by_count or not self._bound.every:
            raise InvalidQuery("Only windows by value with a slide close as time advances; this query has none.")
        ticks = as_ticks(watermark, str(self.query.window.on), self._on_type)
        self._changing = True
        return self._table(self._ask(lambda: self._operator.advance(ticks)))

    @entry
    def finish(self) -> pa.Table:
        """The input is over: by value, every window that holds a row closes."""
        self._changing = True
        return self._table(self._ask(self._operator.finish))

    def _which(self, name: str | None) -> int:
        streams = [each for each, _ in self.query.streams]
        if name is None and len(streams) == 1:
            name = streams[0]
        if name not in self.query.names:
            raise InvalidInput(f"Say whose rows these are: one of {', '.join(self.query.names)}; got {name!r}.")
        return self.query.names.index(name)

    # -- state -----------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Counts of rows so far, and of what is held now. `rows_unranked`: kept out by a filter or by a null key."""
        self._stats.rows_late = self._operator.late
        self._stats.rows_used = self._stats.rows_in - self._stats.rows_null_time - self._stats.rows_late
        self._stats.rows_held = self._operator.rows_held()
        self._stats.groups = self._operator.groups_live()
        return Stats(**asdict(self._stats))

    def _saved(self) -> Saved:
        counters = {"position": self._position, "started": int(self._started), "look_at": self._look_at}
        return Saved(counters, self._layout.state(), self._codes.state())

    def _restore(self, saved: snapshots.Snapshot) -> None:
        arrays = dict(saved.arrays)
        self._layout.restore(arrays.pop("shown"))
        self._codes.restore(saved.tables)
        self._operator.restore(arrays)
        counters = dict(saved.counters)
        self._position, self._started = counters.pop("position"), bool(counters.pop("started"))
        self._look_at = counters.pop("look_at")
        self._stats = Stats(**counters)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _take(self, rows: Mapping[int, Rows], order: Codes | None, *counts: Counts) -> pa.Table:
        """Let the operator have rows that are prepared."""
        for counted in counts:
            self._stats.rows_in += counted.rows_in
            self._stats.rows_null_time += counted.null_time
            self._stats.rows_unranked += counted.unmatched
        for i, each in rows.items():
            if not self._bound.inputs[i].is_relation:
                self._position += len(each.time)
                self._started |= len(each.time) > 0
        inputs = range(len(self._bound.inputs))
        cells = tuple(self._codes.inputs[i].new_cells() for i in inputs)
        batch = Batch(tuple(rows.get(i) for i in inputs), cells, order)
        table = self._table(self._ask(lambda: self._operator.push(batch)))
        self._forget_cells()
        self._plan_again()
        return table

    def statistics(self) -> dict[str, Statistics]:
        """What the inputs are like: rates, in rows a slide, of late; the rest, now."""
        moments = self._operator.moments or 1.0
        return {
            name: Statistics(known.came / moments, known.rows, known.cells, known.keys, known.groups)
            for name, known in zip(self.query.names, self._operator.known(), strict=True)
        }

    def _plan_again(self) -> None:
        """Switch to another plan when one has become so much cheaper that it pays; the answer stays the same."""
        is_due = self._stats.rows_in >= self._look_at and self._operator.moments
        if self.query.plan is not None or not is_due:
            return
        self._look_at = self._stats.rows_in + max(_LOOK_AT, 4 * self._operator.rows_held())
        name = better(self.algorithm, self.query, self._spec, list(self.statistics().values()))
        self._operator.age()
        if name is not None:
            # What is saved is the live rows, from which any plan can go on.
            state = self._operator.state()
            self.algorithm, self._operator = name, open_plan(name, self.query, self._spec)
            self._operator.restore(state)

    def _forget_cells(self) -> None:
        """Drop cells that have no rows, when they are many, and as many rows came since the last time as are held."""
        cells = sum(map(len, self._codes.inputs))
        if cells < self._forget_at or self._stats.rows_in < self._forget_after + self._operator.rows_held():
            return
        live = self._operator.live_cells()
        if 2 * sum(int(each.sum()) for each in live) < cells:
            kept = [np.flatnonzero(each) for each in live]
            before = [codes.parts()[cells] for codes, cells in zip(self._codes.inputs, kept, strict=True)]
            told = self._codes.keep(kept)
            self._operator.renumber(kept, told)
            grouped = [i for i, source in enumerate(self._bound.inputs) if source.grouped]
            self._layout.renumber([_renumbered(before[i], told[i].part) for i in grouped])
        self._forget_after = self._stats.rows_in
        self._forget_at = max(self.few_groups, 2 * sum(map(len, self._codes.inputs)))

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        """What the operator answers."""
        try:
            return question()
        except AggregateOverflow as error:
            name = "" if error.aggregate is None else f"{self.query.aggregates[error.aggregate][0]!r}: "
            raise AggregateOverflow(f"{name}{error}", error.aggregate) from None

    def _table(self, answer: Answer) -> pa.Table:
        return self._layout.table(answer, self._operator, self._codes)


def _renumbered(old: Codes, new: Codes) -> Ints:
    """By old part: the new one."""
    number = np.zeros(int(old.max()) + 1 if len(old) else 0, np.int64)
    number[old] = new
    return number


# -- whole inputs ------------------------------------------------------------------------------------------------------


def join_aggregate(data: Mapping[str, Any], query: JoinAggregate) -> Any:
    """The answers of `query` over Arrow data, by the names of its inputs.

    With a slide, windows close when the slowest stream has reached their end. With each arrival, rows arrive in the
    order of their times, and of equal times in the order of the inputs.
    """
    return start(data, query).answer()


def start(data: Mapping[str, Any], query: JoinAggregate) -> Running:
    """The same, as it runs."""
    if not isinstance(data, Mapping) or set(data) != set(query.names):
        given = ", ".join(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise InvalidInput(f"Give the rows of each input by its name: {', '.join(query.names)}; got {given}.")
    sources = _of_one_time({name: read(data[name]) for name in query.names}, query)
    session = query.open({name: source.schema for name, source in sources.items()})
    for name, stream in query.streams:
        check_order(stream.window, sources[name].schema)
    is_whole = all(source.is_whole for source in sources.values())
    like = common([source.like for source in sources.values()])
    return started(session, _answers(session, sources), is_whole, like)


def _of_one_time(sources: dict[str, Source], query: JoinAggregate) -> dict[str, Source]:
    """The sources in columns of which rows can be gathered, with times in the finest unit that one of them has."""
    plain = {name: source.plain() if source.is_whole else source for name, source in sources.items()}
    times = {name: given.window.on for name, given in query.streams}
    types = {
        plain_schema(plain[name].schema).field(on).type
        for name, on in times.items()
        if on is not None and on in plain[name].schema.names
    }
    finest = common_type(types) if len(types) > 1 else None
    if finest is None or not pa.types.is_timestamp(finest):
        return plain
    for name, on in times.items():
        schema = plain_schema(plain[name].schema)
        schema = schema.set(schema.get_field_index(on), schema.field(on).with_type(finest))
        plain[name] = plain[name].mapped(schema, partial(cast_batch, schema=schema))
    return plain


def _answers(session: JoinSession, sources: Mapping[str, Source]) -> Iterator[pa.Table]:
    streams = [name for name, _ in session.query.streams]
    for name, source in sources.items():
        if name not in streams:
            for batch in in_batches(source.batches):
                session.push(batch, name)
    merge = _by_arrival if len(streams) > 1 and session.query.every is None else _by_watermark
    yield from merge(
        session, {name: iter(ordered(sources[name], given.window)) for name, given in session.query.streams}
    )
    yield session.finish()


def _by_watermark(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Always a batch of the stream that is furthest behind, so that as few rows as possible wait for the others."""
    reached = dict.fromkeys(streams, -np.inf)
    while reached:
        name = min(reached, key=lambda each: reached[each])
        batch = next(streams[name], None)
        if batch is None:
            del reached[name]
            continue
        on = session._bound.inputs[session.query.names.index(name)].on
        if on is not None and batch.num_rows:
            latest = pc.max(batch.column(on)).cast(pa.int64()).as_py()
            reached[name] = max(reached[name], -np.inf if latest is None else latest)
        yield session.push(batch, name)
        if len(reached) < len(streams) and min(reached.values()) > -np.inf:
            # A stream that is over is not waited for.
            behind = int(min(reached.values())) - session._bound.lateness
            yield session._table(session._ask(partial(session._operator.advance, behind)))


def _by_arrival(session: JoinSession, streams: dict[str, Iterator[Any]]) -> Iterator[pa.Table]:
    """Rows of all streams in the order of their times; a row that is late arrives right after the one before it."""
    held: dict[int, Rows] = {}
    places: dict[int, Ints] = {}  # of held rows: the largest time of their stream so far
    open_streams = {session.query.names.index(name): batches for name, batches in streams.items()}
    reached = dict.fromkeys(open_streams, -(2**62))
    counts: list[Counts] = []
    while open_streams or any(len(rows.time) for rows in held.values()):
        for i in [i for i in open_streams if i not in held or not len(held[i].time)]:
            batch = next((each for each in open_streams[i] if each.num_rows), None)
            if batch is None:
                del open_streams[i]
                continue
            batch = rows_for(batch, session.schemas[session.query.names[i]])
            held[i], counted = session._reader.read(i, batch)
            counts.append(counted)
            places[i] = np.maximum.accumulate(np.maximum(held[i].time, reached[i]))
            reached[i] = int(places[i][-1]) if len(places[i]) else reached[i]
        if not held or any(not len(held[i].time) for i in open_streams):
            continue
        # Rows up to here cannot be preceded by any that is still to come.
        bound = min(((reached[i], i) for i in open_streams), default=None)
        ready = {i: ready_until(places[i], i, bound) for i in held}
        order = np.concatenate([np.full(n, i) for i, n in ready.items()])
        when = np.concatenate([places[i][:n] for i, n in ready.items()])
        rows = {i: held[i].part(slice(0, n)) for i, n in ready.items()}
        held = {i: held[i].part(slice(ready[i], None)) for i in held}
        places = {i: places[i][ready[i] :] for i in held}
        yield session._take(rows, order[np.lexsort((order, when))].astype(np.int32), *counts)
        counts = []
