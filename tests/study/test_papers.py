"""Examples: every experiment of the papers runs, at sizes that say nothing; verdicts follow from made-up figures."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from skyband.core.operator import Answer, Ints
from skyband.core.options import Chance
from skyband.core.registry import algorithms_of, find
from skyband.errors import InvalidQuery
from skyband.problems.rows.operator import Batch, RowAlgorithm, RowOperator, Spec
from skyband.study.papers import claims, printed, pripuzic, pripuzic_chances, report, shen
from skyband.study.papers import run as papers
from skyband.study.papers.experiments import Axis, Claim, Effort, Experiment, Findings, Outcome, Reading, Readings
from skyband.study.papers.page import write_page
from skyband.study.papers.points import COST, HELD, Case, Feed, random_order
from skyband.windows import Ticks

OBJECTS_PAPERS = papers.EXPERIMENTS["objects"]

TINY = Effort(
    turn_seconds=0.0005,
    passes=1,
    fill_seconds=0.05,
    error_rows=5_000,
    questions=5,
    size_samples=5,
    shrink=200,
)


def silent(_: str) -> None:
    pass


def as_text(*outcomes: Outcome) -> str:
    out = StringIO()
    console = Console(file=out, width=140)
    for outcome in outcomes:
        console.print(report.shown(outcome))
    console.print(report.summary(outcomes, quick=True))
    return out.getvalue()


# -- verdicts, judged on figures made up ------------------------------------------------------------------------------


def readings(**curves: dict[float, float]) -> Readings:
    """Costs by k, of each algorithm."""
    return Readings(
        Axis("k", (1, 10, 100)),
        tuple(Reading(COST, name, x, value) for name, curve in curves.items() for x, value in curve.items()),
    )


FLAT, STEEP = {1: 10.0, 10: 11.0, 100: 12.0}, {1: 40.0, 10: 90.0, 100: 800.0}


@pytest.mark.parametrize(
    ("judge", "holds", "figure"),
    [
        (claims.faster("flat", "steep", at_least=4), True, "4x at least"),
        (claims.faster("flat", "steep", at_least=5), False, "10 against 40 of steep (k = 1)"),
        (claims.faster("flat", "steep", at_least=5, since=10), True, "8.18x at least"),
        (claims.faster("steep", ("flat", "gone")), False, "of flat (k = 100)"),
        (claims.faster("flat", "gone"), None, "not measured: gone"),
        (claims.does_not_grow("flat"), True, "at most 1.2x"),
        (claims.does_not_grow("steep"), False, "at most 20x of the first (k = 100)"),
        (claims.does_not_grow("steep", backwards=True), True, "from 800 (k = 100) to 40 (k = 1)"),
        (claims.does_not_grow("gone"), None, "not measured: gone"),
        (claims.grows("steep", at_least=10), True, "20x"),
        (claims.grows("flat", at_least=10), False, "1.2x"),
        (claims.grows("gone", at_least=10), None, "not measured: gone"),
        (claims.grows("none at first", at_least=10), True, "from 0 (k = 1) to 2 (k = 100): infx"),
        (
            claims.in_groups((("flat",), ("steep",))),
            True,
            "flat 10 against steep 40 where groups are closest",
        ),
        (claims.in_groups((("steep",), ("flat",)), since=10), False, "steep 800 against flat 12"),
        (claims.in_groups((("flat",), ("gone",))), None, "not measured: gone"),
        (claims.grows_less("flat", "steep"), True, "from 10 (k = 1) to 12 (k = 100): 1.2x; steep: 20x"),
        (claims.grows_less("steep", ("flat", "steep")), False, "flat: 1.2x"),
        (claims.grows_less("flat", "gone"), None, "not measured: gone"),
        (claims.grows_by_less("flat", ("steep",)), True, "flat by 2, steep by 760"),
        (claims.grows_by_less("steep", ("flat",)), False, "steep by 760, flat by 2"),
        (claims.grows_by_less("flat", ("gone",)), None, "not measured: gone"),
        (claims.grows("steep", at_least=8, since=10), True, "from 90 (k = 10) to 800 (k = 100): 8.89x"),
        (claims.does_not_grow("steep", since=10, at_most=9), True, "at most 8.89x"),
        (claims.falls("steep", until=10), False, "from 40 (k = 1) to 90 (k = 10)"),
        (claims.near(COST, "flat", "steep", within=0.8, until=1), True, "75 %"),
        (claims.near(COST, "flat", "steep", within=0.8, since=10), False, "98 %"),
        (claims.steady("flat", within=1.2), True, "10 (k = 1) to 12 (k = 100): 1.2x"),
        (claims.steady("steep", within=19), False, "20x; allowed: 19x"),
        (claims.steady("gone", within=2), None, "not measured: gone"),
        (claims.falls("steep"), False, "from 40 (k = 1) to 800 (k = 100): 20x; allowed: 1x"),
        (claims.falls("flat", at_most=1.2), True, "1.2x"),
        (claims.falls("gone"), None, "not measured: gone"),
        (claims.below(COST, "flat", "steep"), True, "10 against 40"),
        (claims.below(COST, "steep", "flat", times=10), False, "800 against 12"),
        (claims.below(COST, "flat", "gone"), None, "not measured: gone"),
        (claims.near(COST, "flat", "flat", within=0), True, "0 %"),
        (claims.near(COST, "flat", "steep", within=0.9), False, "98 %"),
        (claims.near(COST, "gone", "flat", within=0.9), None, "not measured: gone"),
        (claims.per_x(COST, "steep", at_most=40), True, "40 k at most (k = 1)"),
        (claims.per_x(COST, "steep", at_most=8), False, "allowed: 8 k"),
        (claims.per_x(COST, "steep", at_most=20, mean=True), True, "19 k on average"),
        (claims.per_x(COST, "gone", at_most=8), None, "not measured: gone"),
        (claims.in_proportion(COST, "flat", "steep", within=2), False, "0.25 of steep against 1 in the paper"),
        (claims.in_proportion(COST, "flat", "steep", within=4), True, "(k = 1): 4x; allowed: 4x"),
        (claims.in_proportion(COST, "flat", "gone", within=4), None, "not measured: gone"),
        (claims.at(COST, "flat", 10, at_least=10), True, "11 (k = 10); asked: at least 10"),
        (claims.at(COST, "flat", 10, at_most=10), False, "at most 10"),
        (claims.at(COST, "flat", 7, at_most=10), None, "too few points"),
    ],
)
def test_a_verdict_follows_from_the_figures(judge: claims.Judge, holds: bool | None, figure: str) -> None:
    of_the_paper = {printed.called("flat"): {1: 7.0}, printed.called("steep"): {1: 7.0}}
    late = {"none at first": {1: 0.0, 10: 0.0, 100: 2.0}}
    verdict = judge(readings(flat=FLAT, steep=STEEP, **late, **of_the_paper))
    assert verdict.holds is holds
    assert figure in verdict.because


def test_a_claim_about_one_point_alone_is_not_judged() -> None:
    assert claims.does_not_grow("flat")(readings(flat={1: 10.0})).because == "too few points were measured"


# -- every experiment, end to end -------------------------------------------------------------------------------------


class Asked:
    """An operator that also answers many questions at once."""

    def __init__(self, operator: RowOperator) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def top_many(self, k: Ints, size: Ints) -> list[Answer]:
        return [self._operator.top(int(k_asked), int(n)) for k_asked, n in zip(k, size, strict=True)]


class Forgetful:
    """An operator that leaves out every hundredth row that it should show."""

    def __init__(self, operator: RowOperator) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def push(self, batch: Batch) -> Answer:
        answer = self._operator.push(batch)
        kept = answer.position % 100 != 0
        return Answer(*(column[kept] for column in answer))


def stand_in(name: str, open: Callable[..., Any]) -> RowAlgorithm:
    return RowAlgorithm(name, open, lambda spec: None, lambda spec, rows: rows)


@pytest.fixture
def two_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the experiments look for, whether it is there by now or not."""

    def probabilistic(spec: Spec, *, sigma: Chance = 0.001) -> Any:
        return Forgetful(find("relaxed", "rows").open(spec))

    def staircase(spec: Spec) -> Any:
        return Asked(find("relaxed", "rows").open(spec))

    monkeypatch.setitem(algorithms_of("rows"), "probabilistic", stand_in("probabilistic", probabilistic))
    monkeypatch.setitem(algorithms_of("rows"), "staircase", stand_in("staircase", staircase))


COUPLE = {
    "mintopk",
    "relaxed",
    "relaxed, row by row",
    "relaxed+probabilistic",
    "strict",
    "probabilistic",
    "staircase",
    shen.TOGETHER,
}


@pytest.mark.usefixtures("two_stand_ins")
@pytest.mark.parametrize("experiment", OBJECTS_PAPERS, ids=lambda experiment: experiment.name)
def test_every_experiment_runs_and_is_judged(experiment: Experiment, tmp_path: Path) -> None:
    axis = replace(experiment.axis, values=experiment.axis.values[:: len(experiment.axis.values) - 1])
    wanted = tuple(name for name in experiment.algorithms if name in COUPLE) or experiment.algorithms[:1]
    outcome = report.run(replace(experiment, axis=axis, algorithms=wanted), TINY, silent)
    assert outcome.readings.readings
    assert all(np.isfinite(reading.value) for reading in outcome.readings.readings)
    assert {reading.x for reading in outcome.readings.readings} == set(axis.values)
    assert not outcome.missing
    assert len(outcome.claims) == len(experiment.claims)
    assert all(claim.verdict.because for claim in outcome.claims)
    text = as_text(outcome)
    assert experiment.title in text
    assert all(claim.paper.split()[0] in text for claim in outcome.claims)

    report.write([outcome], tmp_path / "out.json", effort=TINY)
    (written,) = json.loads((tmp_path / "out.json").read_text())["experiments"]
    assert written["name"] == experiment.name
    measured = [reading for reading in outcome.readings.readings if printed.subject(reading.algorithm) is None]
    assert len(written["readings"]) == len(measured) > 0, "not the paper's own numbers, which are kept elsewhere"
    assert [claim["holds"] for claim in written["claims"]] == [claim.verdict.holds for claim in outcome.claims]

    pytest.importorskip("matplotlib")
    assert papers.draw([outcome], tmp_path / "figures") == f"1 figures in {tmp_path / 'figures'}."
    assert (tmp_path / "figures" / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("two_stand_ins")
def test_errors_are_counted_against_an_exact_algorithm() -> None:
    """The stand-in never shows rows 0, 100, 200, …; it makes up none."""
    found = pripuzic.errors_by_k((1, 9), (), TINY, silent)
    by_name = {(reading.measure, reading.algorithm, reading.x): reading.value for reading in found.readings}
    spec = pripuzic.each_arrival(9, TINY.rows(1000))
    shown = find("relaxed", "rows").open(spec).push(Feed(random_order(), by_count=True).take(TINY.error_rows)).position
    assert by_name[pripuzic.MISSED, "probabilistic", 9] == (shown % 100 == 0).sum() > 0
    assert by_name[pripuzic.EXTRA, "probabilistic", 9] == 0
    assert by_name[pripuzic.MISSED, pripuzic.MISSED_BOUND, 9] == pytest.approx(0.1 * 5000 / 5)


def test_the_size_of_a_skyband_is_a_harmonic_sum() -> None:
    harmonic = np.cumsum(1 / np.arange(1, 101))
    assert pripuzic.expected_size(100, 7) == pytest.approx(7 * (1 + harmonic[99] - harmonic[6]))


def test_table_x_comes_out_of_equation_13() -> None:
    """Golden: all 36 numbers."""
    for n, numbers in pripuzic_chances.TABLE_X.items():
        assert tuple(pripuzic_chances.rank_l(n, k) for k in pripuzic_chances.TABLE_K) == numbers


def test_the_chance_of_a_rank_is_what_counting_finds() -> None:
    """Every order of the 7 rows of two windows of 4 is as likely: those that bring the fourth row with rank 3."""
    n, came, left = 4, 3, 3
    orders = [order for order in permutations(range(2 * n - 1)) if rank_in(order[:n], n - 1) == came]
    for steps in range(1, left + 1):
        later = [rank_in(order[steps : steps + n], n - 1 - steps) for order in orders]
        for rank in range(1, n + 1):
            counted = later.count(rank) / len(orders)
            assert pripuzic_chances.rank_chance(came, rank, n, np.array([steps]))[0] == pytest.approx(counted)


def rank_in(window: tuple[int, ...], place: int) -> int:
    return 1 + sum(other < window[place] for other in window)


def test_chances_add_up_and_are_judged_by_their_slopes() -> None:
    steps = np.array([1, 100, 999])
    summed = sum(pripuzic_chances.rank_chance(35, rank, 1_000, steps) for rank in range(1, 1_001))
    assert summed == pytest.approx([1.0, 1.0, 1.0])
    figure = next(each for each in OBJECTS_PAPERS if each.name == "pripuzic-figure-13")
    assert all(claim.verdict.holds for claim in report.run(figure, TINY, silent).claims)
    upside_down = replace(figure, measure=lambda *given: negated(figure.measure(*given)))
    assert not any(claim.verdict.holds for claim in report.run(upside_down, TINY, silent).claims)


def negated(findings: Findings) -> Findings:
    return Findings([replace(reading, value=-reading.value) for reading in findings.readings])


# -- what is not there ------------------------------------------------------------------------------------------------


def test_an_algorithm_that_is_not_there_is_named_and_its_claims_are_left_open() -> None:
    (by_k,) = papers.choose(["mintopk-k"], OBJECTS_PAPERS)
    small = replace(by_k, axis=replace(by_k.axis, values=(10,)), algorithms=("mintopk", "nobody", "mintopk(speed=9)"))
    outcome = report.run(replace(small, claims=(Claim("It wins.", claims.faster("mintopk", "nobody")),)), TINY, silent)
    assert outcome.missing["nobody"] == "not registered"
    assert "no option 'speed'" in outcome.missing["mintopk(speed=9)"]
    assert outcome.claims[0].verdict.holds is None
    text = as_text(outcome)
    assert "nobody (not registered)" in text
    assert "not judged" in text


def test_an_algorithm_that_refuses_a_query_says_why() -> None:
    case = Case("mintopk", "mintopk", Spec(3, Ticks(10, 0, 0, by_count=True)))
    assert case.unable == "the window slides with each arrival, so there are no panes"


def test_without_matplotlib_there_are_still_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "skyband.study.papers.figures", raising=False)
    assert papers.draw([], tmp_path) == papers.NO_FIGURES


def test_experiments_are_chosen_by_the_beginning_of_their_names() -> None:
    assert papers.choose([], OBJECTS_PAPERS) == list(OBJECTS_PAPERS)
    assert {experiment.name for experiment in papers.choose(["shen-q"], OBJECTS_PAPERS)} == {
        "shen-questions-k",
        "shen-questions-window",
    }
    with pytest.raises(InvalidQuery, match=r"No experiment starts with 'menthol'\. There are: mintopk-k"):
        papers.choose(["menthol"], OBJECTS_PAPERS)


def test_the_command_prints_tables_and_writes_json_and_figures(tmp_path: Path) -> None:
    runs = 0

    def measured(*_: Any) -> Findings:
        nonlocal runs
        runs += 1
        return Findings([Reading(COST, "a", x, 2 * x) for x in (1, 2)] + [Reading(HELD, "a", x, 7) for x in (1, 2)])

    claim = Claim("It grows.", claims.grows("a", at_least=2))
    made_up = Experiment("made-up", "nobody, 2026", "This by that", Axis("k", (1, 2)), ("a",), measured, (claim,))
    out = StringIO()
    for _ in range(2):
        papers.run(
            Console(file=out, width=120),
            quick=True,
            only=[],
            json_file=tmp_path / "out.json",
            folder=tmp_path,
            among=[made_up],
        )
    assert "✓ holds  It grows." in out.getvalue()
    assert "Written to" in out.getvalue()
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["effort"]["quick"]
    assert written["experiments"][0]["claims"][0]["holds"] is True
    assert runs == 1, "what the folder has is not measured again"
    page = (tmp_path / "index.html").read_text()
    assert "It grows." in page
    assert "<a href='results/made-up.json'>" in page
    assert "A quick run" in page
    assert "It would hold" not in page


def test_the_page_says_what_a_claim_that_does_not_hold_needs(tmp_path: Path) -> None:
    experiment = next(each for each in papers.ALL if each.name == "pairs-size-k")
    measured = Findings([Reading("pairs held", "staircase", x, 1.0) for x in experiment.axis.values])
    claim = replace(experiment.claims[1], paper="The cost of PreTopK does.")
    outcome = report.outcome_of(replace(experiment, claims=(claim,)), measured, TINY)
    page = write_page([outcome], tmp_path, effort=TINY).read_text()
    assert "<b>It would hold</b> if each row entered every open window." in page


@pytest.mark.parametrize("spoiled", ["", "{", '{"effort": {}, "experiments": [{}]}', '{"experiments": []}'])
def test_a_result_that_cannot_be_read_is_measured_anew(spoiled: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(spoiled)
    assert report.read(OBJECTS_PAPERS[0], tmp_path / "x.json", effort=TINY) is None
    assert report.read(OBJECTS_PAPERS[0], tmp_path / "gone.json", effort=TINY) is None


def test_a_result_of_another_effort_is_measured_anew(tmp_path: Path) -> None:
    experiment = replace(OBJECTS_PAPERS[0], measure=lambda *_: Findings([Reading(COST, "mintopk", 10, 1.0)]))
    outcome = report.run(experiment, TINY, silent)
    report.write([outcome], tmp_path / "x.json", effort=TINY)
    found = report.read(experiment, tmp_path / "x.json", effort=TINY)
    assert found is not None
    assert found.readings == outcome.readings
    assert found.claims == outcome.claims
    assert report.read(experiment, tmp_path / "x.json", effort=replace(TINY, passes=2)) is None
    fewer = replace(experiment, algorithms=experiment.algorithms[:1])
    assert report.read(fewer, tmp_path / "x.json", effort=TINY) is None


# -- the papers' own numbers ------------------------------------------------------------------------------------------


def test_what_is_printed_belongs_to_an_experiment_and_to_places_of_its_axis() -> None:
    by_name = {experiment.name: experiment for experiment in papers.ALL}
    for each in printed.all_printed():
        experiment = by_name[each.experiment]
        assert each.beside in experiment.algorithms
        assert set(each.x) <= set(experiment.axis.values)
        assert len(each.x) == len(each.values)
        assert each.source.startswith(experiment.source.partition(",")[0])


def test_what_is_needed_is_said_of_a_claim() -> None:
    known = {claim.paper for each in papers.ALL for claim in each.claims}
    known |= {f"{each.name}: {claim.paper}" for each in papers.ALL for claim in each.claims}
    assert set(printed.all_needs()) <= known
    assert printed.needs_of("mintopk-ratio", "Nor do the rows it holds.").startswith("if new rows")
    assert not printed.needs_of("mintopk-slide", "Nor do the rows it holds.")


def test_printed_numbers_stand_beside_the_measured_ones() -> None:
    experiment = next(each for each in papers.ALL if each.name == "pairs-size-k")
    measured = Findings([Reading("pairs held", "staircase", x, 160.0) for x in experiment.axis.values])
    outcome = report.outcome_of(experiment, measured, TINY)
    assert outcome.readings.curve("pairs held", "staircase (paper)")[10] == 159.9
    assert [claim.verdict.holds for claim in outcome.claims][-1] is False, "160 pairs are too few for K = 100"


def test_every_name_has_one_look() -> None:
    from skyband.study.papers.figures import style

    names = sorted({name for experiment in papers.ALL for name in experiment.algorithms})
    looks = {name: tuple(sorted(style(name).items())) for name in names}
    assert all(looks[name] == tuple(sorted(style(name).items())) for name in names)
    for experiment in papers.ALL:
        assert len({looks[name] for name in experiment.algorithms}) == len(experiment.algorithms), experiment.name
    assert style("mintopk (paper)")["color"] == style("mintopk")["color"]
    assert style("nobody has seen it")["color"].startswith("#")
