"""Skyband: continuous top-k over sliding windows, in one Python process or on Spark.

>>> import skyband as sb
>>> sb.top_k(trades, k=10, by="price * volume", window=sb.sliding("10 minutes", every="1 minute", on="ts"))
"""

from __future__ import annotations

from skyband.api import top_k, top_k_across, top_k_pairs
from skyband.engines.embedded.session import Session, Stats
from skyband.errors import (
    EnvironmentProblem,
    InvalidExpression,
    InvalidInput,
    InvalidQuery,
    InvalidSql,
    SkybandError,
    SnapshotCorrupt,
    SnapshotError,
    SnapshotMismatch,
    SnapshotTooNew,
    UnknownColumn,
)
from skyband.planner.explain import explain
from skyband.queries import TopK, TopKAcross, TopKPairs
from skyband.sql import sql
from skyband.windows import Window, landmark, sliding, tumbling

__version__ = "0.1.0"

__all__ = [
    "EnvironmentProblem",
    "InvalidExpression",
    "InvalidInput",
    "InvalidQuery",
    "InvalidSql",
    "Session",
    "SkybandError",
    "SnapshotCorrupt",
    "SnapshotError",
    "SnapshotMismatch",
    "SnapshotTooNew",
    "Stats",
    "TopK",
    "TopKAcross",
    "TopKPairs",
    "UnknownColumn",
    "Window",
    "explain",
    "landmark",
    "sliding",
    "sql",
    "top_k",
    "top_k_across",
    "top_k_pairs",
    "tumbling",
]
