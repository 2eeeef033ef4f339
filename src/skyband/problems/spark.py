"""Every problem on Spark."""

from skyband.engines.spark.recipe import schema_of
from skyband.engines.spark.sharing import Question, clock_column, together
from skyband.problems.across.spark import top_k_across
from skyband.problems.joins.spark import join_aggregate
from skyband.problems.pairs.spark import top_k_pairs
from skyband.problems.rows.spark import as_column, top_k
from skyband.problems.subscriptions.spark import queries_of, top_k_for_each

__all__ = [
    "Question",
    "as_column",
    "clock_column",
    "join_aggregate",
    "queries_of",
    "schema_of",
    "together",
    "top_k",
    "top_k_across",
    "top_k_for_each",
    "top_k_pairs",
]
