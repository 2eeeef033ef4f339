"""The errors that Skyband raises on purpose: one base class, and one subclass for each problem a caller can fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

RAISED_THIS: Final = "raised this; it is not an error of Skyband."  # ends the note on an error of a user's function


class SkybandError(Exception):
    """The base of all errors that Skyband raises on purpose.

    What to do: read the message. It says what was wrong, what was given and what is possible. Catch this class to
    catch all of them.

    Examples
    --------
    >>> import skyband as sb
    >>> try:
    ...     sb.sliding("1 hour")
    ... except sb.SkybandError as error:
    ...     print(error)
    A duration needs the column that holds the time: add on='…' to 1 hour.
    """


class InvalidQuery(SkybandError):
    """The query is not valid: a bad k, window or emit mode, or options that contradict each other.

    What to do: change the option that the message names. Skyband refused the query before it read any row, so nothing
    is lost.

    Examples
    --------
    >>> import skyband as sb
    >>> sb.TopK(k=0, by="price", window=sb.sliding(10))
    Traceback (most recent call last):
    skyband.errors.InvalidQuery: k must be a whole number, at least 1 (and below 2**31), got 0.
    """


class UnknownColumn(InvalidQuery):
    """The query names a column that the input does not have.

    What to do: correct the name. The message lists the columns, and suggests the one with the most similar name.

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
    """An expression cannot be parsed, or does not give one number for each row.

    What to do: rank by a number. Cast a string column first, or compute a number from it; the page of each problem
    lists the functions that an expression may use.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.top_k(pa.table({"name": ["x"]}), k=1, by="name", window=sb.sliding(10, every=10))
    Traceback (most recent call last):
    skyband.errors.InvalidExpression: A score must be a number, but column 'name' is string.
    """


class InvalidSql(InvalidQuery):
    """A statement cannot be parsed, or Skyband cannot answer it on a stream. The message shows the place.

    What to do: rewrite the part above the mark. The page on SQL has a working statement for each kind of query.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> sb.sql("SELECT x FROM rows TABLESAMPLE (10 ROWS)", rows=pa.table({"x": [1]}))
    Traceback (most recent call last):
    skyband.errors.InvalidSql: TABLESAMPLE is not supported: every row of a window counts.
      SELECT x FROM rows TABLESAMPLE (10 ROWS)
                         ^
    """

    place: int | None = None  # the offset of the error in the statement, in characters; None: no particular place
    why: str | None = None  # the message without the statement


class InvalidInput(SkybandError):
    """The data does not fit the query: its schema differs from the first batch, or a value is out of range.

    What to do: push batches with the schema with which you opened the session. Skyband took nothing of the batch, and
    the session is as it was before.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> session = sb.TopK(k=1, by="x", window=sb.sliding(10)).open(pa.schema({"x": pa.int64()}))
    >>> session.push(pa.table({"y": [1]}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.InvalidInput: The schema of this batch differs from that of the first batch. ...
    """


class LateRows(UserWarning):
    """A warning: Skyband dropped rows that arrived after all their windows had closed.

    What to do: set `lateness=` to the time by which rows may be out of order. `Session.stats().rows_late` counts the
    dropped rows.

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

    What to do: add floats instead, as in `SUM(CAST(x AS DOUBLE))`, or use smaller windows. Open the session again from
    its last snapshot.

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
        self.aggregate = aggregate  # the number of the aggregate that overflowed


class TooManyGroups(SkybandError):
    """A join has more groups than Skyband allows.

    What to do: group by fewer columns, filter an input with `where=`, or use smaller windows.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> rows = pa.table({"t": range(2_000), "id": range(2_000)})
    >>> asked = {"window": sb.tumbling(2_000, on="t"), "group_by": "id", "aggregates": {"n": "COUNT(*)"}}
    >>> sb.join_aggregate(rows, **asked, plan="late(most_groups=1000)")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.TooManyGroups: The join gives more than 1,000 groups. ...
    """


class SessionFailed(SkybandError):
    """An earlier call failed in the middle of its work, so the state of the session is incomplete.

    What to do: open the query again with its last snapshot, and push the rows that came after it. The cause of this
    error is the first failure.

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


class SessionCopied(SkybandError, TypeError):
    """A running session was copied or pickled.

    What to do: send `session.snapshot()`, which is bytes, and open the query with it. Each session then goes on by
    itself. The error is a TypeError, too, as for other objects that cannot be pickled.

    Examples
    --------
    >>> import copy, pyarrow as pa, skyband as sb
    >>> query = sb.TopK(k=1, by="x", window=sb.sliding(10))
    >>> session = query.open(pa.schema({"x": pa.int64()}))
    >>> try:
    ...     copy.copy(session)
    ... except sb.SessionCopied as error:
    ...     print(error)
    A session cannot be copied or pickled: both would change one state. Open the query again with session.snapshot().
    >>> second = query.open(session.schema, session.snapshot())
    """


class SnapshotError(SkybandError):
    """A snapshot cannot be restored.

    What to do: pass the bytes that `Session.snapshot()` returned, unchanged. The three subclasses say what is wrong
    with them.

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
    """The bytes are not a complete, unchanged snapshot.

    What to do: read the file again, or go back to the previous snapshot. `sb.Store` keeps the last two, and survives a
    crash while it writes.

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
    """The snapshot belongs to another query or another schema, or to an older snapshot format.

    What to do: open it with the query, the columns and the version that took it. If the query has changed, start it
    without the snapshot.

    Examples
    --------
    >>> import pyarrow as pa, skyband as sb
    >>> schema = pa.schema({"x": pa.int64()})
    >>> state = sb.TopK(k=1, by="x", window=sb.sliding(10)).open(schema).snapshot()
    >>> sb.TopK(k=2, by="x", window=sb.sliding(10)).open(schema, state)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SnapshotMismatch: Another query took this snapshot, or the columns have changed. ...
    """


class SnapshotTooNew(SnapshotError):
    """A newer version of Skyband wrote the snapshot.

    What to do: install that version, or one with the same snapshot format.

    Examples
    --------
    >>> import hashlib, pyarrow as pa, skyband as sb
    >>> schema = pa.schema({"x": pa.int64()})
    >>> query = sb.TopK(k=1, by="x", window=sb.sliding(10))
    >>> state = bytearray(query.open(schema).snapshot())
    >>> state[8:12] = (99).to_bytes(4, "little")  # the version of the format
    >>> state[-16:] = hashlib.blake2b(state[:-16], digest_size=16).digest()  # its checksum
    >>> query.open(schema, bytes(state))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.SnapshotTooNew: This snapshot has version 99; ...
    """


class EnvironmentProblem(SkybandError):
    """The machine lacks something that the engine needs, such as a Java runtime for Spark.

    What to do: follow the message. `skyband doctor` looks for all such problems at once, and explains how to fix each.

    Examples
    --------
    >>> import socket
    >>> from skyband.pipelines.metrics import Metrics
    >>> with socket.create_server(("127.0.0.1", 0)) as taken:
    ...     Metrics().serve(taken.getsockname()[1], "127.0.0.1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.EnvironmentProblem: Metrics cannot be served at 127.0.0.1:...: Address already in use. ...
    """


class InvalidPipeline(SkybandError):
    """A pipeline file has a mistake. The message names the line.

    What to do: correct that line. `skyband check pipeline.toml` finds all such mistakes without starting anything.

    Examples
    --------
    >>> from pathlib import Path
    >>> from skyband.pipelines.file import load
    >>> load(Path("no_such.toml"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.InvalidPipeline: Cannot read no_such.toml: No such file or directory. `skyband init` writes ...
    """


class PipelineChanged(SkybandError):
    """A query of a pipeline has changed since it wrote its checkpoint.

    What to do: give the changed query another name, so that it starts again, or undo the change that the message names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skyband.pipelines.checkpoints import Checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "best").mkdir()
    ...     _ = Path(folder, "best", "metadata").write_text("of another query, which `skyband run` did not start")
    ...     Checkpoint(None, f"file://{folder}", "best").begin({})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    skyband.errors.PipelineChanged: file:///... is a checkpoint that `skyband run` did not write. Name another ...
    """


class PipelineFailed(SkybandError):
    """A running pipeline stopped because a source, a sink or Spark failed.

    What to do: fix what the message names, and run the pipeline again. It continues where it stopped.

    Examples
    --------
    skyband run pipeline.toml
    best failed: PostgreSQL refused the rows for 'best': null value in column "customer" violates not-null constraint
    """
