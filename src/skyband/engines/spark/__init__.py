"""Skyband on Spark: the same questions over batch and streaming DataFrames. The only place that imports pyspark."""

from skyband.engines.spark.across import top_k_across
from skyband.engines.spark.joins import join_aggregate
from skyband.engines.spark.many import queries_of, top_k_for_each
from skyband.engines.spark.objects import as_column, top_k
from skyband.engines.spark.pairs import top_k_pairs
from skyband.engines.spark.recipe import schema_of
from skyband.engines.spark.session import local_session
from skyband.engines.spark.sharing import Question, clock_column, together

__all__ = [
    "Question",
    "as_column",
    "clock_column",
    "join_aggregate",
    "local_session",
    "queries_of",
    "schema_of",
    "together",
    "top_k",
    "top_k_across",
    "top_k_for_each",
    "top_k_pairs",
]
