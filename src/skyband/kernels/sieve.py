"""A sieve finds the rows of a stream that may still be among the best k of their group and pane.

Rows of one pane belong to the same windows, so no answer can show a row that k rows of its own group and pane outrank.
The sieve keeps the best k rows of every (group, pane), and answers one boolean a row. It may pass too many rows (rows
of equal rank, and rows of a pane that it has forgotten), never too few.

Rows are ranked by (score, time, tie), largest first. Without ties to tell them apart, all equal rows pass.

State: one slot for each (group, pane), found through an open-addressing table. Its best rows are a linked list in a
pool of nodes; at 2k rows the list is cut back to k. Nothing is sorted: a cut selects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.kernels.compiling import allocating, kernel, part, read_only
from skyband.kernels.panes import Shape, pane_end, pane_of, pane_start
from skyband.kernels.ranking import ROW, select_best

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]
Booleans = npt.NDArray[np.bool_]

_NO_INTS = np.empty(0, np.int64)
_NO_NULLS = np.empty(0, np.bool_)
_FIRST_ENTRIES = 1 << 12
_FIRST_NODES = 1 << 16  # the most nodes at the start
_LOWEST = np.iinfo(np.int64).min


class _Slots(NamedTuple):
    """One entry for each (group, pane). `table` maps a hash to an entry, or -1 if free; it is at most half full."""

    table: Indices
    group: Ints
    pane: Ints  # 2 * the pane, + 1 if the group is null
    head: Indices  # first node, -1 when empty
    length: Indices  # nodes in the list, [0, 2k)
    worst_score: Floats  # the k-th best row at the last cut; before the first cut, below every row
    worst_time: Ints
    worst_tie: Ints


class _Nodes(NamedTuple):
    """The rows held. Each node is in the list of one slot, or in the list of free nodes."""

    score: Floats
    time: Ints
    tie: Ints
    arrival: Ints  # how many rows came before this one
    next: Indices


def _new_slots(entries: int) -> _Slots:
    group, pane, worst_time, worst_tie = (np.empty(entries, np.int64) for _ in range(4))
    head, length = (np.empty(entries, np.int32) for _ in range(2))
    table = np.full(2 * entries, -1, np.int32)
    return _Slots(table, group, pane, head, length, np.empty(entries), worst_time, worst_tie)


def _new_nodes(entries: int) -> _Nodes:
    time, tie, arrival = (np.empty(entries, np.int64) for _ in range(3))
    return _Nodes(np.empty(entries), time, tie, arrival, np.arange(1, entries + 1, dtype=np.int32))


class Sieve:
    """Passes a row if fewer than k better rows of its group and pane have come.

    With more than `capacity` slots or nodes it forgets everything. Then it passes more rows, but never too few.
    """

    def __init__(self, k: int, shape: Shape, *, ascending: bool = False, capacity: int = 1 << 22) -> None:
        self._k = k
        self._shape = shape
        self._sign = -1.0 if ascending else 1.0
        self._capacity = capacity
        self._seen = 0
        self._forget()

    def _forget(self) -> None:
        self._slots = _new_slots(_FIRST_ENTRIES)
        # A full list is 2k long, but a large k may never be reached, so nodes grow with the rows.
        self._nodes = _new_nodes(max(_FIRST_ENTRIES, min(2 * self._k, _FIRST_NODES)))
        self._fit_scratch()
        self._used = np.zeros(2, np.int64)  # slots made; the first free node

    def _fit_scratch(self) -> None:
        """Make the scratch space as long as the longest possible list."""
        self._scratch = np.empty(min(2 * self._k, len(self._nodes.score)), ROW)

    def keep(
        self,
        times: Ints,
        scores: Floats,
        groups: Ints | None = None,
        null_groups: Booleans | None = None,
        ties: Ints | None = None,
    ) -> Booleans:
        """For each row: may it still matter, given these and all earlier rows? A row with a NaN score never does."""
        groups, ties = _NO_INTS if groups is None else groups, _NO_INTS if ties is None else ties
        null_groups = _NO_NULLS if null_groups is None else null_groups
        rows = [read_only(column) for column in (times, scores, groups, null_groups, ties)]
        kept = np.zeros(len(times), np.bool_)
        to_cut = np.empty(len(times), np.int32)
        start = 0
        while start < len(times):
            start, cuts = _sift(
                *rows,
                start,
                self._seen,
                self._k,
                self._shape,
                self._sign,
                self._slots,
                self._nodes,
                self._used,
                self._scratch,
                kept,
                to_cut,
            )
            _cut_all(to_cut[:cuts], self._seen, self._k, self._slots, self._nodes, self._used, self._scratch, kept)
            if start < len(times):
                self._make_room()
        self._seen += len(times)
        return kept

    def _make_room(self) -> None:
        """Double what ran out, slots or nodes; at capacity, forget everything."""
        slots, nodes = len(self._slots.group), len(self._nodes.score)
        no_slot, no_node = self._used[0] == slots, self._used[1] == nodes
        if 2 * max(slots if no_slot else 0, nodes if no_node else 0) > self._capacity:
            self._forget()
        elif no_slot:
            self._slots = _grown(self._slots, _new_slots(2 * slots), skip=1)
            _rehash(self._slots, slots)
        elif no_node:
            self._nodes = _grown(self._nodes, _new_nodes(2 * nodes))
            self._fit_scratch()


def _grown(old: Any, new: Any, skip: int = 0) -> Any:
    for source, target in zip(old[skip:], new[skip:], strict=True):
        target[: len(source)] = source
    return new


@part
def _place(group, pane, mask):
    mixed = np.uint64(group) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(pane) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0x165667B19E3779F9)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@kernel
def _rehash(slots, used):
    mask = len(slots.table) - 1
    for slot in range(used):
        place = _place(slots.group[slot], slots.pane[slot], mask)
        while slots.table[place] >= 0:
            place = (place + 1) & mask
        slots.table[place] = slot


@part
def _slot_of(group, pane, slots, used):
    """Find or make the slot of a (group, pane); -1 if there is no room for one more."""
    mask = len(slots.table) - 1
    place = _place(group, pane, mask)
    while slots.table[place] >= 0:
        slot = np.int64(slots.table[place])
        if slots.group[slot] == group and slots.pane[slot] == pane:
            return slot
        place = (place + 1) & mask
    slot = used[0]
    if slot == len(slots.group):
        return np.int64(-1)
    used[0] += 1
    slots.table[place] = slot
    slots.group[slot], slots.pane[slot] = group, pane
    slots.head[slot], slots.length[slot] = -1, 0
    slots.worst_score[slot], slots.worst_time[slot], slots.worst_tie[slot] = -np.inf, _LOWEST, _LOWEST
    return slot


@part
def _cut(slot, seen, k, slots, nodes, used, scratch, kept):
    """Cut a slot's list to its best k rows, and unmark rows of this batch that it drops."""
    count = slots.length[slot]
    node = slots.head[slot]
    for i in range(count):
        row = scratch[i]
        row.score, row.time, row.position, row.flag = nodes.score[node], nodes.time[node], nodes.tie[node], node
        node = nodes.next[node]
    select_best(scratch, 0, count, k)
    worst = scratch[k - 1]
    slots.worst_score[slot], slots.worst_time[slot], slots.worst_tie[slot] = worst.score, worst.time, worst.position
    head = np.int64(-1)
    for i in range(k):
        nodes.next[scratch[i].flag] = head
        head = scratch[i].flag
    slots.head[slot], slots.length[slot] = head, k
    for i in range(k, count):
        row = scratch[i]
        equal = row.score == worst.score and row.time == worst.time and row.position == worst.position
        if nodes.arrival[row.flag] >= seen and not equal:
            kept[nodes.arrival[row.flag] - seen] = False
        nodes.next[row.flag] = used[1]
        used[1] = row.flag


@kernel
def _cut_all(to_cut, seen, k, slots, nodes, used, scratch, kept):
    for slot in to_cut:
        if slots.length[slot] > k:
            _cut(slot, seen, k, slots, nodes, used, scratch, kept)


@kernel
def _sift(
    times, scores, groups, null_groups, ties, start, seen, k, shape, sign, slots, nodes, used, scratch, kept, to_cut
):
    """Decide on rows from `start` on. Returns the row that found no room, or the end, and the number of slots in
    `to_cut`, whose lists may have more than k rows.

    Invariant: of the rows met so far, a slot's list holds the best min(k, n) and perhaps others; every listed row of
    this batch is kept, and so is every row that equals the k-th.
    """
    grouped, nullable, tied = len(groups) > 0, len(null_groups) > 0, len(ties) > 0
    low, high, pane = np.int64(0), np.int64(0), np.int64(0)  # the current pane has times in [low, high)
    group, null = np.int64(0), np.int64(0)
    slot = np.int64(-1)  # of the current group and pane; -1: not looked up yet
    worst = -np.inf  # its worst_score, in a register: most rows are compared with nothing else
    cuts = 0
    for i in range(start, len(times)):
        time = times[i]
        if time < low or time >= high:
            pane = pane_of(shape, time)
            low, high = pane_start(shape, pane), pane_end(shape, pane)
            slot = np.int64(-1)
        if grouped:
            row_null = np.int64(null_groups[i]) if nullable else np.int64(0)
            row_group = np.int64(0) if row_null else groups[i]
            if row_group != group or row_null != null:
                group, null = row_group, row_null
                slot = np.int64(-1)
        if slot < 0:
            slot = _slot_of(group, 2 * pane + null, slots, used)
            if slot < 0:
                return i, cuts
            worst = slots.worst_score[slot]
        score = sign * scores[i]
        if not score >= worst:  # NaN never is
            continue
        tie = ties[i] if tied else np.int64(0)
        if score == worst:
            if time < slots.worst_time[slot]:
                continue
            if time == slots.worst_time[slot] and tie < slots.worst_tie[slot]:
                continue
        node = used[1]
        if node == len(nodes.score):
            return i, cuts
        used[1] = nodes.next[node]
        nodes.score[node], nodes.time[node], nodes.tie[node] = score, time, tie
        nodes.arrival[node] = seen + i
        nodes.next[node] = slots.head[slot]
        slots.head[slot] = node
        slots.length[slot] += 1
        kept[i] = True
        if slots.length[slot] == k + 1:
            to_cut[cuts] = slot
            cuts += 1
        if slots.length[slot] == 2 * k:
            _cut(slot, seen, k, slots, nodes, used, scratch, kept)
            worst = slots.worst_score[slot]
    return len(times), cuts


@allocating
def tally_panes(times, scores, shape):
    """Count the rows with a score in each pane. Returns the first such row of each pane, and the counts."""
    first, count, panes = np.empty(len(times), np.int64), np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    size = 16
    while size < 2 * len(times):
        size *= 2
    table = np.full(size, -1, np.int32)
    n = 0
    low, high, at = np.int64(0), np.int64(0), np.int64(-1)  # the current pane: times in [low, high), and its number
    for i in range(len(times)):
        if scores[i] != scores[i]:
            continue
        time = times[i]
        if time < low or time >= high:
            pane = pane_of(shape, time)
            low, high = pane_start(shape, pane), pane_end(shape, pane)
            place = _place(0, pane, size - 1)
            while table[place] >= 0 and panes[table[place]] != pane:
                place = (place + 1) & (size - 1)
            if table[place] < 0:
                table[place] = n
                first[n], count[n], panes[n] = i, 0, pane
                n += 1
            at = np.int64(table[place])
        count[at] += 1
    return first[:n], count[:n]
