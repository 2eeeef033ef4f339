"""Top-k pairs over Arrow data, in this process: whole inputs, and several queries over the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skyband.core.emit import gives_windows
from skyband.core.encoding.inputs import read
from skyband.core.encoding.schemas import plain_schema
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.engines.embedded.running import Running, apart, run
from skyband.problems.pairs.codec import PairsCodec
from skyband.problems.pairs.query import TopKPairs


def start(data: Any, query: TopKPairs) -> Running:
    """The answers of `query` over Arrow data, as it runs."""
    return run(data, query.open, query.window)


def start_together(data: Any, queries: Sequence[TopKPairs]) -> list[Running]:
    """Queries over the same rows that are alike (see below), from one skyband: that of the largest k and size."""
    source = read(data)
    schema = plain_schema(source.schema)
    window = max((query.window for query in queries), key=lambda window: window.ticks(schema).size)
    widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
    return apart(run(source, lambda schema: Session(PairsCodec(widest, schema, views=queries)), window), len(queries))


def alike(query: TopKPairs) -> TopKPairs | None:
    """What queries have in common that one skyband can answer: all but k and size. None: this one shares nothing."""
    window = query.window
    if not gives_windows(query.emit) or window.every is None or window.size is None or query.algorithm is not None:
        return None
    return replace_unchecked(query, k=1, window=replace(window, size=window.every))
