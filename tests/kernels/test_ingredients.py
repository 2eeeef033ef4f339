"""What compiled code is made from: what could change it changes the number that it is kept under, nothing else does."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

from skyband import core, kernels, problems
from skyband.kernels.ingredients import Ingredients, brought_by, number_of

KERNEL = '''
import numpy as np
from typing import NamedTuple
from skyband.kernels import bits
from skyband.kernels.compiling import inlined, kernel, part

FIRST = 3
PAIR = np.dtype([("a", np.int64), ("b", np.int64)])
TABLE = np.array([1, 2, 3])

class Setting(NamedTuple):
    size: int

@part
def step(x, by=2):
    """One step on."""
    return x + by

@kernel
def run(rows, setting):
    """The loop."""
    total = 0
    for row in rows:
        total += step(row) + TABLE[0] + bits.lowest(FIRST)
    return np.empty(total, PAIR), Setting(total), (lambda: step(total))()

def beside():
    return 1
'''


def number(text: str) -> int:
    scope: dict[str, Any] = {"__name__": "made"}
    exec(compile(text, "made", "exec"), scope)
    return number_of(scope["run"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FIRST = 3", "FIRST = 4"),
        ("FIRST = 3", "FIRST = 3.0"),
        ('("b", np.int64)', '("b", np.int32)'),
        ("[1, 2, 3]", "[1, 2, 4]"),
        ("return x + by", "return x - by"),
        ("by=2", "by=3"),
        ("size: int", "length: int"),
        ("bits.lowest", "bits.highest"),
        ("lambda: step(total)", "lambda: step(1)"),
        ("@part\n", "@inlined\n"),
        ("@kernel", "@part"),
        ("total = 0", "total = 1"),
    ],
)
def test_what_changes_the_code_changes_the_number(old: str, new: str) -> None:
    assert KERNEL.count(old) == 1
    assert number(KERNEL.replace(old, new)) != number(KERNEL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FIRST = 3", "FIRST = 3  # as always\nOTHER = 5\n\n"),
        ('"""One step on."""', '"""A step."""'),
        ("return 1", "return 2"),
        ("def run(rows, setting):", "def run(rows: Any, setting: Any) -> Any:"),
    ],
)
def test_nothing_else_does(old: str, new: str) -> None:
    assert KERNEL.count(old) == 1
    text = "from __future__ import annotations\n" + KERNEL
    assert number(text.replace(old, new)) == number(text)


def test_what_a_class_brings_counts() -> None:
    scope: dict[str, Any] = {"__name__": "made"}
    exec(KERNEL, scope)
    setting, before = scope["Setting"], number_of(scope["Setting"])
    brought_by(setting, scope["step"])
    after = number_of(setting)
    scope["step"].__code__ = scope["beside"].__code__
    assert len({before, after, number_of(setting)}) == 3


def test_where_packages_lie_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the tree share compiled code, whichever environment they run in."""
    before = number(KERNEL)
    monkeypatch.setattr(np.__spec__, "origin", "elsewhere")
    assert "elsewhere" in repr(np)
    assert number(KERNEL) == before


def test_code_with_something_unknown_is_never_used_again() -> None:
    assert number(KERNEL.replace("FIRST = 3", "FIRST = type('Own', (), {})()")) != number(
        KERNEL.replace("FIRST = 3", "FIRST = type('Own', (), {})()")
    )


def test_no_kernel_of_ours_has_anything_unknown() -> None:
    found = 0
    for package in (core, kernels, problems):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for thing in vars(importlib.import_module(module.name)).values():
                if hasattr(thing, "py_func"):
                    made_from = Ingredients()
                    made_from.add(thing)
                    assert made_from.unknown == [], thing
                    found += 1
    assert found > 100
