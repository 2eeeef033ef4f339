"""The caller's variables as inputs: `FROM trades` finds the data frame in the variable `trades`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any, Final

from skyband.core.encoding.inputs import is_a
from skyband.engines import is_spark
from skyband.errors import InvalidInput

_MOST_LISTED: Final = 10
_KINDS: Final = (
    *(("Table", "pyarrow"), ("RecordBatch", "pyarrow"), ("RecordBatchReader", "pyarrow")),
    *(("Dataset", "pyarrow"), ("Scanner", "pyarrow"), ("DataFrame", "pandas")),
    *(("DataFrame", "polars"), ("LazyFrame", "polars")),
)


def is_frame(value: object) -> bool:
    """Is it a table, a data frame or a reader? Lists, iterators and single columns are not: they have to be given."""
    return is_spark(value) or any(is_a(value, name, package) for name, package in _KINDS)


def by_lower_name(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs by their names in lower case; raises if two of them have the same."""
    found: dict[str, Any] = {}
    for name, one in inputs.items():
        if name.lower() in found:
            raise InvalidInput(
                f"Two inputs are called {name!r}, in upper or lower case, and statements ignore case. Rename one of "
                "them."
            )
        found[name.lower()] = one
    return found


class Variables:
    """What can be seen where a function was called: local variables, then those of the module; without a frame none."""

    def __init__(self, frame: FrameType | None, *, write: str) -> None:
        """`write`: how an input is given there, by its {name}."""
        self._scopes: tuple[Mapping[str, Any], ...] = () if frame is None else (frame.f_locals, frame.f_globals)
        self._write = write

    def find(self, name: str) -> Any:
        """The data frame of this name, if need be in another case; None: there is none."""
        for scope in self._scopes:
            if is_frame(scope.get(name)):
                return scope[name]
            alike = [each for each, value in scope.items() if each.lower() == name.lower() and is_frame(value)]
            if len(alike) == 1:
                return scope[alike[0]]
        return None

    def advice(self, name: str, given: Iterable[str]) -> str:
        """What was looked at for an input that is not there, and what to write."""
        given, frames = list(given), self._frames()
        known = {one.lower(): one for one in (*frames, *given)}
        near = difflib.get_close_matches(name.lower(), known, n=1)
        kind = self._other_kind(name)
        more = f" and {len(frames) - _MOST_LISTED} more" if len(frames) > _MOST_LISTED else ""
        words = (
            f"Did you mean {known[near[0]]!r}?" if near else "",
            f"The variable {name!r} is not a table or data frame, but has type {kind}." if kind else "",
            f"Given: {', '.join(given)}." if given else "None was given.",
            f"Variables: {', '.join(frames[:_MOST_LISTED])}{more}." if frames else "",
            f"Write {self._write.format(name=name)}.",
        )
        return " ".join(word for word in words if word)

    def _frames(self) -> list[str]:
        """The names of all that could be found."""
        names = (name for scope in self._scopes for name, value in scope.items() if is_frame(value))
        return list(dict.fromkeys(name for name in names if not name.startswith("_")))

    def _other_kind(self, name: str) -> str | None:
        """The type of a variable of this name that is no data frame."""
        values = [scope[name] for scope in self._scopes if name in scope]
        return type(values[0]).__name__ if values and not is_frame(values[0]) else None


NO_VARIABLES: Final = Variables(None, write="--input {name}=FILE")
