"""What the papers print of their own measurements: numbers from their tables and text, kept as data with their source.

Most of their figures are plots without numbers, which are not guessed at here: claims speak of these in words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from skyband.study.papers.experiments import Reading

_OF_THE_PAPER = " (paper)"


@dataclass(frozen=True, slots=True)
class Printed:
    """A curve of a paper, beside the algorithm of ours that it is about."""

    experiment: str
    measure: str
    beside: str
    source: str
    x: tuple[float, ...]
    values: tuple[float, ...]
    note: str = ""

    def readings(self, places: Sequence[float]) -> list[Reading]:
        """Its numbers at these places."""
        label = called(self.beside)
        return [Reading(self.measure, label, x, y) for x, y in zip(self.x, self.values, strict=True) if x in places]


def called(algorithm: str) -> str:
    """What the paper's own curve of an algorithm is called in tables and legends."""
    return algorithm + _OF_THE_PAPER


def subject(label: str) -> str | None:
    """The algorithm that a paper's own curve is about; None: the label is not that of such a curve."""
    return label.removesuffix(_OF_THE_PAPER) if label.endswith(_OF_THE_PAPER) else None


@cache
def all_needs() -> dict[str, str]:
    """By claim, or by experiment and claim: what would have to be true for it to hold where it does not."""
    needs: dict[str, str] = json.loads(files(__package__).joinpath("needs.json").read_text(encoding="utf-8"))
    return needs


def needs_of(experiment: str, claim: str) -> str:
    """Empty: nothing is known."""
    return all_needs().get(f"{experiment}: {claim}", all_needs().get(claim, ""))


@cache
def all_printed() -> tuple[Printed, ...]:
    listed = json.loads(files(__package__).joinpath("printed.json").read_text(encoding="utf-8"))
    return tuple(Printed(**{**each, "x": tuple(each["x"]), "values": tuple(each["values"])}) for each in listed)


def printed_for(experiment: str) -> tuple[Printed, ...]:
    return tuple(each for each in all_printed() if each.experiment == experiment)
