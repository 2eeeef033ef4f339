"""Top-k for subscriptions over Arrow data, in this process."""

from __future__ import annotations

from typing import Any

from skyband.engines.embedded.running import Running, run
from skyband.problems.subscriptions.query import TopKForEach


def top_k(data: Any, query: TopKForEach) -> Any:
    """The answers of `query` over Arrow data, in the kind of the data."""
    return start(data, query).answer()


def start(data: Any, query: TopKForEach) -> Running:
    """The same, as it runs."""
    return run(data, query.open, query.window)
