"""Ctrl-C and SIGTERM, which containers send: they end a pipeline in order, whatever it is doing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """A signal came before there was anything to bring to its end."""


class Interrupt:
    """Has a signal come? While Spark starts it ends the start at once; afterwards it is remembered."""

    def __init__(self) -> None:
        self._asked = self._is_remembered = False

    @property
    def came_early(self) -> bool:
        """Did it come before anything was read?"""
        return self._asked and not self._is_remembered

    def take_over(self) -> None:
        """From now on a signal is remembered. Called again after Spark has started: its own way is to cancel jobs."""
        if self._asked:
            raise Stopped  # it came where an exception is passed over
        self._is_remembered = True
        self.listen()

    def listen(self) -> None:
        for number in _NUMBERS:
            signal.signal(number, self._take)

    def _take(self, *_: Any) -> None:
        self._asked = True
        if not self._is_remembered:
            raise Stopped

    def __call__(self) -> bool:
        return self._asked

    def __bool__(self) -> bool:
        return self._asked


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Signals go to an `Interrupt` until the end of the block; what had them before has them again afterwards."""
    before = [(number, signal.getsignal(number)) for number in _NUMBERS]
    interrupt = Interrupt()
    interrupt.listen()
    try:
        yield interrupt
    except Stopped:
        pass
    finally:
        for number, handler in before:
            signal.signal(number, handler)
