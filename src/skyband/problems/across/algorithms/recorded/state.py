"""The state of `recorded`: slots for the objects of the front, and a table of the rows of all others that may matter.

A record has the same facts as a slot. It takes 32 bytes, whatever the number of streams, and identifies its object by a
64-bit hash of the id. An object is in slots or on record, never both.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.across.algorithms.recorded import kernels
from skyband.problems.across.algorithms.recorded.kernels import (
    FREE,
    IN_SLOTS,
    MOST_TAKEN,
    NEWEST,
    NUMBERS,
    RECORD,
    TAKEN,
    UNSURE,
    Lifetime,
    Records,
    new_table,
)
from skyband.problems.across.algorithms.staircase.kernels import CODE, SIZE
from skyband.problems.across.algorithms.staircase.state import Staircase
from skyband.problems.across.drivers.clock import Steps
from skyband.problems.across.drivers.kernels.slots import EARLIEST, START, new_slots
from skyband.problems.across.operator import AcrossAnswer, AcrossBatch, AcrossSpec

FEWEST_PLACES: Final = 512
PLACES_A_ROW: Final = 1.75  # places of a new table for each row


class RecordConfig(NamedTuple):
    """The query, as the loop needs it."""

    k: int
    emit: int
    each: bool
    patience: int


class Recorded(Staircase):
    """The operator. Objects go on record when slots have twice the points of the front and `patience` more."""

    wants_keys = True

    def __init__(self, spec: AcrossSpec, *, patience: int = 32) -> None:
        super().__init__(spec, patience=patience)
        window = spec.window
        self._lifetime = Lifetime(window.size - window.moves_by_value, max(window.every, 1), window.endless)
        self._door = new_slots(1, spec.streams)  # scratch space: one object
        self._records = Records(
            new_table(FEWEST_PLACES), np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(NUMBERS, np.int64)
        )
        self._records.numbers[UNSURE] = START
        self._widen(len(self._s.score))

    def push(self, batch: AcrossBatch) -> AcrossAnswer:
        self._make_room(batch.codes)
        self._records.prints[batch.code] = _prints_of(batch.key if len(batch.key) else batch.code.astype(np.int64))
        return super().push(batch)

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        if self._s.numbers[SIZE] + self.spec.streams > len(self._s.score):
            self._widen(2 * len(self._s.score))
        self._ensure_room()
        config = RecordConfig(self.spec.k, self.spec.emit, steps.each, self._patience)
        return kernels.execute(
            config, self._lifetime, self._scoring, steps.rows, steps.clock, steps.row, step, end,
            self._s, self._records, self._shown, self._out, written,
        )  # fmt: skip

    def _rank_now(self, clock: int) -> int:
        found = super()._rank_now(clock)
        self.recall = kernels.recall_at(self._clock(), self._records)
        return found

    def _ensure_room(self) -> None:
        """Make room on record for all objects in slots: drop rows that cannot matter, and take a larger table."""
        records, streams = self._records, self.spec.streams
        if kernels.has_room(records, streams):
            return
        stairs = self._prune()
        kernels.drop_dominated(records, self._clock(), self._lifetime, *stairs, self._door, self._scoring)
        records.numbers[TAKEN] = rows = self.rows_on_record()
        table = new_table(self._places_for(rows))
        kernels.fill(records.table, table)
        self._records = records._replace(table=table)

    def _places_for(self, rows: int) -> int:
        in_slots = int(self._records.numbers[IN_SLOTS]) * self.spec.streams
        return int(PLACES_A_ROW * rows + in_slots / MOST_TAKEN) + FEWEST_PLACES

    def _settle(self) -> None:
        self._ensure_room()
        kernels.settle(self._s, self._records, self.spec.k, self._scoring, self._shown.mark)

    # -- state --------------------------------------------------------------------------------------------------------

    def _rows_kept(self) -> int:
        self._settle()
        return super()._rows_kept()

    def rows_on_record(self) -> int:
        """How many rows no answer can show until their object comes again."""
        return int(np.count_nonzero(self._records.table["stream"] >= 0))

    def _live(self) -> npt.NDArray[np.bool_]:
        self._settle()
        return super()._live()

    def _grow(self, codes: int) -> None:
        super()._grow(codes)
        prints = np.zeros(codes, np.uint64)
        prints[: len(self._records.prints)] = self._records.prints
        self._records = self._records._replace(prints=prints)

    def _widen(self, room: int) -> None:
        super()._widen(room)
        self._list_objects(room)

    def _list_objects(self, room: int) -> None:
        """List the objects in slots, with room for as many as there can be with this many points."""
        objects = np.flatnonzero((self._s.slots["last"] != EARLIEST).any(axis=1))
        listed = np.zeros(2 * room + self._patience + len(objects) + 1, np.int64)
        listed[: len(objects)] = objects
        self._records.numbers[IN_SLOTS] = len(objects)
        self._records = self._records._replace(in_slots=listed)

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        super()._compact(kept, code_of)
        self._records = self._records._replace(prints=self._records.prints[kept])
        self._list_objects(len(self._s.score))

    def _state(self) -> Arrays:
        records = self._records
        return {
            **super()._state(),
            "records": records.table[records.table["stream"] >= 0],
            "prints": records.prints.copy(),
            "recorded": records.numbers.copy(),
        }

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        records = saved["records"]
        saved.length(NUMBERS, "recorded")
        saved.length(len(saved["own_slots"]), "prints")
        saved.within("recorded", saved["recorded"][[NEWEST]], 0, FARTHEST)
        saved.indices("records.stream", records["stream"], self.spec.streams)
        saved.numbers("records.value", records["value"])
        saved.within("records.time", records["time"], -FARTHEST, FARTHEST)

    def _restore(self, state: Arrays) -> None:
        rows = state["records"].astype(RECORD)
        self._records.numbers[:] = state["recorded"]
        super()._restore(state)
        self._list_objects(len(self._s.score))
        self._records.numbers[TAKEN] = len(rows)
        self._records.prints[: len(state["prints"])] = state["prints"]
        self._records = self._records._replace(table=new_table(self._places_for(len(rows))))
        kernels.fill(rows, self._records.table)

    # -- invariants ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        table, numbers = self._records.table, self._records.numbers
        taken = int(np.count_nonzero(table["stream"] != FREE))
        assert taken == numbers[TAKEN], "every place that is not free is counted"
        assert taken <= MOST_TAKEN * len(table), "and some are free"
        listed = set(self._records.in_slots[: numbers[IN_SLOTS]].tolist())
        in_slots = set(np.flatnonzero((self._s.slots["last"] != EARLIEST).any(axis=1)).tolist())
        assert in_slots <= listed, "every object in slots is listed"
        on_record = set(table["print"][table["stream"] >= 0].tolist())
        assert not on_record & set(self._records.prints[list(in_slots)].tolist()), "and is not on record"
        points = set(self._s.front[CODE, : self._s.numbers[SIZE]].tolist())
        assert self.repeated or points <= in_slots, "every object of the front is in slots"


def _prints_of(key: Ints) -> npt.NDArray[np.uint64]:
    """Mix the bits of keys, one to one."""
    mixed = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))
