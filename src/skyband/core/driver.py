"""What the drivers of all problems with one window share: the part of the protocol that closes windows.

A driver takes rows in. When the clock says that a window closes, `_close_window` writes what it shows, and
`_take_answer` gives all that was written since.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from skyband.core.clock import WindowClock

AnswerT = TypeVar("AnswerT")


class Driver(ABC, Generic[AnswerT]):
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

    # -- below: what a driver or its algorithm says -------------------------------------------------------------------

    @abstractmethod
    def _take_answer(self) -> AnswerT:
        """What was written since the last answer was taken."""

    def _close_window(self, end: int) -> None:
        """The window that ends here closes: write what it shows."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _earliest_live(self) -> int:
        """The earliest time of a row that is in the next window or a later one; LATEST: there is none."""
        raise AssertionError("a driver without it closes windows in a loop of its own")

    def _takes_back(self) -> bool:
        """Did the last answer show rows that the next one may have to take back?"""
        return False

    # -- a driver with a loop of its own that closes many windows has these two instead -------------------------------

    def _worth_closing(self) -> int | None:
        """The end of the earliest open window that has something to show, if only rows leaving."""
        return self._windows.worth_closing(self._earliest_live, takes_back=self._takes_back())

    def _close_until(self, until: int) -> None:
        """Close every window that ends here or before; those that have nothing to show are passed over."""
        if until > self._windows.closed:
            self._windows.close_until(until, self._worth_closing, self._close_window)

    def _finish_end(self) -> int:
        """Up to where windows close when the input is over."""
        return self._windows.finish_end
