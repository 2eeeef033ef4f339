"""Oracle tests: what is held is the k-dominance set, by its definition, after each row.

An instance is an object with those of its values that live until some moment. It is dominated by the objects that are
sure to live as long and sure to score more than it ever can: the values it has, and the largest possible one for each
time that it may still come to a stream. It is held while fewer than k objects dominate it. To `staircase`, an object
none of whose instances is held is forgotten, as if it had never come: so it holds a little more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from conformance.across.strategies import spec_of
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question

from skyband.core.registry import every_algorithm_of
from skyband.problems.across.operator import AcrossBatch
from skyband.streams.incomplete import incomplete

COMBINES = {"sum": sum, "max": max, "min": min}


class Known(NamedTuple):
    """A row that lives, or has lived while another one of its object did."""

    stream: int
    value: float
    last: int


class Definition:
    """All that is remembered, and the definition, applied after each row."""

    def __init__(
        self, k: int, size: int, streams: int, combine: str, *, forgets: bool, repeat: str | None = None, times: int = 1
    ) -> None:
        self.k, self.size, self.streams, self.combine = k, size, streams, COMBINES[combine]
        self.forgets, self.together, self.times = forgets, COMBINES[repeat or "max"], times
        self.objects: dict[int, list[Known]] = {}
        self.held: set[tuple[int, Known]] = set()

    def _score(self, name: int, moment: int, *, best: bool) -> float:
        values = []
        for s in range(self.streams):
            known = [row for row in self.objects[name] if row.stream == s]
            living = [row.value for row in known if row.last >= moment]
            values.append(self.together([*living, *[1.0] * (self.times - len(known) if best else 0)] or [0.0]))
        return self.combine(values)

    def take(self, arrivals: int, stream: int, name: int, value: float) -> None:
        self.held = {(other, row) for other, row in self.held if row.last >= arrivals}
        self._forget(arrivals)
        row = Known(stream, value, arrivals - 1 + self.size)
        self.objects.setdefault(name, []).append(row)
        self.held.add((name, row))
        self.held = {(other, row) for other, row in self.held if self._dominators(other, row.last) < self.k}
        self._forget(arrivals)

    def _dominators(self, name: int, moment: int) -> int:
        best = self._score(name, moment, best=True)
        return sum(self._score(other, moment, best=False) > best for other in self.objects if other != name)

    def _forget(self, arrivals: int) -> None:
        for name, rows in list(self.objects.items()):
            held = any((name, row) in self.held for row in rows)
            if not held and (self.forgets or not any(row.last >= arrivals for row in rows)):
                del self.objects[name]

    def instances(self) -> set[tuple[int, int]]:
        return {(name, row.last) for name, row in self.held}


@pytest.mark.parametrize("name", ["early_aggregation", "staircase"])
@examples(100)
@given(
    st.integers(1, 3),
    st.integers(1, 15),
    st.integers(1, 3),
    st.sampled_from(list(COMBINES)),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 16)), max_size=45),
)
def test_holds_the_k_dominance_set(
    name: str, k: int, size: int, streams: int, combine: str, drawn: list[tuple[int, int]]
) -> None:
    question = Question(k=k, size=size, by_count=True, emit="changes")
    spec = spec_of(question, combine, (0.0,) * streams, (1.0,) * streams, None)
    operator, definition = (
        every_algorithm_of("across")[name].open(spec),
        Definition(k, size, streams, combine, forgets=name == "staircase"),
    )
    free = [(i % streams, i // streams) for i in range(len(drawn))]  # each object once in each stream
    for i, (choice, sixteenths) in enumerate(drawn):
        stream, about = free.pop(choice % min(len(free), 8))
        value = sixteenths / 16
        batch = [np.array([x], kind) for x, kind in ((stream, np.int32), (about, np.int32), (value, np.float64))]
        operator.push(AcrossBatch(*batch, np.empty(0, np.int64), i, len(drawn)))
        definition.take(i + 1, stream, about, value)
        assert operator.instances() == definition.instances()


@examples(100)
@given(
    st.integers(1, 3),
    st.integers(1, 15),
    st.integers(1, 2),
    st.sampled_from(["sum", "max"]),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 16)), max_size=45),
)
def test_holds_the_k_dominance_set_of_objects_that_come_again(
    k: int, size: int, streams: int, repeat: str, times: int, drawn: list[tuple[int, int]]
) -> None:
    """Section 5: where an object has come m_i times, of m, it may come m - m_i times more."""
    question = Question(k=k, size=size, by_count=True, emit="changes")
    spec = spec_of(question, "sum", (0.0,) * streams, (1.0,) * streams, repeat, times)
    operator = every_algorithm_of("across")["early_aggregation"].open(spec)
    definition = Definition(k, size, streams, "sum", forgets=False, repeat=repeat, times=times)
    free = [(i % streams, i // (streams * times)) for i in range(len(drawn))]
    for i, (choice, sixteenths) in enumerate(drawn):
        stream, about = free.pop(choice % min(len(free), 8))
        value = sixteenths / 16
        batch = [np.array([x], kind) for x, kind in ((stream, np.int32), (about, np.int32), (value, np.float64))]
        operator.push(AcrossBatch(*batch, np.empty(0, np.int64), i, len(drawn)))
        operator.check()
        definition.take(i + 1, stream, about, value)
        assert operator.instances() == definition.instances()
    assert operator.repeated == 0


@pytest.mark.parametrize(("times", "most"), [(1, 0.55), (2, 0.8)])
def test_a_limit_on_repeats_prunes(times: int, most: float) -> None:
    """Without one, every row of the window is held."""
    made, size = incomplete(3_000, recent=100, xi=0.9), 1_000
    names = ["r1", "r2", "r3"]
    stream = np.array([names.index(name) for name in made["stream"].to_pylist()], np.int32)
    code = np.unique(made["id"].to_numpy(), return_inverse=True)[1].astype(np.int32) // times
    question = Question(k=10, size=size, by_count=True, emit="changes")
    held = {}
    for name, limit in (("early_aggregation", times), ("totals", 0)):
        operator = every_algorithm_of("across")[name].open(
            spec_of(question, "sum", (0.0,) * 3, (1.0,) * 3, "sum", limit)
        )
        operator.push(
            AcrossBatch(stream, code, made["value"].to_numpy().copy(), np.empty(0, np.int64), 0, int(code.max()) + 1)
        )
        held[name] = operator.rows_held()
    assert held["totals"] == size
    assert held["early_aggregation"] <= most * size
