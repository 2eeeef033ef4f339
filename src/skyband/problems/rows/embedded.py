"""Top-k over Arrow data, in this process: whole inputs, and several queries over the same rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from skyband.core.emit import gives_windows
from skyband.core.encoding.output import TAKEN
from skyband.core.query import replace_unchecked
from skyband.core.session import Session
from skyband.engines.embedded.running import Running, apart, run
from skyband.problems.rows.codec import ViewsCodec
from skyband.problems.rows.query import TopK


def top_k(data: Any, query: TopK) -> Any:
    """The answers of `query` over Arrow data, in the kind of the data."""
    return start(data, query).answer()


def start(data: Any, query: TopK) -> Running:
    """The same, as it runs."""
    return run(data, query.open, query.window)


def start_together(data: Any, queries: Sequence[TopK]) -> list[Running]:
    """Queries over the same rows that are alike (see below), from one skyband: that of the largest k and size."""
    windows = [query.window for query in queries]
    size = max(cast(Any, window.size) for window in windows)
    window = replace(windows[0], size=size, every=common_slide([cast(Any, window.every) for window in windows]))
    widest = replace_unchecked(queries[0], k=max(query.k for query in queries), window=window)
    return apart(run(data, lambda schema: Session(ViewsCodec(widest, schema, queries)), window), len(queries))


def alike(query: TopK, columns: Sequence[str]) -> Hashable | None:
    """What queries have in common that one skyband can answer: all but k, size and slide. None: this one shares
    nothing. Not if rows have a column whose name is taken: by which it is shown depends on which others are."""
    window = query.window
    if not TAKEN.isdisjoint(columns):
        return None
    if not gives_windows(query.emit) or window.size is None or window.every is None or query.per:
        return None
    if query.ad_hoc or any(part is not None for part in (query.algorithm, query.error, query.expect, query.ties)):
        return None
    kind = type(window.every)  # a number and a duration have no slide in common
    return replace_unchecked(query, k=1, window=replace(window, size=None, every=None)), kind


def common_slide(slides: Sequence[int | timedelta]) -> int | timedelta:
    """The longest slide that all of these are multiples of."""
    if all(isinstance(slide, timedelta) for slide in slides):
        tick = timedelta(microseconds=1)
        return math.gcd(*(slide // tick for slide in cast("Sequence[timedelta]", slides))) * tick
    return math.gcd(*cast("Sequence[int]", slides))
