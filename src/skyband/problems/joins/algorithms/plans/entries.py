"""The entries of a join and their indexes: an entry for each row or, with early aggregation, for each cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyband.core.operator import Arrays, Codes, Ints
from skyband.kernels.codes import IntegerCodes
from skyband.problems.joins.algorithms.plans.arrays import (
    DELTA,
    ENTRY_DISTINCT,
    ENTRY_WIDTH,
    FOLLOWING,
    IS_LISTED,
    KEYS,
    NONE,
    PART,
    PRECEDING,
    SOURCE,
    SUMS,
    VARIABLES,
    longer,
    table,
)
from skyband.problems.joins.algorithms.plans.config import Config, Term, moved
from skyband.problems.joins.algorithms.plans.graph import Graph
from skyband.problems.joins.drivers.lifetimes import NumberPool
from skyband.problems.joins.operator import NO_PARTNER, Cells, Spec


class Keys:
    """Codes for combinations of values of several variables."""

    def __init__(self, variables: int) -> None:
        self._pairs = [IntegerCodes() for _ in range(variables - 1)]
        self._one = 0

    def encode(self, values: Ints) -> Ints:
        codes: Ints = values[:, 0]
        for column, pair in enumerate(self._pairs, start=1):
            codes = pair.encode(codes << 32 | values[:, column]).astype(np.int64)
        if not self._pairs and len(codes):
            self._one = max(self._one, int(codes.max()) + 1)
        return codes

    @property
    def count(self) -> int:
        return self._pairs[-1].count if self._pairs else self._one


class EntryTable:
    """The entries, the cells that they belong to, and the lists by which they are found."""

    def __init__(self, spec: Spec, graph: Graph, early: tuple[bool, ...], config: Config, room: int) -> None:
        self._spec, self._graph, self._early, self._config = spec, graph, early, config
        self._indexes = sum(len(graph.indexes(i)) for i in range(len(spec.inputs)))
        self._keys = [Keys(len(domain)) for domain in graph.domains]
        self._numbers = NumberPool()
        self._numbers.take(1)  # entry 0 is scratch space
        # For each input and cell: its entry while it has rows, or 0.
        self._cells = [np.zeros(0, np.int64) for _ in spec.inputs]
        self._known = [Cells.none(len(source.variables), source.distincts) for source in spec.inputs]
        self.rows = table(max(1, room), config.of(ENTRY_WIDTH))
        self.first = np.full((max(1, self._indexes), 1), NONE, np.int64)  # [index, key]: the first entry with this key
        self.cell_of_slot = np.zeros(1, np.int64)

    def cells(self, source: int) -> int:
        return len(self._known[source].part)

    def add_cells(self, source: int, cells: Cells) -> None:
        known = self._known[source]
        self._known[source] = Cells(*(np.concatenate(pair) for pair in zip(known, cells, strict=True)))
        if self.cells(source) > len(self._cells[source]):
            self._cells[source] = longer(self._cells[source], 2 * self.cells(source))

    def _new_entries(self, source: int, cells: Ints) -> Ints:
        """Make an entry for each of these cells."""
        return self._new_entries_of(source, Cells(*(column[cells] for column in self._known[source])))

    def _new_entries_of(self, source: int, cells: Cells) -> Ints:
        entries = self._numbers.take(len(cells.part))
        if self._numbers.limit > len(self.rows):
            self.rows = longer(self.rows, max(self._numbers.limit, 2 * len(self.rows)))
        variables = cells.variables.astype(np.int64)
        own, numbers = self._spec.inputs[source].variables, self._config.numbers
        self.rows[entries] = 0
        self.rows[entries, SOURCE] = source
        self.rows[entries, PART] = cells.part
        at = int(numbers[ENTRY_DISTINCT])
        self.rows[entries, at : at + self._spec.inputs[source].distincts] = cells.distinct
        for column, variable in enumerate(own):
            self.rows[entries, numbers[VARIABLES] + variable] = variables[:, column]
        for d, domain in enumerate(self._graph.domains):
            if domain and set(domain) <= set(own):  # with an empty domain every key is 0
                columns = [own.index(variable) for variable in domain]
                self.rows[entries, numbers[KEYS] + d] = self._keys[d].encode(variables[:, columns])
        keys = max((keys.count for keys in self._keys), default=0)
        if keys > self.first.shape[1]:
            first = np.full((len(self.first), 2 * keys), NONE, np.int64)
            first[:, : self.first.shape[1]] = self.first
            self.first = first
        return entries

    def parts(self, source: int, cells: Ints, slots: Ints) -> Ints:
        """The parts of new rows with these cells, in these slots. This is for queries that need no entries."""
        self._note_cells(cells, slots)
        return self._known[source].part[cells].astype(np.int64)

    def _note_cells(self, cells: Ints, slots: Ints) -> None:
        limit = int(slots.max()) + 1
        if limit > len(self.cell_of_slot):
            self.cell_of_slot = longer(self.cell_of_slot, 2 * limit)
        self.cell_of_slot[slots] = cells

    def seat(self, source: int, cells: Ints, slots: Ints) -> Ints:
        """Give new rows with these cells, in these slots, their entries."""
        self._note_cells(cells, slots)
        if not self._early[source]:
            return self._new_entries(source, cells)
        of_cell = self._cells[source]
        new = cells[of_cell[cells] == 0]
        if len(new):
            # A cell may occur several times: the last occurrence stands for it.
            of_cell[new] = np.arange(len(new))
            new = new[of_cell[new] == np.arange(len(new))]
            of_cell[new] = self._new_entries(source, new)
        return of_cell[cells]

    def pass_over(self, cells: Ints, slots: Ints) -> Ints:
        """New rows with these cells, in these slots, that are joined with nothing themselves."""
        self._note_cells(cells, slots)
        return np.zeros(len(slots), np.int64)

    def seat_absent(self, source: int, variables: Codes) -> Ints:
        """Make entries for rows without values, which have these join variables."""
        cells = np.full(len(variables), NO_PARTNER)
        return self._new_entries_of(
            source, Cells(*(column[cells] for column in self._known[source]))._replace(variables=variables)
        )

    def unseat_absent(self, entries: Ints) -> None:
        self._numbers.give(entries)

    def unseat(self, source: int, slots: Ints, entries: Ints) -> None:
        """Free the entries that have no rows, after the rows in these slots have left."""
        if self._early[source]:
            of_cell = self._cells[source]
            cells = self.cell_of_slot[slots[self.rows[entries, self._config.numbers[SUMS]] == 0]]
            entries = of_cell[cells]
            of_cell[cells] = np.arange(len(cells))
            entries = entries[of_cell[cells] == np.arange(len(cells))]
            of_cell[cells] = 0
        self._numbers.give(entries)

    def count(self, source: int, slots: Ints) -> tuple[int, int, int]:
        """How many cells, combinations of join variables and parts of groups the rows in these slots have."""
        is_live = np.zeros(self.cells(source), bool)
        is_live[self.cell_of_slot[slots]] = True
        variables = self._known[source].variables[is_live]
        if variables.shape[1] == 1:
            values = _different(variables[:, 0])
        else:
            values = len(np.unique(variables, axis=0)) if variables.shape[1] else min(1, len(variables))
        return len(variables), values, _different(self._known[source].part[is_live])

    def lay_out_anew(self, config: Config, before: Sequence[Term], after: Sequence[Term]) -> None:
        """Make sums wide enough for other terms. No change may wait to be joined."""
        old, self._config = self.rows, config
        start = config.of(SUMS)
        self.rows = table(len(old), config.of(ENTRY_WIDTH))
        self.rows[:, :start] = old[:, :start]
        for source in range(len(self._spec.inputs)):
            rows = np.flatnonzero(old[:, SOURCE] == source)
            mine = [[term for term in terms if term.input == source] for terms in (before, after)]
            sums = moved(old[rows, start:], *mine)
            self.rows[rows, start : start + sums.shape[1]] = sums

    def state(self) -> Arrays:
        saved: Arrays = {}
        for source, known in enumerate(self._known):
            columns = known._asdict()
            if not known.distinct.shape[1]:  # so that snapshots without COUNT(DISTINCT x) keep their format
                del columns["distinct"]
            saved |= {f"cells {source} {name}": column.copy() for name, column in columns.items()}
        return saved

    def saved_cells(self, state: Arrays, source: int) -> Cells:
        variables, part = (state[f"cells {source} {name}"] for name in ("variables", "part"))
        none = np.zeros((len(part), 0), np.int32)
        return Cells(variables, part, state.get(f"cells {source} distinct", none))

    def check(self, live: Sequence[Ints], entry_of_slot: Ints, weight: Ints) -> None:
        counted = np.zeros(len(self.rows), np.int64)
        for slots in live:
            np.add.at(counted, entry_of_slot[slots], weight[slots])
        numbers = self._config.numbers
        assert (self.rows[1:, numbers[SUMS]] == counted[1:]).all(), "an entry counts its live rows"
        assert not self.rows[1:, numbers[DELTA] :].any(), "nothing waits to be joined"
        assert not self.rows[:, IS_LISTED].any()
        for source in range(len(self._spec.inputs)):
            self._check_links(source)

    def _check_links(self, source: int) -> None:
        numbers = self._config.numbers
        start = sum(len(self._graph.indexes(i)) for i in range(source))
        for link, domain in enumerate(self._graph.indexes(source)):
            linked = []
            for key, entry in enumerate(self.first[start + link]):
                previous = NONE
                while entry != NONE:
                    row = self.rows[entry]
                    assert row[numbers[KEYS] + domain] == key, "an entry is found by its own key"
                    assert row[numbers[PRECEDING] + link] == previous, "lists can be walked both ways"
                    linked.append(entry)
                    previous, entry = entry, row[numbers[FOLLOWING] + link]
            has_rows = (self.rows[1:, numbers[SUMS]] > 0) & (self.rows[1:, SOURCE] == source)
            assert sorted(linked) == (1 + np.flatnonzero(has_rows)).tolist(), (
                "all entries with rows are found, no others"
            )


def _different(codes: Codes) -> int:
    """How many different codes there are, with -1. They are close together, so counting is faster than sorting."""
    return int(np.count_nonzero(np.bincount(codes + 1)))
