"""The user's own functions, which expressions call by name: numbers in, a number out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Final

from skyband.errors import InvalidQuery

Function = Callable[..., Any]

_known: Final[dict[str, Function]] = {}
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def function(name: str, fn: Function) -> None:
    """Let expressions call `fn` by this name. Names are case-insensitive.

    In scores and conditions of rows, Skyband calls `fn` once per batch, with float64 arrays, and expects an array. In
    scores of pairs, numba compiles `fn`, which takes numbers and returns a number. A function that uses only plain
    arithmetic and numpy's functions works for both. If you register a name again, the new function replaces the old.

    Parameters
    ----------
    name
        The name that expressions use.
    fn
        The function. It takes numbers or arrays of numbers, and returns the same.

    Raises
    ------
    InvalidQuery
        The name is not a word, or is a function of SQL already; or `fn` is not a function.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.function("dist", lambda x, y: abs(x - y))
    >>> rows = pa.table({"x": [1.0, 5.0]})
    >>> sb.top_k(rows, k=1, by="dist(x, 4)", window=sb.sliding(2, every=2)).column("score").to_pylist()
    [3.0]
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidQuery(f"The name of a function is a word of letters, digits and _, got {name!r}.")
    if not callable(fn):
        raise InvalidQuery(f"{name!r} must be a function, got {type(fn).__name__}.")
    if name.upper() in _built_in():
        raise InvalidQuery(f"{name!r} is a function of SQL already. Choose another name.")
    _known[name.lower()] = fn


def find(name: str) -> Function | None:
    """The function of that name, if there is one."""
    return _known.get(name.lower())


def known() -> str:
    """The names there are, for a message."""
    return ", ".join(_known) or "none"


def meaning() -> tuple[tuple[str, Function], ...]:
    """What names mean now: another value as soon as one means something else."""
    return tuple(_known.items())


def described(text: str) -> str:
    """An expression with the text of the functions it calls, as far as it can be had: what makes it the same again."""
    return "\n".join([text, *map(_source, called(text).values())])


def called(text: str) -> dict[str, Function]:
    """The functions that a text calls, by name."""
    return {name: fn for name, fn in _known.items() if re.search(rf"\b{name}\s*\(", text, re.IGNORECASE)}


def _source(fn: Function) -> str:
    plain = getattr(fn, "py_func", fn)
    try:
        return inspect.getsource(plain)
    except (OSError, TypeError):
        return getattr(plain, "__qualname__", type(plain).__qualname__)


def _built_in() -> frozenset[str]:
    from sqlglot import exp

    from skyband.expressions.grammar import CALLED
    from skyband.expressions.synonyms import NAMES

    return frozenset({*exp.FUNCTION_BY_NAME, *CALLED, *NAMES})
