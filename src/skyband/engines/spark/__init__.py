"""Skyband on Spark: where rows come from and go to when they are a DataFrame's, batch or streaming."""

from skyband.engines.spark.versions import require_pyspark

require_pyspark()

from skyband.engines.spark.recipe import schema_of  # noqa: E402
from skyband.engines.spark.session import local_session  # noqa: E402

__all__ = ["local_session", "schema_of"]
