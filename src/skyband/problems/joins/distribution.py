"""How Spark distributes the rows of a join over buckets, so that matching rows meet, and what remains to be merged.

If all rows of a group come to one bucket, its aggregates are final there. Otherwise each bucket has partial aggregates,
which are merged. This is exact for counts, extremes, and sums of whole numbers and decimals. It is not exact for sums
of floats and means, because a bucket's result is rounded. Such queries run in one bucket, and so do queries whose
windows move with every row of any key.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from skyband.core.emit import gives_changes, gives_windows
from skyband.problems.joins.columns import BoundAggregate, BoundInput, BoundJoin
from skyband.problems.joins.query import INNER, JoinAggregate


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How rows are distributed: rows that agree in these columns meet in one bucket."""

    columns: dict[str, tuple[str, ...]]  # by stream; empty: its rows may go to any bucket
    adds_up: bool  # a group may be in several buckets


def spread(query: JoinAggregate, bound: BoundJoin) -> Partitioning | None:
    """Decide how to distribute the rows of a join; None: one bucket takes all."""
    if query.every is None or (query.order_by and gives_changes(query.emit)) or shows_without_rows(query):
        return None
    streams = [source for source in bound.inputs if not source.is_relation]
    shared = [v for v in range(len(bound.variable_types)) if all(v in source.variables for source in streams)]
    # The key of rows without values is null, whatever they are joined with.
    telling = [v for v in shared if any(_column(each, v) in each.grouped for each in bound.inputs if each.how == INNER)]
    if telling:
        return Partitioning({source.name: (str(_column(source, telling[0])),) for source in streams}, adds_up=False)
    only = streams[0] if len(streams) == 1 else None
    if only is not None:
        columns = tuple(name for name in only.grouped if not pa.types.is_floating(only.schema.field(name).type))
        if columns:
            return Partitioning({only.name: columns}, adds_up=False)
    if not gives_windows(query.emit) or not all(map(_adds_up, bound.aggregates)):
        return None
    if only is not None:
        return Partitioning({only.name: ()}, adds_up=True)
    return (
        Partitioning({source.name: (str(_column(source, shared[0])),) for source in streams}, True) if shared else None
    )


def shows_without_rows(query: JoinAggregate) -> bool:
    """Has the query a landmark window, which shows an answer even if no row of a bucket comes?"""
    return gives_windows(query.emit) and any(stream.window.size is None for _, stream in query.streams)


def _column(source: BoundInput, variable: int) -> str | None:
    """The column of a join variable; None if the input has none."""
    return dict(zip(source.variables, source.joined, strict=True)).get(variable)


def _adds_up(aggregate: BoundAggregate) -> bool:
    """Can partial aggregates be merged exactly?"""
    if aggregate.function == "SUM":
        return pa.types.is_integer(aggregate.type) or pa.types.is_decimal(aggregate.type)
    return aggregate.function in ("COUNT", "MIN", "MAX")
