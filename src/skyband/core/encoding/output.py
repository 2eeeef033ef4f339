"""From an operator's answer, which is positions and numbers, to the table a user sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.encoding.rows import column_of
from skyband.core.operator import LEAVE, Codes, Floats, Ints
from skyband.problems.across.query import TopKAcross
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions.query import TopKForEach
from skyband.windows import FOREVER, Ticks

_CHANGES = pa.array(["enter", "leave"])

# The columns before the others: of what a query emits, and of many ad-hoc questions.
_LEAD = {
    "windows": ["window_start", "window_end"],
    "changes": ["at", "change"],
    "entries": ["at"],
    "questions": ["question", "window_start", "window_end"],
}
TAKEN = {"rank", "score", *(name for names in _LEAD.values() for name in names)}  # a column called so is renamed
_LEAD_TYPES = {"change": pa.string(), "question": pa.int32()}  # the others have the type of the window's column


class Ranked(Protocol):
    """What is the same in the answers of all problems that rank."""

    @property
    def at(self) -> Ints: ...

    @property
    def rank(self) -> Codes: ...

    @property
    def score(self) -> Floats: ...

    @property
    def change(self) -> npt.NDArray[np.int8]: ...


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the output, and where each comes from."""

    schema: pa.Schema
    rows_schema: pa.Schema  # the input columns that are shown: what has to be kept of a row
    time_type: pa.DataType
    emit: str
    per: int  # how many of the shown input columns are `per` columns; they come first

    @property
    def lead(self) -> list[str]:
        """What every answer begins with: when, the `per` columns, rank and score."""
        names: list[str] = self.schema.names[: len(self.schema) - len(self.rows_schema) + self.per]
        return names

    def column_names(self, query: TopK) -> dict[str, str]:
        """Under which name each input column is shown."""
        ranking = len(self.lead) - 2
        shown = [*self.lead[ranking - self.per : ranking], *self.schema.names[len(self.lead) :]]
        by = {query.by: "score"} if isinstance(query.by, str) else {}
        return {**by, **dict(zip(self.rows_schema.names, shown, strict=True))}

    def table(
        self,
        answer: Ranked,
        rows: pa.RecordBatch,
        window: Ticks,
        ascending: bool,
        size: int | Ints | None = None,
        question: Codes | None = None,
        keys: list[pa.Array] | None = None,
        score: pa.Array | None = None,
    ) -> pa.Table:
        """`answer` with its `rows`, as the user sees it; `size` and `question` are of ad-hoc questions, `keys` the
        columns before all others, `score` what the answer's scores stand for, if they are not float64."""
        if score is None:
            score = column_of(-answer.score if ascending else answer.score, np.float64, _SCORE)
        columns = rows.columns
        when = self._window_columns(answer, window, window.size if size is None else size)
        if question is not None:
            when.insert(0, column_of(question, np.int32, _LEAD_TYPES["question"]))
        ranking = [column_of(answer.rank, np.int32, _RANK), score]
        return pa.Table.from_arrays(
            [*(keys or ()), *when, *columns[: self.per], *ranking, *columns[self.per :]], schema=self.schema
        )

    def _window_columns(self, answer: Ranked, window: Ticks, size: int | Ints) -> list[pa.Array]:
        at = column_of(answer.at, np.int64, self.time_type)
        if self.emit == "changes":
            return [at, _CHANGES.take(pa.array(answer.change == LEAVE).cast(pa.int8()))]
        if self.emit == "entries":
            return [at]
        if window.by_count:
            # A window from the start on is longer than any number of arrivals.
            return [column_of(np.maximum(answer.at - size, 0), np.int64, self.time_type), at]
        endless = size == FOREVER
        if endless is True or (isinstance(endless, np.ndarray) and endless.any()):
            unknown = np.broadcast_to(endless, len(answer.at))
            return [pa.array(answer.at - size, pa.int64(), mask=unknown).view(self.time_type), at]
        return [column_of(answer.at - size, np.int64, self.time_type), at]


def layout(query: TopK, schema: pa.Schema, emit: str, score_type: pa.DataType) -> Layout:
    """How the output of `query` over rows of `schema` looks. A name that is taken gets a trailing underscore."""
    time_type = _time_type(query.window.on, schema)
    lead = _LEAD[emit]
    others = [name for name in schema.names if name not in query.per and name != query.by]
    taken = {*lead, "rank", "score"}
    fields: list[pa.Field] = []
    for name in [*query.per, *others]:
        fields.append(schema.field(name).with_name(free_name(name, taken)))
        taken.add(fields[-1].name)
    n = len(query.per)
    return Layout(
        pa.schema([*_lead_fields(emit, time_type), *fields[:n], *_ranking(score_type), *fields[n:]]),
        pa.schema([schema.field(name) for name in [*query.per, *others]]),
        time_type,
        emit,
        n,
    )


def across_layout(query: TopKAcross, schema: pa.Schema, emit: str) -> Layout:
    """How the output of `query` over rows of `schema` looks: the object, and a column for each stream."""
    time_type = _time_type(query.window.on, schema)
    lead = [*_lead_fields(emit, time_type), *_RANKING]
    taken = {field.name for field in lead}
    fields = []
    for field in (schema.field(query.id), *(pa.field(name, pa.float64()) for name in query.streams)):
        fields.append(field.with_name(free_name(field.name, taken)))
        taken.add(fields[-1].name)
    if query.recall is not None:
        fields.append(pa.field(free_name("recall", taken), pa.float64()))
    return Layout(pa.schema([*lead, *fields]), pa.schema(fields), time_type, emit, 0)


def many_layout(query: TopKForEach, schema: pa.Schema, emit: str) -> Layout:
    """How the output of `query` over rows of `schema` looks: behind the queries' key columns as that of `top_k`."""
    time_type = _time_type(query.window.on, schema)
    lead = [*_lead_fields(emit, time_type), *_ranking(row_score_type(query, schema))]
    taken = {field.name for field in lead}
    keys = []
    for name in query.key:
        keys.append(query.queries.schema.field(name).with_name(free_name(name, taken)))
        taken.add(keys[-1].name)
    fields = []
    for field in schema:
        if field.name != query.by:
            fields.append(field.with_name(free_name(field.name, taken)))
            taken.add(fields[-1].name)
    shown = pa.schema([field for field in schema if field.name != query.by])
    return Layout(pa.schema([*keys, *lead, *fields]), shown, time_type, emit, 0)


def row_score_type(query: TopKForEach, schema: pa.Schema) -> pa.DataType:
    """Of a score that is a column of the row its own type, of all others float64."""
    return schema.field(query.by).type if query.by in schema.names else _SCORE


def pair_layout(query: TopKPairs, schema: pa.Schema, emit: str) -> Layout:
    """How the pairs of `query` over rows of `schema` look. Its table takes both rows' columns, a's before b's."""
    time_type = _time_type(query.window.on, schema)
    fields = [field.with_name(f"{side}_{field.name}") for side in "ab" for field in schema]
    return Layout(pa.schema([*_lead_fields(emit, time_type), *_RANKING, *fields]), schema, time_type, emit, 0)


_RANK, _SCORE = pa.int32(), pa.float64()


def _ranking(score_type: pa.DataType) -> tuple[pa.Field, pa.Field]:
    return pa.field("rank", _RANK), pa.field("score", score_type)


_RANKING = _ranking(_SCORE)


def _time_type(on: str | None, schema: pa.Schema) -> pa.DataType:
    """Of the bounds of windows: those can lie outside a narrow integer type."""
    on_type = None if on is None else schema.field(on).type
    return on_type if on_type is not None and pa.types.is_timestamp(on_type) else pa.int64()


def _lead_fields(emit: str, time_type: pa.DataType) -> list[pa.Field]:
    return [pa.field(name, _LEAD_TYPES.get(name, time_type)) for name in _LEAD[emit]]


def places(window: Ints) -> Ints:
    """For lines in order of their windows: the place of each within its window, from 1 on.

    >>> places(np.array([10, 10, 20, 30, 30])).tolist()
    [1, 2, 1, 1, 2]
    """
    starts = np.flatnonzero(np.diff(window, prepend=window[:1] - 1))
    return np.arange(len(window)) - np.repeat(starts, np.diff(starts, append=len(window))) + 1


def best_of_parts(parts: pa.Table, keys: list[tuple[str, str]], k: int) -> pa.Table:
    """The k best lines of each window, ranked by `keys`, of those that the parts of its rows gave."""
    lines = parts.take(pc.sort_indices(parts, sort_keys=[("window_end", "ascending"), *keys]))
    rank = places(lines.column("window_end").cast(pa.int64()).to_numpy()).astype(np.int32)
    lines = lines.set_column(lines.schema.get_field_index("rank"), "rank", pa.array(rank))
    return lines.filter(pa.array(rank <= k)).combine_chunks()


def free_name(name: str, taken: set[str]) -> str:
    """The name, or one with trailing underscores that is not taken."""
    while name in taken:
        name += "_"
    return name
