"""The sieve in Python: it finds the rows that may still enter an answer, before the shuffle and again after it.

Before the shuffle it sees only time, score and group; whole rows wait in the JVM. About k rows per pane, group and
partition pass. Dropped rows must still be counted, so for each kind of row in an Arrow batch one row passes and carries
the count: for each pane (its rows may turn out to be late), for the rows without a score, and for those without a time.
The latest row of an Arrow batch passes, too, because Spark takes its watermark from the rows that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

from skyband.core.encoding.schemas import plain_schema, whole_batch
from skyband.core.encoding.scores import Comparable
from skyband.engines.spark.bucket_job import PREFIX, TIE, quoted
from skyband.engines.spark.gathering import Gatherer, Mask, Weights, times_of
from skyband.engines.spark.pages import Ints, Tally
from skyband.engines.spark.projection import WEIGHT
from skyband.engines.spark.sieving import JvmSieve
from skyband.engines.spark.workers import spare_the_collector
from skyband.expressions.sort_keys import SortKeys
from skyband.kernels.compiling import read_only
from skyband.kernels.panes import Shape
from skyband.kernels.sieve import Sieve, tally_panes
from skyband.windows import NEVER

if TYPE_CHECKING:
    from skyband.problems.rows.spark import TopKJob

SCORE: Final = PREFIX + "score"
GROUP: Final = PREFIX + "group"  # a number for each group: see group_key


def weight(
    df: DataFrame, job: TopKJob, score: Column | None, where: Column | None = None, sieve: JvmSieve | None = None
) -> Column:
    """The number of rows that a row stands for in the counts; null for a row that no answer can show, or that does not
    meet `where`."""
    window, per = job.query.window, job.query.per
    if sieve is not None:
        assert score is not None, "Spark has the score"
        group = group_key(df, per) if per else None
        weighed = sieve.weight(quoted(str(window.on)), score, group)
        return weighed if where is None else sf.when(where, weighed)
    scored_by = [score] if score is not None else [quoted(name) for name in job.score.columns]  # type: ignore[union-attr]
    groups = [group_key(df, per)] if per else []
    asked_of = [] if where is None else [where]
    weigh = arrow_udf(weigher(job, only_some=where is not None), "int")  # type: ignore[call-overload]  # its hints say that it is an iterator
    # It remembers rows, so Spark must neither call it twice nor move it: "not deterministic" tells Spark that.
    return weigh.asNondeterministic()(*asked_of, quoted(str(window.on)), *groups, *scored_by)


def group_key(df: DataFrame, per: tuple[str, ...]) -> Column:
    """A long for each group: an integer column itself, else a hash of 64 bits.

    Two groups with the same hash would share one ranking before the shuffle, so rows could be lost. With a million
    groups in a partition, the chance of that is one in 40 million. After the shuffle, groups are told apart by value.
    """
    integral = (ByteType, ShortType, IntegerType, LongType)
    if len(per) == 1 and isinstance(df.schema[per[0]].dataType, integral):
        return quoted(per[0])
    # Spark's hash ignores nulls, so (null, 7) and (7, null) would have the same hash.
    columns = [quoted(name) for name in per]
    nulls = [column.isNull() for column in columns] if len(per) > 1 else []
    return sf.xxhash64(*columns, *nulls)


def weigher(job: TopKJob, *, only_some: bool = False) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """Make the function that Spark calls with the columns of a partition. It returns null for a row to drop.

    `only_some`: the first column says which rows to look at.
    """

    def weigh(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        spare_the_collector()
        shape = job.shape
        sieve = Sieve(job.query.k, shape, ascending=job.query.ascending)
        for columns in batches:
            if not only_some:
                yield _weighed(columns, job, shape, sieve)
                continue
            chosen, *others = columns
            chosen = chosen.fill_null(False)
            weighed = _weighed(tuple(column.filter(chosen) for column in others), job, shape, sieve)
            yield pc.replace_with_mask(pa.nulls(len(chosen), pa.int32()), chosen, weighed)

    return weigh


def _weighed(columns: tuple[pa.Array, ...], job: TopKJob, shape: Shape, sieve: Sieve) -> pa.Array:
    time_column, *others = columns
    group_column = others.pop(0) if job.query.per else None
    times = times_of(time_column)
    scores = _scores(others, job)
    timeless = np.asarray(time_column.is_null()) if time_column.null_count else None
    if timeless is not None:
        scores = scores.without_rows(timeless)
    groups, null_groups = groups_of(group_column)
    kept = sieve.keep(times, scores.scores, groups, null_groups)
    if scores.without is not None:
        kept |= scores.without
    weights = np.zeros(len(times), np.int32)
    first, count = tally_panes(read_only(times), read_only(scores.known), shape)
    weights[first] = count
    unranked = np.isnan(scores.known)
    if timeless is not None:
        _stand_for(timeless, weights)
        unranked &= ~timeless
        times = np.where(timeless, -NEVER, times)
    _stand_for(unranked, weights)
    if len(times):
        kept[times.argmax()] = True
    return pa.array(weights, mask=~(kept | (weights > 0)))


def _stand_for(rows: npt.NDArray[np.bool_], weights: npt.NDArray[np.int32]) -> None:
    """Let the first of these rows stand for all of them."""
    count = np.count_nonzero(rows)
    if count:
        weights[rows.argmax()] = count


def _scores(columns: list[pa.Array], job: TopKJob) -> Comparable:
    if job.score is None:
        return Comparable.of(columns[0], job.text)
    values = job.score.values(pa.record_batch(columns, names=list(job.score.columns)))
    return Comparable.of(values, job.text)


def groups_of(column: pa.Array | pa.ChunkedArray | None) -> tuple[Ints | None, npt.NDArray[np.bool_] | None]:
    """Group keys as whole numbers, and which of them are null."""
    if column is None:
        return None, None
    return times_of(column), np.asarray(column.is_null()) if column.null_count else None


class CandidateGatherer(Gatherer):
    """Computes scores that Spark could not compute, and applies the sieve once more."""

    def __init__(self, job: TopKJob) -> None:
        super().__init__(job)
        self._job: TopKJob = job
        self._sieve = None
        if job.is_sieved:
            self._sieve = Sieve(job.query.k, job.shape, ascending=job.query.ascending)

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        if self._job.score is not None:
            table = table.append_column(SCORE, self._job.score.values(table.to_batches()[0]))
        scores = Comparable.of(table.column(SCORE), self._job.text)
        timeless = self.timeless(table)
        unranked = np.isnan(scores.known) & ~timeless
        tally = self.tally(table, self.weights(table), timeless, unranked)
        # A row without a score still takes its place among the arrivals; a row without a time has no place.
        kept = ~timeless if self._sieve is None else self._candidates(table, scores.without_rows(timeless | unranked))
        if self._sieve is not None and not timeless.all():
            # Of a batch, the latest row closes the last windows, whether or not it has a score.
            times = np.where(timeless, -NEVER, times_of(table.column(str(self._job.window.on))))
            if not kept[times == times.max()].any():
                kept[times.argmax()] = True
        return self.typed(table, kept), tally

    def weights(self, table: pa.Table) -> Weights:
        return table.column(WEIGHT).to_numpy() if self._sieve else super().weights(table)

    def _candidates(self, table: pa.Table, scores: Comparable) -> Mask:
        """Apply the sieve once more, now that TIE tells equal rows apart."""
        assert self._sieve is not None
        times = times_of(table.column(str(self._job.window.on)))
        groups, null_groups = groups_of(table.column(GROUP) if self._job.query.per else None)
        # If a column orders the rows, it decides before TIE, so all equal rows must stay.
        ties = None if self._job.window.order else table.column(TIE).to_numpy()
        kept = self._sieve.keep(times, scores.scores, groups, null_groups, ties)
        return kept if scores.without is None else kept | scores.without


class KeyedGatherer(Gatherer):
    """For queries with several sort keys: it passes all rows, and counts those that the first key does not rank."""

    def __init__(self, job: TopKJob) -> None:
        super().__init__(job)
        assert isinstance(job.query.by, tuple)
        self._sort = SortKeys(job.query.by, plain_schema(job.schema))

    def prepare(self, table: pa.Table) -> tuple[pa.Table, Tally]:
        timeless = self.timeless(table)
        rows = self.typed(table, ~timeless)
        unranked = np.zeros(table.num_rows, np.bool_)
        if self._sort.keys[0].nulls is None and rows.num_rows:
            first = self._sort.values(whole_batch(rows.select(self._job.schema.names)))[0]
            unranked[~timeless] = np.asarray(first.is_null())
        return rows, self.tally(table, self.weights(table), timeless, unranked)
