"""Oracle tests: `top(k, size)` of pairs is right for every k and size."""

from __future__ import annotations

from conformance.algorithms import examples
from conformance.pairs.driver import Driver, meaning, spec_of
from conformance.pairs.strategies import Case, batch_sizes, cases, every_algorithm
from hypothesis import given
from hypothesis import strategies as st
from oracle import Advance, Question
from pair_oracle import Event, PairRow, top

from skyband.problems.pairs.operator import PairAlgorithm


def behind_the_rows(case: Case) -> Case:
    """The same, but an external clock never runs ahead of the latest time seen, which is what `now` means here."""
    events: list[Event] = []
    for event in case.events:
        if isinstance(event, Advance):
            now = max(row.time for row in events if isinstance(row, PairRow) and row.time is not None)
            event = Advance(min(event.watermark, now))
        events.append(event)
    return case._replace(events=events)


@every_algorithm
@examples(60)
@given(st.data(), batch_sizes())
def test_any_k_and_size(algorithm: PairAlgorithm, data: st.DataObject, sizes: list[int]) -> None:
    case = behind_the_rows(data.draw(cases(algorithm, most=20, external_clock=None)))
    driver = Driver(case.spec, algorithm.open)
    largest = case.question.size or 30

    def ask() -> None:
        seen = case.events[: driver.events_taken]
        if not any(isinstance(event, PairRow) for event in seen):
            return
        questions = data.draw(
            st.lists(st.tuples(st.integers(1, case.question.k), st.none() | st.integers(1, largest)), max_size=5)
        )
        if case.question.emit == "changes" and case.question.every and not case.question.by_count:
            # Which window closes next depends on whether the last one showed a pair: that is compared elsewhere.
            questions = [(k, size) for k, size in questions if size is not None]
        found = driver.top_many(questions)
        assert found == [driver.top(k, size) for k, size in questions]
        for (k, size), lines in zip(questions, found, strict=True):
            assert lines == top(case.question, meaning(case.score), seen, k, size)

    driver.run(case.events, sizes, after_each=ask)


@every_algorithm
def test_asking_before_the_first_row_gives_nothing(algorithm: PairAlgorithm) -> None:
    for question in (
        Question(k=2, size=6, every=None, by_count=True, emit="changes"),
        Question(k=2, size=6, every=4, by_count=True),
        Question(k=2, size=6, every=None, emit="changes"),
        Question(k=2, size=6, every=4),
    ):
        driver = Driver(spec_of(question, "closest of the same"), algorithm.open)
        assert driver.top(1) == []
        assert driver.top(2, 3) == []
        assert driver.top_many([(1, None), (2, 3)]) == [[], []]
        assert driver.top_many([]) == []
        assert driver.operator.next_close() is None
        driver.finish()
        assert driver.lines == []
