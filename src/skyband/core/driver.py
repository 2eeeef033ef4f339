"""The base of all drivers of problems with one window: it closes windows.

A driver takes rows. When the clock says that a window closes, `_close_window` writes the window's answer, and
`_take_answer` returns everything written since the last call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from skyband.core.clock import WindowClock

AnswerT = TypeVar("AnswerT")


class Driver(ABC, Generic[AnswerT]):
    """The part of the operator protocol that needs only the clock."""

    def __init__(self, windows: WindowClock) -> None:
        self._windows = windows

    @property
    def late(self) -> int:
        return self._windows.late

    @property
    def unranked(self) -> int:
        return self._windows.unranked

    def advance(self, watermark: int) -> AnswerT:
        self._close_until(self._windows.watermark_end(watermark))
        return self._take_answer()

    def finish(self) -> AnswerT:
        if self._windows.waits:
            self._close_until(self._finish_end())
        return self._take_answer()

    def next_close(self) -> int | None:
        return self._worth_closing() if self._windows.waits else None

    def next_held(self) -> int | None:
        # Not what the last answer may take back: `top` says the same whatever the query emits.
        return self._windows.worth_closing(self._earliest_live, takes_back=False) if self._windows.waits else None

    # -- a driver or its algorithm implements these -------------------------------------------------------------------

    @abstractmethod
    def _take_answer(self) -> AnswerT:
        """Return what was written since the last call."""

    def _close_window(self, end: int) -> None:
        """Write the answer of the window that ends here."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _earliest_live(self) -> int:
        """The earliest time of a row in the next window or a later one; LATEST if there is none."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _takes_back(self) -> bool:
        """Did the last answer show rows that the next one may take back?"""
        return False

    # -- a driver that closes many windows in a loop of its own overrides these instead -------------------------------

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show, even if only leaving rows; None if none."""
        return self._windows.worth_closing(self._earliest_live, takes_back=self._takes_back())

    def _close_until(self, until: int) -> None:
        """Close the windows that end here or before, and pass over those that have nothing to show."""
        if until > self._windows.closed:
            self._windows.close_until(until, self._worth_closing, self._close_window)

    def _finish_end(self) -> int:
        """The end of the last window that closes when the input ends."""
        return self._windows.finish_end
