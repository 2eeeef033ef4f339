"""The rows that windows may still hold, and the definition of what an answer is."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Ints
from skyband.errors import AggregateOverflow
from skyband.problems.joins.operator import (
    AVG,
    BEFORE,
    COUNT,
    MIN,
    SUM,
    UNMATCHED,
    Answer,
    Batch,
    KeptCells,
    Known,
    ShowsGroups,
    Spec,
    is_float,
)
from skyband.windows import FOREVER


class _Row(NamedTuple):
    start: int  # the first moment at which it is live
    last: int
    cell: int
    bits: tuple[int, ...]  # of its arguments
    valid: int
    variables: dict[int, int]
    part: int
    arguments: tuple[int | float | None, ...]


class Recompute(ShowsGroups):
    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._late = 0
        self._closed = BEFORE
        self._arrivals = self._turns = 0
        self._seen = [BEFORE for _ in spec.inputs]
        self._cells: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in spec.inputs]
        self._rows: list[list[_Row]] = [[] for _ in spec.inputs]
        self._codes: dict[tuple[int, ...], int] = {}
        self._shown: dict[tuple[int, ...], tuple[Any, ...]] = {}

    @property
    def late(self) -> int:
        return self._late

    @property
    def unranked(self) -> int:
        return 0

    def push(self, batch: Batch) -> Answer:
        for known, cells in zip(self._cells, batch.cells, strict=True):
            if cells is not None:
                known += [(tuple(v), int(p)) for v, p in zip(cells.variables.tolist(), cells.part, strict=True)]
        found: list[tuple[int, int, dict[tuple[int, ...], Any]]] = []
        for source, time, cell, bits, valid in _arriving(batch):
            self._take(source, time, cell, bits, valid)
            if self._spec.every == 0 and not self._spec.inputs[source].relation:
                self._arrivals += 1
                self._closed = max(self._closed, time)
                at = self._arrivals if self._spec.by_count else self._closed
                found.append((at, self._turn(), self._answer(self._closed)))
        if self._spec.every == 0:
            return self._say(found)
        reached = min(seen for seen, i in zip(self._seen, self._spec.inputs, strict=True) if not i.relation)
        if reached == BEFORE or self._spec.lateness >= FOREVER:
            return self._say([])
        return self.advance(reached - self._spec.lateness + self._spec.by_count)

    def _take(self, source: int, time: int, cell: int, bits: tuple[int, ...], valid: int) -> None:
        spec, size, every = self._spec, self._spec.inputs[source].size, self._spec.every
        if spec.inputs[source].relation:
            start, last = BEFORE, FOREVER
        elif every == 0:
            start, last = BEFORE, (time + size - 1 if size < FOREVER else FOREVER)
            if last < max(self._closed, time):
                self._late += 1
                return
        else:
            closed = self._closed
            if spec.lateness < FOREVER and self._seen[source] > BEFORE:
                closed = max(closed, (self._seen[source] - spec.lateness) // every * every)
            last = (time + size) // every * every if size < FOREVER else FOREVER
            self._seen[source] = max(self._seen[source], time) if spec.lateness < FOREVER else BEFORE
            if last <= closed:
                self._late += 1
                return
            start = max(time // every * every, closed if closed > BEFORE else time // every * every) + every
        if cell != UNMATCHED:
            self._rows[source].append(self._row(source, start, last, cell, bits, valid))

    def _row(self, source: int, start: int, last: int, cell: int, bits: tuple[int, ...], valid: int) -> _Row:
        variables, part = self._cells[source][cell]
        named = dict(zip(self._spec.inputs[source].variables, variables, strict=True))
        arguments = [
            None if not valid >> a & 1 else struct.unpack("<d", struct.pack("<q", bits[a]))[0] if is_double else bits[a]
            for a, is_double in enumerate(self._spec.inputs[source].floats)
        ]
        return _Row(start, last, cell, bits, valid, named, part, tuple(arguments))

    def advance(self, watermark: int) -> Answer:
        every = self._spec.every
        target = watermark // every * every
        ends: set[int] = set()
        streams = [rows for rows, i in zip(self._rows, self._spec.inputs, strict=True) if not i.relation]
        for row in (row for rows in streams for row in rows):
            first = max(row.start, self._closed + every) if self._closed > BEFORE else row.start
            ends.update(range(first, min(row.last + every, target) + 1, every))
        found = [(end, self._turn(), self._answer(end)) for end in sorted(ends)]
        self._closed = max(self._closed, target)
        return self._say(found)

    def next_close(self) -> int | None:
        for end in self._later_ends():
            if self._answer(end):
                return end
        return None

    def _later_ends(self) -> list[int]:
        every, found = self._spec.every, set[int]()
        longest = max([row.start for rows in self._rows for row in rows], default=BEFORE)
        for row in (row for rows in self._rows for row in rows if row.start > BEFORE):
            first = max(row.start, self._closed + every) if self._closed > BEFORE else row.start
            until = max(longest, self._closed + every) if row.last == FOREVER else row.last
            found.update(range(first, until + 1, every))
        return sorted(found)

    def finish(self) -> Answer:
        if self._spec.every == 0 or self._spec.by_count:
            return self._say([])
        ends = [BEFORE]
        for rows, source in zip(self._rows, self._spec.inputs, strict=True):
            if not source.relation:
                ends += [max(row.start for row in rows)] if rows else []
                ends += [max(row.last for row in rows)] if rows and source.size < FOREVER else []
        return self.advance(max(ends)) if max(ends) > BEFORE else self._say([])

    # -- the definition --------------------------------------------------------------------------------------------

    def _answer(self, now: int) -> dict[tuple[int, ...], tuple[Any, ...]]:
        """The values of each group at this moment."""
        live = [[row for row in rows if row.start <= now <= row.last] for rows in self._rows]
        groups: dict[tuple[int, ...], list[tuple[_Row, ...]]] = {}
        for rows in _joined(live, {}):
            parts = tuple(rows[i].part for i in self._spec.grouped_inputs)
            groups.setdefault(parts, []).append(rows)
        return {parts: tuple(self._aggregates(rows)) for parts, rows in groups.items()}

    def _aggregates(self, rows: list[tuple[_Row, ...]]) -> Iterator[int | float | None]:
        for aggregate in self._spec.aggregates:
            if aggregate.argument < 0:
                yield len(rows)
                continue
            arguments = (row[aggregate.input].arguments[aggregate.argument] for row in rows)
            values = [value for value in arguments if value is not None]
            if aggregate.function == COUNT:
                yield len(values)
            elif not values:
                yield None
            elif aggregate.function == SUM:
                total = _sum(values)
                if isinstance(total, int) and not -(2**63) <= total < 2**63:
                    raise AggregateOverflow(f"A sum of whole numbers, {total}, exceeds 64 bits.")
                yield total
            elif aggregate.function == AVG:
                yield _mean(values, self._spec.inputs[aggregate.input].scale(aggregate.argument))
            else:
                yield min(values) if aggregate.function == MIN else max(values)

    # -- what is said ----------------------------------------------------------------------------------------------

    def _turn(self) -> int:
        self._turns += 1
        return self._turns - 1

    def _say(self, found: list[tuple[int, int, dict[tuple[int, ...], Any]]]) -> Answer:
        lines: list[tuple[int, int, Any, bool, Any]] = []
        for at, turn, groups in found:
            if self._spec.top:
                best = self._best(groups)
                if not self._spec.changes or best != self._shown:
                    lines += [(at, turn, parts, True, values) for parts, values in best.items()]
                    lines += [(at, turn, None, False, None)] if self._spec.changes and not best else []
                    self._shown = best
            elif not self._spec.changes:
                lines += [(at, turn, parts, True, values) for parts, values in groups.items()]
            else:
                gone = [parts for parts in self._shown if parts not in groups]
                lines += [(at, turn, parts, False, None) for parts in gone]
                new = {p: v for p, v in groups.items() if p not in self._shown or repr(self._shown[p]) != repr(v)}
                lines += [(at, turn, parts, True, values) for parts, values in new.items()]
                self._shown = groups
        self._rows = [[row for row in rows if row.last >= self._closed] for rows in self._rows]
        return self._written(lines)

    def _best(self, groups: dict[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
        def score(values: tuple[Any, ...]) -> tuple[bool, float]:
            value = values[self._spec.top_by]
            return value is not None, 0 if value is None else -value if self._spec.ascending else value

        ranked = sorted((score(values) for values in groups.values()), reverse=True)
        if len(ranked) <= self._spec.top:
            return groups
        return {p: values for p, values in groups.items() if score(values) >= ranked[self._spec.top - 1]}

    def _written(self, lines: list[tuple[int, int, Any, bool, Any]]) -> Answer:
        aggregates = len(self._spec.aggregates)
        values, valid = np.zeros((len(lines), aggregates), np.int64), np.zeros(len(lines), np.int64)
        for i, (*_, line) in enumerate(lines):
            for a, value in enumerate(line or ()):
                if value is not None:
                    valid[i] |= 1 << a
                    values[i, a] = _bits(value, is_float(self._spec, self._spec.aggregates[a]))
        codes = [
            -1 if parts is None else self._codes.setdefault(parts, len(self._codes)) for _, _, parts, _, _ in lines
        ]
        return Answer(
            np.array([line[0] for line in lines], np.int64),
            np.array([line[1] for line in lines], np.int64),
            np.array(codes, np.int64),
            np.array([line[3] for line in lines], bool),
            values,
            valid,
        )

    def parts(self, groups: Ints) -> Codes:
        width = len(self._spec.grouped_inputs)
        known = list(self._codes) or [(0,) * width]  # what is asked of a line that says that no group is left
        return np.array([known[group] for group in groups.tolist()], np.int32).reshape(len(groups), width)

    # -- state -----------------------------------------------------------------------------------------------------

    def rows_held(self) -> int:
        return sum(len(rows) for rows in self._rows)

    def groups_live(self) -> int:
        return len(self._answer(self._closed))

    def known(self) -> tuple[Known, ...]:
        return tuple(
            Known(0, len(rows), len({r.cell for r in rows}), len({tuple(r.variables.values()) for r in rows}), 1)
            for rows in self._rows
        )

    @property
    def moments(self) -> float:
        return 0.0

    def age(self) -> None:
        """It does not count what comes: no plan is compared with it."""

    def live_cells(self) -> tuple[npt.NDArray[np.bool_], ...]:
        used = [{row.cell for row in rows} for rows in self._rows]
        return tuple(
            np.array([cell in mine for cell in range(len(cells))], bool)
            for mine, cells in zip(used, self._cells, strict=True)
        )

    def compact(self, kept: Sequence[KeptCells]) -> None:
        for i, (old, told) in enumerate(kept):
            number = {int(cell): c for c, cell in enumerate(old)}
            self._cells[i] = [(tuple(v), int(p)) for v, p in zip(told.variables.tolist(), told.part, strict=True)]
            self._rows[i] = [self._row(i, r.start, r.last, number[r.cell], r.bits, r.valid) for r in self._rows[i]]
        self._codes = {}
        now = self._answer(self._closed)
        self._shown = self._best(now) if self._spec.top else now

    def state(self) -> Arrays:
        clock = [self._late, self._closed, self._arrivals, self._turns, *self._seen]
        saved: Arrays = {"clock": np.array(clock, np.int64)}
        for i, (cells, rows) in enumerate(zip(self._cells, self._rows, strict=True)):
            saved[f"cells {i}"] = np.array([[*variables, part] for variables, part in cells], np.int64)
            saved[f"rows {i}"] = np.array([[r.start, r.last, r.cell, r.valid, *r.bits] for r in rows], np.int64)
        return saved

    def restore(self, state: Arrays) -> None:
        self._late, self._closed, self._arrivals, self._turns, *self._seen = (int(n) for n in state["clock"])
        for i in range(len(self._spec.inputs)):
            self._cells[i] = [(tuple(variables), part) for *variables, part in state[f"cells {i}"].tolist()]
            self._rows[i] = [
                self._row(i, start, last, cell, tuple(bits), valid)
                for start, last, cell, valid, *bits in state[f"rows {i}"].tolist()
            ]
        now = self._answer(self._closed)
        self._shown = self._best(now) if self._spec.top else now

    def check(self) -> None:
        """There is nothing to go wrong."""


def _joined(live: list[list[_Row]], bound: dict[int, int]) -> Iterator[tuple[_Row, ...]]:
    """All combinations of rows, one of each input, that agree in every variable."""
    if not live:
        yield ()
        return
    for row in live[0]:
        if all(bound.get(variable, value) == value for variable, value in row.variables.items()):
            for rest in _joined(live[1:], {**bound, **row.variables}):
                yield (row, *rest)


def _arriving(batch: Batch) -> Iterator[tuple[int, int, int, tuple[int, ...], int]]:
    """The rows of a batch in the order of their arrival: input, time, cell, arguments, which of them are there."""
    counts = [0 if rows is None else len(rows.time) for rows in batch.rows]
    order = [i for i, n in enumerate(counts) for _ in range(n)] if batch.order is None else batch.order.tolist()
    taken = [0 for _ in counts]
    for source in order:
        rows, i = batch.rows[source], taken[source]
        assert rows is not None
        assert rows.weight is None, "the definition is about rows"
        taken[source] += 1
        yield source, int(rows.time[i]), int(rows.cell[i]), tuple(rows.arguments[i].tolist()), int(rows.valid[i])


def _sum(values: list[Any]) -> int | float:
    """The sum, rounded once if it is of floats: beyond all floats it is infinite."""
    if isinstance(values[0], int):
        return sum(values)
    infinite = {value for value in values if math.isinf(value)}
    if infinite:
        return math.nan if len(infinite) > 1 else infinite.pop()
    return _nearest(sum(map(Fraction, values), Fraction()))


def _mean(values: list[Any], scale: int) -> float:
    """The mean of numbers with so many digits behind the point, rounded once."""
    if any(math.isinf(value) for value in values):
        return float(_sum(values))
    return _nearest(sum(map(Fraction, values), Fraction()) / len(values) / 10**scale)


def _nearest(exact: Fraction) -> float:
    """The nearest float64; beyond all of them it is infinite."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _bits(value: int | float, is_float_value: bool) -> int:
    return struct.unpack("<q", struct.pack("<d", float(value)))[0] if is_float_value else int(value)
