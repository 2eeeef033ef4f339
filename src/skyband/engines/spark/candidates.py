"""The filter before the shuffle: which rows may still be shown, decided on time, score and group alone.

Whole rows wait in the JVM while these columns cross to Python; about k rows per pane, group and partition go on. What
is ruled out must still be counted, so the first row of each kind in an Arrow batch goes on too and stands for the
others: of each pane (its rows may turn out to be late), of the rows without a score, of the rows without a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

from skyband.engines.spark.recipe import WEIGHT, Recipe, quoted
from skyband.engines.spark.workers import spare_the_collector
from skyband.expressions import as_floats
from skyband.structures.panes import shape_of
from skyband.structures.sieve import Sieve, tally_panes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def only_candidates(df: DataFrame, recipe: Recipe, score: Column | None) -> DataFrame:
    """`df` with the column WEIGHT, without the rows that cannot be shown."""
    window, per = recipe.query.window, recipe.query.per
    scored_by = [score] if score is not None else [quoted(name) for name in recipe.score.columns]  # type: ignore[union-attr]
    groups = [group_key(df, per)] if per else []
    weigh = arrow_udf(weigher(recipe), "int")  # type: ignore[call-overload]  # its hints say that it is an iterator
    # It remembers rows, so Spark must neither call it twice nor move it: that is what "not deterministic" says.
    weight = weigh.asNondeterministic()(quoted(str(window.on)), *groups, *scored_by)
    return df.withColumn(WEIGHT, weight).where(sf.col(WEIGHT).isNotNull())


def group_key(df: DataFrame, per: tuple[str, ...]) -> Column:
    """A long for each group: an integer column itself, else a hash of 64 bits.

    Two groups with the same hash would share one ranking before the shuffle, and rows could be lost: with a million
    groups in a partition the chance is one in 40 million. After the shuffle groups are told apart by their values.
    """
    integral = (ByteType, ShortType, IntegerType, LongType)
    if len(per) == 1 and isinstance(df.schema[per[0]].dataType, integral):
        return quoted(per[0])
    return sf.xxhash64(*(quoted(name) for name in per))


def weigher(recipe: Recipe) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """The function Spark calls with the columns of a partition: null drops a row, a number keeps it."""

    def weigh(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        spare_the_collector()
        shape = shape_of(recipe.ticks.size, recipe.ticks.every)
        sieve = Sieve(recipe.query.k, shape, ascending=recipe.query.ascending)
        for time_column, *columns in batches:
            group_column = columns.pop(0) if recipe.query.per else None
            times = times_of(time_column)
            scores = _scores(columns, recipe)
            timeless = np.asarray(time_column.is_null()) if time_column.null_count else None
            if timeless is not None:
                scores = np.where(timeless, np.nan, scores)
            groups, null_groups = groups_of(group_column)
            kept = sieve.keep(times, scores, groups, null_groups)
            weights = np.zeros(len(times), np.int32)
            first, count = tally_panes(times, scores, shape)
            weights[first] = count
            unranked = np.isnan(scores)
            if timeless is not None:
                _stand_for(timeless, weights)
                unranked &= ~timeless
            _stand_for(unranked, weights)
            yield pa.array(weights, mask=~(kept | (weights > 0)))

    return weigh


def _stand_for(rows: npt.NDArray[np.bool_], weights: npt.NDArray[np.int32]) -> None:
    """The first of these rows stands for them all."""
    count = np.count_nonzero(rows)
    if count:
        weights[rows.argmax()] = count


def times_of(column: pa.Array | pa.ChunkedArray) -> Ints:
    """Ticks of a timestamp or integer column; 0 for null."""
    if column.type != pa.int64():
        column = column.cast(pa.int64())  # Spark's timestamps are microseconds
    if column.null_count:
        column = column.fill_null(0)
    return column.to_numpy(zero_copy_only=False)


def _scores(columns: list[pa.Array], recipe: Recipe) -> Floats:
    if recipe.score is None:
        return as_floats(columns[0], len(columns[0]), "the score")
    return recipe.score.evaluate(pa.record_batch(columns, names=list(recipe.score.columns)))


def groups_of(column: pa.Array | pa.ChunkedArray | None) -> tuple[Ints | None, npt.NDArray[np.bool_] | None]:
    """The numbers of group keys, and which of them are null."""
    if column is None:
        return None, None
    return times_of(column), np.asarray(column.is_null()) if column.null_count else None
