"""The columns of answers: from an operator's answer (positions and numbers) to the user's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyband.core.emit import LEAD, LEAVE, WHOLE, gives_changes, gives_entries
from skyband.core.encoding.rows import column_of
from skyband.core.encoding.value_types import as_values
from skyband.core.operator import Codes, Ints
from skyband.windows import FOREVER, Ticks

_CHANGES = pa.array(["enter", "leave"])

# The first columns of an answer, by emit mode; the answer to many ad-hoc questions counts as a mode here.
QUESTIONS = "questions"
_LEAD = {**LEAD, QUESTIONS: ["question", *LEAD[WHOLE]]}
# Input columns with these names are renamed.
TAKEN = {"rank", "score", *(name for names in _LEAD.values() for name in names)}
_LEAD_TYPES = {"change": pa.string(), "question": pa.int32()}  # the others have the type of the window's column
_RANK = pa.int32()


class AdHoc(NamedTuple):
    """The question that an answer belongs to: one of `top`, or those of `top_many`, which are numbered."""

    size: int | Ints | None  # in ticks; for many questions, of each row of the answer. None: the next window
    question: Codes | None = None  # for many questions: the number of each row's question


class Ranked(Protocol):
    """The columns that the answers of all ranking problems have."""

    @property
    def at(self) -> Ints: ...

    @property
    def rank(self) -> Codes: ...

    @property
    def change(self) -> npt.NDArray[np.int8]: ...


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The columns of a ranking, in order: keys, window or moment, groups, rank, score, all others."""

    schema: pa.Schema
    time_type: pa.DataType
    emit: str
    groups: int  # the number of group columns, which stand before the rank
    others: int  # the number of columns behind the score

    @classmethod
    def of(
        cls,
        emit: str,
        on_type: pa.DataType | None,
        score_type: pa.DataType,
        *,
        keys: Sequence[pa.Field] = (),
        groups: Sequence[pa.Field] = (),
        others: Sequence[pa.Field] = (),
    ) -> OutputSchema:
        """`on_type` is the type of the window's column. A name that is taken gets a trailing underscore."""
        # Bounds of windows can lie outside a narrow integer type.
        time_type = on_type if on_type is not None and pa.types.is_timestamp(on_type) else pa.int64()
        when = [pa.field(name, _LEAD_TYPES.get(name, time_type)) for name in _LEAD[emit]]
        ranking = [pa.field("rank", _RANK), pa.field("score", score_type)]
        taken = {field.name for field in (*when, *ranking)}
        free = []
        for field in (*keys, *groups, *others):
            free.append(field.with_name(free_name(field.name, taken)))
            taken.add(free[-1].name)
        before, end = len(keys), len(keys) + len(groups)
        fields = [*free[:before], *when, *free[before:end], *ranking, *free[end:]]
        return cls(pa.schema(fields), time_type, emit, len(groups), len(others))

    @property
    def lead(self) -> list[str]:
        """The names of the columns up to the score."""
        names: list[str] = self.schema.names[: len(self.schema) - self.others]
        return names

    @property
    def row_names(self) -> list[str]:
        """The names of the columns that come from rows: the groups, then the others."""
        ranking = len(self.lead) - 2
        return [*self.lead[ranking - self.groups : ranking], *self.schema.names[len(self.lead) :]]

    def table(
        self,
        answer: Ranked,
        columns: Sequence[pa.Array],
        score: pa.Array,
        window: Ticks,
        size: int | Ints | None = None,
        question: Codes | None = None,
        keys: Sequence[pa.Array] = (),
    ) -> pa.Table:
        """Build the user's table. `columns` are the groups, then the others; `size` is the length of the answer's
        windows, if it is not the query's."""
        when = self._window_columns(answer, window, window.size if size is None else size)
        if question is not None:
            when.insert(0, column_of(question, np.int32, _LEAD_TYPES["question"]))
        rank = column_of(answer.rank, np.int32, _RANK)
        return pa.Table.from_arrays(
            [*keys, *when, *columns[: self.groups], rank, score, *columns[self.groups :]], schema=self.schema
        )

    def _window_columns(self, answer: Ranked, window: Ticks, size: int | Ints) -> list[pa.Array]:
        at = column_of(answer.at, np.int64, self.time_type)
        if gives_changes(self.emit):
            return [at, _CHANGES.take(pa.array(answer.change == LEAVE).cast(pa.int8()))]
        if gives_entries(self.emit):
            return [at]
        if window.by_count:
            # A landmark window is longer than any number of arrivals, so it starts at 0.
            return [column_of(np.maximum(answer.at - size, 0), np.int64, self.time_type), at]
        endless = size == FOREVER
        if endless is True or (isinstance(endless, np.ndarray) and endless.any()):
            unknown = np.broadcast_to(endless, len(answer.at))
            return [pa.array(answer.at - size, pa.int64(), mask=unknown).view(self.time_type), at]
        return [column_of(answer.at - size, np.int64, self.time_type), at]


class Outputs:
    """The output schemas of one query: of what it emits and, from the first ad-hoc question on, of answers to those."""

    def __init__(self, emit: str, output: Callable[[str], OutputSchema]) -> None:
        """`output` makes the schema of a mode."""
        self.emitted = output(emit)
        self._output = output

    @cached_property
    def asked(self) -> OutputSchema:
        return self._output(WHOLE)

    @cached_property
    def asked_many(self) -> OutputSchema:
        """The schema of answers to many questions, which are numbered."""
        return self._output(QUESTIONS)

    def table(
        self,
        answer: Ranked,
        columns: Sequence[pa.Array],
        score: pa.Array,
        window: Ticks,
        ad_hoc: AdHoc | None,
        *,
        size: int | Ints | None = None,
        keys: Sequence[pa.Array] = (),
    ) -> pa.Table:
        """Build the table of an emitted answer or, with `ad_hoc`, of an answer to a question.

        `size` is the length of its windows, if neither the query nor the question gives it.
        """
        if ad_hoc is None:
            return self.emitted.table(answer, columns, score, window, size, None, keys)
        output = self.asked if ad_hoc.question is None else self.asked_many
        size = ad_hoc.size if size is None else size
        return output.table(answer, columns, score, window, size, ad_hoc.question, keys)


def places(window: Ints) -> Ints:
    """The place of each line within its window, from 1, for lines in order of their windows.

    >>> places(np.array([10, 10, 20, 30, 30])).tolist()
    [1, 2, 1, 1, 2]
    """
    starts = np.flatnonzero(np.diff(window, prepend=window[:1] - 1))
    return np.arange(len(window)) - np.repeat(starts, np.diff(starts, append=len(window))) + 1


def sorted_places(keys: Sequence[pa.Array | pa.ChunkedArray]) -> Ints:
    """The place of each row when the rows are sorted by these columns.

    >>> sorted_places([pa.array(["b", "a", None, "a"])]).tolist()
    [2, 0, 3, 1]
    """
    plain = [as_values(key) for key in keys]
    table = pa.table(plain, names=[str(i) for i in range(len(plain))])
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def best_of_parts(parts: pa.Table, keys: list[tuple[str, str]], k: int) -> pa.Table:
    """Merge the answers of the parts of a stream: the k best lines of each window, ranked by `keys`."""
    lines = parts.take(pc.sort_indices(parts, sort_keys=[("window_end", "ascending"), *keys]))
    rank = places(lines.column("window_end").cast(pa.int64()).to_numpy()).astype(np.int32)
    lines = lines.set_column(lines.schema.get_field_index("rank"), "rank", pa.array(rank))
    return lines.filter(pa.array(rank <= k)).combine_chunks()


def free_name(name: str, taken: set[str]) -> str:
    """Add underscores to a name until it is not taken."""
    while name in taken:
        name += "_"
    return name
