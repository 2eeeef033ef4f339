"""A driver process for restart tests: one streaming query from Parquet files to Parquet files.

python -m spark.driver INPUT OUTPUT CHECKPOINT
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import skyband as sb
from skyband.engines.spark import local_session

FILES_PER_BATCH = 2


def ask(rows: DataFrame) -> DataFrame:
    window = sb.sliding("25 seconds", every="10 seconds", on="ts")
    return sb.top_k(rows, k=2, by="price", window=window, per="symbol", lateness="5 seconds")


def start(spark: SparkSession, source: Path, target: Path, checkpoint: Path) -> StreamingQuery:
    schema = spark.read.parquet(str(source)).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(str(source))
    writer = ask(rows).writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start(str(target))


def main(source: str, target: str, checkpoint: str) -> None:
    spark = local_session("restart test", cores=2, fast_start=True)
    start(spark, Path(source), Path(target), Path(checkpoint)).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
