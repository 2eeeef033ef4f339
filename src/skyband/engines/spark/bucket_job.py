"""What a worker needs to run a query in a bucket: the same few things for every problem.

A problem's job (`problems/rows/spark.py` and its neighbours) adds how to open a bucket's session and how to prepare
its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from skyband.core.about import About
from skyband.core.calls import Stats
from skyband.core.distribution import by_pane
from skyband.core.emit import gives_changes
from skyband.core.plan import Plan
from skyband.engines.spark.arrow_types import as_arrow
from skyband.errors import InvalidInput, InvalidQuery
from skyband.expressions import functions
from skyband.kernels.panes import Shape, shape_of
from skyband.windows import Ticks, Window

if TYPE_CHECKING:
    from skyband.engines.spark.gathering import Gatherer
    from skyband.engines.spark.journal import Recorded

PREFIX: Final = "__skyband_"
TIE: Final = PREFIX + "tie"  # a hash of the whole row: orders rows that nothing else orders, the same way on a replay
BUCKET: Final = PREFIX + "bucket"
CLOCK: Final = PREFIX + "clock"


class BucketSession(Protocol):
    """What Spark needs of a session: one push for all rows, whichever input they are of."""

    about: dict[str, Any] | None

    def push(self, rows: pa.RecordBatch | pa.Table) -> pa.Table: ...
    def advance(self, watermark: int) -> pa.Table: ...
    def next_close(self) -> int | None: ...
    def finish(self) -> pa.Table: ...
    def stats(self) -> Stats: ...
    def snapshot(self) -> bytes: ...


_FUNCTIONS: Final = "functions of the user's"


@dataclass(frozen=True)
class BucketJob(ABC):
    """All that a worker has to know. It travels in Spark's own closures, so it holds values and functions only."""

    window: Window
    ticks: Ticks
    schema: pa.Schema  # the rows a bucket takes
    added: tuple[str, ...]  # which of these columns are ours, not the input's
    output: pa.Schema  # what the user sees
    sources: tuple[str | None, ...]  # for each of those columns, the input column it is; None for what we add
    changes: bool  # does it say what changed, rather than the answers of closed windows?
    is_spread: bool  # over several buckets; else there is only bucket 0
    fingerprint: str  # of the query as the user asked it, and its columns
    plan: Plan  # what buckets run, unless their snapshots were taken by something else

    def __getstate__(self) -> dict[str, Any]:
        """With the user's functions that expressions in it call."""
        return {**self.__dict__, _FUNCTIONS: functions.called(repr(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In a worker, which knows of no functions but ours."""
        for name, function in state.pop(_FUNCTIONS).items():
            functions.function(name, function)
        self.__dict__.update(state)

    @abstractmethod
    def open(self, bucket: int, state: bytes | None = None, *, external_clock: bool = False) -> BucketSession:
        """The session of a bucket: takes rows of `schema` by `push`. With an external clock only `advance` closes."""

    @abstractmethod
    def gatherer(self) -> Gatherer:
        """What prepares the rows of one partition for their buckets."""

    @abstractmethod
    def about(self) -> About | None:
        """What a bucket is asked, for whoever reads its state; None: it cannot be said in text and numbers."""

    @property
    def has_journal(self) -> bool:
        """May the state of a bucket be a snapshot and what came after it? A reader has to open a session to repeat it,
        so it needs to be told what the query asks."""
        return self.about() is not None

    def take(self, session: Recorded, pages: Sequence[pa.Table]) -> pa.Table:
        """The pages of a micro-batch go into the session of their bucket; returns what they make known."""
        return session.push(self.in_arrival_order(pages))

    def in_arrival_order(self, pages: Sequence[pa.Table]) -> pa.Table:
        """The rows of a micro-batch as a session takes them. Spark keeps no order; columns give one that replays
        repeat."""
        rows = pa.concat_tables(pages)
        if self.in_any_order:
            return rows.select(self.schema.names).combine_chunks()
        order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in self.arrival_order])
        return rows.select(self.schema.names).take(order).combine_chunks()

    @property
    def by_pane(self) -> bool:
        """Do answers come at the ends of windows by value?"""
        return by_pane(self.ticks)

    @property
    def shape(self) -> Shape:
        """How windows by value overlap."""
        return shape_of(self.ticks.size, self.ticks.every)

    @property
    def plain_names(self) -> dict[str, str]:
        """Names for the input columns on their way to Python: mapInArrow stumbles over dots and backticks."""
        return {name: f"{PREFIX}{number}" for number, name in enumerate(self.schema.names) if name not in self.added}

    @property
    def keeps_the_latest(self) -> bool:
        """Are rows ruled out before they are packed, but never the latest of them, which moves the watermark?"""
        return False

    @property
    def in_any_order(self) -> bool:
        """Does it not matter in which order the rows of a micro-batch come?"""
        return False

    @property
    def arrival_order(self) -> list[str]:
        """The columns that put the rows of a micro-batch in order of arrival."""
        tie = None if self.in_any_order else TIE
        return [name for name in (self.window.on, self.window.order, tie) if name is not None]


def ends_for_all(frames: Iterable[DataFrame], emit: str | None) -> bool:
    """Does the last row of all decide what other buckets emit? At the end of a batch, windows close up to it, and with
    changes they say what they no longer hold; a bucket by itself does not see that row."""
    return not any(df.isStreaming for df in frames) and gives_changes(emit)


def check_order(window: Window, schema: pa.Schema) -> None:
    """Raise unless the rows of a window of arrivals can be put in order."""
    order = window.order
    if order is None and window.by_count:
        raise InvalidQuery(
            "Spark has no arrival order, so name the column that orders the rows: add order='…' to the window. "
            f"Columns: {', '.join(schema.names)}."
        )
    if order is not None and pa.types.is_nested(schema.field(order).type):
        raise InvalidQuery(f"order={order!r} cannot put rows in order: the column is {schema.field(order).type}.")


def check_no_jump(df: DataFrame, max_jump: object) -> None:
    """Raise unless no time has to be doubted: Spark's watermark believes every row before we see it."""
    if max_jump is not None and df.isStreaming:
        raise InvalidQuery(
            f"max_jump={max_jump!r} cannot be kept on a Spark stream: its watermark believes every row, before Skyband "
            "sees it. Filter times that cannot be: df.where('ts <= current_timestamp() + INTERVAL 1 HOUR')."
        )


def quoted(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    return sf.col("`" + name.replace("`", "``") + "`")


def tie(df: DataFrame) -> Column:
    """Rows that nothing else orders come in the order of a hash of their contents, whichever way they were read."""
    return sf.xxhash64(*(quoted(field.name) for field in df.schema if _is_hashable(field.dataType))).alias(TIE)


def bucket(names: tuple[str, ...] | list[str], buckets: int) -> Column:
    """A bucket for each combination of values of these columns."""
    return bucket_of(list(map(quoted, names)), buckets).alias(BUCKET)


def bucket_of(values: list[Column], buckets: int) -> Column:
    """A bucket for each combination of these values."""
    return bucket_of_hash(sf.xxhash64(*values), buckets)


def bucket_of_hash(hashed: Column, buckets: int) -> Column:
    return sf.pmod(hashed, sf.lit(buckets)).cast("int")


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns as Arrow has them; instants in UTC, whatever the session's time zone."""
    repeated = {name for name in schema.names if schema.names.count(name) > 1}
    if repeated:
        raise InvalidInput(f"Column names must differ, but these come twice: {', '.join(sorted(repeated))}.")
    reserved = [name for name in schema.names if name.startswith(PREFIX)]
    if reserved:
        raise InvalidInput(f"Column names that start with {PREFIX} are reserved: rename {', '.join(reserved)}.")
    try:
        translated = as_arrow(schema)
    except PySparkTypeError as error:
        raise InvalidInput(f"A column has a type that Arrow lacks: {error}") from error
    return pa.schema([field.remove_metadata().with_nullable(True) for field in translated])


def schema_of(df: DataFrame) -> pa.Schema:
    """The columns of `df` as Arrow has them."""
    return arrow_schema(df.schema)


def _is_hashable(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_hashable(field.dataType) for field in data_type)
    if isinstance(data_type, ArrayType):
        return _is_hashable(data_type.elementType)
    return not isinstance(data_type, (MapType, VariantType))
