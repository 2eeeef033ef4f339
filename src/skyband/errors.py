"""Everything Skyband raises on purpose: one base class, one subclass for each thing a caller can mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SkybandError(Exception):
    """Base of all errors raised by Skyband. The message says what was wrong, what was given and what is possible.

    Examples
    --------
    >>> import skyband as sb
    >>> try:
    ...     sb.sliding("1 hour")
    ... except sb.SkybandError as error:
    ...     print(error)
    A duration needs the column that holds the time: add on='…' to 1:00:00.
    """


class InvalidQuery(SkybandError):
    """The question itself cannot be asked: a bad k, window, emit mode, or a combination that has no meaning.

    Examples
    --------
    >>> import skyband as sb
    >>> sb.TopK(k=0, by="price", window=sb.sliding(10))
    Traceback (most recent call last):
    skyband.errors.InvalidQuery: k must be a whole number, at least 1 (and below 2**31), got 0.
    """


class UnknownColumn(InvalidQuery):
    """The query names a column that the input does not have.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.top_k(pa.table({"price": [1]}), k=1, by="prise", window=sb.sliding(10, every=10))
    Traceback (most recent call last):
    skyband.errors.UnknownColumn: No column 'prise' for the expression 'prise'. Did you mean 'price'? Columns: price.
    """

    @classmethod
    def named(cls, name: str, columns: Iterable[str], *, used_as: str) -> UnknownColumn:
        known = list(columns)
        lower = {column.lower(): column for column in reversed(known)}
        near = difflib.get_close_matches(name.lower(), lower, n=1)
        hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
        return cls(f"No column {name!r} for {used_as}.{hint} Columns: {', '.join(known) or 'none'}.")


class InvalidExpression(InvalidQuery):
    """The text of a score cannot be parsed, or does not give one number per row.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.top_k(pa.table({"name": ["x"]}), k=1, by="name", window=sb.sliding(10, every=10))
    Traceback (most recent call last):
    skyband.errors.InvalidExpression: A score must be a number, but column 'name' is string.
    """


class InvalidSql(InvalidQuery):
    """A statement cannot be read, or asks a question that no stream can answer as it goes by. The message shows where.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.sql("SELECT DISTINCT x FROM rows [WINDOW 10]", rows=pa.table({"x": [1]}))
    Traceback (most recent call last):
    skyband.errors.InvalidSql: DISTINCT is not supported: equal rows are rows of their own.
      SELECT DISTINCT x FROM rows [WINDOW 10]
             ^
    """

    place: int | None = None  # where in the statement it is, in characters from its start; None: nowhere in particular
    why: str | None = None  # the message without the statement


class InvalidInput(SkybandError):
    """The data does not fit the query: it has another schema than the first batch, or it is no data at all.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> session = sb.TopK(k=1, by="x", window=sb.sliding(10)).open(pa.schema({"x": pa.int64()}))
    >>> session.push(pa.table({"y": [1]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.InvalidInput: This batch has another schema than the first one. ...
    """


class LateRows(UserWarning):
    """A warning: rows of a stream came after all windows that would hold them had closed, and were dropped.

    Examples
    --------
    >>> import warnings
    >>> import pyarrow as pa, skyband as sb
    >>> late = iter([pa.record_batch({"t": [1, 99]}), pa.record_batch({"t": [2]})])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     rows = sb.top_k(late, k=1, by="t", window=sb.tumbling(10, on="t")).read_all()
    >>> caught[0].category is sb.LateRows
    True
    """


class AggregateOverflow(SkybandError):
    """An aggregate of whole numbers no longer fits in 64 bits.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> rows = pa.table({"t": [1, 2], "x": [2**62, 2**62]})
    >>> sb.join_aggregate(rows, window=sb.tumbling(5, on="t"), aggregates={"s": "SUM(x)"})
    Traceback (most recent call last):
    skyband.errors.AggregateOverflow: 's': A sum of whole numbers exceeds 64 bits. SUM(CAST(x AS DOUBLE)) adds float64.
    """

    def __init__(self, message: str, aggregate: int | None = None) -> None:
        super().__init__(message)
        self.aggregate = aggregate  # which one


class TooManyGroups(SkybandError):
    """A join gives more groups than Skyband can hold, whatever the plan.

    Examples
    --------
    >>> import skyband as sb
    >>> issubclass(sb.TooManyGroups, sb.SkybandError)
    True
    """


class SessionFailed(SkybandError):
    """A session failed in the middle of an earlier call, so the rows it holds are incomplete. The cause says why.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> rows = pa.table({"t": [1, 2], "x": [2**62, 2**62]})
    >>> query = sb.JoinAggregate(inputs=sb.tumbling(5, on="t"), aggregates={"s": "SUM(x)"})
    >>> session = query.open(rows.schema)
    >>> _ = session.push(rows)
    >>> try:
    ...     session.finish()
    ... except sb.AggregateOverflow:
    ...     pass
    >>> session.finish()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SessionFailed: This session failed before, in the middle of its work (AggregateOverflow: ...
    """


class SnapshotError(SkybandError):
    """A snapshot cannot be restored. Nothing was read from it.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> query = sb.TopK(k=1, by="x", window=sb.sliding(10))
    >>> try:
    ...     query.open(pa.schema({"x": pa.int64()}), b"no snapshot")
    ... except sb.SnapshotError as error:
    ...     print(error)
    These 11 bytes are not a Skyband snapshot: they do not start like one.
    """


class SnapshotCorrupt(SnapshotError):
    """The bytes are not a whole, unchanged snapshot.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> schema = pa.schema({"x": pa.int64()})
    >>> query = sb.TopK(k=1, by="x", window=sb.sliding(10))
    >>> query.open(schema, query.open(schema).snapshot()[:-1])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SnapshotCorrupt: The snapshot is damaged: its checksum does not match its contents. ...
    """


class SnapshotMismatch(SnapshotError):
    """The snapshot belongs to another query or another schema.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> schema = pa.schema({"x": pa.int64()})
    >>> state = sb.TopK(k=1, by="x", window=sb.sliding(10)).open(schema).snapshot()
    >>> sb.TopK(k=2, by="x", window=sb.sliding(10)).open(schema, state)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SnapshotMismatch: This snapshot was taken by another query, or over other columns. ...
    """


class SnapshotTooNew(SnapshotError):
    """A newer version of Skyband than this one wrote the snapshot.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> schema = pa.schema({"x": pa.int64()})
    >>> query = sb.TopK(k=1, by="x", window=sb.sliding(10))
    >>> state = bytearray(query.open(schema).snapshot())
    >>> state[8:12] = (99).to_bytes(4, "little")  # the version of the format
    >>> query.open(schema, bytes(state))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SnapshotTooNew: This snapshot has version 99; ...
    """


class EnvironmentProblem(SkybandError):
    """The machine lacks something that the engine needs, such as a Java runtime for Spark.

    Examples
    --------
    >>> import skyband as sb
    >>> issubclass(sb.EnvironmentProblem, sb.SkybandError)
    True
    """


class InvalidPipeline(SkybandError):
    """A pipeline file cannot be run as it stands. The message says in which line, and what is possible."""


class PipelineChanged(SkybandError):
    """A pipeline is not the one that wrote the checkpoint it would go on from."""


class PipelineFailed(SkybandError):
    """A running pipeline stopped because something it needs did: a source, a sink, or Spark."""
