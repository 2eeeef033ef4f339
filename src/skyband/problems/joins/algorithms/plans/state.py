"""A running plan: its flat arrays, and the calls of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Ints
from skyband.core.validation import Saved
from skyband.problems.joins.algorithms.plans import arrays
from skyband.problems.joins.algorithms.plans.arrays import BROKEN, LIVING, WRITTEN, longer, table
from skyband.problems.joins.algorithms.plans.config import config_of, overflow, terms_of
from skyband.problems.joins.algorithms.plans.entries import EntryTable
from skyband.problems.joins.algorithms.plans.events import events_of
from skyband.problems.joins.algorithms.plans.graph import Graph, graph_of
from skyband.problems.joins.algorithms.plans.groups import GroupTable
from skyband.problems.joins.algorithms.plans.kernels.matching import (
    DONE,
    MORE_ENTRY_STEPS,
    MORE_GROUP_STEPS,
    MORE_GROUPS,
    MORE_RECORDS,
    MORE_TALLIES,
)
from skyband.problems.joins.algorithms.plans.kernels.running import run, write_rows
from skyband.problems.joins.algorithms.plans.kernels.stairs import new_stairs
from skyband.problems.joins.algorithms.plans.partners import Absent, Partners, with_absent
from skyband.problems.joins.drivers.arrivals import ArrivalClock
from skyband.problems.joins.drivers.clock import JoinClock
from skyband.problems.joins.drivers.lifetimes import Coming
from skyband.problems.joins.drivers.live_rows import LiveRows, Moves
from skyband.problems.joins.operator import (
    BEFORE,
    Answer,
    Batch,
    Cells,
    KeptCells,
    Known,
    Moved,
    Plan,
    ShowsGroups,
    Spec,
)

_LIVE = ("last", "cell", "arguments", "valid", "weight")  # the columns of live rows in a snapshot
SAFE_BITS = 62  # 2**SAFE_BITS joined rows can be counted


class Joined(ShowsGroups):
    """A running plan.

    Parameters
    ----------
    initial_room
        How many rows, entries, groups and records there is room for at first.
    most_groups
        The most groups that it may hold.
    forget_at
        With this many groups, it pays to look for those that are gone.
    """

    def __init__(self, spec: Spec, plan: Plan, *, initial_room: int, most_groups: int, forget_at: int) -> None:
        assert len(plan.early) == len(spec.inputs)
        assert not plan.multiply or all(plan.early), "a plan that multiplies aggregates all inputs early"
        self.spec, self.plan = spec, plan
        # Without a join and without COUNT(DISTINCT x), rows go straight to groups.
        self._alone = plan.multiply and len(spec.inputs) == 1 and not spec.distincts
        self._rooms = {"initial_room": initial_room, "most_groups": most_groups, "forget_at": forget_at}
        self._graph = self._graph_of(spec)
        self._terms = terms_of(spec)
        self._config = config_of(spec, self._graph, self._terms, coalesce=plan.multiply)
        self._clock: LiveRows = ArrivalClock(spec) if spec.counts_apart else JoinClock(spec, coalesce=plan.multiply)
        self._counters = np.zeros(arrays.COUNTERS, np.int64)  # by name: see arrays.py
        self._counters[[arrays.TAU, arrays.KTH]] = arrays.MISSING
        self._turns = 0  # how many moments have passed
        self._pace = np.zeros(1 + len(spec.inputs))  # recent moments, and recent rows of each input; older count less
        self._weight = [0 for _ in spec.inputs]  # by input: how many rows the live rows stand for
        room = max(1, initial_room)
        arguments = max(len(source.floats) for source in spec.inputs)
        self._slots = table(room, arrays.R_ARGUMENTS + arguments)  # [slot]: a live row, in no order
        self._entries = EntryTable(spec, self._graph, plan.early, self._config, room)
        self._partners = tuple(Partners(spec, source) for source in spec.partners)
        self._entry_stairs = new_stairs(len(self._entries.rows) * self._config.of(arrays.STAIRS_WIDE), room)
        self._listed = np.zeros(1, np.int64)  # [0, LISTED): the entries that a moment changed
        self._groups = GroupTable(spec, self._config, self._counters, room, most_groups, forget_at)
        self._records = table(room, arrays.O_VALUES + len(spec.aggregates))  # [0, WRITTEN): in order of moment
        self._make_scratch()

    @staticmethod
    def _graph_of(spec: Spec) -> Graph:
        return graph_of(spec)

    # -- the protocol ----------------------------------------------------------------------------------------------

    @property
    def late(self) -> int:
        return self._clock.late

    @property
    def unranked(self) -> int:
        return 0

    @property
    def matches(self) -> int:
        """How many entries have been joined so far, which measures the cost of the joins."""
        return int(self._counters[arrays.MATCHES])

    def push(self, batch: Batch) -> Answer:
        for source, cells in enumerate(batch.cells):
            if cells is not None:
                self._add_cells(source, cells)
        streams = list(batch.rows)
        for source, rows in enumerate(batch.rows):
            if rows is not None and self.spec.inputs[source].relation:
                self._run(self._clock.load(source, rows))
                streams[source] = None
        order = batch.order
        if order is not None:
            relations = [i for i, source in enumerate(self.spec.inputs) if source.relation]
            order = order[~np.isin(order, relations)]
        return self._run(self._clock.take(batch._replace(rows=tuple(streams), order=order)))

    def advance(self, watermark: int) -> Answer:
        return self._run(self._clock.close(watermark))

    def next_close(self) -> int | None:
        return self._clock.next_close() if self.spec.every else None

    def finish(self) -> Answer:
        return self._run(self._clock.close(self.last_end()) if self.spec.waits else None)

    def last_end(self) -> int:
        return self._clock.last_end()

    def parts(self, groups: Ints) -> Codes:
        return self._groups.parts(groups)

    def rows_held(self) -> int:
        return self._clock.rows_held

    def groups_live(self) -> int:
        return int(self._counters[LIVING])

    def known(self) -> tuple[Known, ...]:
        found = []
        for source, queue in enumerate(self._clock.queues):
            counts = self._entries.count(source, queue.slot)
            found.append(Known(float(self._pace[1 + source]), self._weight[source], *counts))
        return tuple(found)

    @property
    def moments(self) -> float:
        return float(self._pace[0])

    def age(self) -> None:
        self._pace /= 2

    def live_codes(self) -> tuple[npt.NDArray[np.bool_], ...]:
        found = []
        for source, queue in enumerate(self._clock.queues):
            live = np.zeros(self._entries.cells(source), bool)
            live[self._entries.cell_of_slot[queue.slot]] = True
            live[self._clock.waiting[source].cell] = True
            live[:1] |= self.spec.inputs[source].is_partner  # the cell NO_PARTNER
            found.append(live)
        return tuple(found)

    def state(self) -> Arrays:
        saved = self._clock.state() | self._entries.state()
        saved["turns"] = np.array([self._turns])
        saved["pace"] = self._pace.copy()
        for source, queue in enumerate(self._clock.queues):
            saved |= {
                f"live {source} last": queue.last.copy(),
                f"live {source} cell": self._entries.cell_of_slot[queue.slot],
                f"live {source} arguments": self._arguments(source, queue.slot),
                f"live {source} valid": self._slots[queue.slot, arrays.R_VALID],
                f"live {source} weight": self._slots[queue.slot, arrays.R_WEIGHT],
            }
            if scales := self.spec.inputs[source].scales:
                saved[f"live {source} scales"] = np.array(scales)
        return saved

    def validate(self, saved: Saved) -> None:
        self._clock.validate(saved)
        saved.length(1, "turns")
        saved.counts("turns", saved["turns"])
        saved.length(1 + len(self.spec.inputs), "pace")
        saved.within("pace", saved["pace"], 0, float(2**62))
        for source, given in enumerate(self.spec.inputs):
            cells = len(saved[f"cells {source} part"])
            saved.shape(f"cells {source} variables", cells, len(given.variables))
            if given.distincts:
                saved.shape(f"cells {source} distinct", cells, given.distincts)
            for what in ("waiting", "live"):
                saved.indices(f"{what} {source} cell", saved[f"{what} {source} cell"], cells)

    def restore(self, state: Arrays) -> None:
        """Rebuild everything from the live rows: sums are exact in any order."""
        self._clock.restore(state)
        self._turns = int(state["turns"][0])
        self._pace = state["pace"].copy()
        for source in range(len(self.spec.inputs)):
            self._add_cells(source, self._entries.saved_cells(state, source))
        live = []
        for source in range(len(self.spec.inputs)):
            last, *rest = (state[f"live {source} {name}"] for name in _LIVE)
            if self.spec.inputs[source].scales:
                # Old snapshots have no scales, because they took decimals for float64.
                assert tuple(state[f"live {source} scales"].tolist()) == self.spec.inputs[source].scales
            live.append(Coming(np.full(len(last), BEFORE), last, *rest))
        self._run(self._clock.revive(live))

    def compact(self, kept: Sequence[KeptCells]) -> None:
        saved = self.state()
        for source, (old, told) in enumerate(kept):
            number = np.zeros(self._entries.cells(source), np.int64)
            number[old] = np.arange(len(old))
            saved |= {f"cells {source} {name}": column for name, column in told._asdict().items()}
            for rows in (f"live {source} cell", f"waiting {source} cell"):
                saved[rows] = number[saved[rows]]
        self._start_again(saved)

    def relabel(self, moved: Mapping[tuple[int, int], Moved]) -> None:
        saved = self.state()
        for (source, argument), labels in moved.items():
            for rows in ("live", "waiting"):
                labels.renew(saved[f"{rows} {source} arguments"], saved[f"{rows} {source} valid"], argument)
        self._start_again(saved)

    def _start_again(self, saved: Arrays) -> None:
        """Continue from a state of its own: everything follows from the live rows."""
        matches = self.matches
        self.__init__(self.spec, self.plan, **self._rooms)  # type: ignore[misc]
        self.restore(saved)
        self._counters[arrays.MATCHES] = matches

    # -- inside ----------------------------------------------------------------------------------------------------

    def _arguments(self, source: int, slots: Ints) -> Ints:
        first = arrays.R_ARGUMENTS
        return self._slots[slots, first : first + len(self.spec.inputs[source].floats)]

    def _add_cells(self, source: int, cells: Cells) -> None:
        self._entries.add_cells(source, cells)
        for partners in self._partners:
            partners.add_cells(source, cells)
        grouped = self.spec.grouped_inputs
        if len(grouped) == 1 and grouped[0] == source and len(cells.part):
            self._groups.take_parts(cells.part)

    def _run(self, moves: Moves | None) -> Answer:
        """Run the kernels on rows that come and leave, and return the answers."""
        parts: list[Ints] = []
        self._groups.forget()
        if moves is not None and len(moves.now):
            self._fit_numbers(moves)
            events, moments = events_of(self.spec, moves, self._seat(moves))
            counters = self._counters
            counters[[arrays.TURN, arrays.EVENT, arrays.STAGE, arrays.ITEM]] = 0
            counters[[arrays.FIRST_TURN, arrays.SILENT]] = self._turns, moves.silent
            if not moves.silent:
                self._turns += len(moments)
                self._pace += [len(moments), *(new.weight.sum() for new in moves.coming)]
            while (status := self._step(events, moments)) != DONE:
                if status == MORE_RECORDS:
                    parts.append(self._take_records())
                self._grow(status)
            self._unseat(moves)
        self._check_overflow()
        parts.append(self._take_records())
        records = parts[0] if len(parts) == 1 else np.concatenate(parts)
        at, turn, group, live, valid = (np.ascontiguousarray(records[:, c]) for c in range(arrays.O_VALUES))
        return Answer(at, turn, group, live != 0, records[:, arrays.O_VALUES :], valid)

    def _step(self, events: Ints, moments: Ints) -> int:
        entries, groups = self._entries, self._groups
        return int(
            run(
                *(*self._config, entries.rows, entries.first, self._listed, self._slots, groups.rows, groups.lists),
                *(groups.table, groups.tallies.lines, self._entry_stairs, groups.stairs, events, moments),
                *(self._records, self._scratch, self._scratch.view(np.float64), self._counters),
            )
        )

    def _seat(self, moves: Moves) -> list[Absent]:
        """Give each new row its slot and entry. Returns the rows without values, which have theirs."""
        self._make_slots()
        for source, (rows, slots) in enumerate(zip(moves.coming, moves.slots, strict=True)):
            if len(slots):
                entry = self._place(source, rows.cell, slots)
                write_rows(self._slots, slots, entry, rows.valid, rows.last, rows.weight, rows.arguments)
        absent = []
        for partners in self._partners:
            found = partners.take(moves, self._entries.cell_of_slot, self._clock.slots)
            absent.append(found)
            self._make_slots()
            if len(found.new):
                self._seat_absent(partners.source, found)
        entries = len(self._entries.rows)
        self._entry_stairs = self._entry_stairs.with_owners(entries * self._config.of(arrays.STAIRS_WIDE))
        if self.plan.multiply and entries >= len(self._listed):
            self._listed = np.zeros(entries + 1, np.int64)
        return absent

    def _make_slots(self) -> None:
        limit = self._clock.slots.limit
        if limit > len(self._slots):
            self._slots = longer(self._slots, max(limit, 2 * len(self._slots)))

    def _place(self, source: int, cells: Ints, slots: Ints) -> Ints:
        """The entries, or groups, of new rows."""
        if self._alone:
            return self._entries.parts(source, cells, slots)
        if self.spec.inputs[source].is_hidden:
            return self._entries.pass_over(cells, slots)
        return self._entries.seat(source, cells, slots)

    def _seat_absent(self, source: int, absent: Absent) -> None:
        given, n = self.spec.inputs[source], len(absent.new)
        entry, one = self._entries.seat_absent(source, absent.variables), np.ones(n, np.int64)
        arguments = np.tile(np.array(given.absent, np.int64), (n, 1))
        # Whatever reads `last` is a minimum or maximum, and there is none of a join with partners.
        write_rows(self._slots, absent.new, entry, given.absent_valid * one, BEFORE * one, one, arguments)

    def _unseat(self, moves: Moves) -> None:
        for source, slots in enumerate(moves.going):
            self._weight[source] -= int(self._slots[slots, arrays.R_WEIGHT].sum())
            if not self._alone and not self.spec.inputs[source].is_hidden:
                self._entries.unseat(source, slots, self._slots[slots, arrays.R_ENTRY])
        for partners in self._partners:
            self._entries.unseat_absent(self._slots[partners.ended(), arrays.R_ENTRY])

    def _fit_numbers(self, moves: Moves) -> None:
        """Make limbs wide enough for every sum that these rows can lead to, so that no loop need check for overflow."""
        self._weight = [have + int(new.weight.sum()) for have, new in zip(self._weight, moves.coming, strict=True)]
        row_bits = sum(weight.bit_length() for weight in self._weight)
        coming = [with_absent(given, rows) for given, rows in zip(self.spec.inputs, moves.coming, strict=True)]
        terms = tuple(
            term.fitting(rows.arguments[:, term.argument], rows.valid, row_bits)
            for term, rows in ((term, coming[term.input]) for term in self._terms)
        )
        is_pair = len(self.spec.inputs) == 2 and self.spec.linear and all(term.limbs <= 1 for term in terms)
        is_pair = is_pair and all(self._graph.domains)  # then an entry found by its key agrees in all variables
        self._counters[arrays.PAIR] = is_pair and not self.spec.distincts and row_bits <= SAFE_BITS
        if terms == self._terms:
            return
        before, self._terms = self._terms, terms
        if [(term.low, term.limbs) for term in before] != [(term.low, term.limbs) for term in terms]:
            self._config = config_of(self.spec, self._graph, terms, coalesce=self.plan.multiply)
            self._entries.lay_out_anew(self._config, before, terms)
            self._groups.lay_out_anew(self._config, before, terms)
            self._make_scratch()

    def _make_scratch(self) -> None:
        self._scratch = np.zeros(self._config.of(arrays.VALUES) + len(self.spec.aggregates), np.int64)

    def _grow(self, status: int) -> None:
        if status == MORE_ENTRY_STEPS:
            self._entry_stairs = self._entry_stairs.with_more_steps()
        elif status == MORE_RECORDS:
            self._grow_records()
        else:
            groups = self._groups
            more = {MORE_GROUPS: groups.grow, MORE_GROUP_STEPS: groups.grow_stairs, MORE_TALLIES: groups.tallies.grow}
            more[status]()

    def _grow_records(self) -> None:
        needed = int(self._counters[LIVING] + self._counters[arrays.TOUCHED]) + 1
        if needed > len(self._records) // 2:
            self._records = table(max(4 * needed, 1024), self._records.shape[1])

    def _take_records(self) -> Ints:
        n = int(self._counters[WRITTEN])
        self._counters[WRITTEN] = 0
        return self._records[:n].copy()

    def _check_overflow(self) -> None:
        broken, self._counters[BROKEN] = int(self._counters[BROKEN]), 0
        if broken:
            raise overflow(broken, self.spec)

    # -- invariants ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        counters = self._counters
        assert counters[arrays.LISTED] == counters[WRITTEN] == 0, "nothing is left undone"
        self._groups.check()
        for queue in self._clock.queues:
            assert (np.diff(queue.last) >= 0).all(), "rows go in order"
        for partners in self._partners:
            partners.check()
        if not self._alone:
            queues = zip(self._clock.queues, self.spec.inputs, strict=True)
            live = [queue.slot for queue, source in queues if not source.is_hidden]
            live += [partners.live for partners in self._partners]
            self._entries.check(live, self._slots[:, arrays.R_ENTRY], self._slots[:, arrays.R_WEIGHT])
