"""Writes the tables of docs/reference/algorithms.md from the five lines that each algorithm opens with: run
`python tests/algorithms_table.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from skyband.core import registry

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "algorithms.md"
TABLE = re.compile(r"(<!-- (\w+): python tests/algorithms_table.py -->\n).*?(<!-- end -->\n)", re.DOTALL)


def page() -> str:
    """The page as it should be: each problem's table where the page has a place for it."""
    text = PAGE.read_text()
    assert {found[2] for found in TABLE.finditer(text)} == set(registry.problems()), "each problem has its table"
    return TABLE.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def table(problem: str) -> str:
    """Every algorithm of the problem; those that can be chosen come first, what papers publish last."""
    packages = sorted(registry.packages_of(problem), key=lambda each: all(one.for_comparing for one in each.ALGORITHMS))
    packages += registry.baseline_packages_of(problem)
    rows = [f"| {' | '.join(_cells(package))} |" for package in packages]
    return "\n".join(["| name | what it is | paper | cost | choose it when |", "|---|---|---|---|---|", *rows, ""])


def _cells(package: ModuleType) -> Iterator[str]:
    lines = five_lines(package)
    names = [each.name for each in package.ALGORITHMS]
    if len(names) > 6:  # any algorithm for rows, once for each query
        names = [*names[:2], "…"]
    yield ", ".join(f"`{name}`" if name != "…" else name for name in names)
    yield lines["title"]
    yield lines["Paper"]
    yield lines["Cost"]
    yield lines["Choose it"]


def five_lines(package: ModuleType) -> dict[str, str]:
    """What an algorithm says of itself, by the word before it."""
    title, _, rest = (package.__doc__ or "").partition("\n\n")
    said = re.findall(r"^(Paper|Invariant|Cost|Choose it): +(.*?)(?=^\S|\Z)", rest, re.DOTALL | re.MULTILINE)
    found = {name: " ".join(text.split()).rstrip(".").replace("|", "\\|") for name, text in said}
    return {"title": " ".join(title.split()).rstrip("."), **found}


if __name__ == "__main__":
    PAGE.write_text(page())
