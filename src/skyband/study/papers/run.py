"""`skyband bench papers`: the papers' experiments, measured here, and what they claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from skyband.errors import InvalidQuery
from skyband.study.papers import (
    haghani,
    mintopk,
    pairs,
    pripuzic,
    pripuzic_chances,
    recall,
    report,
    shen,
    shen_attributes,
    subscriptions,
    tran,
    tran_search,
)
from skyband.study.papers.experiments import FULL, QUICK, Effort, Experiment, Outcome
from skyband.study.papers.page import write_page
from skyband.study.papers.report import read, shown, summary, write

EXPERIMENTS: Final[dict[str, tuple[Experiment, ...]]] = {
    "objects": (
        *mintopk.EXPERIMENTS,
        *pripuzic.EXPERIMENTS,
        *pripuzic_chances.EXPERIMENTS,
        *shen.EXPERIMENTS,
        *shen_attributes.EXPERIMENTS,
    ),
    "pairs": pairs.EXPERIMENTS,
    "across": (*haghani.EXPERIMENTS, *recall.EXPERIMENTS),
    "joins": (*tran.EXPERIMENTS, *tran_search.EXPERIMENTS),
    "subscriptions": subscriptions.EXPERIMENTS,
}
ALL: Final = tuple(experiment for several in EXPERIMENTS.values() for experiment in several)
NO_FIGURES: Final = "No figures: they need matplotlib, which is not installed: pip install 'skyband[bench]'."


def run(
    console: Console,
    *,
    quick: bool,
    only: Sequence[str],
    json_file: Path | None,
    folder: Path | None,
    among: Sequence[Experiment],
) -> None:
    """Measure the chosen experiments, print each when it is done, and write JSON, figures and a page.

    What the folder has already, from a run with the same effort, is not measured again.
    """
    effort = QUICK if quick else FULL
    wanted = choose(only, among)
    outcomes = []
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(wanted))
        for experiment in wanted:
            say = _saying(progress, task, experiment.name)
            outcomes.append(_measured(experiment, effort, folder, say))
            progress.console.print(shown(outcomes[-1]), highlight=False)
            progress.advance(task)
    console.print(summary(outcomes, quick=quick))
    if json_file is not None:
        write(outcomes, json_file, effort=effort)
        _print(console, f"Written to {json_file}: every figure, claim and verdict.")
    if folder is not None:
        _print(console, draw(outcomes, folder, quick=quick))
        _print(console, f"All of it on one page: {write_page(outcomes, folder, effort=effort)}.")


def _measured(experiment: Experiment, effort: Effort, folder: Path | None, say: Callable[[str], None]) -> Outcome:
    """What the folder has of an experiment, or else what is measured now, which the folder then has."""
    if folder is None:
        return report.run(experiment, effort, say)
    file = folder / "results" / f"{experiment.name}.json"
    outcome = read(experiment, file, effort=effort)
    if outcome is None:
        outcome = report.run(experiment, effort, say)
        file.parent.mkdir(parents=True, exist_ok=True)
        write([outcome], file, effort=effort)
    return outcome


def choose(only: Sequence[str], among: Sequence[Experiment]) -> list[Experiment]:
    """The experiments whose names start with one of `only`; all of them if it is empty."""
    names = [experiment.name for experiment in among]
    for prefix in only:
        if not any(name.startswith(prefix) for name in names):
            raise InvalidQuery(f"No experiment starts with {prefix!r}. There are: {', '.join(names)}.")
    return [experiment for experiment in among if not only or experiment.name.startswith(tuple(only))]


def draw(outcomes: list[Outcome], folder: Path, *, quick: bool = False) -> str:
    """Draw what was measured; say where, or why not."""
    try:
        from skyband.study.papers.figures import draw_all
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return NO_FIGURES
    drawn = list(draw_all(outcomes, folder, quick=quick))
    return f"{len(drawn)} figures in {folder}."


def _saying(progress: Progress, task: int, name: str) -> Callable[[str], None]:
    return lambda what: progress.update(task, description=f"{name}: {what}")  # type: ignore[arg-type]


def _print(console: Console, text: str) -> None:
    console.print(escape(text), highlight=False, soft_wrap=True)
