"""The state of `totals`.

A sum is two numbers; the second has what the first cannot represent. It equals math.fsum of the live values if these
are multiples of some power of two q and the sum stays below q * 2**105: this covers all whole numbers, and all values
of about the same size. It starts again from 0 when the object has no live row in the stream.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skyband.core.clock import LATEST
from skyband.core.operator import Arrays, Codes, Ints
from skyband.core.validation import FARTHEST, Saved
from skyband.problems.across.algorithms.totals import kernels as totals_kernels
from skyband.problems.across.drivers.clock import Steps
from skyband.problems.across.drivers.kernels import candidates
from skyband.problems.across.drivers.kernels.candidates import (
    BELOW,
    CLOCK,
    COUNT,
    DELAYED,
    END,
    FIRST,
    FREE,
    HEAP,
    LIST,
    LIVE,
    NEW,
    NODE,
    NUMBERS,
    RANKED,
    REBUILDS,
    REPEATED,
    ROW,
    STALE,
    TOP,
    VALUE,
    State,
)
from skyband.problems.across.drivers.kernels.slots import START
from skyband.problems.across.drivers.step_driver import StepDriver
from skyband.problems.across.operator import MAX, ONCE, SUM, AcrossSpec

ANY_NUMBER = np.iinfo(np.int64).max  # an object may have any number of rows in a stream


class Config(NamedTuple):
    """The query, as the loop needs it."""

    k: int
    emit: int
    each: bool  # is an answer due after each row?
    ends: bool  # do rows ever end?
    repeat: int
    most: int  # how many rows of an object the user promised in a stream
    width: int  # how many candidates there are after the bar was set


class Totals(StepDriver):
    """The operator. After the bar is set, there are at least `width` candidates, if there are that many objects."""

    _s: State
    _repeated = REPEATED
    _kernel = staticmethod(totals_kernels.execute)

    def __init__(self, spec: AcrossSpec, *, width: int = 256) -> None:
        super().__init__(spec)
        self._width = width
        self._ends = not spec.window.endless
        numbers = np.zeros(NUMBERS, np.int64)
        numbers[CLOCK], numbers[FREE] = START, END
        bar = np.zeros(5, RANKED)  # the bar, and four entries of scratch space
        bar[0] = (-np.inf, -(2**63), -(2**63), 0)
        self._s = State(
            np.zeros((0, spec.streams), VALUE),
            np.zeros(1, ROW),
            np.zeros(0, ROW),
            np.zeros(0, NODE),
            np.zeros((0, spec.streams), LIST),
            np.zeros(0, RANKED),
            np.zeros(0, RANKED),
            np.zeros(0, RANKED),
            bar,
            numbers,
        )

    # -- steps --------------------------------------------------------------------------------------------------------

    def _config(self, each: bool) -> Config:
        spec = self.spec
        most = 1 if spec.repeat == ONCE else spec.max_repeats or ANY_NUMBER
        return Config(spec.k, spec.emit, each, self._ends, spec.repeat, most, self._wide())

    def _execute(self, steps: Steps, step: int, end: int, written: int) -> tuple[int, int]:
        numbers = self._s.numbers
        # Without a top, as after a restart, a rebuild is due whatever the width is, so it does not count.
        rebuilds = numbers[REBUILDS] + (numbers[TOP] == 0)
        done, written = super()._execute(steps, step, end, written)
        if (numbers[REBUILDS] - rebuilds) * numbers[LIVE] > 4 * (done - step):
            # Rebuilds have cost more than the rows themselves, so keep more candidates.
            self._width = 4 * self._wide()
            self._widen()
        return done, written

    def _wide(self) -> int:
        return max(self._width, 4 * len(self._shown.code))

    def _widen(self) -> None:
        room = min(4 * self._wide(), max(len(self._s.values), 1)) + 1
        if room > len(self._s.heap):
            self._s = self._s._replace(heap=_longer(self._s.heap, room))

    def _grow(self, codes: int) -> None:
        values = np.zeros((codes, self.spec.streams), VALUE)
        known = len(self._s.values)
        _words(values)[:known] = _words(self._s.values)
        values["place"][known:] = BELOW
        lists = self._s.lists
        if self.spec.repeat == MAX:
            lists = np.full((codes, self.spec.streams), END, np.int64).astype(LIST)
            lists[:known] = self._s.lists
        self._s = self._s._replace(
            values=values, lists=lists, top=_longer(self._s.top, len(self._shown.code)), chosen=np.zeros(codes, RANKED)
        )
        self._widen()

    def _reserve(self, rows: int) -> None:
        numbers = self._s.numbers
        if not self._ends and self.spec.repeat != MAX:
            return
        room = 1 << int(numbers[COUNT] + rows).bit_length()
        if room > len(self._s.ring):
            self._s = self._s._replace(ring=self._unrolled(room))
            numbers[FIRST] = 0
        needed = int(numbers[DELAYED]) + rows
        if needed > len(self._s.delayed):
            delayed = np.zeros(needed + needed // 2, ROW)
            delayed[: numbers[DELAYED]] = self._s.delayed[: numbers[DELAYED]]
            self._s = self._s._replace(delayed=delayed)
        if self.spec.repeat == MAX:
            self._reserve_nodes(rows)

    def _reserve_nodes(self, rows: int) -> None:
        """Make room for one node for each of these rows. A node in use belongs to a live row; in a landmark window, to
        a value."""
        nodes, numbers = self._s.nodes, self._s.numbers
        held, in_use = len(nodes), int(numbers[COUNT] + numbers[DELAYED])
        if not self._ends:
            in_use = self._s.values.size
        if in_use + rows <= held:
            return
        more = in_use + rows - held + held // 2
        longer = np.zeros(held + more, NODE)
        longer[:held] = nodes
        longer["following"][held:] = np.arange(held + 1, held + more + 1)
        longer["following"][-1] = numbers[FREE]
        numbers[FREE] = held
        self._s = self._s._replace(nodes=longer)

    def _unrolled(self, room: int) -> npt.NDArray[Any]:
        """Copy the ring to one of this length. It begins with the row that ends first."""
        numbers, ring = self._s.numbers, np.zeros(room, ROW)
        which = (numbers[FIRST] + np.arange(numbers[COUNT])) & (len(self._s.ring) - 1)
        _words(ring)[: len(which)] = _words(self._s.ring)[which]
        return ring

    def _rank_now(self, clock: int) -> int:
        return int(totals_kernels.rank(self._s, self.spec.k, self._wide(), self._shown, self._scoring))

    def _rows_kept(self) -> int:
        numbers = self._s.numbers
        return int(numbers[COUNT] + numbers[DELAYED] if self._ends else numbers[LIVE])

    # -- state --------------------------------------------------------------------------------------------------------

    def _live(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self._s.values["rows"] > 0).any(axis=1))

    def _compact(self, kept: Ints, code_of: Codes) -> None:
        numbers = self._s.numbers
        ring, delayed = self._unrolled(len(self._s.ring)), self._s.delayed
        numbers[FIRST] = 0
        for rows, count in ((ring, numbers[COUNT]), (delayed, numbers[DELAYED])):
            rows["code"][:count] = code_of[rows["code"][:count]]
        for ranked, count in ((self._s.top, numbers[TOP]), (self._s.heap, numbers[HEAP])):
            ranked["code"][:count] = code_of[ranked["code"][:count]]
        lists = np.ascontiguousarray(self._s.lists[kept]) if self.spec.repeat == MAX else self._s.lists
        self._s = self._s._replace(
            values=_words(self._s.values)[kept].view(VALUE), ring=ring, lists=lists, chosen=np.zeros(len(kept), RANKED)
        )

    def _in_use(self) -> Arrays:
        s, numbers = self._s, self._s.numbers
        return {
            "numbers": numbers,
            "values": s.values,
            "ring": self._unrolled(1 << int(numbers[COUNT]).bit_length())[: numbers[COUNT]],
            "delayed": s.delayed[: numbers[DELAYED]],
        }

    def _codes_in(self, saved: Saved) -> int:
        values, streams = saved["own_values"], self.spec.streams
        saved.shape("own_values", len(values), streams)
        saved.numbers("own_values", values["value"])
        saved.numbers("own_values", values["rest"])
        saved.within("own_values.time", values["time"], -FARTHEST, FARTHEST)
        saved.counts("own_values.position", values["position"])
        saved.counts("own_values.rows", values["rows"])
        return len(values)

    def validate(self, saved: Saved) -> None:
        super().validate(saved)
        numbers, values, streams = saved["own_numbers"], saved["own_values"], self.spec.streams
        saved.length(NUMBERS, "own_numbers")
        saved.length(1, "width")
        saved.within("width", saved["width"], 1, max(4 * self._wide(), _most_candidates(len(values))))
        saved.counts("own_numbers", numbers[[REPEATED, REBUILDS]])
        counted = np.zeros(values.size, np.int64)
        for name, which in (("own_ring", COUNT), ("own_delayed", DELAYED)):
            rows = saved[name]
            saved.promise(numbers[which] == len(rows), f"'own_numbers' counts {numbers[which]} rows in {name!r}")
            saved.indices(f"{name}.code", rows["code"], len(values))
            saved.indices(f"{name}.stream", rows["stream"], streams)
            saved.numbers(f"{name}.value", rows["value"])
            counted += np.bincount(rows["code"].astype(np.int64) * streams + rows["stream"], minlength=values.size)
        saved.ascends("own_ring.last", saved["own_ring"]["last"])
        if self._ends:
            saved.promise(np.array_equal(counted, values["rows"].ravel()), "'own_values' counts other rows than live")

    def _state(self) -> Arrays:
        saved = super()._state()
        # Limited by the number of objects, so that no snapshot can ask for any amount of memory.
        width = min(self._width, _most_candidates(len(saved["own_values"])))
        return saved | {"width": np.array([width], np.int64)}

    def _make_room_for(self, saved: Arrays) -> None:
        self._widen()
        self._s = self._s._replace(
            ring=np.zeros(1 << len(saved["ring"]).bit_length(), ROW), delayed=np.zeros(len(saved["delayed"]), ROW)
        )

    def _restore(self, state: Arrays) -> None:
        self._width = int(state["width"][0])
        super()._restore(state)
        numbers, values = self._s.numbers, self._s.values
        numbers[[FIRST, STALE, NEW]], numbers[LIVE] = (0, 1, 1), np.count_nonzero(self._live())
        # Candidates follow from the values. No object reaches this bar, so the next answer sets the bar anew.
        numbers[[TOP, HEAP]], values["place"] = 0, BELOW
        self._s.bar[0] = (np.inf, 2**63 - 1, 2**63 - 1, 0)
        if self.spec.repeat == MAX:
            self._list_values()

    def _list_values(self) -> None:
        """MAX: rebuild the lists of values from live rows; in a landmark window, from the largest value of each."""
        numbers, values = self._s.numbers, self._s.values
        numbers[FREE] = END
        self._s = self._s._replace(nodes=np.zeros(0, NODE))
        self._s.lists["head"] = self._s.lists["tail"] = END
        rows = [self._s.ring[: numbers[COUNT]], self._s.delayed[: numbers[DELAYED]]]
        if not self._ends:
            code, stream = np.nonzero(values["rows"])
            rows = [np.zeros(len(code), ROW)]
            rows[0]["code"], rows[0]["stream"], rows[0]["last"] = code, stream, LATEST
            rows[0]["value"] = values["value"][code, stream]
        self._reserve_nodes(sum(map(len, rows)))
        for some in rows:
            totals_kernels.remember_all(some, self._s.nodes, self._s.lists, numbers)

    # -- invariants ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        numbers, values = self._s.numbers, self._s.values
        rows = [*self._unrolled(len(self._s.ring))[: numbers[COUNT]], *self._s.delayed[: numbers[DELAYED]]]
        if self._ends:
            held = np.zeros(values.shape, np.int64)
            sums: dict[tuple[int, int], list[float]] = {}
            for row in rows:
                held[row["code"], row["stream"]] += 1
                sums.setdefault((int(row["code"]), int(row["stream"])), []).append(float(row["value"]))
            assert (held == values["rows"]).all(), "an object has as many rows in a stream as are kept of it"
            for where, parts in sums.items():
                if self.spec.repeat == SUM:
                    assert math.isclose(values[where]["value"], math.fsum(parts), rel_tol=1e-12), (
                        "a sum is that of its rows"
                    )
                elif self.spec.repeat == MAX:
                    assert values[where]["value"] == max(parts), "a maximum is that of its rows"
        live = np.flatnonzero(self._live())
        assert len(live) == numbers[LIVE], "objects with rows are counted"
        keys = {}
        for code in live.tolist():
            score = float(candidates.current(self._s.values, code, self._scoring))
            keys[code] = (score, *max((int(v["time"]), int(v["position"])) for v in values[code] if v["rows"]))
        bar = tuple(self._s.bar[0].item())[:3]
        ranked = sorted(keys, key=lambda code: keys[code], reverse=True)
        top, heap, n = self._s.top, self._s.heap, int(numbers[TOP])
        assert top["code"][:n].tolist() == ranked[:n], "the top is the best of all, in order"
        chosen = [*top["code"][:n].tolist(), *heap["code"][: numbers[HEAP]].tolist()]
        assert {code for code in ranked if keys[code] >= bar} <= set(chosen), "all at the bar or above are candidates"
        assert n == self.spec.k or numbers[HEAP] == 0, "the heap is for what the top has no room for"
        assert n == self.spec.k or numbers[NEW] or bar[0] == -np.inf, "while the top has room, all reach the bar"
        for i, (*key, code) in enumerate(heap[: numbers[HEAP]].tolist()):
            assert values[code, 0]["place"] == i, "an object of the heap knows its place"
            assert keys[code] <= tuple(key), "the heap never says too little of it"
            assert i == 0 or tuple(key) <= heap[(i - 1) >> 1].item()[:3], "no child beats its parent"
        for i, (*key, code) in enumerate(top[:n].tolist()):
            assert values[code, 0]["place"] == -2 - i, "an object of the top knows its place"
            assert keys[code] == tuple(key), "and its rank"
        assert (values["place"][:, 0] != BELOW).sum() == len(chosen), "no other object has a place"


def _most_candidates(objects: int) -> int:
    """The largest width that a snapshot may have."""
    return 16 * objects + 1024


def _words(records: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """View records as 64-bit numbers: numpy copies records field by field, which takes a hundred times as long."""
    words = records.itemsize // 8 * (records.shape[1] if records.ndim == 2 else 1)
    return records.view(np.int64).reshape(len(records), words)


def _longer(ranked: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    longer = np.zeros(max(room, len(ranked)), RANKED)
    longer[: len(ranked)] = ranked
    return longer
