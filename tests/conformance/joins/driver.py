"""Runs a plan the way an engine does, and writes its answers down so that they can be compared."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from conformance.feeding import Feeder
from conformance.joins.strategies import Case, Row

from skyband.problems.joins.operator import (
    NO_PARTNER,
    UNMATCHED,
    Answer,
    Batch,
    Cells,
    JoinOperator,
    KeptCells,
    Rows,
    Spec,
)

Line = tuple[Any, ...]


class Driver(Feeder[Spec, Row, Line]):
    """An operator for joins, and the codes of its cells."""

    def __init__(self, case: Case, open_operator: Callable[[Spec], JoinOperator]) -> None:
        super().__init__(case.spec, open_operator)
        self._cells = case.cells
        self._codes: list[dict[int, int]] = [{} for _ in case.spec.inputs]  # by input, from cells of the case

    def batch(self, rows: Sequence[Row]) -> Batch:
        """Cells are told of as late as can be."""
        inputs = range(len(self.spec.inputs))
        of_input = [[row for row in rows if row.input == i] for i in inputs]
        news = [self._news(i, [row.cell for row in of_input[i]]) for i in inputs]
        known = [self._rows(i, of_input[i]) for i in inputs]
        return Batch(tuple(known), tuple(news), np.array([row.input for row in rows], np.int32))

    def _news(self, i: int, cells: list[int]) -> Cells | None:
        codes = self._codes[i]
        least = NO_PARTNER if self.spec.inputs[i].is_partner else UNMATCHED  # which is told at once
        new = [cell for cell in range(max(cells, default=UNMATCHED) + 1) if cell not in codes]
        new = new or [cell for cell in range(least + 1) if cell not in codes]
        codes |= {cell: len(codes) + n for n, cell in enumerate(new)}
        return Cells(*(column[new] for column in self._cells[i])) if new else None

    def _rows(self, i: int, rows: list[Row]) -> Rows | None:
        if not rows:
            return None
        floats, codes = self.spec.inputs[i].floats, {UNMATCHED: UNMATCHED, **self._codes[i]}
        arguments, valid = np.zeros((len(rows), len(floats)), np.int64), np.zeros(len(rows), np.int64)
        for r, row in enumerate(rows):
            for a, value in enumerate(row.arguments):
                if value is not None:
                    # The engine leaves one zero of the two.
                    bits = struct.unpack("<q", struct.pack("<d", value + 0.0))[0] if floats[a] else value
                    arguments[r, a], valid[r] = bits, valid[r] | 1 << a
        time, cell = [row.time for row in rows], [codes[row.cell] for row in rows]
        return Rows(np.array(time, np.int64), np.array(cell, np.int32), arguments, valid)

    def read(self, answer: Answer) -> list[Line]:
        """Lines in order of time; those of one time sorted."""
        assert (np.diff(answer.at) >= 0).all()
        parts = self.operator.parts(np.maximum(answer.group, 0)) if len(answer.group) else np.zeros((0, 0))
        with_turn = self.spec.every == 0
        lines = [
            (at, turn if with_turn else 0, tuple(key) if group >= 0 else (), live, valid, tuple(values))
            for at, turn, group, key, live, valid, values in zip(
                answer.at.tolist(),
                answer.turn.tolist(),
                answer.group.tolist(),
                parts.tolist(),
                answer.live.tolist(),
                answer.valid.tolist(),
                answer.values.tolist(),
                strict=True,
            )
        ]
        return sorted(lines)

    def compact(self) -> None:
        kept = []
        for i, live in enumerate(self.operator.live_codes()):
            old = np.flatnonzero(live)
            cell_of = {code: cell for cell, code in self._codes[i].items()}
            cells = [cell_of[code] for code in old.tolist()]
            kept.append(KeptCells(old, Cells(*(column[cells] for column in self._cells[i]))))
            self._codes[i] = {cell: code for code, cell in enumerate(cells)}
        self.operator.compact(kept)


def states(lines: list[Line]) -> list[tuple[Any, ...]]:
    """With a k: what each moment shows, without those that show the same as the one before."""
    moments: dict[tuple[int, int], list[Line]] = {}
    for at, turn, *rest in lines:
        moments.setdefault((at, turn), []).append(tuple(rest))
    found: list[tuple[Any, ...]] = []
    for moment, shown in moments.items():
        real = [line for line in shown if line[1]]
        if (found and found[-1][1] != real) or (not found and real):
            found.append((moment, real))
    return found
