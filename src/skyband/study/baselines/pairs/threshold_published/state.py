"""The state of the published threshold algorithm: that of the published K-skyband, and the lists of rows."""

from __future__ import annotations

import numpy as np

from skyband.core.operator import Arrays, Ints
from skyband.problems.pairs.operator import Spec
from skyband.study.baselines.pairs.staircase_published.state import PublishedSkyband
from skyband.study.baselines.pairs.threshold_published import kernels
from skyband.study.baselines.pairs.threshold_published.kernels import HEAD, NONE, new_lists
from skyband.study.baselines.pairs.threshold_published.local_scores import local_scores
from skyband.study.baselines.pairs.threshold_published.walking import walking


class PublishedThreshold(PublishedSkyband):
    """`initial_room`: for how many pairs, and for how many rows, there is room at first."""

    def __init__(self, spec: Spec, *, initial_room: int = 64) -> None:
        local = local_scores(spec.scoring.score)
        assert local is not None, "`refuses` says so"
        self._local = np.array([local.columns, local.kinds, local.ways], np.int64)
        self._slack = local.slack
        self._walking = walking(spec.scoring)
        # Of different colours only if not of the same one: then `fits` says it.
        self._chromatic = spec.scoring.different and not spec.scoring.same
        self._lists = new_lists(len(local.columns), initial_room)
        self._odd = np.empty(0, np.int64)  # numbers of rows in no list: a value is not finite
        self._best_values = np.empty(spec.scoring.width)
        self._cursor = np.zeros((len(local.columns) + 1, 2), np.int64)
        self._forward = np.zeros(self._cursor.shape, np.bool_)
        super().__init__(spec, initial_room=initial_room)

    @property
    def met(self) -> int:
        """How many rows the new rows have met since rows were listed anew."""
        return int(self._lists.numbers[kernels.MET])

    # -- rows in lists --------------------------------------------------------------------------------------------

    def _list_row(self, at: int) -> None:
        """Put the row at this index into the lists, unless it is odd."""
        window, number, columns = self._rows, self._rows.base + at, self._local[0]
        if not np.isfinite(window.columns[columns, at]).all():
            self._lists.node_of[number % len(self._lists.node_of)] = NONE
            self._odd = np.append(self._odd, number)
            return
        scoring = self.spec.scoring
        group = int(window.colours[0, at]) if scoring.same else 0
        colour = int(window.colours[-1, at]) if self._chromatic else 0
        kernels.add(self._lists, window.columns, columns, at, number, group, colour, self._chromatic)

    def _list_anew(self, room: int) -> None:
        window = self._rows
        self._lists, self._odd = new_lists(self._local.shape[1], room), self._odd[:0]
        for at in range(window.head, window.tail):
            self._list_row(at)

    # -- what PublishedSkyband asks for ---------------------------------------------------------------------------

    def _find(self, at: int) -> int:
        """Lines 1 to 9 of Algorithm 5. A row with a value that is not finite meets all others."""
        window = self._rows
        if window.count > len(self._lists.node_of):
            self._list_anew(2 * window.count)
        else:
            self._list_row(at)
        lists, (columns, kinds, ways) = self._lists, self._local
        node = int(lists.node_of[(window.base + at) % len(lists.node_of)])
        if node == NONE:
            return super()._find(at)
        self._reserve_candidates()
        return int(
            self._walking.walk(
                *(window.columns, window.colours, self._band, lists, node, at, window.head, window.tail, window.base),
                *(self._odd, kinds, ways, columns, self._slack, self._chromatic, self._best_values, self._cursor),
                *(self._forward, self._row, self._other, self._reached),
            )
        )

    def _expire(self, head: int) -> None:
        base, before = self._rows.base, self._rows.head
        super()._expire(head)
        kernels.drop(self._lists, base + before, base + head, self._chromatic)
        self._odd = self._odd[self._odd >= base + head]

    def _renumber(self, numbers: Ints) -> None:
        super()._renumber(numbers)
        (number,) = numbers
        self._odd[self._odd >= number] += 1
        if self._rows.count <= len(self._lists.node_of):  # otherwise all rows are listed anew
            kernels.make_place(self._lists, number, self._rows.base + self._rows.tail - 1)

    def compact(self, kept: Ints, which: int = 0) -> None:
        super().compact(kept, which)
        self._list_anew(len(self._lists.node_of))

    def _restored(self, state: Arrays) -> None:
        super()._restored(state)
        self._list_anew(max(self._rows.count, len(self._lists.node_of)))

    # -- looking at the state -------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        lists, window = self._lists, self._rows
        live = np.arange(window.base + window.head, window.base + window.tail)
        for c in range(len(lists.value)):
            nodes, at = [], int(lists.after[c, HEAD, 0])
            while at != NONE:
                nodes.append(at)
                at = int(lists.after[c, at, 0])
            keys = [(lists.group[node], lists.value[c, node], node) for node in nodes]
            assert keys == sorted(keys), "a list is sorted by value, or by colour and value"
            assert [HEAD, *nodes][: len(nodes)] == lists.before[c, nodes].tolist(), "links lead there and back"
            known = sorted([*lists.number[nodes].tolist(), *self._odd.tolist()])
            assert known == live.tolist(), "every row of the window is in each list once, or odd"
            if self._chromatic:
                for links, order in ((lists.other_after, nodes), (lists.other_before, nodes[::-1])):
                    for place, node in enumerate(order):
                        others = (each for each in order[place:] if lists.colour[each] != lists.colour[node])
                        assert max(links[c, node], HEAD) == next(others, HEAD), "links lead to another colour"
