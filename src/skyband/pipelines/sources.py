"""Sources as DataFrames. Records that are text are parsed here, and those that cannot be are set aside with the reason.

A record is bad if it is not JSON, or has another number of fields than there are columns (CSV), if a field has another
type than the schema says, or if it has no time. Good rows go on; bad ones are counted where they are left out, and, if
the source has `dead_letters`, written there by a query of its own. So the rows that come in are those used, those late
and those set aside.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from skyband.pipelines.columns import parse_schema
from skyband.pipelines.figures import SET_ASIDE
from skyband.pipelines.model import Pipeline, Source
from skyband.pipelines.secrets import resolve

_TEXT: Final = "__pipeline_text"
_READ: Final = "__pipeline_read"
_BROKEN: Final = "__pipeline_broken"
_REASON: Final = "__pipeline_reason"
_FILE: Final = "__pipeline_file"


def rows_of(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    """The good rows of a source, with the watermark that the file gives them."""
    if source.is_text:
        bad = sf.coalesce(sf.count_if(sf.col(_REASON).isNotNull()), sf.lit(0)).alias("rows_set_aside")
        records = _parsed(spark, pipeline, source).observe(f"{SET_ASIDE}_{source.name}", bad)
        rows = records.where(sf.col(_REASON).isNull()).select(f"{_READ}.*").drop(_BROKEN)
    else:
        rows = _read(spark, pipeline, source)
    if source.time is not None and source.lateness is not None and rows.isStreaming:
        rows = rows.withWatermark(source.time, source.lateness)
    return rows


def bad_records_of(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    """The records of a source that are not rows: where each is from, why it is bad, and the record itself."""
    records = _parsed(spark, pipeline, source)
    origin = [sf.col(_FILE).alias("file")] if source.path is not None else []
    if source.format == "kafka":
        origin = [sf.col(name) for name in ("topic", "partition", "offset")]
    shown = [*origin, sf.col(_REASON).alias("reason"), sf.col(_TEXT).alias("record")]
    return records.where(sf.col(_REASON).isNotNull()).select(*shown)


def _parsed(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    """Each record as text, as the struct it was read into, and why it is a bad one, if it is."""
    schema = f"{source.schema}, {_BROKEN} STRING"
    records = _read(spark, pipeline, source).withColumn(_TEXT, sf.col("value").cast("string"))
    options = {}
    if source.path is not None:
        records = records.where(sf.trim(_TEXT) != "")  # as Spark's readers of files do
        options = _options(source)
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
    if source.format == "csv":
        records = _without_headers(records, source, options)
        read = sf.from_csv(sf.col(_TEXT), schema, options)
    else:
        read = sf.from_json(sf.col(_TEXT), schema, options)
    return records.withColumn(_READ, read).withColumn(_REASON, _reason(source))


def _without_headers(records: DataFrame, source: Source, options: dict[str, str]) -> DataFrame:
    """Without lines that name the columns, where files have them."""
    given = {name.lower(): value for name, value in options.items()}
    if given.get("header") != "true":
        return records
    separator = given.get("sep", given.get("delimiter", ","))
    header = separator.join(parse_schema(str(source.schema)).names).lower()
    return records.where(sf.lower(sf.regexp_replace(_TEXT, '[ "]', "")) != header.replace(" ", ""))


def _reason(source: Source) -> Column:
    read = sf.col(_READ)
    broken = read.isNull() | read[_BROKEN].isNotNull()
    if source.format == "csv":
        reason = sf.when(broken, "columns or types that differ from the schema")
    else:
        reason = sf.when(sf.col(_TEXT).isNull(), "empty record")
        reason = reason.when(sf.try_parse_json(_TEXT).isNull(), "not JSON")
        reason = reason.when(broken, "a type that differs from the schema")
    return reason if source.time is None else reason.when(read[source.time].isNull(), f"no {source.time}")


def _options(source: Source) -> dict[str, str]:
    return {name: resolve(value) for name, value in source.options.items()}


def _read(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    """What Spark's reader gives."""
    options = _options(source)
    if source.format == "kafka":
        # From the beginning: without a checkpoint a rerun gives the same answers as the first run.
        options = {"startingOffsets": "earliest"} | options
        options |= {"kafka.bootstrap.servers": resolve(str(source.servers)), "subscribe": resolve(str(source.topic))}
    reader = (spark.readStream if source.stream else spark.read).options(**options)
    if source.format == "table":
        return reader.table(resolve(str(source.table)))
    if source.path is None:
        return reader.format(source.format).load()
    path = pipeline.located(resolve(source.path))
    if source.is_text:
        return reader.format("text").load(path).select("value", sf.col("_metadata.file_path").alias(_FILE))
    schema = source.schema
    if schema is None and source.stream:
        # A stream of files must know its columns; those of the files that are there are as good as any.
        reader = reader.schema(spark.read.options(**options).format(source.format).load(path).schema)
    elif schema is not None:
        reader = reader.schema(schema)
    return reader.format(source.format).load(path)
