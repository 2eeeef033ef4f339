"""The calls of a session: one at a time, none after one that failed midway, and no raw error after a restart."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from skyband.errors import SessionFailed, SkybandError


class Guarded(Protocol):
    """What a session knows of its calls."""

    _turn: RLock  # of the thread whose call it is; a call may call others
    _went_on: bool  # it was opened from a snapshot
    _changing: bool  # the current call has begun to change what is held
    _failure: BaseException | None  # what stopped a call while it did


S = TypeVar("S", bound=Guarded)
P = ParamSpec("P")
R = TypeVar("R")


def entry(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that users call. Once one has failed after it set `_changing`, all of them refuse to go on.

    Threads take turns: one call is done before the next begins. What fails before anything has changed, such as a
    batch with another schema, leaves the session as it was. An interruption by the user counts as a failure, too: it
    may come anywhere. What goes wrong with a state that a snapshot brought is never a raw error.
    """

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._turn:
            if self._failure is not None:
                raise _failed_before(self._failure) from self._failure
            self._changing = False
            try:
                return method(self, *args, **kwargs)
            except BaseException as error:
                if self._changing:
                    self._failure = error
                if self._went_on and isinstance(error, Exception) and not isinstance(error, SkybandError):
                    raise _should_not_be(error) from error
                raise

    return guarded


def _failed_before(problem: BaseException) -> SessionFailed:
    return SessionFailed(
        f"This session failed before, in the middle of its work ({type(problem).__name__}: {problem}), so what "
        "it holds is incomplete. Open the query again with its last snapshot, as in query.open(schema, state), "
        "or start afresh."
    )


def _should_not_be(problem: Exception) -> SessionFailed:
    return SessionFailed(
        f"This session went on from a snapshot, and failed as none should ({type(problem).__name__}: {problem}). If "
        "the snapshot may have been changed after it was written, use an earlier one; if not, this is an error of "
        "Skyband's: please report it."
    )
