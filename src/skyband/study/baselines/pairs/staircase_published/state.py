"""The state of the published K-skyband: pairs in slots, lists of slots, a search tree, and answers that follow rows.

The paper's three modules are here in one: the window's rows are the stream manager, `_take` is skyband maintenance, and
`_search` and `_follow` answer queries.
"""

from __future__ import annotations

import numpy as np

from skyband.core.ad_hoc import Spans
from skyband.core.clock import EARLIEST
from skyband.core.emit import ENTER
from skyband.core.operator import Arrays, Floats, Ints
from skyband.core.validation import Saved
from skyband.problems.pairs.drivers.kernels import renumber
from skyband.problems.pairs.drivers.row_driver import RowDriver
from skyband.problems.pairs.drivers.window_rows import Rows, validate_pairs
from skyband.problems.pairs.operator import Answer, Pairs, Spec, best_first
from skyband.study.baselines.pairs.staircase_published.kernels import search_tree, skyband
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import (
    FREE,
    FREE_NODE,
    HELD,
    NONE,
    ROOT,
    STEPS,
    Tree,
    new_band,
    new_tree,
)
from skyband.study.baselines.pairs.staircase_published.kernels.continuous import follow, watching
from skyband.windows import FOREVER


class PublishedSkyband(RowDriver):
    """`initial_room`: for how many pairs there is room at first."""

    def __init__(self, spec: Spec, *, initial_room: int = 64) -> None:
        super().__init__(spec)
        self._band, self._tree = new_band(spec.k, initial_room), new_tree(initial_room)
        # By pair of the row that is being taken: its score; of those that no k others dominate also the two rows.
        self._score, self._reached = np.empty(0), np.empty(0)
        self._row, self._other = np.empty(0, np.int64), np.empty(0, np.int64)
        none = np.empty(0, np.int64)
        # Without a slide the query itself is the first question that is watched.
        own = (none, none) if self._windows.slides else (np.array([spec.k]), np.array([spec.window.size]))
        self._watched = watching(*own)

    # -- questions ------------------------------------------------------------------------------------------------

    def _answer_one(self, k: int, spans: Spans, before: int) -> Answer:
        """Section 4.1: a snapshot query. `top_many` is section 6.3: many of them in one pass over the skyband."""
        start, end, at = (int(moment[0, 0]) for moment in spans)
        holder = self._caught_up(before)
        assert isinstance(holder, PublishedSkyband)
        pairs = holder._search(k, holder._rows.base + holder._rows.first_at(start))[: None if start < end else 0]
        n = len(pairs)
        return Answer(
            np.full(n, at),
            np.arange(1, n + 1, dtype=np.int32),
            pairs["score"],
            pairs["a_position"],
            pairs["b_position"],
            np.full(n, ENTER, np.int8),
        )

    def watch(self, k: Ints, size: Ints) -> int:
        """Section 4.2: continuous queries. Their answers follow the rows from now on; returns the first one's number.

        The window must slide with each arrival, k be at most the query's and size at most the window's. A snapshot does
        not have them.
        """
        assert not self._windows.slides, "between two slides no answer is known"
        assert k.max() <= self.spec.k, "pairs are kept for answers of so many"
        assert size.max() <= self.spec.window.size, "pairs are kept for a window of this size"
        first = len(self._watched.k)
        self._watched = watching(np.append(self._watched.k, k), np.append(self._watched.size, size))
        self._follow(0)
        return first

    def watched(self, question: int) -> Pairs:
        """The answer to a question that is watched, best first."""
        pairs: Pairs = self._watched.top[question, : self._watched.length[question]]
        return pairs

    def _search(self, k: int, start: int) -> Pairs:
        n = search_tree.search(self._tree, self._band.pairs, k, start, self._band.merged)
        pairs: Pairs = self._band.pairs[self._band.merged[:n]]
        return pairs

    def _follow(self, new: int) -> None:
        """Bring what is watched up to date; the last row brought so many new pairs."""
        if len(self._watched.k):
            follow(self._watched, self._starts(), self._band, self._tree, new)

    def _starts(self) -> Ints:
        """By question that is watched: the number of the first row in its window."""
        size, rows = self._watched.size, self._rows
        first = np.where(size >= FOREVER, EARLIEST, self._windows.now + 1 - size)
        return rows.base + rows.firsts_at(first)

    # -- what RowDriver asks for ----------------------------------------------------------------------------------

    def _append(self, rows: Rows) -> None:
        for i in range(rows.length):
            self._rows.append(rows.take(slice(i, i + 1)))
            self._take(self._rows.tail - 1)

    def _insert(self, rows: Rows) -> None:
        for i in range(rows.length):
            at, places = self._rows.insert(rows.take(slice(i, i + 1)))
            self._renumber(self._rows.base + places)
            self._take(int(at[0]))

    def _expire(self, head: int) -> None:
        self._rows.head = head
        skyband.expire(self._band, self._tree, self._rows.base + head)

    def _best(self, start: int) -> Pairs:
        return self._search(self.spec.k, start) if self._windows.slides else self.watched(0)

    def _mark(self, a: Ints, b: Ints) -> None:
        wanted, pairs, slots = set(zip(a.tolist(), b.tolist(), strict=True)), self._band.pairs, self._held_slots()
        for slot in slots[np.isin(pairs["a_position"][slots], a)]:
            if (int(pairs["a_position"][slot]), int(pairs["b_position"][slot])) in wanted:
                pairs["flag"][slot] = 1

    def _candidates(self) -> Pairs:
        pairs: Pairs = self._band.pairs[self._held_slots()]
        return pairs

    def _renumber(self, numbers: Ints) -> None:
        super()._renumber(numbers)
        band, watched, steps = self._band, self._watched, self._band.numbers[STEPS]
        renumber(band.pairs, len(band.pairs), numbers)
        renumber(band.stair, steps, numbers)
        renumber(self._tree.split, len(self._tree.split), numbers)
        renumber(watched.top.reshape(-1), watched.top.size, numbers)
        for ages in (band.stair_age[:steps], watched.age):
            ages += np.searchsorted(numbers, ages, "right")

    def _saved(self) -> Arrays:
        return {"band": self._candidates()}

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        validate_pairs(saved, "band", timed=self._rows.timed)
        band = saved["band"]
        ranked = bool((best_first(band) == np.arange(len(band))).all())
        saved.promise(ranked, "'band' is not sorted by rank")

    def _restored(self, state: Arrays) -> None:
        n = len(state["band"])
        self._band, self._tree = new_band(self.spec.k, n + 1), new_tree(n + 1)
        self._band.pairs[:n] = state["band"]
        skyband.adopt(self._band, self.spec.k, n)
        search_tree.index(self._tree, self._band.pairs, self._band.by_score, n)
        self._watched.length[:] = 0
        self._follow(0)

    # -- maintenance ----------------------------------------------------------------------------------------------

    def _take(self, at: int) -> None:
        """Algorithm 3: the row at this index has come."""
        candidates = self._find(at)
        self._reserve(candidates)
        self._follow(self._update(candidates))

    def _find(self, at: int) -> int:
        """Find the pairs of this row that no k others dominate; returns how many there are."""
        window = self._rows
        self._reserve_candidates()
        score = self._score[: window.count]
        self.spec.scoring.scores(window.columns, window.colours, at, window.head, window.tail, score)
        return self._undominated(score, at)

    def _reserve_candidates(self) -> None:
        """There is room for a pair with each row of the window."""
        room = 2 * self._rows.count
        if len(self._score) < self._rows.count:
            self._score, self._reached = np.empty(room), np.empty(room)
            self._row, self._other = np.empty(room, np.int64), np.empty(room, np.int64)

    def _undominated(self, score: Floats, at: int) -> int:
        """Find those of the row's pairs, of which these are the scores, that no k others dominate."""
        window = self._rows
        return int(
            skyband.undominated(self._band, score, window.head, at, window.base, self._row, self._other, self._reached)
        )

    def _update(self, candidates: int) -> int:
        """Take so many pairs into the skyband, and drop what is dominated now; returns how many new ones stay."""
        window, found = self._rows, (self._row, self._other, self._reached)
        return int(skyband.take(self._band, self._tree, self.spec.k, *found, candidates, window.base, window.position))

    def _reserve(self, pairs: int) -> None:
        """There are so many free slots."""
        band, tree = self._band, self._tree
        room, free = len(band.pairs), int(band.numbers[FREE])
        if free >= pairs:
            return
        more = max(room, pairs - free)
        larger_band, larger_tree = new_band(self.spec.k, room + more), new_tree(room + more)
        for old, new in zip((*band, *tree), (*larger_band, *larger_tree), strict=True):
            new[: len(old)] = old
        larger_band.free[free : free + more] = np.arange(room, room + more)
        larger_band.numbers[FREE] = free + more
        # The nodes that were there before are used up first.
        larger_tree.left[room:-1], larger_tree.left[-1] = np.arange(room + 1, room + more), tree.numbers[FREE_NODE]
        larger_tree.numbers[FREE_NODE] = room
        self._band, self._tree = larger_band, larger_tree

    def _held_slots(self) -> Ints:
        return self._band.by_score[: self._band.numbers[HELD]]

    # -- looking at the state -------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        window, band, pairs = self._rows, self._band, self._candidates()
        assert (best_first(pairs) == np.arange(len(pairs))).all(), "the skyband is sorted by rank"
        live = (pairs["a"] >= window.base + window.head) & (pairs["b"] < window.base + window.tail)
        assert live.all(), "both rows of a pair are in the window"
        for r, pair in enumerate(pairs):
            assert (pairs["a"][:r] >= pair["a"]).sum() < self.spec.k, "fewer than k better pairs outlive a pair held"
        by_age = band.by_age[: band.numbers[HELD]]
        assert sorted(by_age) == sorted(self._held_slots()), "the list by age has the pairs that are held"
        assert (np.diff(band.pairs["a"][by_age]) <= 0).all(), "what leaves first comes last in the list by age"
        used = np.concatenate([self._held_slots(), band.free[: band.numbers[FREE]]])
        assert sorted(used) == list(range(len(band.pairs))), "a slot has a pair, or is free"
        self._check_staircase()
        in_tree = checked_slots(self._tree, band.pairs, int(self._tree.numbers[ROOT]))
        assert sorted(in_tree) == sorted(by_age), "each pair is in the tree once"
        for question, count in enumerate(self._watched.length):
            answer, age = self.watched(question), self._watched.age[question, :count]
            assert (best_first(answer) == np.arange(count)).all(), "an answer is sorted by rank"
            assert sorted(answer["a"]) == age.tolist(), "its list by age has the same pairs"

    def _check_staircase(self) -> None:
        band, steps = self._band, int(self._band.numbers[STEPS])
        points, ages = band.stair[:steps], band.stair_age[:steps]
        assert (best_first(points) == np.arange(steps)).all(), "points of the staircase are sorted by rank"
        assert (np.diff(ages) >= 0).all(), "the staircase rises"


def checked_slots(tree: Tree, pairs: Pairs, node: int) -> list[int]:
    """The slots of the pairs at this node of a search tree and below it, all of them where they should be."""
    if node == NONE:
        return []
    slot = int(tree.slot[node])
    left, right = (checked_slots(tree, pairs, int(side[node])) for side in (tree.left, tree.right))
    below = np.array([*left, *right], np.int64)
    assert tree.weight[node] == len(below) + 1, "a node counts its pairs"
    assert 4 * max(len(left), len(right)) <= 3 * tree.weight[node], "no side has more than three quarters of them"
    assert (pairs["a"][below] <= pairs["a"][slot]).all(), "no pair below a node is younger"
    split = tree.split[node][["score", "a", "b"]].item()
    for other in below:
        not_behind = pairs[other][["score", "a", "b"]].item() >= split
        assert not_behind == (other in left), "what ranks behind the split is on the right"
    return [slot, *left, *right]
