"""Skyband on Spark: where rows come from and go to when they are a DataFrame's, batch or streaming."""

from skyband.engines.spark.recipe import schema_of
from skyband.engines.spark.session import local_session

__all__ = ["local_session", "schema_of"]
