"""Skyband on Spark: queries over batch and streaming DataFrames."""

from skyband.engines.spark.versions import require_pyspark

require_pyspark()

from skyband.engines.spark.bucket_job import schema_of  # noqa: E402
from skyband.engines.spark.session import local_session  # noqa: E402

__all__ = ["local_session", "schema_of"]
