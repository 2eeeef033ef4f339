"""Generates and compiles the loops for one expression, from templates and the expression's own lines of code.

This is the only place that turns text into code. The lines come from checked trees (`expressions/`), the templates from
the package. No text of the user gets in, as tests/expressions/test_pairs.py shows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.core.errors import NumbaError

from skyband.errors import InvalidExpression
from skyband.kernels.compiling import cached


@dataclass(frozen=True, eq=False)
class GeneratedLoops(ABC):
    """The loops around the code of one score, as attributes. Each is compiled when it is first used."""

    TEMPLATES: ClassVar[Mapping[str, str]]  # by the name of the loop
    _loops: dict[str, Callable[..., Any]] = field(default_factory=dict, init=False)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self.TEMPLATES:
            raise AttributeError(name)
        if name not in self._loops:
            self._loops[name] = self._compile(name)
        return self._loops[name]

    @abstractmethod
    def _compile(self, name: str) -> Callable[..., Any]:
        """Compile the loop of this name around the code of the score."""


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn numba's errors about code that a user wrote into `InvalidExpression`."""
    try:
        yield
    except NumbaError as error:
        raise InvalidExpression(f"numba cannot compile {what} numba says: {str(error).strip()[:600]}") from None


def filled(pattern: str, parts: Mapping[str, Sequence[str]]) -> str:
    """Fill a template: each line `{NAME}` is replaced by the lines of that name, with the same indent."""
    lines: list[str] = []
    for line in pattern.strip("\n").split("\n"):
        stripped = line.strip()
        if stripped.startswith("{") and stripped.endswith("}"):
            indent = line[: len(line) - len(stripped)]
            lines += [indent + part for part in parts[stripped[1:-1]]]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def loop(name: str, text: str, scope: Mapping[str, Any], *, may_raise: bool) -> Callable[..., Any]:
    """Compile the function of this name in `text`. `may_raise`: it calls a function that a user wrote.

    A user's function may allocate, so numba must count references. It may also change while `text` stays the same, so
    its code is not cached on disk.
    """
    known = {"__name__": __name__, "math": math, "np": np, **scope}
    exec(compile(text, f"<{name}, generated>", "exec"), known)
    compiling = njit(error_model="numpy") if may_raise else cached(text, error_model="numpy", _nrt=False)
    compiled: Callable[..., Any] = compiling(known[name])
    return compiled


def callee(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a user's function for calls from loops, unless it is compiled already."""
    return function if hasattr(function, "py_func") else njit(error_model="numpy")(function)
