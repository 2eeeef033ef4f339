"""From an operator's answer, which is positions and numbers, to the table a user sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skyband.operators.across.protocol import AcrossAnswer
from skyband.operators.protocol import LEAVE, Answer, Codes, Ints
from skyband.queries import TopK, TopKAcross
from skyband.windows import FOREVER, Ticks

_CHANGES = pa.array(["enter", "leave"])

# The columns before the others: of what a query emits, and of many ad-hoc questions.
_LEAD = {
    "windows": ["window_start", "window_end"],
    "changes": ["at", "change"],
    "entries": ["at"],
    "questions": ["question", "window_start", "window_end"],
}
_LEAD_TYPES = {"change": pa.string(), "question": pa.int32()}  # the others have the type of the window's column


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the output, and where each comes from."""

    schema: pa.Schema
    rows_schema: pa.Schema  # the input columns that are shown: what has to be kept of a row
    time_type: pa.DataType
    emit: str
    per: int  # how many of the shown input columns are `per` columns; they come first

    def table(
        self,
        answer: Answer | AcrossAnswer,
        rows: pa.RecordBatch,
        window: Ticks,
        ascending: bool,
        size: int | Ints | None = None,
        question: Codes | None = None,
    ) -> pa.Table:
        """`answer` with its `rows`, as the user sees it; `size` and `question` are of ad-hoc questions."""
        score = -answer.score if ascending else answer.score
        columns = rows.columns
        when = self._window_columns(answer, window, window.size if size is None else size)
        if question is not None:
            when.insert(0, pa.array(question))
        ranking = [pa.array(answer.rank), pa.array(score)]
        return pa.Table.from_arrays([*when, *columns[: self.per], *ranking, *columns[self.per :]], schema=self.schema)

    def _window_columns(self, answer: Answer | AcrossAnswer, window: Ticks, size: int | Ints) -> list[pa.Array]:
        at = _times(answer.at, self.time_type)
        if self.emit == "changes":
            return [at, _CHANGES.take(pa.array(answer.change == LEAVE).cast(pa.int8()))]
        if self.emit == "entries":
            return [at]
        if window.by_count:
            # A window from the start on is longer than any number of arrivals.
            return [_times(np.maximum(answer.at - size, 0), self.time_type), at]
        endless = size == FOREVER
        if endless is True or (isinstance(endless, np.ndarray) and endless.any()):
            unknown = np.broadcast_to(endless, len(answer.at))
            return [pa.array(answer.at - size, pa.int64(), mask=unknown).view(self.time_type), at]
        return [_times(answer.at - size, self.time_type), at]


def layout(query: TopK, schema: pa.Schema, emit: str) -> Layout:
    """How the output of `query` over rows of `schema` looks. A name that is taken gets a trailing underscore."""
    on_type = None if query.window.on is None else schema.field(query.window.on).type
    # Window bounds can lie outside a narrow integer type.
    time_type = on_type if on_type is not None and pa.types.is_timestamp(on_type) else pa.int64()
    lead = _LEAD[emit]
    others = [name for name in schema.names if name not in query.per and name != query.by]
    taken = {*lead, "rank", "score"}
    fields: list[pa.Field] = []
    for name in [*query.per, *others]:
        fields.append(schema.field(name).with_name(_free_name(name, taken)))
        taken.add(fields[-1].name)
    n = len(query.per)
    lead_fields = [pa.field(name, _LEAD_TYPES.get(name, time_type)) for name in lead]
    ranking = [pa.field("rank", pa.int32()), pa.field("score", pa.float64())]
    return Layout(
        pa.schema([*lead_fields, *fields[:n], *ranking, *fields[n:]]),
        pa.schema([schema.field(name) for name in [*query.per, *others]]),
        time_type,
        emit,
        n,
    )


def across_layout(query: TopKAcross, schema: pa.Schema, emit: str) -> Layout:
    """How the output of `query` over rows of `schema` looks: the object, and a column for each stream."""
    on_type = None if query.window.on is None else schema.field(query.window.on).type
    time_type = on_type if on_type is not None and pa.types.is_timestamp(on_type) else pa.int64()
    lead = [pa.field(name, _LEAD_TYPES.get(name, time_type)) for name in _LEAD[emit]]
    ranking = [pa.field("rank", pa.int32()), pa.field("score", pa.float64())]
    taken = {field.name for field in (*lead, *ranking)}
    fields = []
    for field in (schema.field(query.id), *(pa.field(name, pa.float64()) for name in query.streams)):
        fields.append(field.with_name(_free_name(field.name, taken)))
        taken.add(fields[-1].name)
    return Layout(pa.schema([*lead, *ranking, *fields]), pa.schema(fields), time_type, emit, 0)


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _times(ticks: Ints, time_type: pa.DataType) -> pa.Array:
    times = pa.array(ticks)
    return times if times.type is time_type or times.type == time_type else times.view(time_type)
