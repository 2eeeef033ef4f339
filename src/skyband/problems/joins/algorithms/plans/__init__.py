"""Late and early aggregation: all plans of a join followed by grouping, and one that multiplies.

Paper:      Tran and Lee, JCSE 2009: Algorithm 1 with Rule 1, sections 4 to 6.
Invariant:  an input's entries are its live rows or, aggregated early, its cells with the exact sums of their live rows;
            a group's sums are those of all combinations of entries that agree in the join variables.
Cost:       a row takes one update and as many as it finds matching entries in each other input, multiplied; state is
            the live rows, the cells and the groups. `multiply` joins what a slide changed of a cell once, not by row.
Choose it:  always; which inputs to aggregate early is what the planner decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.operator import Arrays, Codes, Ints
from skyband.errors import AggregateOverflow, TooManyGroups
from skyband.problems.joins.algorithms.plans import arrays
from skyband.problems.joins.algorithms.plans.arrays import BROKEN, GROUPS, LIVING, WRITTEN, longer, table
from skyband.problems.joins.algorithms.plans.entries import EntryTable
from skyband.problems.joins.algorithms.plans.graph import graph_of
from skyband.problems.joins.algorithms.plans.kernels.matching import (
    DONE,
    MORE_ENTRY_STEPS,
    MORE_GROUP_STEPS,
    MORE_GROUPS,
    MORE_RECORDS,
    fill_table,
)
from skyband.problems.joins.algorithms.plans.kernels.running import line_up, run, write_rows
from skyband.problems.joins.algorithms.plans.kernels.stairs import new_stairs
from skyband.problems.joins.algorithms.plans.layout import layout_of, moved, terms_of
from skyband.problems.joins.drivers.clock import Moves, Schedule
from skyband.problems.joins.drivers.lifetimes import Coming
from skyband.problems.joins.operator import BEFORE, Answer, Batch, Cells, JoinOperator, Known, Spec

MOST_GROUPS = 20_000_000
_LIVE = ("last", "cell", "arguments", "valid", "weight")  # of a live row, in a snapshot
SAFE_BITS = 62  # so many joined rows, as a power of two, can be counted


class Plan(NamedTuple):
    """How a query is run."""

    early: tuple[bool, ...]  # by input: are its rows aggregated before the join?
    multiply: bool = False  # join what a slide changed of a cell, all at once


def open(
    spec: Spec, plan: Plan, *, initial_room: int = 64, most_groups: int = MOST_GROUPS, forget_at: int = 4096
) -> JoinOperator:
    """`forget_at`: groups that are not worth looking for those that are gone."""
    return Joined(spec, plan, initial_room=initial_room, most_groups=most_groups, forget_at=forget_at)


def refuses(spec: Spec, plan: Plan) -> str | None:
    """Why this plan cannot answer the query, or None."""
    if plan.multiply and not spec.linear:
        return "a minimum or maximum is not a product of what is known of each input"
    return None


class Joined:
    """A plan, running."""

    def __init__(self, spec: Spec, plan: Plan, *, initial_room: int, most_groups: int, forget_at: int) -> None:
        assert len(plan.early) == len(spec.inputs)
        assert not plan.multiply or all(plan.early), "what is multiplied is aggregated"
        self.spec, self.plan = spec, plan
        self._alone = plan.multiply and len(spec.inputs) == 1  # nothing to join with: rows go straight to groups
        self._rooms = {"initial_room": initial_room, "most_groups": most_groups, "forget_at": forget_at}
        self._most_groups, self._forget_at = most_groups, forget_at
        self._graph = graph_of(spec)
        self._terms = terms_of(spec)
        self._layout = layout_of(spec, self._graph, self._terms, coalesce=plan.multiply)
        self._schedule = Schedule(spec, coalesce=plan.multiply)
        self._counters = np.zeros(arrays.COUNTERS, np.int64)
        self._counters[[arrays.TAU, arrays.KTH]] = arrays.MISSING
        self._counters[GROUPS] = 0 if spec.grouped_inputs else 1
        self._turns = 0
        self._pace = np.zeros(1 + len(spec.inputs))  # moments, and by input the rows that came; older ones count less
        self._weight = [0 for _ in spec.inputs]  # rows that the live ones stand for
        room = max(1, initial_room)
        self._entries = EntryTable(spec, self._graph, plan.early, self._layout, room)
        self._slots = table(room, arrays.R_ARGUMENTS + max(len(source.floats) for source in spec.inputs))
        self._groups = self._new_groups(room)
        self._lists = np.zeros((arrays.GROUP_LISTS, room + 1), np.int64)
        self._listed = np.zeros(1, np.int64)
        self._table = np.full(_table_size(room), arrays.NONE, np.int64)
        self._entry_stairs = new_stairs(len(self._entries.rows) * self._rule(arrays.STAIRS_WIDE), room)
        self._group_stairs = new_stairs(room * self._rule(arrays.STAIRS), room)
        self._records = table(room, arrays.O_VALUES + len(spec.aggregates))
        self._make_scratch()

    # -- the protocol ----------------------------------------------------------------------------------------------

    @property
    def late(self) -> int:
        return self._schedule.late

    @property
    def unranked(self) -> int:
        return 0

    @property
    def matches(self) -> int:
        """Entries joined so far: what the joins cost."""
        return int(self._counters[arrays.MATCHES])

    def push(self, batch: Batch) -> Answer:
        for source, cells in enumerate(batch.cells):
            if cells is not None:
                self._add_cells(source, cells)
        streams = list(batch.rows)
        for source, rows in enumerate(batch.rows):
            if rows is not None and self.spec.inputs[source].relation:
                self._run(self._schedule.load(source, rows))
                streams[source] = None
        order = batch.order
        if order is not None:
            relations = [i for i, source in enumerate(self.spec.inputs) if source.relation]
            order = order[~np.isin(order, relations)]
        batch = batch._replace(rows=tuple(streams), order=order)
        if self.spec.every == 0:
            return self._run(self._schedule.arrive(batch))
        self._schedule.wait(batch)
        return self._close(self._schedule.watermark())

    def advance(self, watermark: int) -> Answer:
        return self._close(watermark)

    def next_close(self) -> int | None:
        return self._schedule.next_close() if self.spec.every else None

    def finish(self) -> Answer:
        if self.spec.every == 0 or self.spec.by_count:
            return self._run(None)
        return self._close(self._schedule.last_end())

    def parts(self, groups: Ints) -> Codes:
        grouped = self.spec.grouped_inputs
        if len(grouped) == 1:
            return groups.astype(np.int32)[:, None]
        first = self._rule(arrays.GROUP_PARTS)
        return self._groups[groups, first : first + len(grouped)].astype(np.int32)

    def rows_held(self) -> int:
        return self._schedule.rows_held

    def groups_live(self) -> int:
        return int(self._counters[LIVING])

    def known(self) -> tuple[Known, ...]:
        found = []
        for source, queue in enumerate(self._schedule.queues):
            counts = self._entries.count(source, queue.slot)
            found.append(Known(float(self._pace[1 + source]), self._weight[source], *counts))
        return tuple(found)

    @property
    def moments(self) -> float:
        return float(self._pace[0])

    def age(self) -> None:
        self._pace /= 2

    def live_cells(self) -> tuple[npt.NDArray[np.bool_], ...]:
        found = []
        for source, queue in enumerate(self._schedule.queues):
            live = np.zeros(self._entries.cells(source), bool)
            live[self._entries.cell_of_slot[queue.slot]] = True
            live[self._schedule.waiting[source].cell] = True
            found.append(live)
        return tuple(found)

    def state(self) -> Arrays:
        saved = self._schedule.state() | self._entries.state()
        saved["turns"] = np.array([self._turns])
        saved["pace"] = self._pace.copy()
        for source, queue in enumerate(self._schedule.queues):
            saved |= {
                f"live {source} last": queue.last.copy(),
                f"live {source} cell": self._entries.cell_of_slot[queue.slot],
                f"live {source} arguments": self._arguments(source, queue.slot),
                f"live {source} valid": self._slots[queue.slot, arrays.R_VALID],
                f"live {source} weight": self._slots[queue.slot, arrays.R_WEIGHT],
            }
        return saved

    def restore(self, state: Arrays) -> None:
        """Everything else follows from the rows that are live: sums are exact, whatever the order they came in."""
        self._schedule.restore(state)
        self._turns = int(state["turns"][0])
        self._pace = state["pace"].copy()
        for source in range(len(self.spec.inputs)):
            self._add_cells(source, self._entries.saved_cells(state, source))
        live = []
        for source in range(len(self.spec.inputs)):
            last, *rest = (state[f"live {source} {name}"] for name in _LIVE)
            live.append(Coming(np.full(len(last), BEFORE), last, *rest))
        self._run(self._schedule.revive(live))

    def renumber(self, kept: Sequence[Ints], cells: Sequence[Cells]) -> None:
        saved = self.state()
        for source, (old, told) in enumerate(zip(kept, cells, strict=True)):
            number = np.zeros(self._entries.cells(source), np.int64)
            number[old] = np.arange(len(old))
            saved |= {f"cells {source} {name}": column for name, column in told._asdict().items()}
            for rows in (f"live {source} cell", f"waiting {source} cell"):
                saved[rows] = number[saved[rows]]
        # Begin anew: everything follows from the live rows.
        matches = self.matches
        self.__init__(self.spec, self.plan, **self._rooms)  # type: ignore[misc]
        self.restore(saved)
        self._counters[arrays.MATCHES] = matches

    # -- inside ----------------------------------------------------------------------------------------------------

    def _rule(self, what: int) -> int:
        return int(self._layout.rule[what])

    def _arguments(self, source: int, slots: Ints) -> Ints:
        first = arrays.R_ARGUMENTS
        return self._slots[slots, first : first + len(self.spec.inputs[source].floats)]

    def _close(self, watermark: int) -> Answer:
        return self._run(self._schedule.close(watermark) if watermark > BEFORE else None)

    def _add_cells(self, source: int, cells: Cells) -> None:
        self._entries.add_cells(source, cells)
        grouped = self.spec.grouped_inputs
        if len(grouped) == 1 and grouped[0] == source and len(cells.part):
            # With one part a group is known by it.
            self._counters[GROUPS] = max(self._counters[GROUPS], int(cells.part.max()) + 1)
            self._reserve_groups(int(self._counters[GROUPS]))

    def _run(self, moves: Moves | None) -> Answer:
        """Let the kernels take what comes and goes; answer what that makes known."""
        parts: list[Ints] = []
        self._forget_groups()
        if moves is not None and len(moves.now):
            self._fit_numbers(moves)
            self._seat(moves)
            events, moments = _events(moves)
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
            for source, slots in enumerate(moves.going):
                self._weight[source] -= int(self._slots[slots, arrays.R_WEIGHT].sum())
                if not self._alone:
                    self._entries.unseat(source, slots, self._slots[slots, arrays.R_ENTRY])
        self._check_overflow()
        parts.append(self._take_records())
        records = parts[0] if len(parts) == 1 else np.concatenate(parts)
        at, turn, group, live, valid = (np.ascontiguousarray(records[:, c]) for c in range(arrays.O_VALUES))
        return Answer(at, turn, group, live != 0, records[:, arrays.O_VALUES :], valid)

    def _step(self, events: Ints, moments: Ints) -> int:
        entries = self._entries
        return int(
            run(
                *(*self._layout, entries.rows, entries.first, self._listed, self._slots, self._groups, self._lists),
                *(self._table, self._entry_stairs, self._group_stairs, events, moments, self._records),
                *(self._scratch, self._scratch.view(np.float64), self._counters),
            )
        )

    def _seat(self, moves: Moves) -> None:
        """Give each row that comes a slot and an entry."""
        limit = self._schedule.slots.limit
        if limit > len(self._slots):
            self._slots = longer(self._slots, max(limit, 2 * len(self._slots)))
        for source, (rows, slots) in enumerate(zip(moves.coming, moves.slots, strict=True)):
            if len(slots):
                place = self._entries.parts if self._alone else self._entries.seat
                entry = place(source, rows.cell, slots)
                write_rows(self._slots, slots, entry, rows.valid, rows.last, rows.weight, rows.arguments)
        entries = len(self._entries.rows)
        self._entry_stairs = self._entry_stairs.with_owners(entries * self._rule(arrays.STAIRS_WIDE))
        if self.plan.multiply and entries >= len(self._listed):
            self._listed = np.zeros(entries + 1, np.int64)

    def _fit_numbers(self, moves: Moves) -> None:
        """Make limbs wide enough for every sum that these rows can lead to, so that none is ever checked again."""
        self._weight = [have + int(new.weight.sum()) for have, new in zip(self._weight, moves.coming, strict=True)]
        row_bits = sum(weight.bit_length() for weight in self._weight)
        terms = tuple(
            term.fitting(rows.arguments[:, term.argument], rows.valid, row_bits)
            for term, rows in ((term, moves.coming[term.input]) for term in self._terms)
        )
        is_pair = len(self.spec.inputs) == 2 and self.spec.linear and all(term.limbs <= 1 for term in terms)
        self._counters[arrays.PAIR] = is_pair and row_bits <= SAFE_BITS
        if terms == self._terms:
            return
        before, self._terms = self._terms, terms
        if [(term.low, term.limbs) for term in before] != [(term.low, term.limbs) for term in terms]:
            self._layout = layout_of(self.spec, self._graph, terms, coalesce=self.plan.multiply)
            self._entries.lay_out_anew(self._layout, before, terms)
            start = self._rule(arrays.GROUP_SUMS)
            self._groups = np.concatenate(
                [self._groups[:, :start], moved(self._groups[:, start:], before, terms)], axis=1
            )
            self._make_scratch()

    def _make_scratch(self) -> None:
        self._scratch = np.zeros(self._rule(arrays.VALUES) + len(self.spec.aggregates), np.int64)

    def _new_groups(self, count: int) -> Ints:
        return table(count, self._rule(arrays.GROUP_WIDTH))

    def _reserve_groups(self, count: int) -> None:
        have = len(self._groups)
        if count <= have:
            return
        if count > self._most_groups:
            raise TooManyGroups(
                f"The join gives more than {self._most_groups:,} groups. No plan holds fewer: each has to be shown. "
                "Group by fewer columns, filter an input with where=, or use smaller windows."
            )
        count = max(count, min(2 * have, self._most_groups))
        larger = self._new_groups(count)
        larger[:have] = self._groups
        self._groups = larger
        lists = np.zeros((arrays.GROUP_LISTS, count + 1), np.int64)
        lists[:, : have + 1] = self._lists
        self._lists = lists
        if len(self.spec.grouped_inputs) > 1:
            self._fill_table()
        self._group_stairs = self._group_stairs.with_owners(count * self._rule(arrays.STAIRS))

    def _forget_groups(self) -> None:
        """Drop groups that are gone, when they are most: combinations of parts come without end."""
        counters = self._counters
        if len(self.spec.grouped_inputs) < 2 or counters[GROUPS] < max(self._forget_at, 4 * counters[LIVING]):
            return
        kept = np.flatnonzero((self._groups[:, arrays.IS_LIVE] | self._groups[:, arrays.IN_RESERVE]) != 0)
        number = np.zeros(len(self._groups), np.int64)
        number[kept] = np.arange(len(kept))
        old, self._groups = self._groups, self._new_groups(max(2 * len(kept), self._rooms["initial_room"]))
        self._groups[: len(kept)] = old[kept]
        lists = np.zeros((arrays.GROUP_LISTS, len(self._groups) + 1), np.int64)
        for which, count in ((arrays.L_LIVING, counters[LIVING]), (arrays.L_RESERVE, counters[arrays.RESERVE])):
            lists[which, :count] = number[self._lists[which, :count]]
        self._lists = lists
        if wide := self._rule(arrays.STAIRS):
            owners = np.zeros((len(self._groups) * wide, self._group_stairs.owners.shape[1]), np.int64)
            owners[: len(kept) * wide] = self._group_stairs.owners[(kept[:, None] * wide + np.arange(wide)).ravel()]
            self._group_stairs = self._group_stairs._replace(owners=owners)
        counters[GROUPS] = len(kept)
        self._fill_table()

    def _fill_table(self) -> None:
        self._table = np.full(_table_size(len(self._groups)), arrays.NONE, np.int64)
        parts = len(self.spec.grouped_inputs)
        fill_table(self._table, self._groups, self._rule(arrays.GROUP_PARTS), parts, int(self._counters[GROUPS]))

    def _grow(self, status: int) -> None:
        growth: dict[int, Callable[[], None]] = {
            MORE_GROUPS: lambda: self._reserve_groups(len(self._groups) + 1),
            MORE_ENTRY_STEPS: self._grow_entry_stairs,
            MORE_GROUP_STEPS: self._grow_group_stairs,
            MORE_RECORDS: self._grow_records,
        }
        growth[status]()

    def _grow_entry_stairs(self) -> None:
        self._entry_stairs = self._entry_stairs.with_more_steps()

    def _grow_group_stairs(self) -> None:
        self._group_stairs = self._group_stairs.with_more_steps()

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
        if broken == 1:
            raise AggregateOverflow(
                "The join gives more than 2**62 rows, too many to count. Filter an input, join on more columns, or use "
                "smaller windows."
            )
        if broken > 1:
            raise AggregateOverflow(
                "A sum of whole numbers exceeds 64 bits. SUM(x * 1.0) adds float64.",
                broken - 2,
            )

    # -- invariants ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        counters, groups = self._counters, self._groups
        assert counters[arrays.TOUCHED] == counters[arrays.LISTED] == counters[WRITTEN] == 0, "nothing is left undone"
        assert not groups[:, arrays.IS_TOUCHED].any()
        sums = groups[:, self._rule(arrays.GROUP_SUMS) :]
        rows = sums[:, 0]
        assert (rows >= 0).all(), "no group has lost more rows than it had"
        assert ((rows > 0) == (groups[:, arrays.IS_LIVE] != 0)).all(), "a group lives while it has rows"
        living = self._lists[arrays.L_LIVING, : counters[LIVING]]
        assert (np.sort(living) == np.flatnonzero(rows > 0)).all(), "living groups are listed, once each"
        assert not sums[rows == 0].any(), "where all rows have gone, all sums are zero"
        for queue in self._schedule.queues:
            assert (np.diff(queue.last) >= 0).all(), "rows go in order"
        if self.spec.top and counters[arrays.RESERVE] > 0:
            outside = living[groups[living, arrays.IN_RESERVE] == 0]
            assert (groups[outside, arrays.SCORE] <= counters[arrays.TAU]).all(), "what may be shown is in the reserve"
        if not self._alone:
            live = [queue.slot for queue in self._schedule.queues]
            self._entries.check(live, self._slots[:, arrays.R_ENTRY], self._slots[:, arrays.R_WEIGHT])


def _table_size(groups: int) -> int:
    """Of a hash table that is at most half full."""
    return 1 << (2 * groups - 1).bit_length()


def _events(moves: Moves) -> tuple[Ints, Ints]:
    """What comes and goes, moment by moment, and the moments. In each, what goes is first: less is joined in vain."""
    gone = [(*pair, -1) for pair in zip(moves.going, moves.goes, strict=True)]
    come = [(*pair, 1) for pair in zip(moves.slots, moves.comes, strict=True)]
    counts = sum(np.bincount(moment, minlength=len(moves.now)) for _, moment, _ in (*gone, *come))
    end = np.cumsum(counts)
    events, at = table(int(end[-1]), 2), end - counts
    for slots, moment, sign in (*gone, *come):
        line_up(events, at, slots, moment, sign)
    return events, np.stack([end, moves.now, moves.at], axis=1)


__all__ = ["Joined", "Plan", "open", "refuses"]
