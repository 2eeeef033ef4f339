"""The emit modes: which part of each answer a query emits.

    windows    all of it, when its window closes
    changes    the rows that enter it, and the rows that leave the previous answer
    entries    each row once, when it first enters

Only this module knows the modes by name. Queries keep the name and operators its code; both ask the same three
questions. `kernels/emit.py` has the loop that compares two answers.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np

from skyband.errors import InvalidQuery
from skyband.kernels.compiling import inlined
from skyband.windows import Window

Emit = Literal["windows", "changes", "entries"]

MODES: Final[tuple[Emit, ...]] = get_args(Emit)
WINDOWS, CHANGES, ENTRIES = range(3)  # the code of each, for kernels
WHOLE: Final = MODES[WINDOWS]  # the mode in which an answer is given as it is,
WHOLE_CODE: Final = WINDOWS  # and its code, which operators take for granted
ENTER, LEAVE = np.int8(1), np.int8(-1)  # what an entry of an answer says of its row

# What each mode puts before the other columns.
LEAD: Final[dict[str, list[str]]] = {
    "windows": ["window_start", "window_end"],
    "changes": ["at", "change"],
    "entries": ["at"],
}


@inlined
def is_whole(emit: int) -> bool:
    """Is the answer given as it is? Then nothing of the one before need be remembered."""
    return emit == WINDOWS


@inlined
def takes_back(emit: int) -> bool:
    """Is it said what leaves? Then the last answer is kept, and may have to be taken back when nothing else happens."""
    return emit == CHANGES


@inlined
def is_once(emit: int) -> bool:
    """Is each row given once? Then it is marked when it has been."""
    return emit == ENTRIES


def code_of(emit: Emit) -> int:
    """A mode in numbers."""
    return MODES.index(emit)


def gives_windows(emit: str | None) -> bool:
    """As `is_whole` of a query's word: are its answers final? What changes is said again and again."""
    return emit == "windows"


def gives_changes(emit: str | None) -> bool:
    """As `takes_back` of a query's word."""
    return emit == "changes"


def gives_entries(emit: str | None) -> bool:
    """As `is_once` of a query's word."""
    return emit == "entries"


def check_emit(emit: object, window: Window) -> Emit:
    """The mode that a user asked for, or the one that fits the window."""
    return mode_of(emit, slides=window.every is not None)


def mode_of(emit: object, *, slides: bool, no_entries: str = "") -> Emit:
    """As `check_emit`. `no_entries`: why nothing can be given once, if it cannot."""
    if emit is None:
        return "windows" if slides else "changes"
    possible = MODES[:ENTRIES] if no_entries else MODES
    if no_entries and emit == MODES[ENTRIES]:
        raise InvalidQuery(f"emit='entries' tells of each row once, but {no_entries}. Possible: {', '.join(possible)}.")
    if emit not in possible:
        raise InvalidQuery(f"emit must be one of {', '.join(possible)}, got {emit!r}.")
    if emit == MODES[WINDOWS] and not slides:
        others = " or ".join(f"emit={mode!r}" for mode in possible[1:])
        raise InvalidQuery(
            "emit='windows' gives the answer of each closed window, but a window without `every` closes with each row. "
            f"Use {others}, or give the window an `every`."
        )
    return emit
