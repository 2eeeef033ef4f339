"""Oracle tests: what is held is the k-dominance set, by its definition, after each row.

An instance is an object with those of its values that live until some moment. It is dominated by the objects that are
sure to live as long and sure to score more than it ever can: the values it has, and the largest possible ones in the
streams in which it has not come. It is held while fewer than k objects dominate it. An object none of whose instances
is held is forgotten, as if it had never come.
"""

from __future__ import annotations

import numpy as np
import pytest
from conformance.across.strategies import spec_of
from conformance.suite import examples
from hypothesis import given
from hypothesis import strategies as st
from oracle import Question

from skyband.core.registry import algorithms_of
from skyband.problems.across.operator import AcrossBatch

COMBINES = {"sum": sum, "max": max, "min": min}


class Definition:
    """All that is remembered, and the definition, applied after each row."""

    def __init__(self, k: int, size: int, streams: int, combine: str) -> None:
        self.k, self.size, self.streams, self.combine = k, size, streams, COMBINES[combine]
        self.objects: dict[int, dict[int, tuple[float, int]]] = {}  # object -> stream -> (value, last moment)
        self.held: set[tuple[int, int]] = set()  # (object, stream)

    def current(self, name: int, moment: int) -> float:
        known = self.objects[name]
        return self.combine([known[s][0] if s in known and known[s][1] >= moment else 0.0 for s in range(self.streams)])

    def best(self, name: int, moment: int) -> float:
        known = self.objects[name]
        return self.combine(
            [1.0 if s not in known else known[s][0] if known[s][1] >= moment else 0.0 for s in range(self.streams)]
        )

    def take(self, arrivals: int, stream: int, name: int, value: float) -> None:
        for other, known in list(self.objects.items()):
            for s, (_, last) in known.items():
                if last < arrivals:
                    self.held.discard((other, s))
            self._forget(other)
        self.objects.setdefault(name, {})[stream] = (value, arrivals - 1 + self.size)
        self.held.add((name, stream))
        for instance in sorted(self.held):
            if self._dominators(*instance) >= self.k:
                self.held.remove(instance)
        for other in list(self.objects):
            self._forget(other)

    def _dominators(self, name: int, stream: int) -> int:
        moment = self.objects[name][stream][1]
        best = self.best(name, moment)
        return sum(self.current(other, moment) > best for other in self.objects if other != name)

    def _forget(self, name: int) -> None:
        if not any((name, s) in self.held for s in self.objects[name]):
            del self.objects[name]

    def instances(self) -> set[tuple[int, int]]:
        return {(name, self.objects[name][stream][1]) for name, stream in self.held}


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
    operator, definition = algorithms_of("across")[name].open(spec), Definition(k, size, streams, combine)
    free = [(i % streams, i // streams) for i in range(len(drawn))]  # each object once in each stream
    for i, (choice, sixteenths) in enumerate(drawn):
        stream, about = free.pop(choice % min(len(free), 8))
        value = sixteenths / 16
        batch = [np.array([x], kind) for x, kind in ((stream, np.int32), (about, np.int32), (value, np.float64))]
        operator.push(AcrossBatch(*batch, np.empty(0, np.int64), i, len(drawn)))
        definition.take(i + 1, stream, about, value)
        assert operator.instances() == definition.instances()
