"""Recomputation of joins: it aggregates over all combinations of live rows. Windows are those of `core/plain.py`."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from skyband.core.emit import takes_back
from skyband.core.operator import Arrays, Codes, Ints
from skyband.core.plain import BEFORE, HeldRow, PlainWindow, closing, read, saved
from skyband.core.validation import Saved
from skyband.errors import AggregateOverflow
from skyband.problems.joins.algorithms.recompute.rows import Cell, Joining, Line, Row, arriving, as_cells
from skyband.problems.joins.operator import (
    AVG,
    COUNT,
    DISTINCT,
    INNER,
    LEFT,
    MIN,
    NO_PARTNER,
    NO_VALUE,
    SEMI,
    SUM,
    Answer,
    Batch,
    KeptCells,
    Known,
    Moved,
    ShowsGroups,
    Spec,
    is_float,
)
from skyband.windows import Ticks

Groups = dict[tuple[int, ...], tuple[Any, ...]]  # from the parts of a group to the values of its aggregates


class Recompute(ShowsGroups):
    """The oracle of all plans."""

    unranked = 0
    moments = 0.0

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        # Windows end together, but each input has its own size and its own progress. A window of arrivals counts those
        # of its own input, but an answer is due after arrivals of all inputs: so it has no slide of its own.
        every = 0 if spec.by_count else spec.every
        self._windows: list[PlainWindow[Row]] = [
            PlainWindow(Ticks(source.size, every, spec.lateness, spec.by_count)) for source in spec.inputs
        ]
        self._streams = [w for w, source in zip(self._windows, spec.inputs, strict=True) if not source.relation]
        self._arrivals = 0  # by count: the arrivals of all streams
        self._unanswered: list[tuple[int, Row | None]] = []  # by count: input and row of arrivals since the last answer
        self._turns = 0
        self._cells: list[list[Cell]] = [[] for _ in spec.inputs]
        self._codes: dict[tuple[int, ...], int] = {}
        self._shown: Groups = {}  # with changes: the last answer
        self._lines: list[Line] = []

    # -- taking rows and closing windows -------------------------------------------------------------------------------

    @property
    def late(self) -> int:
        return sum(window.late for window in self._windows)

    def push(self, batch: Batch) -> Answer:
        for known, cells in zip(self._cells, batch.cells, strict=True):
            if cells is not None:
                known += as_cells(cells)
        for source, time, row in arriving(batch):
            window = self._windows[source]
            if self._spec.inputs[source].relation:
                window.rows += [] if row is None else [HeldRow(row, BEFORE, BEFORE)]  # held for ever
            elif self._spec.by_count:
                self._count(source, row)
            elif self._spec.every:
                window.arrive(row, time)
            else:
                self._arrive_and_slide(window, row, time)
        if self._spec.waits:  # the slowest input closes windows; a row's own input decides which are open for it
            self._close(min(window.due for window in self._streams))
        return self._take_answer()

    def _arrive_and_slide(self, window: PlainWindow[Row], row: Row | None, time: int) -> None:
        window.arrive(row, time)
        for each in self._windows:
            each.now = max(each.now, time)
            each.forget_before(each.now)
        self._show(window.moment)

    def _count(self, source: int, row: Row | None) -> None:
        """Take an arrival. After `every` of them, all come to their windows, and an answer is due."""
        self._arrivals += 1
        self._unanswered.append((source, row))
        if self._arrivals % max(1, self._spec.every):
            return
        for i, each in self._unanswered:
            self._windows[i].arrive(each, 0)
            self._windows[i].forget_before(0)
        self._unanswered = []
        self._show(self._arrivals)

    def advance(self, watermark: int) -> Answer:
        self._close(watermark)
        return self._take_answer()

    def finish(self) -> Answer:
        if self._spec.waits:
            self._close(self.last_end())
        return self._take_answer()

    def last_end(self) -> int:
        return max((window.last_end(held) for window in self._streams for held in window.rows), default=BEFORE)

    def next_close(self) -> int | None:
        if not self._spec.waits:
            return None
        following = self._streams[0].end_after(self._streams[0].closed)
        ends = {max(held.first, following) for window in self._streams for held in window.rows}
        if self._spec.partners:  # where their rows leave, groups may come
            ends |= {max(each.last_end(held) + each.every, following) for each in self._streams for held in each.rows}
        return next((end for end in sorted(ends) if self._groups(end)), None)

    def _close(self, until: int) -> None:
        for end in closing(self._streams, until, lambda: bool(self._shown)):
            self._show(end)
        for window in self._streams:
            window.forget_before(window.closed)  # the last answer can still be computed from the rows left

    # -- the definition ------------------------------------------------------------------------------------------------

    def _joining(self, source: int, row: Row) -> Joining:
        variables, part, distinct = self._cells[source][row.cell]
        arguments = [
            None if not row.valid >> a & 1 else struct.unpack("<d", struct.pack("<q", bits))[0] if is_double else bits
            for a, (bits, is_double) in enumerate(zip(row.bits, self._spec.inputs[source].floats, strict=True))
        ]
        by_variable = dict(zip(self._spec.inputs[source].variables, variables, strict=True))
        return Joining(by_variable, part, tuple(arguments), distinct)

    def _groups(self, end: int) -> Groups:
        """The groups of the window that ends here; without a slide, of the present windows."""
        live = [
            [self._joining(i, row) for row in (window.live(end) if window.every else window.last(window.size))]
            for i, window in enumerate(self._windows)
        ]
        groups: dict[tuple[int, ...], list[dict[int, Joining]]] = {}
        inputs = sorted(range(len(live)), key=lambda i: self._spec.inputs[i].is_partner)
        for rows in self._joined(inputs, live, {}):
            parts = tuple(rows[i].part for i in self._spec.grouped_inputs)
            groups.setdefault(parts, []).append(rows)
        return {parts: tuple(self._aggregates(rows)) for parts, rows in groups.items()}

    def _joined(
        self, inputs: list[int], live: list[list[Joining]], bound: dict[int, int]
    ) -> Iterator[dict[int, Joining]]:
        """Yield all combinations of rows, one of each input, that agree in every variable."""
        if not inputs:
            yield {}
            return
        source, *others = inputs
        for row in self._partners_of(source, [row for row in live[source] if row.agrees(bound)]):
            for rest in self._joined(others, live, {**bound, **row.variables}):
                yield {source: row, **rest}

    def _partners_of(self, source: int, agreeing: list[Joining]) -> list[Joining]:
        """What the rows on the left are joined with, of these rows that agree with them."""
        how = self._spec.inputs[source].how
        if how == INNER or (how == LEFT and agreeing):
            return agreeing
        return [self._absent(source)] if bool(agreeing) == (how == SEMI) else []

    def _absent(self, source: int) -> Joining:
        """The row without values."""
        given, cell = self._spec.inputs[source], self._cells[source][NO_PARTNER]
        row = self._joining(source, Row(NO_PARTNER, given.absent, given.absent_valid))
        return Joining({}, cell.part, row.arguments, cell.distinct)

    def _aggregates(self, rows: list[dict[int, Joining]]) -> Iterator[int | float | None]:
        for aggregate in self._spec.aggregates:
            if aggregate.argument < 0:
                yield len(rows)
                continue
            if aggregate.function == DISTINCT:
                yield len({row[aggregate.input].distinct[aggregate.argument] for row in rows} - {NO_VALUE})
                continue
            arguments = (row[aggregate.input].arguments[aggregate.argument] for row in rows)
            values = [value for value in arguments if value is not None]
            if aggregate.function == COUNT:
                yield len(values)
            elif not values:
                yield None
            elif aggregate.function == AVG:
                scale = self._spec.inputs[aggregate.input].scale(aggregate.argument)
                yield _sum(values, divisor=len(values) * 10**scale)
            elif aggregate.function == SUM and isinstance(values[0], float):
                yield _sum(values)
            elif aggregate.function == SUM:
                if not -(2**63) <= sum(values) < 2**63:
                    raise AggregateOverflow(f"A sum of whole numbers, {sum(values)}, exceeds 64 bits.")
                yield sum(values)
            else:
                yield min(values) if aggregate.function == MIN else max(values)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _show(self, at: int) -> None:
        """Add the lines that the query emits now."""
        spec, groups, before = self._spec, self._groups(at), self._shown
        groups = self._best(groups) if spec.top else groups
        told = groups
        if takes_back(spec.emit) and spec.top:
            told = groups if groups != before else {}
            self._lines += [Line(at, self._turns, None, None)] if before and not groups else []
        elif takes_back(spec.emit):
            told = {p: values for p, values in groups.items() if p not in before or repr(before[p]) != repr(values)}
            self._lines += [Line(at, self._turns, parts, None) for parts in before if parts not in groups]
        self._lines += [Line(at, self._turns, parts, values) for parts, values in told.items()]
        self._shown = groups if takes_back(spec.emit) else {}
        self._turns += 1

    def _best(self, groups: Groups) -> Groups:
        def score(values: tuple[Any, ...]) -> tuple[bool, float]:
            value = values[self._spec.top_by]
            return value is not None, 0 if value is None else -value if self._spec.ascending else value

        ranked = sorted((score(values) for values in groups.values()), reverse=True)
        if len(ranked) <= self._spec.top:
            return groups
        return {p: values for p, values in groups.items() if score(values) >= ranked[self._spec.top - 1]}

    def _take_answer(self) -> Answer:
        lines, self._lines = self._lines, []
        values, valid = np.zeros((len(lines), len(self._spec.aggregates)), np.int64), np.zeros(len(lines), np.int64)
        for i, line in enumerate(lines):
            for a, value in enumerate(line.values or ()):
                if value is not None:
                    valid[i] |= 1 << a
                    values[i, a] = _bits(value, is_float(self._spec, self._spec.aggregates[a]))
        codes = [-1 if line.parts is None else self._codes.setdefault(line.parts, len(self._codes)) for line in lines]
        return Answer(
            np.array([line.at for line in lines], np.int64),
            np.array([line.turn for line in lines], np.int64),
            np.array(codes, np.int64),
            np.array([line.values is not None for line in lines], bool),
            values,
            valid,
        )

    def parts(self, groups: Ints) -> Codes:
        width = len(self._spec.grouped_inputs)
        known = list(self._codes) or [(0,) * width]  # for a line that says that no group is left
        return np.array([known[group] for group in groups.tolist()], np.int32).reshape(len(groups), width)

    # -- state ---------------------------------------------------------------------------------------------------------

    def _used(self) -> list[set[int]]:
        """For each input: the cells that have rows."""
        used = [{held.row.cell for held in window.rows} for window in self._windows]
        for i, row in self._unanswered:
            used[i] |= set() if row is None else {row.cell}
        return used

    def rows_held(self) -> int:
        return sum(len(window.rows) for window in self._windows) + len(self._unanswered)

    def groups_live(self) -> int:
        return len(self._groups(self._streams[0].closed))

    def known(self) -> tuple[Known, ...]:
        return tuple(
            Known(0, len(rows), len(cells), len({self._cells[i][cell][0] for cell in cells}), 1)
            for i, (rows, cells) in enumerate(zip((window.rows for window in self._windows), self._used(), strict=True))
        )

    def age(self) -> None:
        """Nothing to do: it does not observe rates."""

    def live_codes(self) -> tuple[npt.NDArray[np.bool_], ...]:
        return tuple(
            np.array([cell in used or (cell == NO_PARTNER and source.is_partner) for cell in range(len(cells))], bool)
            for used, cells, source in zip(self._used(), self._cells, self._spec.inputs, strict=True)
        )

    def compact(self, kept: Sequence[KeptCells]) -> None:
        for i, (old, told) in enumerate(kept):
            number = {int(cell): c for c, cell in enumerate(old)}
            self._cells[i] = as_cells(told)
            self._windows[i].rows = [
                held._replace(row=held.row._replace(cell=number[held.row.cell])) for held in self._windows[i].rows
            ]
            self._unanswered = [
                (j, row if j != i or row is None else row._replace(cell=number[row.cell]))
                for j, row in self._unanswered
            ]
        self._codes = {}
        self._find_shown()

    def relabel(self, moved: Mapping[tuple[int, int], Moved]) -> None:
        def renewed(source: int, row: Row) -> Row:
            bits = list(row.bits)
            for (i, argument), labels in moved.items():
                if i == source and row.valid >> argument & 1:
                    bits[argument] = int(labels.of(np.array(bits[argument])))
            return row._replace(bits=tuple(bits))

        for i, window in enumerate(self._windows):
            window.rows = [held._replace(row=renewed(i, held.row)) for held in window.rows]
        self._unanswered = [(i, None if row is None else renewed(i, row)) for i, row in self._unanswered]
        self._find_shown()

    def state(self) -> Arrays:
        counted = self._arrivals, self._unanswered
        return saved((self._turns, self._cells, [window.state() for window in self._windows], counted))

    def validate(self, saved: Saved) -> None:
        """No compiled loop reads these arrays: `restore` raises for wrong ones, or they do no harm."""

    def restore(self, state: Arrays) -> None:
        self._turns, cells, windows, (self._arrivals, unanswered) = read(state)
        self._unanswered = [(i, None if row is None else Row(*row)) for i, row in unanswered]
        self._cells = [[Cell(*cell) for cell in each] for each in cells]
        for window, saved_window in zip(self._windows, windows, strict=True):
            window.restore(saved_window, Row._make)
        self._find_shown()

    def _find_shown(self) -> None:
        groups = self._groups(self._streams[0].closed) if takes_back(self._spec.emit) else {}
        self._shown = self._best(groups) if self._spec.top else groups

    def check(self) -> None:
        """It has no invariants."""


def _sum(values: list[Any], divisor: int = 1) -> float:
    """The sum, divided and rounded once. A result beyond all floats is infinite."""
    if infinite := {value for value in values if math.isinf(value)}:
        return math.nan if len(infinite) > 1 else infinite.pop()
    exact = sum(map(Fraction, values), Fraction()) / divisor
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _bits(value: int | float, is_float_value: bool) -> int:
    return struct.unpack("<q", struct.pack("<d", float(value)))[0] if is_float_value else int(value)
