"""Lets Spark merge rows of batch DataFrames before they go to a bucket: one for each pane, cell and set of missing
arguments.

    rows of each stream ─ arguments, pane ─ union ─ group by pane and cell ─ to their buckets

Spark merges the rows of a stream if all aggregates of its columns are sums of whole numbers, extremes or counts, and if
Spark can evaluate their arguments. Other rows go on one by one. A micro-batch of a stream cannot be merged like this:
see docs/reference/joins.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StringType

from skyband.core.operator import Ints
from skyband.engines.spark.bucket_job import BUCKET, PREFIX, bucket_of_hash, quoted
from skyband.engines.spark.gathering import Gatherer
from skyband.engines.spark.pages import Tally
from skyband.engines.spark.projection import WEIGHT
from skyband.kernels.panes import shape_of
from skyband.problems.joins.columns import BoundInput, BoundJoin
from skyband.problems.joins.operator import ADDED, HIGHEST_FLOAT, LOWEST, LOWEST_FLOAT
from skyband.problems.joins.planning import coalesces
from skyband.problems.joins.query import JoinAggregate
from skyband.problems.joins.spark_rows import INPUT, TIME, VALID, Names, argument, by_input, shared, with_all

if TYPE_CHECKING:
    from skyband.problems.joins.spark import JoinJob

UNMATCHED: Final = -1  # the VALID of a row with a null in a join column
HALF: Final = 32  # the bits of half an int64
HIGH, LOW = "_high", "_low"  # the sums of both halves, which fit in 64 bits for any number of rows


@dataclass(frozen=True)
class Panes:
    """How the arguments of each stream are merged."""

    added_up: tuple[str, ...]  # the streams whose rows are merged
    ways: dict[str, tuple[int, ...]]  # by stream: how to merge each argument; a row by itself is its own extreme
    names: Names  # by stream and argument: its column, which arguments of the same way share

    @property
    def columns(self) -> dict[str, int]:
        """All columns of arguments, and how each is merged."""
        return {
            called: self.ways[stream][int(number)]
            for stream, mine in self.names.items()
            for number, called in mine.items()
        }

    @property
    def sums(self) -> list[str]:
        """The columns that are added up."""
        return [name for name, way in self.columns.items() if way == ADDED]


def panes_of(
    query: JoinAggregate, bound: BoundJoin, streams: Mapping[str, DataFrame], filters: Mapping[str, Column | None]
) -> Panes | None:
    """How Spark merges the rows of batch DataFrames; None if it cannot, or if there is nothing to merge."""
    sources = [source for source in bound.inputs if not source.is_relation]
    if not bound.every or any(df.isStreaming or not _can_evaluate(df) for df in streams.values()):
        return None
    if not (pa.types.is_integer(bound.time_type) or bound.time_type == pa.timestamp("us", "UTC")):
        return None
    for source in sources:
        is_filtered = source.keep is None or filters.get(source.name) is not None
        kinds = [streams[source.name].schema[column].dataType for column in source.keys]
        if not is_filtered or any(each.spark_sql is None for each in source.arguments) or any(map(_merges, kinds)):
            return None
    known = {source.name: ways for source, ways in zip(bound.inputs, coalesces(query, bound), strict=True)}
    added_up = tuple(source.name for source in sources if known[source.name] is not None)
    if not added_up:
        return None
    ways = {
        source.name: known[source.name] or tuple(LOWEST_FLOAT if each.is_float else LOWEST for each in source.arguments)
        for source in sources
    }
    alike = {name: {str(number): str(way) for number, way in enumerate(mine)} for name, mine in ways.items()}
    return Panes(added_up, ways, shared(alike, PREFIX + "of_pane_"))


def _can_evaluate(df: DataFrame) -> bool:
    """Does Spark raise an error if a whole number overflows? Without ANSI mode it would continue with a wrong one."""
    return str(df.sparkSession.conf.get("spark.sql.ansi.enabled")).lower() == "true"


def _merges(kind: DataType) -> bool:
    """Does Spark treat different values of this type as equal, as with some collations?"""
    return isinstance(kind, StringType) and kind != StringType()


def of_panes(
    streams: Mapping[str, DataFrame], bound: BoundJoin, job: JoinJob, meeting: Mapping[str, Column], buckets: int
) -> DataFrame:
    """Make the rows with weights that buckets take.

    Rows of a stream that agree in its column of `meeting` must meet in a bucket; without one they may go to any.
    """
    panes = job.panes
    assert panes is not None
    parts: dict[str, DataFrame] = {}
    for i, source in enumerate(bound.inputs):
        if source.is_relation:
            continue
        time = _pane(source, bound)
        bucket = bucket_of_hash(meeting.get(source.name, sf.xxhash64(time)), buckets)
        columns = {
            INPUT: sf.lit(i),
            TIME: time,
            VALID: _valid(source),
            **_keys(job, source.name, streams),
            **_arguments(panes, source),
            **({BUCKET: bucket} if job.is_spread else {}),
        }
        parts[source.name] = streams[source.name].select(*(column.alias(to) for to, column in columns.items()))
    rows = _added_up(reduce(DataFrame.unionByName, (parts[name] for name in panes.added_up)), panes)
    for name in parts.keys() - panes.added_up:
        alone = parts[name].withColumn(WEIGHT, sf.lit(1).cast("long")).drop(*panes.sums)
        rows = rows.unionByName(alone, allowMissingColumns=True)
    return rows


def _added_up(rows: DataFrame, panes: Panes) -> DataFrame:
    apart = [name for name in rows.columns if name not in panes.columns]
    sums: list[Column] = [sf.count(sf.lit(1)).alias(WEIGHT)]
    for name, way in panes.columns.items():
        value = sf.col(name)
        if way == ADDED:
            sums.append(sf.sum(sf.shiftright(value, HALF)).alias(name + HIGH))
            sums.append(sf.sum(value.bitwiseAND(sf.lit((1 << HALF) - 1))).alias(name + LOW))
        else:
            sums.append((sf.min if way in (LOWEST, LOWEST_FLOAT) else sf.max)(value).alias(name))
    return rows.groupBy(*apart).agg(*sums)


def _pane(source: BoundInput, bound: BoundJoin) -> Column:
    """The earliest time in the same windows as a row."""
    every, whole, time = sf.lit(bound.every), pa.types.is_integer(bound.time_type), quoted(str(source.on))
    ticks = time.cast("long") if whole else sf.unix_micros(time)
    since = sf.pmod(ticks, every)  # a window ended
    rest = shape_of(source.size, bound.every).rest
    if rest:
        since = sf.least(since, sf.pmod(since + sf.lit(rest), every))  # or one began
    return ticks - since if whole else sf.timestamp_micros(ticks - since)


def _valid(source: BoundInput) -> Column:
    """A bit for each argument that has a value."""
    valid = sf.lit(0).cast("long")
    for number, each in enumerate(source.arguments):
        there = sf.expr(str(each.spark_sql)).isNotNull()
        valid = valid.bitwiseOR(sf.when(there, sf.lit(1 << number).cast("long")).otherwise(sf.lit(0)))
    for column in source.matching:
        valid = sf.when(quoted(column).isNull(), sf.lit(UNMATCHED).cast("long")).otherwise(valid)
    return valid


def _keys(job: JoinJob, name: str, streams: Mapping[str, DataFrame]) -> dict[str, Column]:
    """The key columns; those that only other streams have are null."""
    types = {
        called: streams[stream].schema[column].dataType
        for stream, mine in job.keys.items()
        for column, called in mine.items()
    }
    mine = {called: quoted(column) for column, called in job.keys[name].items()}
    return of_all(mine, types)


def _arguments(panes: Panes, source: BoundInput) -> dict[str, Column]:
    mine = {panes.names[source.name][str(a)]: sf.expr(str(each.spark_sql)) for a, each in enumerate(source.arguments)}
    floats = LOWEST_FLOAT, HIGHEST_FLOAT
    return of_all(mine, {called: "double" if way in floats else "long" for called, way in panes.columns.items()})


def of_all(mine: Mapping[str, Column], types: Mapping[str, DataType | str]) -> dict[str, Column]:
    """The columns of all streams for rows of one stream; those that only others have are null."""
    return {called: mine.get(called, sf.lit(None)).cast(kind) for called, kind in types.items()}


# -- in a worker -------------------------------------------------------------------------------------------------------


class PaneGatherer(Gatherer):
    """Converts rows that Spark has merged to the rows that a session takes."""

    _job: JoinJob

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        weight, timeless = table.column(WEIGHT).to_numpy(), self.timeless(table)
        unmatched = ~timeless & (table.column(VALID).to_numpy() == UNMATCHED)
        counts = (int(weight.sum()), int(weight[timeless].sum()), int(weight[unmatched].sum()))
        table = table.filter(pa.array(~(timeless | unmatched)))
        types = self.types(table)
        parts = [self._in_numbers(i, mine).select(types.names).cast(types) for i, mine in by_input(table)]
        return pa.concat_tables([types.empty_table(), *parts]), Tally(*counts)

    def _in_numbers(self, i: int, table: pa.Table) -> pa.Table:
        panes, name = self._job.panes, self._job.query.names[i]
        assert panes is not None
        totals: dict[str, tuple[Ints, Ints]] = {}
        for number, way in enumerate(panes.ways[name]):
            column = panes.names[name][str(number)]
            if way == ADDED:
                totals[argument(number)] = _numbers(table, column + HIGH), _numbers(table, column + LOW)
            else:
                table = table.append_column(argument(number), pa.array(_numbers(table, column)))
        return with_all(_with_sums(table, totals), self._job.schema)


def _numbers(table: pa.Table, name: str) -> Ints:
    """A column as int64, or the bits of float64; 0 for null."""
    column = pc.fill_null(table.column(name), 0).combine_chunks().to_numpy(zero_copy_only=False)
    if column.dtype == np.float64:
        return (column + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return column.astype(np.int64, copy=False)


def _with_sums(table: pa.Table, totals: Mapping[str, tuple[Ints, Ints]]) -> pa.Table:
    """Add columns with these sums, given in halves. A row whose sum exceeds 64 bits becomes several rows."""
    fits = np.ones(table.num_rows, bool)
    columns = {}
    for name, (high, low) in totals.items():
        top = high + (low >> HALF)
        fits &= (top >= -(1 << (HALF - 1))) & (top < 1 << (HALF - 1))
        columns[name] = (top << HALF) | (low & ((1 << HALF) - 1))
    for name, column in columns.items():
        table = table.append_column(name, pa.array(column))
    if fits.all():
        return table
    parts = [table.filter(pa.array(fits))]
    for row in np.flatnonzero(~fits).tolist():
        sums = [(int(high[row]) << HALF) + int(low[row]) for high, low in totals.values()]
        pieces = _pieces(table.column(WEIGHT)[row].as_py(), sums)
        alike = table.take(pa.array([row] * len(pieces)))
        for name, numbers in zip([WEIGHT, *totals], zip(*pieces, strict=True), strict=True):
            alike = alike.set_column(alike.column_names.index(name), name, pa.array(numbers, pa.int64()))
        parts.append(alike.cast(table.schema))
    return pa.concat_tables(parts)


def _pieces(weight: int, sums: list[int]) -> list[tuple[int, ...]]:
    """Split a row into rows whose weights and sums add up to these, and whose numbers fit in 64 bits.

    >>> _pieces(3, [3 * 2**62 + 1, 6])
    [(1, 4611686018427387904, 2), (1, 4611686018427387904, 2), (1, 4611686018427387905, 2)]
    """
    if all(-(2**63) <= each < 2**63 for each in sums):
        return [(weight, *sums)]
    some = weight // 2
    first = [each * some // weight for each in sums]
    rest = [each - part for each, part in zip(sums, first, strict=True)]
    return _pieces(some, first) + _pieces(weight - some, rest)
