"""The answers of joins: from groups in codes and numbers to named, filtered and ranked tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband import expressions
from skyband.core.emit import WHOLE, gives_changes, gives_windows
from skyband.core.encoding.decimals import as_decimals, fit_in_64_bits
from skyband.core.encoding.output import places, sorted_places
from skyband.core.encoding.schemas import plain_schema, whole_batch
from skyband.core.encoding.value_types import as_values
from skyband.core.operator import Codes, Ints
from skyband.errors import AggregateOverflow, InvalidQuery
from skyband.expressions.aggregates import bind_filter
from skyband.expressions.extremes import is_labelled
from skyband.problems.joins.codes import JoinCodes
from skyband.problems.joins.columns import BoundJoin, bind
from skyband.problems.joins.operator import Answer, JoinOperator, Moved
from skyband.problems.joins.planning import direction, ranked
from skyband.problems.joins.query import JoinAggregate

_CHANGES = pa.array(["upsert", "delete"])
_WIDE = pa.decimal128(38)  # holds any sum of int64

Key = tuple[int, ...]


def answer_schema(query: JoinAggregate, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of the answer over inputs with these schemas. Raises as a session over them would."""
    bound = bind(query, {name: plain_schema(schema) for name, schema in schemas.items()})
    return GroupsOutput(query, bound).schema


class Lines(NamedTuple):
    """Lines of an answer: groups in the order in which they are shown."""

    answer: Answer
    parts: Codes  # [line, grouped input]
    columns: list[pa.Array]  # the grouping columns


class GroupsOutput:
    """Builds answers. With changes, it remembers the groups that it has shown, if it needs to."""

    def __init__(self, query: JoinAggregate, bound: BoundJoin, codes: JoinCodes | None = None) -> None:
        self._query, self._bound, self._codes = query, bound, codes
        self._grouped = [i for i, source in enumerate(bound.inputs) if source.grouped]
        time = pa.field("at" if gives_changes(query.emit) else "window_end", bound.time_type)
        lead = [time, pa.field("change", pa.string())] if gives_changes(query.emit) else [time]
        ranks = [pa.field("rank", pa.int32())] if query.order_by and gives_windows(query.emit) else []
        self._groups = [bound.inputs[i].schema.field(column).with_name(name) for i, column, name in bound.groups]
        self._aggregates = [pa.field(each.name, each.type) for each in bound.aggregates]
        self.schema = pa.schema([*lead, *ranks, *self._groups, *self._aggregates])
        shown = pa.schema([*self._groups, *self._aggregates])
        self._having = None if query.having is None else bind_filter(query.having, shown, what="having")
        self._order = [_bind_order(text, shown) for text in query.order_by]
        if gives_changes(query.emit) and query.order_by and (query.k is None or ranked(query) is None):
            raise InvalidQuery(
                f"With emit={query.emit!r}, order_by takes one aggregate by its name, with k and without having: ranks "
                f"change with every row. emit={WHOLE!r} ranks by anything."
            )
        # With changes and k or having: the groups that are shown now; with k, also their values.
        self._shown: dict[Key, tuple[int, ...]] = {}

    def table(self, answer: Answer, operator: JoinOperator, codes: JoinCodes) -> pa.Table:
        if not len(answer.at):
            return self.schema.empty_table()
        # With k, a line without a group says that there are no groups at all.
        parts = operator.parts(np.maximum(answer.group, 0)) if self._groups else np.zeros((len(answer.at), 0), np.int32)
        if gives_windows(self._query.emit):
            return self._windows(self._lines(answer, parts, codes))
        if self._query.k is not None:
            return self._changes(self._best_changes(answer, parts, codes))
        lines = self._lines(answer, parts, codes)
        return self._changes(lines if self._having is None else self._having_changes(lines))

    # -- windows ---------------------------------------------------------------------------------------------------

    def _windows(self, lines: Lines) -> pa.Table:
        return self._ranked(lines.answer.at, lines.answer.turn, self._shown_columns(lines))

    def merged(self, parts: pa.Table, *, adds_up: bool) -> pa.Table:
        """Merge the answers of buckets into whole windows. With `adds_up`, a group may be in several buckets."""
        keys = ["window_end", *(field.name for field in self._groups)]
        lines = self._added_up(parts, keys) if adds_up else parts
        lines = lines.take(pc.sort_indices(lines, sort_keys=[(name, "ascending") for name in keys]))
        at = lines["window_end"].cast(pa.int64()).to_numpy()
        turn = np.cumsum(np.concatenate([[0], at[1:] != at[:-1]])) if len(at) else at
        shown = lines.select([field.name for field in (*self._groups, *self._aggregates)]).combine_chunks()
        return self._ranked(at, turn, whole_batch(shown))

    def _added_up(self, parts: pa.Table, keys: list[str]) -> pa.Table:
        """Merge partial aggregates into one line for each window and group."""
        ways = {"COUNT": "sum", "SUM": "sum", "MIN": "min", "MAX": "max"}
        asked = [
            (each.name, ways[each.function], parts.schema.field(each.name).type) for each in self._bound.aggregates
        ]
        for name, way, _ in asked:
            if way == "sum" and not pa.types.is_decimal(parts.schema.field(name).type):
                # An intermediate sum may be larger than the result.
                parts = parts.set_column(parts.column_names.index(name), name, parts[name].cast(_WIDE))
        in_order: dict[str, pa.ChunkedArray] = {}  # strings are compared by their places among all of them
        for name, _, kind in asked:
            if is_labelled(kind):
                order = pc.sort_indices(parts[name])
                in_order[name] = parts[name].take(order)
                place = np.empty(len(order), np.int64)
                place[order.to_numpy()] = np.arange(len(order))
                mask = pc.is_null(parts[name]).to_numpy()
                parts = parts.set_column(parts.column_names.index(name), name, pa.array(place, mask=mask))
        added = parts.group_by(keys).aggregate([(name, way) for name, way, _ in asked])
        lines = added.select(keys)
        for name, way, kind in asked:
            if name in in_order:
                lines = lines.append_column(name, in_order[name].take(added[f"{name}_{way}"]))
                continue
            try:
                column = added[f"{name}_{way}"].cast(kind)
            except pa.ArrowInvalid:
                column = None
            if column is None or (pa.types.is_decimal(kind) and not fit_in_64_bits(column.combine_chunks()).all()):
                raise AggregateOverflow(f"{name} does not fit in 64 bits.")
            lines = lines.append_column(name, column)
        return lines

    def _ranked(self, at: Ints, turn: Ints, shown: pa.RecordBatch) -> pa.Table:
        """Filter and rank lines, which come in order of turn, then group."""
        if self._having is not None:
            met = self._having.evaluate(shown)
            at, turn, shown = at[met], turn[met], shown.filter(pa.array(met))
        columns = shown.columns
        ranks = []
        if self._order:
            order = self._ranking(turn, shown)
            rank = places(turn[order])
            if self._query.k is not None:
                order, rank = order[rank <= self._query.k], rank[rank <= self._query.k]
            at, columns = at[order], [column.take(pa.array(order)) for column in columns]
            ranks = [pa.array(rank, pa.int32())]
        return pa.Table.from_arrays([self._time(at), *ranks, *columns], schema=self.schema)

    def _ranking(self, turn: Ints, shown: pa.RecordBatch) -> Ints:
        """The indices that sort lines by turn and rank. They come in order of group, which decides between equals."""
        keys = pa.table({"turn": turn, "line": np.arange(len(turn))})
        sorting = [("turn", "ascending")]
        for i, (values, ascending) in enumerate(self._order):
            column = as_values(values(shown))
            if pa.types.is_floating(column.type):
                column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            keys = keys.append_column(f"by {i}", column)
            sorting.append((f"by {i}", "ascending" if ascending else "descending"))
        return pc.sort_indices(keys, sort_keys=[*sorting, ("line", "ascending")]).to_numpy().astype(np.int64)

    # -- changes ---------------------------------------------------------------------------------------------------

    def _changes(self, lines: Lines) -> pa.Table:
        answer = lines.answer
        change = _CHANGES.take(pa.array(~answer.live).cast(pa.int8()))
        gone = pa.array(~answer.live)
        aggregates = [
            pc.if_else(gone, pa.scalar(None, column.type), column) for column in self._aggregate_columns(answer)
        ]
        return pa.Table.from_arrays([self._time(answer.at), change, *lines.columns, *aggregates], schema=self.schema)

    def _having_changes(self, lines: Lines) -> Lines:
        """A group appears when it first meets the condition, and disappears when it no longer does."""
        assert self._having is not None
        met = self._having.evaluate(self._shown_columns(lines)) & lines.answer.live
        kept, live = [], lines.answer.live.copy()
        for i, (key, shows) in enumerate(zip(map(tuple, lines.parts.tolist()), met.tolist(), strict=True)):
            if shows:
                self._shown[key] = ()
                kept.append(i)
            elif key in self._shown:
                del self._shown[key]
                live[i] = False
                kept.append(i)
        kept_lines = _chosen_lines(lines._replace(answer=lines.answer._replace(live=live)), np.array(kept, np.int64))
        return _in_order(kept_lines)  # groups that no longer meet the condition have become deletions

    def _best_changes(self, answer: Answer, parts: Codes, codes: JoinCodes) -> Lines:
        """A group appears when it is among the best k, and disappears when it no longer is."""
        real = np.flatnonzero(answer.group >= 0)
        lines = self._lines(answer.chosen(real), parts[real], codes)
        order = self._ranking(lines.answer.turn, self._shown_columns(lines))
        order = order[places(lines.answer.turn[order]) <= (self._query.k or 0)]
        keys = [tuple(key) for key in lines.parts.tolist()]
        turns: dict[int, dict[Key, int]] = {turn: {} for turn in answer.turn.tolist()}
        for line in order.tolist():
            turns[int(lines.answer.turn[line])][keys[line]] = line
        times = dict(zip(answer.turn.tolist(), answer.at.tolist(), strict=True))
        found: list[tuple[int, int, bool, tuple[int, ...], Key]] = []  # at, turn, live, valid and values, parts
        nothing = (0,) * (1 + len(self._aggregates))
        for turn, best in turns.items():
            gone = [key for key in self._shown if key not in best]
            found += [(times[turn], turn, False, nothing, key) for key in gone]
            self._shown = {key: values for key, values in self._shown.items() if key in best}
            for key, line in best.items():
                now = (int(lines.answer.valid[line]), *lines.answer.values[line].tolist())
                if self._shown.get(key) != now:
                    found.append((times[turn], turn, True, now, key))
                self._shown[key] = now
        values = np.array([now for *_, now, _ in found], np.int64).reshape(len(found), len(nothing))
        changed = Answer(
            np.array([line[0] for line in found], np.int64),
            np.array([line[1] for line in found], np.int64),
            np.zeros(len(found), np.int64),
            np.array([line[2] for line in found], bool),
            values[:, 1:],
            values[:, 0],
        )
        return self._lines(
            changed, np.array([line[4] for line in found], np.int32).reshape(len(found), len(self._grouped)), codes
        )

    # -- both ------------------------------------------------------------------------------------------------------

    def _lines(self, answer: Answer, parts: Codes, codes: JoinCodes) -> Lines:
        """Sort lines by time; within a time, deletions first, then by the grouping columns."""
        if not self._groups or not len(answer.at):
            return Lines(answer, parts, [pa.nulls(0, field.type) for field in self._groups])
        first, which = _distinct(parts)
        keys = [
            _column(codes.inputs[i].part_keys(), column).take(pa.array(parts[first, self._grouped.index(i)]))
            for i, column, _ in self._bound.groups
        ]
        order = np.lexsort((sorted_places(keys)[which], answer.live, answer.turn))
        which = which[order]
        return Lines(answer.chosen(order), parts[order], [key.take(pa.array(which)) for key in keys])

    def _shown_columns(self, lines: Lines) -> pa.RecordBatch:
        columns = [*lines.columns, *self._aggregate_columns(lines.answer)]
        return pa.record_batch(columns, schema=pa.schema([*self._groups, *self._aggregates]))

    def _aggregate_columns(self, answer: Answer) -> list[pa.Array]:
        columns = []
        for a, (field, bound) in enumerate(zip(self._aggregates, self._bound.aggregates, strict=True)):
            values = np.ascontiguousarray(answer.values[:, a])
            missing = answer.valid >> a & 1 == 0
            if bound.is_labelled:
                assert self._codes is not None, "only a session has answers in numbers"
                column = self._codes.inputs[bound.input].values_of(bound.argument, values, ~missing)
            elif pa.types.is_boolean(field.type):
                column = pa.array(values != 0, mask=missing)
            elif pa.types.is_floating(field.type):
                column = pa.array(values.view(np.float64), mask=missing if missing.any() else None)
            elif pa.types.is_decimal(field.type):
                column = as_decimals(values, max(0, field.type.scale), field.type)
                column = pc.if_else(pa.array(missing), pa.scalar(None, field.type), column) if missing.any() else column
            else:
                column = pa.array(values, mask=missing if missing.any() else None)
                column = (column if field.type.bit_width == 64 else column.cast(pa.int32())).view(field.type)
            columns.append(column)
        return columns

    def _time(self, at: Ints) -> pa.Array:
        return pa.array(at, pa.int64()).view(self._bound.time_type)

    # -- state -----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[Any]]:
        lines = [[*key, *values] for key, values in self._shown.items()]
        width = len(self._grouped) + (0 if self._query.k is None else 1 + len(self._aggregates))
        return {"shown": np.array(lines, np.int64).reshape(len(lines), width)}

    def restore(self, shown: npt.NDArray[Any]) -> None:
        parts = len(self._grouped)
        self._shown = {tuple(line[:parts]): tuple(line[parts:]) for line in shown.tolist()}

    def relabel(self, moved: Mapping[tuple[int, int], Moved]) -> None:
        """Replace the labels of values that are shown."""
        if self._query.k is None or not self._shown:
            return
        values = np.array(list(self._shown.values()), np.int64)
        for a, each in enumerate(self._bound.aggregates):
            if each.is_labelled and (each.input, each.argument) in moved:
                there = values[:, 0] >> a & 1 != 0
                values[there, 1 + a] = moved[each.input, each.argument].of(values[there, 1 + a])
        self._shown = dict(zip(self._shown, map(tuple, values.tolist()), strict=True))

    def compact(self, number: list[Ints]) -> None:
        """Renumber parts: for each grouped input, part p becomes number[p]."""
        self._shown = {
            tuple(int(of[part]) for of, part in zip(number, key, strict=True)): values
            for key, values in self._shown.items()
        }


def _chosen_lines(lines: Lines, which: Ints) -> Lines:
    columns = [column.take(pa.array(which)) for column in lines.columns]
    return Lines(lines.answer.chosen(which), lines.parts[which], columns)


def _in_order(lines: Lines) -> Lines:
    """Sort lines by turn; within a turn, deletions first, then by the grouping columns."""
    if not lines.columns or not len(lines.parts):
        return lines
    return _chosen_lines(lines, np.lexsort((sorted_places(lines.columns), lines.answer.live, lines.answer.turn)))


def _distinct(parts: Codes) -> tuple[Ints, Ints]:
    """The first row with each combination of parts, and for each row the number of its combination."""
    which = np.zeros(len(parts), np.int64)
    first = np.zeros(1, np.int64)
    for column in range(parts.shape[1]):
        pairs = which << 32 | parts[:, column]
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    return first, which


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _bind_order(text: str, schema: pa.Schema) -> tuple[Callable[[pa.RecordBatch], Any], bool]:
    """A function that computes the sort key, and whether the smallest comes first."""
    by, ascending = direction(text)
    if by in schema.names:
        return (lambda shown: shown.column(by)), ascending
    score = expressions.bind(by, schema)
    return score.values, ascending
