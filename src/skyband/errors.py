"""Everything Skyband raises on purpose: one base class, one subclass for each thing a caller can mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SkybandError(Exception):
    """Base of all errors raised by Skyband. The message says what was wrong, what was given and what is possible."""


class InvalidQuery(SkybandError):
    """The question itself cannot be asked: a bad k, window, emit mode, or a combination that has no meaning."""


class UnknownColumn(InvalidQuery):
    """The query names a column that the input does not have."""

    @classmethod
    def named(cls, name: str, columns: Iterable[str], *, used_as: str) -> UnknownColumn:
        known = list(columns)
        lower = {column.lower(): column for column in reversed(known)}
        near = difflib.get_close_matches(name.lower(), lower, n=1)
        hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
        return cls(f"No column {name!r} for {used_as}.{hint} Columns: {', '.join(known) or 'none'}.")


class InvalidExpression(InvalidQuery):
    """The text of a score cannot be parsed, or does not give one number per row."""


class InvalidSql(InvalidQuery):
    """A statement cannot be read, or asks what cannot be answered while a stream goes by. The message shows where."""


class InvalidInput(SkybandError):
    """The data does not fit the query: another schema than the first batch, or not data at all."""


class LateRows(UserWarning):
    """Rows of a stream came after all windows that would hold them had closed, and were dropped. A warning."""


class AggregateOverflow(SkybandError):
    """An aggregate of whole numbers no longer fits in 64 bits."""

    def __init__(self, message: str, aggregate: int | None = None) -> None:
        super().__init__(message)
        self.aggregate = aggregate  # which one


class TooManyGroups(SkybandError):
    """A join gives more groups than can be held, whatever the plan."""


class SessionFailed(SkybandError):
    """A session failed in the middle of an earlier call, so what it holds is incomplete. The cause says why."""


class SnapshotError(SkybandError):
    """A snapshot cannot be restored. Nothing was read from it."""


class SnapshotCorrupt(SnapshotError):
    """The bytes are not a whole, unchanged snapshot."""


class SnapshotMismatch(SnapshotError):
    """The snapshot belongs to another query or another schema."""


class SnapshotTooNew(SnapshotError):
    """The snapshot was written by a newer version of Skyband than this one."""


class EnvironmentProblem(SkybandError):
    """Something the engine needs is missing on this machine, such as a Java runtime for Spark."""


class InvalidPipeline(SkybandError):
    """A pipeline file cannot be run as it stands. The message says in which line, and what is possible."""


class PipelineChanged(SkybandError):
    """A pipeline is not the one that wrote the checkpoint it would go on from."""


class PipelineFailed(SkybandError):
    """A running pipeline stopped because something it needs did: a source, a sink, or Spark."""
