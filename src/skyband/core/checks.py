"""The checks of options that several queries share. A check takes the user's value and returns the value that the query
keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, get_args

from skyband.errors import InvalidQuery
from skyband.windows import Span, Window, parse_span, whole_number

Order = Literal["random", "rising", "falling", "bursty"]


def as_given(value: Any) -> Any:
    """Keep the value. Whoever uses it checks it."""
    return value


def check_window(window: object) -> Window:
    if not isinstance(window, Window):
        raise InvalidQuery(f"window must come from sliding(), tumbling() or landmark(), got {window!r}.")
    return window


def check_k(k: object) -> int:
    number = whole_number(k)
    if number is None or not 1 <= number < 2**31:
        raise InvalidQuery(f"k must be a whole number, at least 1 (and below 2**31), got {k!r}.")
    return number


def names(option: str) -> Callable[[object], tuple[str, ...]]:
    """The check of an option that takes one column or several, by name."""

    def check_names(columns: object) -> tuple[str, ...]:
        given = _several(columns)
        if not all(isinstance(name, str) for name in given):
            raise InvalidQuery(f"{option} must be the name of a column or a list of names, got {columns!r}.")
        if len(set(given)) != len(given):
            raise InvalidQuery(f"{option} names a column twice: {', '.join(map(str, given))}.")
        return given

    return check_names


def texts(option: str) -> Callable[[object], tuple[str, ...]]:
    """The check of an option that takes one text or several."""

    def check_texts(given: object) -> tuple[str, ...]:
        several = _several(given)
        for each in several:
            if not isinstance(each, str) or not each.strip():
                raise InvalidQuery(f"{option} must be a text or a list of texts, got {given!r}.")
        if len(set(several)) != len(several):
            raise InvalidQuery(f"{option} has a name twice: {', '.join(several)}.")
        return several

    return check_texts


def text(option: str) -> Callable[[object], str | None]:
    """The check of an option that takes a text, or None."""

    def check_text(given: object) -> str | None:
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise InvalidQuery(f"{option} must be a text, got {given!r}.")
        return given

    return check_text


def _several(given: object) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)


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


def check_forget(forget_after: Span | None, window: Window, per: tuple[str, ...]) -> int | timedelta | None:
    if forget_after is None:
        return None
    if not window.by_count:
        raise InvalidQuery(
            f"forget_after={forget_after!r} has no meaning in a window by value: it forgets a group with its last row."
        )
    if not per:
        raise InvalidQuery(f"forget_after={forget_after!r} forgets groups, but the query has none: add per='…'.")
    return parse_span(forget_after, "forget_after")


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


def by_name(given: Any) -> Any:
    """A mapping from the pairs that a query keeps of one: `dataclasses.replace` gives them back."""
    kept = isinstance(given, tuple) and all(isinstance(each, tuple) and len(each) == 2 for each in given)
    return dict(given) if kept else given
