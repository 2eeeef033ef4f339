"""Skyband: continuous top-k over sliding windows, in one Python process or on Spark.

>>> import pyarrow as pa, skyband as sb
>>> trades = pa.table({"minute": [0, 1, 3], "price": [10, 20, 5], "volume": [9, 1, 2]})
>>> best = sb.top_k(trades, k=1, by="price * volume", window=sb.tumbling(2, on="minute"))
>>> best["score"].to_pylist()
[90, 10]
"""

from __future__ import annotations

from skyband import plots as plots
from skyband import spark as spark
from skyband.api import join_aggregate, top_k, top_k_across, top_k_pairs
from skyband.core.calls import Stats
from skyband.core.explain import explain
from skyband.core.session import Session
from skyband.core.store import Store
from skyband.engines.embedded.running import progress
from skyband.errors import (
    AggregateOverflow,
    EnvironmentProblem,
    InvalidExpression,
    InvalidInput,
    InvalidQuery,
    InvalidSql,
    LateRows,
    SessionCopied,
    SessionFailed,
    SkybandError,
    SnapshotCorrupt,
    SnapshotError,
    SnapshotMismatch,
    SnapshotTooNew,
    TooManyGroups,
    UnknownColumn,
)
from skyband.expressions.functions import function
from skyband.problems.across.query import TopKAcross
from skyband.problems.joins.costs import Statistics
from skyband.problems.joins.query import JoinAggregate, relation, stream_input
from skyband.problems.pairs.query import TopKPairs
from skyband.problems.rows.query import TopK
from skyband.problems.subscriptions.query import TopKForEach
from skyband.serving import live
from skyband.spark import read_answer, read_state
from skyband.sql import run_all, sql
from skyband.windows import Window, landmark, sliding, tumbling

__version__ = "0.1.0"

__all__ = [
    "AggregateOverflow",
    "EnvironmentProblem",
    "InvalidExpression",
    "InvalidInput",
    "InvalidQuery",
    "InvalidSql",
    "JoinAggregate",
    "LateRows",
    "Session",
    "SessionCopied",
    "SessionFailed",
    "SkybandError",
    "SnapshotCorrupt",
    "SnapshotError",
    "SnapshotMismatch",
    "SnapshotTooNew",
    "Statistics",
    "Stats",
    "Store",
    "TooManyGroups",
    "TopK",
    "TopKAcross",
    "TopKForEach",
    "TopKPairs",
    "UnknownColumn",
    "Window",
    "explain",
    "function",
    "join_aggregate",
    "landmark",
    "live",
    "progress",
    "read_answer",
    "read_state",
    "relation",
    "run_all",
    "sliding",
    "sql",
    "stream_input",
    "top_k",
    "top_k_across",
    "top_k_pairs",
    "tumbling",
]
