"""What the queries have in common: the words of their options, how these are checked, and how a query is told apart."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from typing import Any, Literal, TypeVar, get_args

import pyarrow as pa

from skyband.errors import InvalidQuery
from skyband.expressions.functions import described
from skyband.windows import Span, Window, parse_span, whole_number

Emit = Literal["windows", "changes", "entries"]
Order = Literal["random", "rising", "falling", "bursty"]
Q = TypeVar("Q")


def but(query: Q, **changes: Any) -> Q:
    """The same query, but for these fields. They are taken as they are kept, and nothing is checked again."""
    assert set(changes) <= {field.name for field in fields(query)}, "a query has these fields"  # type: ignore[arg-type]
    copied = copy.copy(query)
    for name, value in changes.items():
        object.__setattr__(copied, name, value)
    return copied


def fingerprint(**described: Any) -> str:
    """What a snapshot must have in common with the query that reads it, as a short text."""
    return hashlib.blake2b(json.dumps(described, sort_keys=True).encode(), digest_size=16).hexdigest()


def columns_of(schema: pa.Schema) -> list[str]:
    """The columns, for a fingerprint."""
    return [f"{field.name}: {field.type}" for field in schema]


def source_of(by: str | Callable[..., Any]) -> str:
    """A text for an expression or a function that stays the same from one process to the next as long as it does."""
    if isinstance(by, str):
        return described(by)
    try:
        return inspect.getsource(by)
    except (OSError, TypeError):
        return getattr(by, "__qualname__", type(by).__qualname__)


def check_window(window: object) -> None:
    if not isinstance(window, Window):
        raise InvalidQuery(f"window must come from sliding(), tumbling() or landmark(), got {window!r}.")


def check_k(k: object) -> int:
    number = whole_number(k)
    if number is None or not 1 <= number < 2**31:
        raise InvalidQuery(f"k must be a whole number, at least 1 (and below 2**31), got {k!r}.")
    return number


def check_names(names: object, what: str) -> tuple[str, ...]:
    """One column or several, by name."""
    given = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else (names,)
    if not all(isinstance(name, str) for name in given):
        raise InvalidQuery(f"{what} must be the name of a column or a list of names, got {names!r}.")
    if len(set(given)) != len(given):
        raise InvalidQuery(f"{what} names a column twice: {', '.join(map(str, given))}.")
    return given


def check_emit(emit: object, window: Window) -> Emit:
    if emit is None:
        return "changes" if window.every is None else "windows"
    if emit not in get_args(Emit):
        raise InvalidQuery(f"emit must be one of {', '.join(get_args(Emit))}, got {emit!r}.")
    if emit == "windows" and window.every is None:
        raise InvalidQuery(
            "emit='windows' gives the answer of each closed window, but a window without `every` closes with each row. "
            "Use emit='changes' or emit='entries', or give the window an `every`."
        )
    return emit  # type: ignore[return-value]


def check_lateness(lateness: Span | None, window: Window) -> int | timedelta | None:
    if lateness is None:
        return None
    if window.by_count:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning in a window of arrivals: no row arrives late to its own arrival."
        )
    if window.every is None:
        raise InvalidQuery(
            f"lateness={lateness!r} has no meaning without `every`: a window that slides with each arrival closes "
            "nothing, and takes rows out of order as they come, as long as they are inside it."
        )
    if lateness == 0 or lateness == timedelta(0):
        return None
    return parse_span(lateness, "lateness")


def check_idle(idle_after: Span | None, window: Window) -> int | timedelta | None:
    if idle_after is None:
        return None
    if window.by_count or window.every is None:
        raise InvalidQuery(
            f"idle_after={idle_after!r} has no meaning here: only windows by value with `every` wait for anything."
        )
    return parse_span(idle_after, "idle_after")


def check_jump(max_jump: Span | None, window: Window) -> int | timedelta | None:
    if max_jump is None:
        return None
    if window.by_count:
        raise InvalidQuery(f"max_jump={max_jump!r} has no meaning in a window of arrivals: no time moves it.")
    return parse_span(max_jump, "max_jump")


def check_recall(recall: object) -> float | None:
    if recall is None:
        return None
    if isinstance(recall, bool) or not isinstance(recall, (int, float)) or not 0 < recall < 1:
        raise InvalidQuery(
            f"recall must be a share below 1 of the objects that answers should show, such as 0.95; got {recall!r}."
        )
    return float(recall)


def check_error(error: object) -> float | None:
    if error is None:
        return None
    if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 < error < 1:
        raise InvalidQuery(f"error must be a number between 0 and 1, such as 0.001, or None for none; got {error!r}.")
    return float(error)


def check_expect(expect: object) -> Order | None:
    if expect is not None and expect not in get_args(Order):
        raise InvalidQuery(f"expect must be one of {', '.join(get_args(Order))}, got {expect!r}.")
    return expect  # type: ignore[return-value]
