"""The emit modes: which part of each answer a query emits.

    windows    the whole answer, when its window closes
    changes    the rows that enter the answer, and the rows of the previous answer that leave
    entries    each row once, when it first enters

Only this module knows the modes by name. Queries keep a mode's name and operators its code; three questions about a
mode exist for both. `kernels/emit.py` has the loop that compares two answers.
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
WHOLE: Final = MODES[WINDOWS]  # the mode that emits whole answers,
WHOLE_CODE: Final = WINDOWS  # and its code, for operators that know no other mode
ENTER, LEAVE = np.int8(1), np.int8(-1)  # whether a row enters the answer or leaves it

# The columns that each mode puts before the others.
LEAD: Final[dict[str, list[str]]] = {
    "windows": ["window_start", "window_end"],
    "changes": ["at", "change"],
    "entries": ["at"],
}


@inlined
def is_whole(emit: int) -> bool:
    """Does the mode emit whole answers? Then the operator need not remember the previous one."""
    return emit == WINDOWS


@inlined
def takes_back(emit: int) -> bool:
    """Does the mode emit rows that leave? Then the operator keeps its last answer."""
    return emit == CHANGES


@inlined
def is_once(emit: int) -> bool:
    """Does the mode emit each row only once? Then the operator marks the rows that it has emitted."""
    return emit == ENTRIES


def code_of(emit: Emit) -> int:
    """The code of a mode."""
    return MODES.index(emit)


def gives_windows(emit: str | None) -> bool:
    """`is_whole` for a mode's name. Only whole answers are final."""
    return emit == "windows"


def gives_changes(emit: str | None) -> bool:
    """`takes_back` for a mode's name."""
    return emit == "changes"


def gives_entries(emit: str | None) -> bool:
    """`is_once` for a mode's name."""
    return emit == "entries"


def check_emit(emit: object, window: Window) -> Emit:
    """Return the mode that the user chose, or the default for the window."""
    return mode_of(emit, slides=window.every is not None)


def mode_of(emit: object, *, slides: bool, no_entries: str = "") -> Emit:
    """The same, given whether the window slides. `no_entries` says why the problem has no mode "entries", if so."""
    if emit is None:
        return "windows" if slides else "changes"
    possible = MODES[:ENTRIES] if no_entries else MODES
    if no_entries and emit == MODES[ENTRIES]:
        raise InvalidQuery(f"emit='entries' emits each row once, but {no_entries}. Possible: {', '.join(possible)}.")
    if emit not in possible:
        raise InvalidQuery(f"emit must be one of {', '.join(possible)}, got {emit!r}.")
    if emit == MODES[WINDOWS] and not slides:
        others = " or ".join(f"emit={mode!r}" for mode in possible[1:])
        raise InvalidQuery(
            "emit='windows' emits the answer of each closed window, but a window without `every` closes with each row. "
            f"Use {others}, or give the window an `every`."
        )
    return emit
