"""Event time on Spark: one watermark, in milliseconds, that starts at 0, on a TIMESTAMP column and no other type.

A timestamp column carries it as it is. For an integer column, or a timestamp without time zone, a column is derived in
which one millisecond stands for the largest step that tells all window ends apart, so that nothing is lost to Spark's
granularity; it is shifted so that small and negative values lie after Spark's 0, which means "no watermark yet".

In a micro-batch, windows close before its rows come in: the watermark is that of the rows before. So a row is late or
not however Spark cuts the stream into batches, with or without an empty one in between. Not so below another stateful
operator, which holds its rows back until the watermark has passed them: then they come in before windows close.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampNTZType, TimestampType

from skyband.engines.spark.bucket_job import CLOCK, BucketJob, quoted
from skyband.errors import InvalidQuery

_DELAY: Final = "spark.watermarkDelayMs"  # in the metadata of a column that has a watermark
_SHIFT_MS: Final = 2**50
_MOST_STEPS: Final = 2**52  # in either direction: Spark's timestamps end after some 2**53 milliseconds
_TOO_FAR: Final = (
    "On a Spark stream, the window's column {on!r} may have values up to {most:,} times {step:,}, because Spark keeps "
    "the watermark in milliseconds. Let the window slide in larger steps, or measure a column of timestamps. Got: "
)

# Operators that hand on the rows of a micro-batch in the same micro-batch; any other may hold rows back.
_PROMPT: Final = {
    *("StreamingRelation", "StreamingRelationV2", "SubqueryAlias", "View", "EventTimeWatermark", "CollectMetrics"),
    *("Project", "Filter", "Generate", "Union", "Repartition", "RepartitionByExpression", "ResolvedHint"),
    *("MapInArrow", "MapInPandas", "MapPartitions", "MapElements", "TypedFilter"),
    *("DeserializeToObject", "SerializeFromObject"),
}
_NODE: Final = re.compile(r"[ :|+-]*~?(\w+)")


@dataclass(frozen=True, slots=True)
class Clock:
    """From Spark's milliseconds to ticks of the window's column and back."""

    ticks_per_ms: int
    shift_ms: int = 0
    rows_first: bool = False  # in a micro-batch, before windows close
    behind_ms: int = 0  # how much longer this query waits than the one that Spark's watermark is for

    def ticks(self, watermark_ms: int) -> int | None:
        """The watermark in ticks; None when there is none yet."""
        mine_ms = watermark_ms - self.behind_ms
        return None if mine_ms <= 0 else (mine_ms - self.shift_ms) * self.ticks_per_ms

    def ms(self, ticks: int) -> int:
        """The first millisecond at which the watermark has reached `ticks`, and there is one: after Spark's 0."""
        return max(-(-ticks // self.ticks_per_ms) + self.shift_ms, 1) + self.behind_ms


def with_clock(df: DataFrame, job: BucketJob, lateness: int, on: str | None = None) -> tuple[DataFrame, Clock]:
    """`df` with a watermark for the window's column: the user's own, or one that waits for `lateness` ticks.

    `on` is what `df` calls that column, if not as the job does. If `df` unites inputs that each have such a watermark,
    it stays: Spark's then is that of the slowest input.
    """
    on = on or str(job.window.on)
    marked = watermarked(df)
    if marked not in ([], [on], [CLOCK]):
        raise InvalidQuery(
            f"The stream has a watermark on {', '.join(map(repr, marked))}, but the window measures {on!r}, and Spark "
            "allows one watermark. Measure the window on that column, or leave the watermark to lateness=."
        )
    on_type = df.schema[on].dataType
    if isinstance(on_type, TimestampType):
        if marked:
            return df, Clock(ticks_per_ms=1000, rows_first=not _is_prompt(df))
        # Rounded up: a shorter wait than asked for would drop rows.
        return df.withWatermark(on, f"{-(-lateness // 1000)} milliseconds"), Clock(ticks_per_ms=1000)
    every = job.ticks.every
    ticks = wall_clock_us(quoted(on)) if isinstance(on_type, TimestampNTZType) else quoted(on).cast("long")
    if every:  # windows end on multiples of it, so the watermark has to say only which of these it has passed
        ticks, step, waits = ticks - sf.lit(lateness), every, 0
    else:
        step, waits = max(lateness, 1), min(lateness, 1)
    if marked == [CLOCK]:
        return df, Clock(step, _SHIFT_MS)
    steps = sf.call_function("div", ticks - sf.pmod(ticks, sf.lit(step)), sf.lit(step)) if step > 1 else ticks
    words = _TOO_FAR.format(on=str(job.window.on), step=step, most=_MOST_STEPS)
    far = sf.raise_error(sf.concat(sf.lit(words), quoted(on).cast("string")))
    millis = sf.when(sf.abs(steps) > sf.lit(_MOST_STEPS), far.cast("long")).otherwise(steps + sf.lit(_SHIFT_MS))
    df = df.withColumn(CLOCK, sf.timestamp_millis(millis))
    return df.withWatermark(CLOCK, f"{waits} milliseconds"), Clock(step, _SHIFT_MS)


def watermarked(df: DataFrame) -> list[str]:
    """The columns that have a watermark."""
    return [field.name for field in df.schema if _DELAY in field.metadata]


def wall_clock_us(local: Column) -> Column:
    """Microseconds since 1970-01-01 00:00 on the same wall. A cast would go through the session's time zone."""
    since = local - sf.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'")
    units = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}
    whole = sum((sf.extract(sf.lit(unit), since).cast("long") * us for unit, us in units.items()), sf.lit(0))
    return whole + (sf.extract(sf.lit("SECOND"), since) * 1_000_000).cast("long")


def _is_prompt(df: DataFrame) -> bool:
    """Do rows come here in the micro-batch in which they were read? The plan's text tells every kind of client."""
    with redirect_stdout(io.StringIO()) as text:
        df.explain(extended=True)
    analyzed = text.getvalue().partition("== Analyzed Logical Plan ==\n")[2].partition("\n== ")[0]
    nodes = [node[1] for line in analyzed.splitlines()[1:] if (node := _NODE.match(line))]
    return bool(nodes) and _PROMPT.issuperset(nodes)
