"""The compiled half of the queries in a grid: lists of queries and filters, and the loop over rows."""

from skyband.study.baselines.subscriptions.indexed.kernels.lists import (
    NONE,
    NOWHERE,
    PROBABILISTIC,
    RELAXED,
    STRICT,
    WRAPPER,
    Bands,
    Kind,
    Wrappers,
)
from skyband.study.baselines.subscriptions.indexed.kernels.rows import Grid, step_of

__all__ = [
    "NONE",
    "NOWHERE",
    "PROBABILISTIC",
    "RELAXED",
    "STRICT",
    "WRAPPER",
    "Bands",
    "Grid",
    "Kind",
    "Wrappers",
    "step_of",
]
