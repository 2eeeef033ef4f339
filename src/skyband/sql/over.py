"""Aggregates OVER the lines of windows: of the lines of each group, beside each of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skyband.core.encoding.groups import GroupCodes
from skyband.core.encoding.inputs import Source, in_batches, read
from skyband.core.encoding.schemas import whole_batch
from skyband.core.registry import problem_of
from skyband.dialect.query_spec import LINES, OverLines


def with_aggregates(source: Source, over: OverLines) -> Source:
    """The lines, which are all there, with the columns of the aggregates."""
    lines = whole_batch(pa.Table.from_batches(in_batches(source.batches), source.schema))
    clock = pa.array(np.zeros(len(lines), np.int64))
    given = pa.table([*lines.columns, clock], names=[*lines.schema.names, over.clock])
    groups = problem_of(over.query).start({LINES: read(given)}, over.query).collected()
    keys = pa.schema([lines.schema.field(name) for name in over.by])
    codes = GroupCodes(keys)
    # An answer begins with the end of its window, the columns of the groups, and the aggregates.
    columns = groups.columns[1 : len(over.by) + 1]
    of_group = codes.encode(whole_batch(pa.table(columns, schema=keys)))
    place = np.empty(len(codes), np.int64)
    place[of_group] = np.arange(len(of_group))
    added = whole_batch(groups.take(pa.array(place[codes.encode(lines)]))).columns[len(over.by) + 1 :]
    return read(pa.table([*lines.columns, *added], schema=over.schema))._replace(like=source.like)
