"""What conformance needs to know of a problem: the little that is its own. The checks are written once, for all.

`conformance/<problem>/suite.py` has `SUITE`, which says how questions and streams of the problem are drawn, how an
operator of it is fed, and what its oracle says. The registry knows the algorithms. So a new algorithm is found here by
itself, and a new problem needs one more folder.
"""

from __future__ import annotations

import inspect
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from conformance.feeding import Feeder
from hypothesis import settings
from hypothesis import strategies as st
from oracle import Advance

from skyband.core.registry import Algorithm, every_algorithm_of

AnyAlgorithm = Algorithm[Any, Any]
Opener = Callable[[Any], Any]  # from a query in numbers to an operator


class Case(Protocol):
    """A query and the stream it is asked over."""

    @property
    def spec(self) -> Any: ...

    @property
    def events(self) -> Sequence[Any]: ...


C = TypeVar("C", bound=Case)


class Suite(ABC, Generic[C]):
    """One problem."""

    problem: ClassVar[str]
    examples: ClassVar[Mapping[str, int]] = {}  # by check: how many it takes
    few: ClassVar[int] = 40  # examples for all other checks
    restores_in_place: ClassVar[bool] = True  # also an operator that has seen rows; sessions restore new ones only
    random_streams: ClassVar[tuple[int, int]] = (0, 0)  # seeds, and streams of each
    rows: ClassVar[Mapping[str, int]] = {"few": 25, "usual": 40, "many": 80}  # in a stream, at most

    def algorithms(self) -> Mapping[str, AnyAlgorithm]:
        """Those that promise to be exact, and what papers publish beside them."""
        return {name: each for name, each in every_algorithm_of(self.problem).items() if each.exact}

    # -- what is drawn -----------------------------------------------------------------------------------------------

    @abstractmethod
    def cases(
        self, algorithm: AnyAlgorithm, *, rows: str = "usual", external_clock: bool | None = False, coded: bool = False
    ) -> st.SearchStrategy[C]:
        """Queries that the algorithm takes, each with a stream; `external_clock` None: with and without; `coded`: only
        those in which there are codes to forget."""

    def takes_external_clock(self, algorithm: AnyAlgorithm) -> bool:
        return True

    def takes_codes(self, algorithm: AnyAlgorithm) -> bool:
        """Does it take queries in which there are codes to forget?"""
        return True

    def variants(self, algorithm: AnyAlgorithm, case: C) -> st.SearchStrategy[Opener]:
        """Ways to open the algorithm that a user may not even notice."""
        return st.just(algorithm.open)

    def smallest(self, algorithm: AnyAlgorithm, case: C, most: int = 3) -> st.SearchStrategy[Opener]:
        """The algorithm with its internal capacities so small that everything has to grow."""
        drawn = st.fixed_dictionaries({name: st.integers(1, most) for name in capacities(algorithm)})
        return drawn.map(lambda options: partial(algorithm.open, **options))

    def batch_sizes(self) -> st.SearchStrategy[list[int]]:
        """How a stream is cut."""
        return batch_sizes()

    def random(self, algorithm: AnyAlgorithm, seed: int) -> random.Random:
        return random.Random(seed)

    def random_case(self, algorithm: AnyAlgorithm, draw: random.Random) -> C:
        """From a seed: a longer stream, less thorough in one place, and further apart."""
        raise NotImplementedError

    def random_opener(self, algorithm: AnyAlgorithm, draw: random.Random) -> Opener:
        capacity = {name: draw.choice([1, 2, 3, 8, 64]) for name in capacities(algorithm)}
        return draw.choice([algorithm.open, partial(algorithm.open, **capacity)])

    # -- what comes of it --------------------------------------------------------------------------------------------

    @abstractmethod
    def driver(self, case: C, open_operator: Opener) -> Feeder[Any, Any, Any]:
        """An operator, and all that feeds it."""

    @abstractmethod
    def expected(self, case: C, driver: Any, *, finished: bool) -> Any:
        """What the oracle says of all events that the driver was fed."""

    def said(self, driver: Any) -> Any:
        """What the operator said, in whatever order is not promised undone."""
        return driver.lines

    def facts(self, case: C) -> Mapping[str, Any]:
        """What the oracle knows of the operator after all events, by the operator's names of it."""
        return {}

    def has_reference(self, case: C) -> bool:
        """Does `recompute` take the case, too?"""
        return True

    def may_look_sooner(self, case: C, close: int | None, due: int | None) -> bool:
        """May `next_close` be this one, where that of `recompute` is due?"""
        return False

    def moments(self, case: C, driver: Any) -> Iterable[Sequence[int]]:
        """Moments of which each run comes in order."""
        return [[line.at for line in driver.lines]]

    def shown(self, driver: Any) -> Sequence[Sequence[int]]:
        """By line that was said so far: the arrivals of the rows that it shows."""
        return [() for _ in driver.lines]

    # -- asking now --------------------------------------------------------------------------------------------------

    def behind_the_rows(self, case: Any) -> Any:
        """The same, but an external clock never runs ahead of the latest time seen, which is what `now` means here."""
        events: list[Any] = []
        for event in case.events:
            if isinstance(event, Advance):
                now = max(row.time for row in events if not isinstance(row, Advance))
                event = Advance(min(event.watermark, now))
            events.append(event)
        return case._replace(events=events)

    def questions(self, case: C, driver: Any) -> st.SearchStrategy[list[tuple[int, int | None]]]:
        """What `top` can be asked for now: k and sizes."""
        return st.just([])

    def top(self, case: C, driver: Any, k: int, size: int | None) -> Any:
        """What the oracle says of a question after the events that the driver was fed."""
        raise NotImplementedError

    def asked(self, lines: Sequence[Any]) -> Any:
        """What `top` said, in whatever order is not promised undone."""
        return lines

    # -- the checks --------------------------------------------------------------------------------------------------

    def explored(self, check: str) -> settings:
        """So many examples of a check in an everyday run, and more in a deep one."""
        return examples(self.examples.get(check, self.few))


def examples(count: int) -> settings:
    """So many examples in an everyday run, and more in a deep one."""
    return settings(max_examples=max(1, count * settings().max_examples // 200))


def batch_sizes(most: int = 30) -> st.SearchStrategy[list[int]]:
    """How a stream is cut: empty batches, single rows, and larger ones."""
    return st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 16]), max_size=most)


def capacities(algorithm: AnyAlgorithm) -> list[str]:
    """The algorithm's internal capacities: its options that are whole numbers."""
    parameters = inspect.signature(algorithm.open).parameters
    return [name for name in algorithm.options if isinstance(parameters[name].default, int)]
